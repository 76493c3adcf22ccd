"""What a run says that uses what earlier runs left is what a run says that knows nothing: after any edit, for all rules."""

import contextlib
import os
import random
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from troth.analysis.facts import store
from troth.analysis.incremental.dependencies import Answers
from troth.analysis.pipeline import Analysis, analyse
from troth.analysis.project.project import Project
from troth.analysis.rules import all_rules
from troth.analysis.semantics import Program

CORE = """\
import asyncio
import time


class Base:
    async def save(self, item):
        return item

    async def load(self, key: str) -> str:
        return key

    def close(self):
        pass


def make() -> Base:
    return Base()


def guess():
    return Base()


def pause():
    time.sleep(1)


async def later():
    return 1


def start():
    return later()


def drop(value):
    print(value)


def keeps(function):
    def inner(*args):
        return function(*args)
    return inner
"""
FILES = {
    "core.py": CORE,
    "api.py": "from core import Base as Store, make, guess, pause, start, drop, keeps\nfrom core import *\n",
    "child.py": "from api import Store\n\n\nclass Child(Store):\n    def close(self):\n        return 1\n",
    "typed.py": "from api import make\n\n\nasync def run():\n    store = make()\n    store.save(1)\n",
    "guessed.py": "import api\n\n\nasync def run():\n    store = api.guess()\n    store.save(1)\n",
    "chain.py": "from guessed import run\nfrom api import start\n\n\ndef go():\n    start()\n\n\nasync def all_of_it():\n    run()\n",
    "blocks.py": "from api import pause\n\n\nasync def run():\n    pause()\n",
    "given.py": "from api import drop\nfrom core import later\n\n\nasync def run():\n    drop(later())\n",
    "wrapped.py": "from api import keeps\n\n\n@keeps\nasync def work():\n    return 1\n\n\nasync def run():\n    work()\n",
    "held.py": "from child import Child\n\n\nclass Holder:\n    def __init__(self):\n        self.child = Child()\n\n    async def go(self):\n        self.child.load('a')\n",
    "asked.py": "async def run(client):\n    client.fetch_all()\n",
    "sibling.py": "async def one(client):\n    await client.fetch_all()\n\n\nasync def two(client):\n    await client.fetch_all()\n\n\nasync def three(client):\n    await client.fetch_all()\n",
    "named.py": "async def run(order_store):\n    order_store.put_away()\n",
    "orders.py": "class OrderStore:\n    async def put_away(self):\n        return 1\n",
    "dispatch.py": "import handlers\n\nTABLE = {'a': handlers.on_a, 'b': handlers.on_b}\n\n\nasync def run(kind):\n    handler = TABLE[kind]\n    await handler()\n",
    "handlers.py": "async def on_a():\n    return 1\n\n\nasync def on_b():\n    return 2\n",
    "conftest.py": "import pytest\nfrom core import Base\n\n\n@pytest.fixture\ndef base():\n    return Base()\n",
    "test_it.py": "async def test_it(base):\n    base.save(1)\n",
    "renamed.py": "import far\n\n\nclass Renamed:\n    def __init__(self):\n        self.send_on = far.hand_over\n\n    async def go(self):\n        self.send_on()\n",
    "far.py": "def hand_over():\n    return 1\n",
    "company.py": "async def run(wire):\n    await wire.alpha_one()\n    await wire.beta_two()\n    await wire.gamma_three()\n    await wire.delta_four()\n    wire.epsilon_five()\n",
    "lonely.py": "def f():\n    return 1\n",
}


def write(root: Path, files: Mapping[str, str]) -> Project:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return project(root)


def project(root: Path) -> Project:
    return Project(root, tuple(sorted(p.relative_to(root).as_posix() for p in root.rglob("*.py"))))


def same(root: Path, cache: Path) -> Analysis:
    """What a warm run says, which is what a cold one says; asked once more, it says it again."""
    warm, cold = analyse(project(root), cache=cache), analyse(project(root))
    assert warm.findings == cold.findings
    assert warm.unreadable == cold.unreadable
    return warm


