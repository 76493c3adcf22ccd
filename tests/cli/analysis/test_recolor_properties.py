"""`troth recolor --to async --properties`: a property becomes a method, and whoever reads it calls and awaits it."""

import subprocess
import sys

import pytest

TAPE = """\
import asyncio


class Tape:
    @property
    def tape_size(self):
        return 3

    @property
    def twice(self):
        return self.tape_size * 2


"""
NAMESAKE = "class Reel:\n    def tape_size(self):\n        return 1\n"
RUN = """

if __name__ == "__main__":
    print(asyncio.run(main()))
"""


def output(project):
    command = [sys.executable, "app.py"]
    return subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("return Tape().tape_size + 1", "return await Tape().tape_size() + 1", id="a value"),
        pytest.param('return f"{Tape().tape_size}"', 'return f"{await Tape().tape_size()}"', id="in a string"),
        pytest.param("return Tape().tape_size.real", "return (await Tape().tape_size()).real", id="an attribute of it"),
        pytest.param("return [t.tape_size for t in [Tape()]]", "[await t.tape_size() for t in [Tape()]]", id="a list"),
        pytest.param("return sum(t.tape_size for t in [Tape()])", "sum([await t.tape_size() for t", id="a generator"),
        pytest.param("return Tape().twice", "return await Tape().twice()", id="a property that follows"),
    ],
)
def test_a_property_becomes_a_method(project, before, after):
    """The program does what it did."""
    project.write({"app.py": f"{TAPE}async def main():\n    {before}\n{RUN}"})
    expected = output(project)
    done = project.troth("recolor", "app:Tape.tape_size", "--to", "async", "--cascade", "all", "--properties")
    assert done.code == 0, done.out + done.err
    changed = (project.root / "app.py").read_text()
    assert after in changed
    assert "@property" not in changed
    assert output(project) == expected


@pytest.mark.parametrize(
    ("lines", "after"),
    [
        pytest.param("return {n: t.tape_size for n, t in tapes.items()}", "await t.tape_size() for", id="in parts"),
        pytest.param("for n, t in tapes.items():\n        return t.tape_size", "await t.tape_size()", id="in a loop"),
        pytest.param(
            "rows = list(tapes.values())\n    return rows[0].tape_size", "await rows[0].tape_size()", id="by index"
        ),
        pytest.param(
            "rows = [t for t in tapes.values() if t] if tapes else []\n    return rows[0].tape_size",
            "await rows[0].tape_size()",
            id="out of a list that is filtered",
        ),
        pytest.param("with opened() as t:\n        return t.tape_size", "await t.tape_size()", id="entered"),
        pytest.param("t: Tape = made()\n    return t.tape_size", "await t.tape_size()", id="annotated"),
        pytest.param("(t, n), m = (Tape(), 1), 2\n    return t.tape_size", "await t.tape_size()", id="unpacked"),
    ],
)
def test_a_receiver_is_found_wherever_it_is_bound(project, lines, after):
    """A variable may be bound in parts, by a loop, by a `with` or by an annotation."""
    head = (
        "import contextlib\n@contextlib.contextmanager\ndef opened():\n    yield Tape()\n"
        f"def made():\n    return globals()['Tape']()\n{NAMESAKE}"
    )
    body = f"async def main(tapes: dict[str, Tape] = {{'a': Tape()}}):\n    {lines}\n"
    project.write({"app.py": f"{TAPE}{head}{body}{RUN}"})
    expected = output(project)
    done = project.troth("recolor", "app:Tape.tape_size", "--to", "async", "--cascade", "all", "--properties")
    assert done.code == 0, done.out + done.err
    assert after in (project.root / "app.py").read_text()
    assert output(project) == expected


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("t = Tape() if flag else flag\n    return t.tape_size", id="perhaps something else"),
        pytest.param("t = Tape()\n    for t in flag:\n        return t.tape_size", id="bound twice, once to anything"),
        pytest.param("n, t = flag\n    return t.tape_size", id="unpacked from anything"),
        pytest.param("with flag as t:\n        return t.tape_size", id="entered, from anything"),
    ],
)
def test_a_receiver_that_nobody_can_tell_is_asked_for(project, lines):
    """One place that may bind something else is enough."""
    project.write({"app.py": f"{TAPE}{NAMESAKE}async def main(flag):\n    {lines}\n"})
    done = project.troth("recolor", "app:Tape.tape_size", "--to", "async", "--cascade", "all", "--properties")
    assert done.code == 1, done.out


