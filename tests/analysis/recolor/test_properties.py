"""What holds for every change of color: the program does what it did, and there and back is where one was.

Programs are made of functions and methods that call those before them in the places where calls stand: as statements, in
conditions, loops, comprehensions, over several lines, in parentheses, under `try` and `with`, behind attributes.
"""

import contextlib
import io
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from troth.analysis.project.project import Project
from troth.analysis.recolor.check_plan import rewritten
from troth.analysis.recolor.reach.boundary import AUTO
from troth.analysis.recolor.recolor import Wish, plan_recolor

# Bodies of a function of one number. `{f}` is a call of an earlier function without its argument: `f2`, `self.m1`.
STATEMENTS = [
    "return {f}(n)",
    "x = {f}(n)\nreturn x + 1",
    "{f}(n)\nreturn n",
    "return {f}({g}(n)) + {f}(1)",
    "return [{f}(i) for i in range(2)][0] + n",
    "return {{i: {f}(i) for i in range(2)}}[1]",
    "if {f}(n) > 1:\n    return 1\nelif {g}(n):\n    return 2\nreturn 0",
    "while {f}(n) < 0:\n    n += 1\nreturn n",
    "for i in range({f}(n) % 3):\n    n += {g}(i)\nreturn n",
    "return (\n    {f}(n)\n    + {g}(  # a comment\n        n,\n    )\n)",
    "return ({f}(n))",
    "return str({f}(n)).strip().__len__()",
    "return {f}(n) if n else {g}(n)",
    "return n and {f}(n) or {g}(2)",
    "try:\n    return {f}(n)\nfinally:\n    {g}(n)",
    "with open(__file__ if False else '/dev/null'):\n    return {f}(n)",
    "return -{f}(n) ** 2 % 7",
    "x = y = {f}(n); return x + y",
    "assert {f}(n) is not None, {g}(n)\nreturn n",
    "return max({f}(n), *[{g}(n)], key=abs)",
    "x = {{}}\nx[{f}(n)] = {g}(n)\nreturn len(x)",
    "return not {f}(n)",
    "return {f}(\n    n,\n).real",
    "n += {f}(n)\nreturn n",
    "return f'{{n}}' == 'x' or {f}(n)",
    "def inner():\n    return 1\nreturn inner() + {f}(n)",
    "async def inner():\n    return 1\nreturn {f}(n)",
    "if (x := {f}(n)) and x > {g}(0):\n    pass\nreturn x",
    "return [x for x in range(3) if {f}(x)][-1:] == [2]",
    "lambda: 1\nreturn {f}(n)",
    "call = {f}\nreturn call(n) + call(1)",
    "def rows():\n    for i in range(2):\n        yield {f}(i)\nreturn [x for x in rows()][0] + n",
    "def rows():\n    yield {f}(n)\n    yield {g}(n)\nfor row in rows():\n    n += row\nreturn n",
    "def rows():\n    yield {f}(n)\nreturn next(rows())",
]
# What cannot be taken back letter for letter, or leaves a caller plain.
ONE_WAY = [
    "return sum({f}(i) for i in range(3)) + n",
    "return list(map(lambda i: {f}(i), [n]))[0]",
    "return sorted([n, 1], key=lambda i: {f}(i))[0]",
    "return ' '.join(str({f}(i)) for i in range(2)) > ''",
    "return Held({f}(n)).kept",
    "def rows():\n    yield {f}(n)\ndef more():\n    yield 1\n    yield from rows()\nreturn sum(more())",
    "def rows():\n    yield {f}(n)\nreturn sum(x for x in rows())",
    "def rows():\n    yield {f}(n)\nreturn len(list(rows())) + max(rows())",
]


@st.composite
def programs(draw, bodies):
    """A module whose functions call earlier ones, a class among them, and a start that prints what they give."""
    count = draw(st.integers(2, 6))
    lines = ["import asyncio", "", "", "class Held:", "    def __init__(self, n):", "        self.kept = n", "", ""]
    lines += ["def f0(n):", "    return n * 2 + 1", "", ""]
    functions, methods = ["f0"], []
    for index in range(1, count):
        is_method = draw(st.booleans())
        known = [*functions, *(f"self.{one}" for one in methods)] if is_method else functions
        f, g = (draw(st.sampled_from(known)) for _ in range(2))
        body = draw(st.sampled_from(bodies)).format(f=f, g=g).split("\n")
        if is_method and draw(st.booleans()):
            methods.append(f"m{index}")
            name, indent = f"m{index}(self, n)", "    "
            if len(methods) == 1:
                lines.append("class Box:")
        elif methods:
            continue  # the class stands last, so that what is in it may call all before it
        else:
            body = [one.replace("self.", "") for one in body] if not is_method else body
            functions.append(f"f{index}")
            name, indent = f"f{index}(n)", ""
        lines += [f"{indent}def {name}:", *(f"{indent}    {one}" for one in body), "", *([] if indent else [""])]
    if methods:
        lines.append("")
    lines += ["def main():"]
    lines += [f"    print([{one}(i) for i in range(-1, 3)])" for one in functions]
    lines += [f"    print(Box().{one}(3))" for one in methods]
    lines += ["", "", 'if __name__ == "__main__":', "    main()", ""]
    return "\n".join(lines)


def output(text):
    """What a program prints, or how it fails."""
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        try:
            exec(compile(text, "app.py", "exec"), {"__name__": "__main__", "__file__": __file__})
        except (IndexError, KeyError, RecursionError, AssertionError, TypeError) as error:
            told.write(type(error).__name__)
    return told.getvalue()


def recolored(text, to, *targets, boundary=()):
    root = Path("/nowhere")
    overlay = {"app.py": text.encode()}
    wish = Wish(targets, cascade="all", boundary=boundary, runner="bridge.run" if boundary else "asyncio.run")
    plan = plan_recolor(Project(root, ("app.py",)), wish, to, overlay)
    assert plan.is_clear, [*plan.unable, *plan.problems]
    assert not plan.unknown
    (change,) = rewritten(root, plan.edits, overlay)
    return change.after.decode()


MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@MANY
@given(programs(STATEMENTS))
def test_there_and_back(text):
    """Async and back is the same text, byte for byte; on the way the program does what it did."""
    there = recolored(text, "async", "app:f0")
    assert "async def f0" in there
    assert output(there) == output(text)
    assert recolored(there, "sync", "app:f0") == text


@MANY
@given(programs([*STATEMENTS, *ONE_WAY]))
def test_it_does_what_it_did(text):
    """With a boundary wherever a caller stays plain, every program goes through, and prints what it printed."""
    there = recolored(text, "async", "app:f0", boundary=(AUTO,))
    assert output(there) == output(text)