def edited(path: str, old: str, new: str) -> dict[str, str]:
    assert old in FILES[path]
    return {path: FILES[path].replace(old, new)}


EDITS = [
    pytest.param(edited("core.py", "return item", "item = 1\n        return item"), {"core.py"}, id="a body"),
    pytest.param({"core.py": f"# moved\n\n{CORE}"}, None, id="only lines moved"),
    pytest.param(edited("core.py", "return key", "return key + ''"), {"core.py"}, id="a body of an annotated method"),
    pytest.param(edited("core.py", "async def save", "def save"), None, id="a method loses its color"),
    pytest.param(edited("core.py", "def save(self, item)", "def save(self, item, more=None)"), None, id="a signature"),
    pytest.param(edited("core.py", "-> Base", "-> int"), None, id="what a factory gives"),
    pytest.param(edited("core.py", "def guess():\n    return Base()", "def guess():\n    return 1"), None, id="inferred"),
    pytest.param(edited("core.py", "time.sleep(1)", "pass"), None, id="what blocks at a distance"),
    pytest.param(edited("core.py", "    print(value)", "    return value"), None, id="what becomes of an argument"),
    pytest.param(edited("core.py", "return function(*args)", "function(*args)"), None, id="a decorator drops"),
    pytest.param(edited("core.py", "return later()", "return 1"), None, id="a sync function returns no promise now"),
    pytest.param({"core.py": f"{CORE}\n\nasync def extra():\n    return 1\n"}, {"core.py"}, id="one more function"),
    pytest.param({"core.py": f"__all__ = ['make']\n{CORE}"}, None, id="what a star brings"),
    pytest.param(edited("api.py", "guess, ", ""), None, id="a re-export less"),
    pytest.param(edited("child.py", "def close", "async def close"), None, id="an override of another color"),
    pytest.param(edited("child.py", "(Store)", ""), None, id="a base less"),
    pytest.param(edited("sibling.py", "await client.fetch_all()\n\n\nasync def two", "client.fetch_all()\n\n\nasync def two"), None, id="a witness less"),
    pytest.param(edited("orders.py", "OrderStore", "Orders"), None, id="a class that names were guessed after"),
    pytest.param(edited("handlers.py", "return 1", "await x()"), None, id="a handler that waits"),
    pytest.param(edited("dispatch.py", "await handler()", "handler()"), None, id="a dispatcher less"),
    pytest.param(edited("far.py", "def hand_over", "async def hand_over"), None, id="what has another name elsewhere"),
    pytest.param(edited("far.py", "hand_over", "epsilon_five"), None, id="a sync namesake of what stands out"),
    pytest.param(edited("company.py", "await wire.delta_four()", "wire.delta_four()"), None, id="less company"),
    pytest.param(edited("conftest.py", "return Base()", "return 1"), None, id="a fixture"),
    pytest.param({"core.py": "def broken(:\n"}, None, id="unreadable"),
    pytest.param({"new.py": "async def fetch_all(): ...\n"}, None, id="a new file"),
    pytest.param({"lonely.py": "def f():\n    return 2\n"}, {"lonely.py"}, id="a file that nobody reads"),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "looked_at"), EDITS)
def test_an_edit_is_answered_as_if_nothing_were_kept(
    tmp_path: Path, edit: dict[str, str], looked_at: set[str] | None
) -> None:
    """There and back again. Where it is told which files have to be looked at, no others are, but for those that have a
    finding which tells of a place in them.
    """
    root, cache = tmp_path / "project", tmp_path / "cache"
    before = analyse(write(root, FILES), cache=cache)
    write(root, edit)
    there = same(root, cache)
    if looked_at is not None:
        assert set(there.looked_at) == looked_at | {f.span.path for f in before.findings if f.paths & looked_at}
    for path in edit:
        if path in FILES:
            (root / path).write_text(FILES[path], encoding="utf-8")
        else:
            (root / path).unlink()
    same(root, cache)
    assert not analyse(project(root), cache=cache).looked_at


