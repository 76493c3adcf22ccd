"""`await` goes where it has to go, with parentheses where they are needed, and nowhere where it may not stand."""

from pathlib import Path

import pytest

from troth.analysis.fix.settle import settle
from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project

HEAD = "async def f(*a): ...\nasync def main(x):\n    "


def fixed(folder: Path, source: str) -> str:
    """`source` after all fixes that are offered, sure or not."""
    (folder / "case.py").write_text(source, encoding="utf-8", newline="")

    def look(overlay):
        return analyse(Project(folder, ("case.py",)), overlay=overlay).findings

    changes = settle(folder, look, lambda one: one.fix is not None).changes
    return changes[0].after.decode() if changes else source


@pytest.mark.parametrize(
    ("body", "after"),
    [
        pytest.param("f()", "await f()", id="statement"),
        pytest.param("x = f()\n    print(x.a)", "x = await f()\n    print(x.a)", id="used through a variable"),
        pytest.param("x: int = f()\n    return x + 1", "x: int = await f()\n    return x + 1", id="annotated"),
        pytest.param("a, b = f()", "a, b = await f()", id="unpacking"),
        pytest.param("if (x := f()): return x", "if (x := await f()): return x", id="walrus"),
        pytest.param("return f().a", "return (await f()).a", id="attribute"),
        pytest.param("return (f()).a", "return (await f()).a", id="attribute with parentheses already"),
        pytest.param("return f()['a']", "return (await f())['a']", id="subscript"),
        pytest.param("return 'é' + f().a", "return 'é' + (await f()).a", id="after a character of two bytes"),
        pytest.param("if not f(): pass", "if not await f(): pass", id="after not"),
        pytest.param("return x if f() else 2", "return x if await f() else 2", id="conditional expression"),
        pytest.param("while f(): pass", "while await f(): pass", id="while"),
        pytest.param("assert f()", "assert await f()", id="assert"),
        pytest.param("return 1 < f() < 2", "return 1 < await f() < 2", id="comparison"),
        pytest.param("return -f()", "return -await f()", id="sign"),
        pytest.param("return f() ** 2", "return await f() ** 2", id="power"),
        pytest.param("return len(f())", "return len(await f())", id="argument"),
        pytest.param("print(*f())", "print(*await f())", id="star argument"),
        pytest.param("print(f'é {f()}')", "print(f'é {await f()}')", id="f-string"),
        pytest.param("print(f'''\n {f(1)} {f()!r:>9}''')", "print(f'''\n {await f(1)} {await f()!r:>9}''')", id="f-string of two lines"),
        pytest.param("for i in f(): print(i)", "for i in await f(): print(i)", id="loop"),
        pytest.param("return [i for i in f() if f(i)]", "return [i for i in await f() if await f(i)]", id="comprehension"),
        pytest.param("return {k for k in f().items()}", "return {k for k in (await f()).items()}", id="comprehension's source"),
        pytest.param("return sum(f(i).n for i in (1,))", "return sum([(await f(i)).n for i in (1,)])", id="generator read at once"),
        pytest.param("return list(i for i in f())", "return list(i for i in await f())", id="generator's first source"),
        pytest.param("return f(\n        1,  # one\n    ).a", "return (await f(\n        1,  # one\n    )).a", id="several lines"),
        pytest.param("return (\n        f(1)\n        .a\n    )", "return (\n        (await f(1))\n        .a\n    )", id="chain over lines"),
    ],
)  # fmt: skip
def test_await_in_every_shape(tmp_path, body, after):
    """The result parses, means what was meant, and nothing else has changed."""
    result = fixed(tmp_path, f"{HEAD}{body}\n")
    assert result == f"{HEAD}{after}\n"
    compile(result, "case.py", "exec")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("def g():\n        return f().a\n    return g()", id="plain def inside"),
        pytest.param("class A:\n        x = f().a", id="class body"),
        pytest.param("return sorted([1], key=lambda i: f(i).a)", id="lambda"),
        pytest.param("g = (f(i).a for i in (1,))\n    return g", id="generator that somebody else reads"),
        pytest.param("c = f()\n    c.a\n    await c", id="awaited further on"),
    ],
)
def test_where_nothing_can_be_awaited(tmp_path, body):
    """No fix is offered; what is lost is still told."""
    assert fixed(tmp_path, f"{HEAD}{body}\n") == f"{HEAD}{body}\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "BOM"])
def test_line_ends_and_byte_order_mark(tmp_path, end, mark):
    """They stay as they are, and the `await` still goes to its place."""
    lines = ["async def f(): ...", "async def main():", "\tf().a", "\tf()", ""]
    result = fixed(tmp_path, mark + end.join(lines))
    assert result == mark + end.join(lines).replace("\tf().a", "\t(await f()).a").replace("\tf()", "\tawait f()")


def test_a_missing_await_is_never_hidden(tmp_path):
    """A function that waits for nothing because an `await` is missing gets the `await`, and keeps its `async`."""
    source = "async def f(): ...\nasync def main():\n    async def inner():\n        f()\n    return await inner()\n"
    (tmp_path / "case.py").write_text(source)

    def look(overlay):
        return analyse(Project(tmp_path, ("case.py",)), overlay=overlay, on_request={"TR301"}).findings

    (change,) = settle(tmp_path, look, lambda one: one.fix is not None).changes
    assert change.after.decode() == source.replace("        f()", "        await f()")
