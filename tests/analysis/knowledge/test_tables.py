"""Every bundled table: it parses, is small, and speaks of nothing it does not define."""

import collections.abc
import json
import re
import typing
import zlib
from pathlib import Path

import pytest

from troth.analysis import knowledge

TABLES = Path(knowledge.__file__).parent / "tables"
FLAGS = set("agwmopcs")
VOCABULARY = {f"collections.abc.{name}" for name in collections.abc.__all__} | {
    f"typing.{name}" for name in typing.__all__
}
ROLES = {"consumes", "coroutine_function", "plain_function", "either"}


def test_all_tables_together_are_small():
    """They travel in every wheel."""
    assert sum(path.stat().st_size for path in TABLES.glob("*.z")) <= 2_000_000


@pytest.mark.parametrize("top", knowledge.bundled())
def test_table(top):
    """Flags, roles and keys are those of the format, and each name of its own package is in the table."""
    library = knowledge.load(top)
    assert library is not None
    assert library.source
    names = {f"{home}.{name}" for home, module in library.modules.items() for name in module.get("c", {})}
    for home, module in library.modules.items():
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


def test_a_table_is_plain_json_under_zlib():
    """Anybody can look into one."""
    table = json.loads(zlib.decompress((TABLES / "anyio.z").read_bytes()))
    assert table.keys() == {"source", "modules"}
