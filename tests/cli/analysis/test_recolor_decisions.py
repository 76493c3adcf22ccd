"""A recolor is never silently wrong, refuses only for reasons that are true, and asks nobody twice."""

import pytest

HEAD = '[project]\nname = "x"\n'
LOAD = "class Store:\n    def load(self, key):\n        return key\n"


def recolor(project, files, *options, target="store:Store.load", to="async"):
    project.write({"pyproject.toml": HEAD, **files})
    return project.troth("recolor", target, "--to", to, *options)


def text_of(project, name):
    return (project.root / name).read_text()


PROTOCOL = (
    "from typing import Protocol\nclass Backend(Protocol):\n    def load(self, key): ...\n    def save(self, key): ...\n"
    "class Disk:\n    def load(self, key):\n        return key\n    def save(self, key): ...\n"
    "class Memory:\n    def load(self, key):\n        return key\n    def save(self, key): ...\n"
    "class Other:\n    def load(self):\n        return 1\n"
    "async def main(backend: Backend):\n    return backend.load(1)\n"
)


def test_a_protocol_brings_the_classes_that_fulfil_it(project):
    """Without them, `await` would meet sync methods, and no check would say so."""
    done = recolor(project, {"app.py": PROTOCOL}, target="app:Backend.load")
    assert done.code == 0, done.out + done.err
    after = text_of(project, "app.py")
    assert after.count("async def load(self, key)") == 3
    assert "    def load(self):" in after
    assert "return await backend.load(1)" in after


def test_a_protocol_of_one_method_brings_what_takes_the_same(project):
    """A class may have one method of that name by chance: one that takes nothing cannot stand in."""
    text = PROTOCOL.replace("    def save(self, key): ...\n", "")
    done = recolor(project, {"app.py": text}, target="app:Backend.load")
    assert done.code == 0, done.out + done.err
    after = text_of(project, "app.py")
    assert after.count("async def load(self, key)") == 3
    assert "    def load(self):" in after


THREADS = (
    "import asyncio\nclass Store:\n    async def load(self, key):\n        return key\n"
    "def tell(store: Store, loop):\n    asyncio.run_coroutine_threadsafe(store.load(1), {loop})\n"
)


@pytest.mark.parametrize("loop", [pytest.param("loop", id="by place"), pytest.param("loop=loop", id="by name")])
def test_what_was_given_to_a_loop_stays_on_its_thread(project, loop):
    """Called in place, it would run on the wrong thread; and there and back is where it was."""
    before = THREADS.replace("{loop}", loop)
    done = recolor(project, {"store.py": before}, to="sync")
    assert done.code == 0, done.out + done.err
    assert "    loop.call_soon_threadsafe(store.load, 1)\n" in text_of(project, "store.py")
    done = project.troth("recolor", "store:Store.load", "--to", "async")
    assert done.code == 0, done.out + done.err
    assert text_of(project, "store.py") == THREADS.replace("{loop}", "loop")


@pytest.mark.parametrize(
    "use",
    [
        pytest.param("return asyncio.run_coroutine_threadsafe(store.load(1), loop).result()", id="waited for"),
        pytest.param("run(store.load(1))", id="by a helper"),
    ],
)
def test_a_result_of_another_thread_is_refused(project, use):
    """Nothing that is plain waits for another thread."""
    helper = "def run(coro, loop=None):\n    return asyncio.run_coroutine_threadsafe(coro, loop).result()\n"
    text = THREADS.partition("    asyncio.run")[0] + f"    {use}\n{helper}"
    done = recolor(project, {"store.py": text}, to="sync")
    assert done.code == 1
    assert "the thread of another loop" in done.out


@pytest.mark.parametrize(
    ("head", "mark"),
    [
        pytest.param(
            "import pytest\n@pytest.mark.anyio\nasync def test_a(): ...\n", "@pytest.mark.anyio\n", id="anyio"
        ),
        pytest.param("import pytest\n@pytest.mark.trio\nasync def test_a(): ...\n", "@pytest.mark.trio\n", id="trio"),
        pytest.param("import pytest\n", "@pytest.mark.asyncio\n", id="none yet"),
        pytest.param("import pytest\npytestmark = pytest.mark.anyio\n", "", id="the whole file"),
        pytest.param(
            "import pytest\npytestmark = [pytest.mark.slow, pytest.mark.trio]\n", "", id="the whole file, in a list"
        ),
    ],
)
def test_a_test_gets_the_mark_that_its_file_uses(project, head, mark):
    """Another mark would run it by another loop, or not at all."""
    test = "def test_it():\n    assert Store().load(1) == 1\n"
    files = {"store.py": LOAD, "test_it.py": f"from store import Store\n{head}{test}"}
    done = recolor(project, files, "--cascade", "all")
    assert done.code == 0, done.out + done.err
    expected = f"{mark}async def test_it():\n    assert await Store().load(1) == 1\n"
    assert text_of(project, "test_it.py") == f"from store import Store\n{head}{expected}"


USER = "from store import Store\nclass Reader:\n    def read(self, store: Store):\n        return store.load(1)\n"


