"""`troth recolor X --cascade` goes as far as it can: callers follow or run it, and what nobody can tell is marked."""

import ast
from textwrap import dedent

import pytest

STORE = "class Store:\n    def close(self):\n        return 1\n\n\n"
MARK = "# troth: `{text}` may call `Store.close`, which is async now; then it has to be awaited\n"


def recolor(project, text, *options, target="app.py:Store"):
    project.write({"app.py": text})
    return project.troth("recolor", target, "--to", "async", *options)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "def f(x):\n    x.close()\n",
            "def f(x):\n    " + MARK.format(text="x.close") + "    x.close()\n",
            id="an unknown receiver",
        ),
        pytest.param(
            "def f(x):\n    if x: x.close(); x = None\n",
            "def f(x):\n    " + MARK.format(text="x.close") + "    if x: x.close(); x = None\n",
            id="a statement that begins no line",
        ),
        pytest.param(
            'def f(x):\n    return """\n""" + str(\n        x.close()\n    )\n',
            "def f(x):\n    " + MARK.format(text="x.close") + '    return """\n""" + str(\n        x.close()\n    )\n',
            id="behind a string of several lines",
        ),
        pytest.param(
            "def f(x):\n    if x:\n        pass\n    elif x.close():\n        pass\n",
            "def f(x):\n    if x:\n        pass\n    "
            + MARK.format(text="x.close")
            + "    elif x.close():\n        pass\n",
            id="elif",
        ),
        pytest.param(
            "def f(x):\n\tx.close()\n",
            "def f(x):\n\t" + MARK.format(text="x.close") + "\tx.close()\n",
            id="tabs",
        ),
        pytest.param(
            "TABLE = {1: Store.close}\n",
            "# troth: `Store.close` is async now; the code that receives it here has to await what it returns\n"
            "TABLE = {1: Store.close}\n",
            id="handed around",
        ),
        pytest.param(
            "class Other:\n    def close(self): ...\n\n\nasync def f(x: Store | Other):\n    x.close()\n",
            "class Other:\n    def close(self): ...\n\n\nasync def f(x: Store | Other):\n    "
            + MARK.format(text="x.close")
            + "    x.close()\n",
            id="one of two classes",
        ),
    ],
)
def test_what_nobody_can_tell_is_marked(project, before, after):
    """The comment stands above the statement, whatever that is; nothing else of it changes."""
    done = recolor(project, STORE + before, "--cascade")
    assert done.code == 0, done.out + done.err
    made = (project.root / "app.py").read_text()
    assert made == STORE.replace("    def", "    async def") + after
    ast.parse(made)
    assert "that cannot be decided" in done.out


def test_a_caller_that_has_to_stay_sync_runs_it(project):
    """All follow who can; `__init__` runs the coroutine."""
    text = f"{STORE}class A:\n    def __init__(self, store: Store):\n        self.n = store.close()\n\n\ndef f():\n    return Store().close()\n"
    done = recolor(project, text, "--cascade")
    assert done.code == 0, done.out + done.err
    made = (project.root / "app.py").read_text()
    assert "self.n = bridge.run(store.close())\n" in made
    assert "async def f():\n    return await Store().close()\n" in made


@pytest.mark.parametrize("options", [("--cascade", "all"), ("--cascade", "all", "--boundary", "auto")])
def test_a_named_cascade_stops_at_what_nobody_can_tell(project, options):
    """Nothing is written then; `--mark` is what goes on."""
    text = f"{STORE}def f(x):\n    x.close()\n"
    assert recolor(project, text, *options).code == 1
    assert (project.root / "app.py").read_text() == text
    assert recolor(project, text, *options, "--mark").code == 0
    assert "# troth: `x.close` may call" in (project.root / "app.py").read_text()


def test_what_would_surely_be_lost_is_not_marked(project):
    """A class body cannot await: no comment makes that right."""
    text = f"{STORE}class A:\n    n = [Store().close() for _ in (1, 2)]\n"
    done = recolor(project, text, "--cascade", "all", "--mark")
    assert done.code == 1, done.out
    assert (project.root / "app.py").read_text() == text


def test_a_mark_in_a_file_with_a_byte_order_mark(project):
    """The byte order mark stays the first character, and lines end as before."""
    project.write({"store.py": STORE})
    before = b"\xef\xbb\xbfimport x\r\nx.y.close()\r\n"
    (project.root / "app.py").write_bytes(before)
    done = project.troth("recolor", "store:Store", "--to", "async", "--cascade")
    assert done.code == 0, done.out + done.err
    after = (project.root / "app.py").read_bytes()
    assert after.startswith(b"\xef\xbb\xbf")
    assert b"\n" not in after.replace(b"\r\n", b"")
    ast.parse(after)