def test_a_way_that_comes_into_being_at_a_distance_is_seen(tmp_path: Path) -> None:
    """A file that calls by a name which led nowhere is asked again when the name leads to a loop."""
    root, cache = tmp_path / "project", tmp_path / "cache"
    far = "import asyncio\nasync def work(): ...\ndef inner():\n    {}\n"
    files = {
        "near.py": "from between import helper\nasync def main():\n    helper()\n",
        "between.py": "from far import inner\ndef helper():\n    inner()\n",
        "far.py": far.format("pass"),
    }
    assert not analyse(write(root, files), cache=cache).findings
    write(root, {"far.py": far.format("asyncio.run(work())")})
    assert [f.code for f in same(root, cache).findings] == ["TR601"]


def test_edits_one_after_the_other(tmp_path: Path) -> None:
    """Every run goes on from what the one before left, not from the first."""
    root, cache = tmp_path / "project", tmp_path / "cache"
    analyse(write(root, FILES), cache=cache)
    for row in EDITS:
        edit = row.values[0]
        assert isinstance(edit, dict)
        write(root, edit)
        same(root, cache)


CHANGES = [
    (r"\bawait ", ""),
    (r"(?m)^( *)def ", r"\1async def "),
    (r"\basync def ", "def "),
    (r"\bdef (\w+)\(", r"def \1_x("),
    (r"(?m)^( +)return .+$", r"\1return None"),
    (r"(?m)^ *@.*\n", ""),
    (r"class (\w+)\((\w+)\)", r"class \1"),
    (r"self\.(\w+) = .+", r"self.\1 = None"),
    (r"\A", "# a line\n"),
    (r"\Z", "\n\nasync def save():\n    return 1\n"),
    (r"\) -> [^:\n]+:", "):"),
]


def changed(text: str, chance: random.Random) -> str:
    for pattern, into in chance.sample(CHANGES, len(CHANGES)):
        found = list(re.finditer(pattern, text))
        if found:
            one = chance.choice(found)
            return text[: one.start()] + one.expand(into) + text[one.end() :]
    return text


def cases() -> Iterator[tuple[str, list[Mapping[str, str]]]]:
    """The examples of all rules, each in a folder of its own, in all their versions."""
    for rule in all_rules():
        for number, case in enumerate(rule.cases):
            versions = [one for one in (case.bad, case.fixed, case.good) if one is not None]
            yield (
                f"{rule.code.lower()}_{number}",
                [{"case.py": one} if isinstance(one, str) else one for one in versions],
            )


@pytest.mark.parametrize("seed", [1, 2])
def test_the_examples_of_all_rules_edited_at_random(tmp_path: Path, seed: int) -> None:
    """Hundreds of small files that share their names, so that much depends on what all of them say."""
    chance = random.Random(seed)
    root, cache = tmp_path / "project", tmp_path / "cache"
    every = [(folder, versions) for folder, versions in cases() if chance.random() < 0.5]
    for folder, versions in every:
        write(root, {f"{folder}/{path}": text for path, text in versions[0].items()})
    analyse(project(root), cache=cache)
    for _ in range(6):
        for _ in range(chance.choice([1, 2, 5])):
            folder, versions = chance.choice(every)
            if chance.random() < 0.5:
                write(root, {f"{folder}/{path}": text for path, text in chance.choice(versions).items()})
            else:
                file = chance.choice(sorted((root / folder).rglob("*.py")))
                file.write_text(changed(file.read_text(encoding="utf-8"), chance), encoding="utf-8")
        same(root, cache)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    mode = folder.stat().st_mode
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        yield
    finally:
        folder.chmod(mode)


