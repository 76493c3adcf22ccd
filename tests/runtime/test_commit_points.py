"""No commit without a failpoint: held by the shape of the code, and checked here."""

import ast
import functools
import re
from pathlib import Path

import pytest

import troth.runtime
from troth.runtime.store import failpoints
from troth.testing import failpoints as arming

SOURCE = Path(troth.runtime.__file__).parent
COMMITTING = {"commit", "acommit", "transaction", "Commit"}


@functools.cache
def modules():
    """The trees of all modules: 27 MB, which are not kept beyond these tests."""
    files = SOURCE.rglob("*.py")
    return {file.relative_to(SOURCE).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in files}


@pytest.fixture(autouse=True, scope="module")
def _forgotten():
    yield
    modules.cache_clear()


def declared():
    """Every constant that is made by `commit_point`, as module → names."""
    found = {}
    for module, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                called = node.value.func
                if isinstance(called, ast.Name) and called.id in {"commit_point", "effect_point"}:
                    found.setdefault(module, {})[node.targets[0].id] = node.value.args[0].value
    return found


_ONLY_READING = {
    "store/sqlite/schema.py",
    "store/sqlite/read_only.py",
    "store/postgres/move.py",
    "store/rows/promise_lists.py",  # a page in several statements, as of one moment
}
_POSTGRES = {f"store/postgres/{name}.py" for name in ("link", "store", "move")}
"""Connections to a server are in automatic mode by what they are given; `link` says so, and only `writer` commits."""
_TABLES = {"store/postgres/schema.py", "store/postgres/move.py"}
"""Make or fill all tables of a store in one transaction, before anybody works on it."""


def test_only_the_writer_touches_transactions():
    """`BEGIN`, `COMMIT`, `executescript` and connections in automatic mode appear in one module."""
    guilty = []
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name)):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            text = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else ""
            if called in {"execute", "_execute", "executescript"} and str(text).split(" ")[0].upper() in {
                "BEGIN",
                "COMMIT",
                "END",
            }:
                guilty.append(module)
            if called == "connect" and not module.startswith("engine/temporal/"):
                settings = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
                is_plain = settings.get("isolation_level") == "None" or module in _ONLY_READING | _POSTGRES
                assert is_plain, ast.unparse(node)
    assert set(guilty) - _ONLY_READING == {"store/sqlite/writer.py"}


def gives_a_point(call, names):
    """Whether a call's function returns a declared commit point first, wherever it returns."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
    found = [node for tree in modules().values() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    returned = [
        node.value
        for function in found
        if function.name == name
        for node in ast.walk(function)
        if type(node) is ast.Return
    ]
    return bool(returned) and all(isinstance(one, ast.Tuple) and ast.unparse(one.elts[0]) in names for one in returned)


def test_every_commit_names_a_declared_point():
    """Whoever commits says where, with a constant made by `commit_point`; a parameter may only hand one on."""
    names = {name for points in declared().values() for name in points}
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called not in COMMITTING or ast.unparse(node.func) == "self._writer.commit":
                continue
            if module in _TABLES and ast.unparse(node) == "connection.transaction()":
                continue
            point = node.args[0]
            is_handed_on = isinstance(point, ast.Name | ast.Attribute) and ast.unparse(point).endswith("point")
            is_handed_on = is_handed_on or (isinstance(point, ast.Starred) and gives_a_point(point.value, names))
            assert is_handed_on or ast.unparse(point).split(".")[-1] in names, (
                f"{module}:{node.lineno}: {ast.unparse(node)}"
            )


def of_the_server():
    """What the server declares, which is known only where a test of this process has imported it."""
    files = SOURCE.with_name("server").rglob("*.py")
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return set(re.findall(r"(?:commit|effect)_point\(\s*\"([^\"]+)\"", text))


def test_every_declared_point_is_known_and_has_its_failpoints():
    """The registry holds what the source declares, no more, no less."""
    arming.names()
    source = {name for points in declared().values() for name in points.values()}
    known = {name for name in failpoints.points() if not name.startswith("test.")}
    assert known - of_the_server() == source
    for point in failpoints.points().values():
        assert point.why
        assert len(point.failpoints) == (3 if isinstance(point, failpoints.CommitPoint) else 2)


def test_a_point_declared_twice_is_refused():
    """Two places of one name could not be told apart by a test."""
    failpoints.commit_point("test.twice", "one thing")
    with pytest.raises(Exception, match="declared twice"):
        failpoints.commit_point("test.twice", "another thing")
