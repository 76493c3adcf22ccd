"""Every bundled table: it parses, is small, and speaks of nothing it does not define."""

import collections.abc
import json
import re
import typing
from pathlib import Path

import pytest

from tools.knowledge.lock import LOCK, lines_of, pinned
from tools.knowledge.table_text import as_text
from tools.knowledge.words import words_of
from troth.analysis import knowledge
from troth.analysis.knowledge.library import load

TEXTS = Path(__file__).parents[3] / "src" / "troth" / "analysis" / "knowledge" / "tables"
FLAGS = set("agwmopcs")
VOCABULARY = {f"collections.abc.{name}" for name in collections.abc.__all__} | {
    f"typing.{name}" for name in typing.__all__
}
ROLES = {"consumes", "coroutine_function", "plain_function", "either"}


@pytest.fixture(autouse=True)
def _few_at_a_time():
    """All tables at once are 70 MB, which nobody but these tests reads in one process."""
    yield
    if load.cache_info().currsize > 20:
        load.cache_clear()


@pytest.mark.parametrize("top", knowledge.bundled())
def test_table(top):
    """Flags, roles and keys are those of the format, and each name of its own package is in the table."""
    library = knowledge.load(top)
    assert library is not None
    assert library.source
    modules = {home: library.module(home) for home in library.modules}
    names = {f"{home}.{name}" for home, module in modules.items() for name in module.get("c", {})}
    for home, module in modules.items():
        assert home.partition(".")[0] == top
        assert module.keys() <= {"f", "c", "x", "v", "s"}
        sigs = dict(module.get("f", {}))
        types = list(module.get("v", {}).values())
        for class_name, known in module.get("c", {}).items():
            assert known.keys() <= {"b", "m", "a", "s"}
            sigs |= {f"{class_name}.{name}": sig for name, sig in known.get("m", {}).items()}
            types += [*known.get("b", []), *known.get("a", {}).values()]
        for flags, returns, roles in sigs.values():
            assert set(flags) <= FLAGS
            assert set(roles.values()) <= ROLES
            types.append(returns)
        for mentioned in {word for type_ in types for word in re.findall(r"[\w.]*\w", type_)}:
            if mentioned.startswith(f"{top}.") and mentioned not in VOCABULARY:
                assert mentioned in names, f"{home}: {mentioned}"
        for local, target in module.get("x", {}).items():
            if target.partition(".")[0] == top:
                assert knowledge.find(f"{home}.{local}") is not None, f"{home}.{local} → {target}"


def test_a_table_is_read_when_it_is_asked_for():
    """Nothing else is opened, and the second time it is not opened again."""
    assert knowledge.load("aiohttp") is knowledge.load("aiohttp")
    assert knowledge.load("a/b") is None
    assert knowledge.load("") is None


def test_the_tables_are_those_of_the_repository():
    """Whether they are installed packed or read as text, they say the same."""
    assert knowledge.bundled() == tuple(sorted(path.stem for path in TEXTS.glob("*.json")))
    for top in ("anyio", "httpx", "asyncio"):
        library, text = knowledge.load(top), json.loads((TEXTS / f"{top}.json").read_bytes())
        assert {home: library.module(home) for home in library.modules} == text["modules"]
        assert (list(library.source), library.words) == (text["source"], text["words"])


def test_the_lock_pins_every_table():
    """A table that was changed by hand, or by a build that did not end, is noticed."""
    assert LOCK.read_text(encoding="utf-8").splitlines(keepends=True)[1:] == lines_of(TEXTS)


@pytest.mark.parametrize(
    ("top", "requirements", "expected"),
    [
        pytest.param("a", ["a"], ("a==1.2",), id="as it was read"),
        pytest.param("b", ["b-core", "b-more"], ("b-core==3", "b-more==4.0"), id="several distributions"),
        pytest.param("a", ["a", "new"], ("a==1.2", "new"), id="a distribution that the lock does not name"),
        pytest.param("c", ["c"], ("c",), id="a new table"),
    ],
)
def test_a_build_installs_what_the_lock_pins(tmp_path, top, requirements, expected):
    """So that a table can be made again."""
    lock = tmp_path / "lock"
    lock.write_text("# head\na 0123 a 1.2\nb 4567 b-core 3, b-more 4.0\n")
    assert pinned(top, requirements, lock) == expected


def test_text_of_a_table():
    """One function, method or name a line; what lists hold, and a small class, stays together."""
    table = {
        "source": ["a 1"],
        "modules": {"a": {"c": {"C": {"m": {"f": ["a", "x" * 90, {}]}}, "S": {"s": 1}}}},
        "words": {},
    }
    text = as_text(table)
    assert json.loads(text) == table
    assert text.splitlines()[3:10] == [
        '   "c": {',
        '    "C": {',
        '     "m": {',
        f'      "f": ["a", "{"x" * 90}", {{}}]',
        "     }",
        "    },",
        '    "S": {"s": 1}',
    ]


@pytest.mark.parametrize("top", knowledge.bundled())
def test_what_words_mean_is_up_to_date(top):
    """A table carries along what follows from its signatures, and from the bases that other tables know."""
    library = knowledge.load(top)
    assert library.words == words_of(library, knowledge.Tables(knowledge.load))


@pytest.mark.parametrize(
    ("top", "word", "meaning"),
    [
        pytest.param("asyncio", "sleep", "pc", id="a function that gives a coroutine"),
        pytest.param("asyncio", "create_task", "p", id="a function that gives a task"),
        pytest.param("trio", "run_sync", "pc", id="a name that only an export has"),
        pytest.param("aiohttp", "ClientSession", "e", id="a class that only async can enter"),
        pytest.param("httpx", "aclose", "pcm", id="a method of async classes alone"),
        pytest.param("json", "dumps", "", id="nothing"),
    ],
)
def test_what_a_word_means(top, word, meaning):
    """Whatever class or module it stands in."""
    library = knowledge.load(top)
    assert "".join(one for one in "pcemtsro" if word in library.meaning(one)) == meaning