@pytest.mark.parametrize(
    ("target", "line"),
    [
        pytest.param("app.py:outer.inner", "        async def inner():", id="a function in a function"),
        pytest.param("app.py:A.B.f", "        async def f(self):", id="a method of a class in a class"),
        pytest.param("app.py:A.B", "        async def f(self):", id="a class in a class"),
    ],
)
def test_what_is_defined_inside_is_a_target(project, target, line):
    """It is named as Python names it."""
    text = dedent(
        """\
        class A:
            class B:
                def f(self):
                    return 1


        def outer():
            if True:
                def inner():
                    return 1
            return inner()


        def use():
            return outer(), A.B().f()
        """
    )
    done = recolor(project, text, "--cascade", target=target)
    assert done.code == 0, done.out + done.err
    made = (project.root / "app.py").read_text().splitlines()
    assert any(written == line for written in made), made


def test_a_name_inside_that_is_not_there(project):
    """What there is inside is named."""
    done = recolor(project, "def outer():\n    def inner(): ...\n", target="app.py:outer.iner")
    assert done.code == 2
    assert "nothing in 'outer' is called 'iner'" in done.err
    assert "`outer.inner`" in done.err


def test_a_call_of_what_the_base_class_has_in_async(project):
    """The factory gives some source; whichever it is, its method has to be awaited from now on."""
    text = dedent(
        """\
        class Base:
            async def validate(self): ...


        class S3(Base):
            def validate(self):
                return 1


        def make(cls) -> Base:
            return cls()


        def test_it():
            make(S3).validate()


        async def awaits():
            await make(S3).validate()
        """
    )
    done = recolor(project, text, "--cascade", "all", target="app.py:S3.validate")
    assert done.code == 0, done.out + done.err
    made = (project.root / "app.py").read_text()
    assert "async def test_it():\n    await make(S3).validate()\n" in made
    assert "async def awaits():\n    await make(S3).validate()\n" in made


def test_a_property_that_is_the_target(project):
    """It becomes a method; one that only reads it stays what it is, and runs the coroutine."""
    text = dedent(
        """\
        class A:
            @property
            def size(self):
                return 1

            @property
            def double(self):
                return 2 * self.size


        async def f(a: A):
            return a.size
        """
    )
    done = recolor(project, text, "--cascade", target="app.py:A.size")
    assert done.code == 0, done.out + done.err
    made = (project.root / "app.py").read_text()
    assert "class A:\n    async def size(self):\n" in made
    assert "    @property\n    def double(self):\n        return 2 * bridge.run(self.size())\n" in made
    assert "    return await a.size()\n" in made


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(
            '"""Tests."""\n\nfrom app import f\n\n\ndef test_f():\n    assert f() == 1\n', id="below a docstring"
        ),
        pytest.param("from app import f\n\n\ndef test_f():\n    assert f() == 1\n", id="at the top"),
        pytest.param(
            "import pytest\nfrom app import f\n\n\n@pytest.mark.slow\ndef test_f():\n    assert f() == 1\n",
            id="used besides",
        ),
    ],
)
def test_the_mark_of_a_test_there_and_back(project, before):
    """What the mark needed goes with it."""
    project.write({"app.py": "def f():\n    return 1\n", "tests/test_f.py": before})
    there = project.troth("recolor", "app:f", "--to", "async", "--cascade", "all")
    assert there.code == 0, there.out + there.err
    assert "@pytest.mark.asyncio\n" in (project.root / "tests/test_f.py").read_text()
    back = project.troth("recolor", "app:f", "--to", "sync", "--cascade", "all", "--allow-dirty")
    assert back.code == 0, back.out + back.err
    assert (project.root / "tests/test_f.py").read_text() == before


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(
            "from unittest import TestCase\nfrom app import f\n\n\nclass T(TestCase):\n    def test_f(self):\n        f()\n",
            id="by its name",
        ),
        pytest.param(
            "import unittest\nfrom app import f\n\n\nclass T(unittest.TestCase):\n    def test_f(self):\n        f()\n",
            id="by its module",
        ),
    ],
)
def test_the_base_of_a_test_case_there_and_back(project, before):
    """A class that awaits nothing any more derives from what it derived from."""
    project.write({"app.py": "def f():\n    return 1\n", "tests/test_f.py": before})
    there = project.troth("recolor", "app:f", "--to", "async", "--cascade", "all")
    assert there.code == 0, there.out + there.err
    assert (
        "IsolatedAsyncioTestCase):\n    async def test_f(self):\n        await f()"
        in (project.root / "tests/test_f.py").read_text()
    )
    back = project.troth("recolor", "app:f", "--to", "sync", "--cascade", "all", "--allow-dirty")
    assert back.code == 0, back.out + back.err
    assert (project.root / "tests/test_f.py").read_text() == before


def test_a_test_case_that_still_awaits_keeps_its_base(project):
    """One of its tests waits for something else."""
    text = (
        "import asyncio\nfrom unittest import IsolatedAsyncioTestCase, TestCase\nfrom app import f\n\n\n"
        "class T(IsolatedAsyncioTestCase):\n    async def test_f(self):\n        await f()\n\n"
        "    async def test_g(self):\n        await asyncio.sleep(0)\n\n\nclass U(TestCase):\n    pass\n"
    )
    project.write({"app.py": "async def f():\n    return 1\n", "tests/test_f.py": text})
    done = project.troth("recolor", "app:f", "--to", "sync", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    made = (project.root / "tests/test_f.py").read_text()
    assert made == text.replace("async def test_f", "def test_f").replace("await f()", "f()")
