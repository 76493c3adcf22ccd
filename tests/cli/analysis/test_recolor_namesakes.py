"""`troth recolor` and calls of a namesake on an unknown receiver: which cannot be meant, and which must be."""

import subprocess
import sys
from textwrap import dedent

import pytest

STORE = "class Store:\n    def {name}(self, item):\n        return item\n\n\nasync def use(store: Store):\n    store.{name}(1)\n"


@pytest.mark.parametrize(
    ("name", "call"),
    [
        pytest.param("flush", "async def other(thing):\n    thing.flush()\n", id="fewer arguments than it takes"),
        pytest.param("decode", "async def other(x):\n    x.decode('utf-8', 'strict')\n", id="more arguments"),
        pytest.param("put", "async def other(x):\n    x.put(1, block=False)\n", id="an argument of another name"),
        pytest.param("save", "async def other(save):\n    save(1)\n", id="a parameter of that name"),
        pytest.param("items", "async def other(x):\n    vars(x).items(1)\n", id="an object of a builtin type"),
        pytest.param("search", "import re\nasync def other():\n    re.compile('x').search(1)\n", id="of a library"),
    ],
)
def test_a_call_that_cannot_be_meant(project, name, call):
    """What would fail if it were ours, or is known to be something else, is left, and asks nobody."""
    project.write({"store.py": STORE.format(name=name), "other.py": call})
    done = project.troth("recolor", "store:Store", "--to", "async")
    assert done.code == 0, done.out + done.err
    assert (project.root / "other.py").read_text() == call
    assert f"await store.{name}(1)" in (project.root / "store.py").read_text()


@pytest.mark.parametrize(
    "call",
    [
        pytest.param("async def other(thing):\n    thing.save(1)\n", id="by place"),
        pytest.param("async def other(thing, *more):\n    thing.save(*more)\n", id="any number"),
        pytest.param("async def other(thing, more):\n    thing.save(**more)\n", id="any names"),
        pytest.param("async def other(things):\n    things[0].save(item=1)\n", id="by name"),
    ],
)
def test_a_call_that_may_be_meant(project, call):
    """What fits is asked about."""
    project.write({"store.py": STORE.format(name="save"), "other.py": call})
    done = project.troth("recolor", "store:Store", "--to", "async")
    assert done.code == 1
    assert "other.py:2" in done.out
    assert (project.root / "other.py").read_text() == call


@pytest.mark.parametrize(
    "use",
    [
        pytest.param("def other(jar: CookieJar):\n    return jar.fill(1)\n", id="annotated with the base"),
        pytest.param("def other(jar: CookieJar):\n    return getattr(jar, 'fill')(1)\n", id="by a string"),
        pytest.param("def other(jar):\n    fill = getattr(jar, 'fill', None)\n    return fill(1)\n", id="of anything"),
        pytest.param("from operator import methodcaller\nFILL = methodcaller('fill', 1)\n", id="by methodcaller"),
    ],
)
def test_an_object_of_a_derived_class(project, use):
    """A class of a library may stand for one that derives from it, and a string for a method: both are asked about."""
    head = "from http.cookiejar import CookieJar\n"
    store = f"{head}class Jar(CookieJar):\n    def fill(self, n):\n        return n\n"
    project.write({"store.py": store, "other.py": head + use})
    done = project.troth("recolor", "store:Jar.fill", "--to", "async", "--cascade", "all", "--boundary", "auto")
    assert done.code == 1, done.out
    assert "other.py:" in done.out
    assert (project.root / "other.py").read_text() == head + use


def test_a_name_that_nothing_else_has(project):
    """A telling name that only the target has means it, whatever the receiver; the plan says so."""
    call = "async def other(thing):\n    return thing.determine_price(1) + 1\n"
    project.write({"store.py": STORE.format(name="determine_price"), "other.py": call})
    done = project.troth("recolor", "store:Store", "--to", "async")
    assert done.code == 0, done.out + done.err
    assert "meant by its name" in done.out
    assert (project.root / "other.py").read_text() == call.replace("thing.d", "await thing.d")


