"""A protocol whose color changes brings the classes that fulfil it, or they are named."""

import pytest

HEAD = "from typing import Protocol\n\n\n"
STORE = "class Store(Protocol):\n    def save(self, x: int) -> int: ...\n\n\n"
FILE = "class File:\n    def save(self, x):\n        return x\n\n\n"
USE = "def use(store: Store):\n    return store.save(1)\n\n\n"
MAIN = "def main():\n    return use(File())\n"
SYNC = HEAD + STORE + FILE + USE + MAIN
ASYNC = (
    SYNC.replace("    def save", "    async def save")
    .replace("\ndef use", "\nasync def use")
    .replace("return store", "return await store")
    .replace("def main", "async def main")
    .replace("return use", "return await use")
)


@pytest.mark.parametrize(
    ("before", "after", "to"),
    [pytest.param(SYNC, ASYNC, "async", id="to async"), pytest.param(ASYNC, SYNC, "sync", id="to sync")],
)
@pytest.mark.parametrize("target", ["Store.save", "Store", "File.save"])
def test_one_method_that_takes_the_same_is_brought_along(project, before, after, to, target):
    """The protocol, what stands in for it, and every call, whichever of them is named."""
    project.write({"app.py": before})
    done = project.troth("recolor", f"app:{target}", "--to", to, "--cascade", "all")
    assert done.code == 0, done.out + done.err
    assert (project.root / "app.py").read_text() == after


@pytest.mark.parametrize(
    ("before", "to", "color"), [pytest.param(SYNC, "async", "async"), pytest.param(ASYNC, "sync", "sync")]
)
def test_one_method_that_takes_something_else_is_named(project, before, to, color):
    """It may be called for the protocol's by its place alone; nothing is changed before somebody has said so."""
    text = before.replace("save(self, x):", "save(self, item, flags=()):").replace("return x", "return item")
    project.write({"app.py": text})
    done = project.troth("recolor", "app:Store.save", "--to", to, "--cascade", "all")
    assert done.code == 1, done.out + done.err
    assert f"it may stand in for `Store.save`, which becomes {color}" in done.out
    assert "decided by  app.py:File.save: " in done.out
    assert (project.root / "app.py").read_text() == text


def test_a_method_that_takes_nothing_is_no_sign(project):
    """Many classes have a `close`: they are named, and not changed with the protocol."""
    text = f"{HEAD}class Closes(Protocol):\n    def close(self): ...\n\n\nclass Door:\n    def close(self):\n        return 1\n"
    project.write({"app.py": text})
    done = project.troth("recolor", "app:Closes.close", "--to", "async", "--cascade", "all")
    assert (done.code, "it may stand in for `Closes.close`" in done.out) == (1, True), done.out + done.err


def test_where_others_fulfil_the_protocol_the_way_out_is_named(project):
    """It is not for one class to change what others fulfil too; the protocol itself can be named, and brings them all."""
    more = "    def flush(self) -> None: ...\n"
    body = "    def flush(self):\n        print(1)\n"
    classes = [f"class {name}:\n    def save(self, x):\n        return x\n\n{body}\n\n" for name in ("File", "Cloud")]
    text = HEAD + STORE.replace("...\n", f"...\n{more}", 1) + "".join(classes) + USE + MAIN
    project.write({"app.py": text})
    done = project.troth("recolor", "app:File.save", "--to", "async", "--cascade", "all")
    assert done.code == 1, done.out + done.err
    assert "recolor `app.py:Store.save` to change all of them" in done.out
    done = project.troth("recolor", "app.py:Store.save", "--to", "async", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    assert (project.root / "app.py").read_text().count("async def save") == 3