def halved(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    for place in range(200, len(data), 97):
        data[place] ^= 0x55
    file.write_bytes(data)


@pytest.mark.parametrize("name", ["facts.bin", "since.bin"])
@pytest.mark.parametrize("damage", [halved, flipped, Path.unlink, lambda file: file.write_bytes(b"")])
def test_a_damaged_file_of_the_cache_changes_nothing(tmp_path: Path, name: str, damage: object) -> None:
    """Half of it, other bytes in it, nothing at all: the run says what it says without a cache, and repairs it."""
    root, cache = tmp_path / "project", tmp_path / "cache"
    analyse(write(root, FILES), cache=cache)
    write(root, {"lonely.py": "def g(): ...\n"})
    analyse(project(root), cache=cache)
    damage(cache / name)  # type: ignore[operator]
    write(root, edited("core.py", "async def save", "def save"))
    same(root, cache)
    assert not analyse(project(root), cache=cache).looked_at


def test_a_cache_of_another_version_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another Troth left may mean something else."""
    root, cache = tmp_path / "project", tmp_path / "cache"
    analyse(write(root, FILES), cache=cache)
    monkeypatch.setattr(store, "FACTS_VERSION", "another")
    assert len(analyse(project(root), cache=cache).looked_at) == len(FILES)
    assert not analyse(project(root), cache=cache).looked_at


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="nothing is read-only for this user")
def test_a_cache_that_cannot_be_written_is_read_all_the_same(tmp_path: Path) -> None:
    """What an earlier run left still serves."""
    root, cache = tmp_path / "project", tmp_path / "cache"
    analyse(write(root, FILES), cache=cache)
    with read_only(cache):
        write(root, edited("core.py", "async def save", "def save"))
        same(root, cache)
        same(root, cache)


def test_two_runs_at_once_leave_nothing_mixed(tmp_path: Path) -> None:
    """The two files of two runs do not fit each other, and are made anew."""
    root, cache = tmp_path / "project", tmp_path / "cache"
    analyse(write(root, FILES), cache=cache)
    shutil.copy(cache / "since.bin", tmp_path / "since.bin")
    write(root, edited("core.py", "async def save", "def save"))
    shutil.rmtree(cache)
    analyse(project(root), cache=cache)
    shutil.copy(tmp_path / "since.bin", cache / "since.bin")
    same(root, cache)


def test_rules_on_request_are_put_to_all_files(tmp_path: Path) -> None:
    """They may ask about many files at once, and come and go with `--select`."""
    root, cache = tmp_path / "project", tmp_path / "cache"
    optional = [rule.code for rule in all_rules() if not rule.is_default]
    analyse(write(root, FILES), cache=cache)
    for on_request in (optional, [], optional[:1], optional):
        write(root, {"lonely.py": f"async def f():\n    return {len(on_request)}\n"})
        warm = analyse(project(root), cache=cache, on_request=on_request)
        assert warm.findings == analyse(project(root), on_request=on_request).findings


def test_every_kept_answer_knows_what_it_was_read_from(tmp_path: Path) -> None:
    """A plain dict of answers about functions, classes or files would hide what was read from whoever takes one."""
    root, cache = tmp_path / "project", tmp_path / "cache"
    program = analyse(write(root, FILES), cache=cache).program
    assert program is not None
    assert not list(plain_answers(program))


# What is worked out from one file alone, or from libraries, or noted under names where it is read.
KNOWN = frozenset(
    {
        "_needless",
        "sets",
        "_modules",
        "places",
        "shared",
        "picked",
        "returning",
        "_said",
        "chains",
        "_answers",
        "_tables",
        "_since",
    }
    | {"_noting", "_notes", "finder", "reads", "_library", "_written", "_parsed", "_generic", "_by_file", "arguments"}
)


def plain_answers(program: Program) -> Iterator[str]:
    parts: list[object] = [program]
    for part in parts:
        if type(part).__name__ in {"Reads", "ModuleFinder", "Tables", "Installed", "Module"}:
            continue
        inside = vars(part).values() if hasattr(part, "__dict__") else ()
        parts += [one for one in inside if type(one).__module__.startswith("troth.") and one not in parts]
        for name, value in vars(part).items() if hasattr(part, "__dict__") else ():
            if type(value) is dict and value and name not in KNOWN and not isinstance(value, Answers):
                yield f"{type(part).__name__}.{name}"