@pytest.mark.parametrize(
    "more",
    [
        pytest.param("class Till:\n    def determine_price(self, item): ...\n", id="another method"),
        pytest.param("class Till:\n    def __init__(self, f):\n        self.determine_price = f\n", id="a variable"),
        pytest.param("def f(determine_price=None): ...\n", id="a parameter"),
        pytest.param("from lib import price as determine_price\n", id="an import"),
    ],
)
def test_a_name_that_something_else_has_too(project, more):
    """Then nobody can tell, and it is asked about."""
    call = "async def other(thing):\n    return thing.determine_price(1) + 1\n"
    project.write({"store.py": STORE.format(name="determine_price"), "other.py": call, "more.py": more})
    done = project.troth("recolor", "store:Store", "--to", "async")
    assert done.code == 1
    assert "other.py:2" in done.out


def test_a_decorated_function_inside_another(project):
    """A bare name that the file defines is never taken for something else, whatever a decorator makes of it."""
    text = dedent("""\
        from lib import traced

        def main():
            @traced
            def save(item): ...
            save(1)
            return load(2)

        def load(n):
            return n
    """)
    project.write({"app.py": text})
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    assert "    save(1)\n    return await load(2)" in (project.root / "app.py").read_text()


def test_the_name_of_a_function_is_not_the_function(project):
    """`load.__name__` and a comparison call nothing."""
    text = "def load():\n    return 1\n\nasync def main(f):\n    print(load.__name__, f is load)\n    return load()\n"
    project.write({"app.py": text})
    done = project.troth("recolor", "app:load", "--to", "async")
    assert done.code == 0, done.out + done.err
    assert "return await load()" in (project.root / "app.py").read_text()


def test_a_function_under_another_name(project):
    """`from app import load as fetch` is found as well: its calls are awaited, and what is handed around is told."""
    app = "def load(n):\n    return n\n"
    user = "from app import load as fetch\n\nasync def main():\n    return fetch(1)\n"
    project.write({"app.py": app, "user.py": user})
    done = project.troth("recolor", "app:load", "--to", "async")
    assert done.code == 0, done.out + done.err
    assert (project.root / "user.py").read_text() == user.replace("return fetch", "return await fetch")
    project.write({"app.py": app, "user.py": f"{user}CALLBACKS = [fetch]\n"})
    done = project.troth("recolor", "app:load", "--to", "async", "--allow-dirty")
    assert done.code == 1
    assert "user.py:5" in done.out


TEMPLATE = "class Base:\n    def view(self):\n        return self.data(1)\n\n\nclass A(Base):\n    def data(self, n):\n        return n\n"


def test_a_method_that_only_derived_classes_have(project):
    """A class that calls what its derived classes define means their methods."""
    project.write({"app.py": TEMPLATE})
    done = project.troth("recolor", "app:A.data", "--to", "async", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    changed = (project.root / "app.py").read_text()
    assert "    async def view(self):\n        return await self.data(1)\n" in changed


def test_a_method_that_another_derived_class_has_as_well(project):
    """One of the two would be awaited, and is not async."""
    text = f"{TEMPLATE}\n\nclass B(Base):\n    def data(self, n):\n        return n + 1\n"
    project.write({"app.py": text})
    done = project.troth("recolor", "app:A.data", "--to", "async", "--cascade", "all")
    assert done.code == 1, done.out + done.err
    assert "its receiver may be of another class too" in done.out
    assert (project.root / "app.py").read_text() == text


@pytest.mark.parametrize(
    ("base", "code"),
    [pytest.param("object", 0, id="a base that is known"), pytest.param("A", 1, id="the class that changes")],
)
def test_what_super_means(project, base, code):
    """`super()` of a class means what stands behind it in some order of classes: here in that of `Both`."""
    text = (
        "from elsewhere import Base\n\n\nclass A(Base):\n    def go(self):\n        return 1\n\n\n"
        "class Mixin(Base):\n    def run(self):\n        return super().go()\n\n\n"
        f"class Both(Mixin, {base}): ...\n"
    )
    project.write({"app.py": text})
    done = project.troth("recolor", "app:A.go", "--to", "async", "--cascade", "all")
    assert done.code == code, done.out + done.err


def test_a_project_with_a_library_that_is_asked_about(project):
    """Whoever walks through it needs to know what all files import, also where no rule was loaded before."""
    text = (
        "import aiohttp\n\n\ndef load():\n    return 1\n\n\nasync def main(session):\n    load()\n"
        "    async with session.get('http://localhost') as response:\n        return await response.json()\n"
    )
    project.write({"app.py": text})
    command = [sys.executable, "-m", "troth", "recolor", "app:load", "--to", "async", "--plan"]
    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