@pytest.mark.parametrize(
    "beside",
    [
        pytest.param("def show(entry):\n    print(entry.read)\n", id="an attribute of that name"),
        pytest.param(
            "class File:\n    def read(self): ...\ndef show(run, file: File):\n    run(file.read)\n", id="another class"
        ),
        pytest.param("READ = 'read'\nread = 3\ndef show(run):\n    run(read)\n", id="a variable of that name"),
        pytest.param("class Box: ...\ndef show(run, box: Box):\n    run(box.read)\n", id="an annotated receiver"),
    ],
)
def test_a_namesake_keeps_no_caller_back(project, beside):
    """What is handed around is told by what it stands for, not by a word."""
    files = {"store.py": LOAD, "user.py": USER, "beside.py": beside}
    done = recolor(project, files, "--cascade", "all")
    assert done.code == 0, done.out + done.err
    assert "async def read" in text_of(project, "user.py")


def test_what_is_handed_around_is_named_with_its_place(project):
    """The refusal says who is given the function."""
    beside = "from user import Reader\ndef show(run, reader: Reader):\n    run(reader.read)\n"
    files = {"store.py": LOAD, "user.py": USER, "beside.py": beside}
    done = recolor(project, files, "--cascade", "all")
    assert done.code == 1
    assert "beside.py:3" in done.out
    assert "decided by  user.py:Reader.read: recolor | boundary | leave" in done.out


WRAPPERS = {
    "hands on": ("        return f(*a)\n", 0),
    "uses the result": ("        x = f(*a)\n        print(x)\n        return x\n", 1),
    "has a try around it": (
        "        try:\n            return f(*a)\n        except ValueError:\n            return None\n",
        1,
    ),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_decorator_is_read_also_where_a_variable_holds_it(project, name):
    """A wrapper that hands on what it gets has no color; one that uses it would be given a coroutine."""
    body, code = WRAPPERS[name]
    maker = f"def make(n):\n    def wrap(f):\n      def wrapper(*a):\n{body}      return wrapper\n    return wrap\n"
    text = (
        f"{maker}retried = make(3)\n@retried\ndef load(key):\n    return key\nasync def main():\n    return load(1)\n"
    )
    done = recolor(project, {"app.py": text}, target="app:load")
    assert done.code == code, done.out + done.err


CALLERS = {
    "store.py": LOAD,
    "app.py": "from store import Store\nasync def a(store: Store):\n    return store.load(1)\ndef b(store: Store):\n"
    "    return store.load(2)\ndef c(store):\n    return store.load(3)\n",
}


def test_decisions_are_asked_for_and_kept(project):
    """Each obstacle names the line that would settle it; with these lines, a second run goes through."""
    done = recolor(project, CALLERS, "--plan")
    assert done.code == 1
    assert "decided by  app.py:b: recolor | boundary | leave" in done.out
    assert "decided by  app.py:c: recolor | leave" in done.out
    project.write({"decided.txt": "# b starts a loop\napp.py:b: boundary\napp.py:c: leave\ngone.py:x: leave\n"})
    done = project.troth("recolor", "store:Store.load", "--to", "async", "--decide", "decided.txt")
    assert done.code == 0, done.out + done.err
    assert "Decisions for places that are not in the plan: gone.py:x" in done.err
    after = text_of(project, "app.py")
    assert "asyncio.run(store.load(2))" in after
    assert "return store.load(3)" in after


def test_a_caller_that_is_decided_to_follow_follows(project):
    """`recolor` counts for a caller without `--cascade`, and for a namesake that nobody could tell."""
    project.write({"decided.txt": "app.py:b: recolor\napp.py:c: recolor\n"})
    done = recolor(project, CALLERS, "--decide", "decided.txt")
    assert done.code == 0, done.out + done.err
    assert text_of(project, "app.py").count("await store.load") == 3


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("app.py:b: perhaps\n", id="no answer"),
        pytest.param("app.py:b: leave\napp.py:b: recolor\n", id="twice"),
    ],
)
def test_a_bad_decision_is_refused(project, text):
    """With its line."""
    project.write({"decided.txt": text})
    done = recolor(project, CALLERS, "--decide", "decided.txt")
    assert done.code == 2
    assert "decided.txt:" in done.err


def test_a_plan_makes_the_check_that_the_change_makes(project):
    """A plan that ends well is one that can be carried out."""
    text = "import threading\ndef load():\n    return [1]\ndef main():\n    threading.Thread(target=load).start()\n"
    files = {"app.py": text, "answers.txt": "app.py:main: recolor\n"}
    planned = recolor(project, files, "--plan", "--decide", "answers.txt", target="app:load")
    done = project.troth("recolor", "app:load", "--to", "async", "--decide", "answers.txt")
    assert planned.code == done.code != 0


THREAD = (
    "import threading\nclass Store:\n    def load(self, key):\n        return key\n"
    "def start(store: Store):\n    threading.Thread(target=store.load).start()\n"
)


def test_what_is_found_after_the_change_is_decided_too(project):
    """The last check names the line that would settle it, and whoever has written that line is not asked again."""
    files = {"store.py": THREAD, "first.txt": "store.py:start: recolor\n", "second.txt": "store.py:start: leave\n"}
    done = recolor(project, files, "--decide", "first.txt")
    assert done.code == 2
    assert "decided by  store.py:start: leave" in done.err
    assert text_of(project, "store.py") == THREAD
    done = recolor(project, {}, "--decide", "second.txt")
    assert done.code == 0, done.out + done.err
    assert "1 finding from now on, at places that are left as they are" in done.out
    assert "not asked" not in done.err
    assert "async def load" in text_of(project, "store.py")