def test_what_an_override_reads_of_its_base_follows(project):
    """`super().tape_size` is a method as well, once the property is one."""
    derived = "class Long(Tape):\n    @property\n    def tape_size(self):\n        return super().tape_size + 1\n\n\n"
    project.write({"app.py": f"{TAPE}{derived}async def main():\n    return Long().tape_size\n{RUN}"})
    expected = output(project)
    done = project.troth("recolor", "app:Tape.tape_size", "--to", "async", "--cascade", "all", "--properties")
    assert done.code == 0, done.out + done.err
    assert "return await super().tape_size() + 1" in (project.root / "app.py").read_text()
    assert output(project) == expected


def test_it_has_to_be_asked_for(project):
    """Callers elsewhere would read a method and never notice, so nobody gets it by the way."""
    text = f"{TAPE}async def main():\n    return Tape().tape_size\n"
    project.write({"app.py": text})
    done = project.troth("recolor", "app:Tape.tape_size", "--to", "async", "--cascade", "all")
    assert done.code == 1
    assert "`--properties` makes a method of it" in done.out
    assert (project.root / "app.py").read_text() == text


@pytest.mark.parametrize(
    ("more", "says"),
    [
        pytest.param("class Short(Tape):\n    tape_size = 1\n", "has an attribute of that name", id="a field below"),
        pytest.param(
            "from typing import Protocol\n\n\nclass Sized(Protocol):\n    tape_size: int\n",
            "has an attribute of that name",
            id="a protocol",
        ),
        pytest.param("def f(x):\n    return getattr(x, 'tape_size')\n", "given to `getattr`", id="by its name"),
        pytest.param(
            "def f(x):\n    match x:\n        case Tape(tape_size=3):\n            return 1\n", "`Tape`", id="a pattern"
        ),
        pytest.param("F = Tape.tape_size\n", "its receiver may be of another class", id="the property itself"),
        pytest.param("def f(x):\n    tape_size = 1\n    return x.tape_size\n", "something unknown", id="a namesake"),
    ],
)
def test_what_keeps_a_property(project, more, says):
    """Whatever would read a method instead of a value, or may."""
    project.write({"app.py": TAPE + more})
    done = project.troth("recolor", "app:Tape.tape_size", "--to", "async", "--cascade", "all", "--properties")
    assert done.code == 1, done.out + done.err
    assert says in done.out
    assert (project.root / "app.py").read_text() == TAPE + more


def test_a_property_with_a_setter(project):
    """What is assigned to cannot be called."""
    text = TAPE.replace(
        "    @property\n    def twice",
        "    @tape_size.setter\n    def tape_size(self, n): ...\n\n    @property\n    def twice",
    )
    project.write({"app.py": text})
    done = project.troth("recolor", "app:Tape.tape_size", "--to", "async", "--cascade", "all", "--properties")
    assert done.code == 1
    assert (project.root / "app.py").read_text() == text


def test_a_decision_asks_for_it_as_well(project):
    """Every obstacle that can be overruled names the line that does it."""
    project.write({"app.py": f"{TAPE}async def main():\n    return Tape().tape_size\n{RUN}"})
    command = ("recolor", "app:Tape.tape_size", "--to", "async", "--cascade", "all", "--plan")
    done = project.troth(*command)
    assert done.code == 1
    assert "decided by  app.py:Tape.tape_size: recolor" in done.out
    project.write({"answers.txt": "app.py:Tape.tape_size: recolor\napp.py:Tape.twice: recolor\n"})
    done = project.troth(*command, "--decide", "answers.txt")
    assert done.code == 0, done.out + done.err
