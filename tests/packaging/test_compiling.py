"""The hook that compiles the analysis into a wheel: only where it is asked to, and never at the cost of the wheel."""

import ast
import importlib.util
import json
import sys
import zlib
from pathlib import Path

import pytest

from troth.analysis import compiled

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def build(monkeypatch):
    monkeypatch.delenv("TROTH_COMPILE", raising=False)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class App:
    def __init__(self):
        self.warnings = []

    def display_warning(self, text):
        self.warnings.append(text)


def hook(build, root, app=None, target="wheel"):
    return build.WheelHook(str(root), {}, None, None, str(root), target, app)


@pytest.mark.parametrize(
    ("asked", "target", "wanted"),
    [
        pytest.param(None, "wheel", False, id="by default"),
        pytest.param("0", "wheel", False, id="said not to"),
        pytest.param("1", "wheel", True, id="asked"),
        pytest.param("require", "wheel", True, id="required"),
        pytest.param("1", "sdist", False, id="sources"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="nothing is compiled there")
def test_what_the_build_needs(build, monkeypatch, asked, target, wanted):
    """mypyc is installed only for a build that uses it."""
    if asked is not None:
        monkeypatch.setenv("TROTH_COMPILE", asked)
    needed = hook(build, ROOT, target=target).dependencies()
    assert bool(needed) is (wanted and build.missing() is None)


def test_a_machine_without_a_compiler(build, monkeypatch, tmp_path):
    """One comes from the package index then."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TROTH_COMPILE", "1")
    monkeypatch.delenv("CC", raising=False)
    assert build.compiler() is None
    if build.missing() is None:
        assert "ziglang" in hook(build, ROOT).dependencies()


def test_an_editable_install_is_not_compiled(build, monkeypatch, tmp_path):
    """What was compiled would hide what is edited."""
    monkeypatch.setenv("TROTH_COMPILE", "require")
    data = {"force_include": {}}
    hook(build, tmp_path).initialize("editable", data)
    assert data == {"force_include": {}}


def test_a_build_that_fails_leaves_a_wheel_of_plain_python(build, monkeypatch, tmp_path):
    """With a warning; unless compiled code is required."""
    (tmp_path / build.TABLES).mkdir(parents=True)
    app, data = App(), {"force_include": {}}
    monkeypatch.setenv("TROTH_COMPILE", "1")
    failing = hook(build, tmp_path, app)  # a folder without sources
    failing.initialize("standard", data)
    failing.finalize("standard", data, "")
    assert data == {"force_include": {}}
    assert "plain Python" in app.warnings[0]
    monkeypatch.setenv("TROTH_COMPILE", "require")
    with pytest.raises(RuntimeError, match="cannot be compiled"):
        hook(build, tmp_path, app).initialize("standard", data)


def test_a_wheel_carries_the_tables_packed(build, tmp_path):
    """They say the same as the text in the repository, and all together are small: they travel in every wheel."""
    build.pack_tables(ROOT / build.TABLES, tmp_path)
    names = sorted(path.stem for path in (ROOT / build.TABLES).glob("*.json"))
    assert sorted(path.stem for path in tmp_path.iterdir()) == names
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2_500_000
    text = json.loads((ROOT / build.TABLES / "anyio.json").read_bytes())
    head, *modules = map(json.loads, zlib.decompress((tmp_path / "anyio.z").read_bytes()).splitlines())
    assert dict(zip(head.pop("modules"), modules, strict=True)) == text.pop("modules")
    assert head == text


def test_the_flavor_is_whole(build):
    """All modules that the hook names are compiled, or none is."""
    names = [".".join(path.relative_to("src").with_suffix("").parts) for path in build.modules(ROOT)]
    endings = {Path(importlib.util.find_spec(name).origin).suffix for name in names}
    assert len(names) > 100
    assert endings == ({".py"} if not compiled.is_compiled() else {".pyd"} if sys.platform == "win32" else {".so"})


def test_a_path_that_moved_is_refused(build, monkeypatch):
    """Modules are named by path: a name that is left behind by a move must not change what is compiled."""
    monkeypatch.setattr(build, "NOT_COMPILED", (*build.NOT_COMPILED, "src/troth/analysis/facts/moved.py"))
    with pytest.raises(FileNotFoundError, match=r"facts/moved\.py"):
        build.modules(ROOT)


def test_nobody_looks_for_something_in_a_generator(build):
    """`x in f()`, where `f` yields, raises once it is compiled: what mypyc makes of a generator has no such method."""

    def trees():  # one after the other: all at once take much memory
        return ((path, ast.parse((ROOT / path).read_text(encoding="utf-8"))) for path in build.modules(ROOT))

    defined = {path: _functions_of(tree) for path, tree in trees()}
    everywhere = {name: is_one for known in defined.values() for name, is_one in known.items()}
    assert everywhere["check"]
    looking = [
        f"{path.name}:{node.lineno}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) and any(isinstance(one, ast.In | ast.NotIn) for one in node.ops)
        for call in node.comparators
        if isinstance(call, ast.Call)
        for name in [call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")]
        if defined[path].get(name, everywhere.get(name, False))
    ]
    assert not looking


def _functions_of(tree):
    """The functions of a module by their names, with whether they yield."""
    return {
        node.name: any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }


def test_no_attribute_is_declared_twice():
    """In a class and again in one that derives from it: compiled code then shows it to the collector twice.

    The collector takes the object for one that somebody holds, and never frees it nor what it refers to.
    """
    declared: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for path in (ROOT / "src/troth/analysis").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                declared.setdefault(node.name, set()).update(declared_in(node))
                bases.setdefault(node.name, set()).update(ast.unparse(base).split("[")[0] for base in node.bases)
    assert declared["ProjectFiles"]
    twice = {
        (name, base): sorted(attributes & declared[base])
        for name, attributes in declared.items()
        for base in above(name, bases)
        if base in declared and attributes & declared[base]
    }
    assert twice == {}


def declared_in(cls):
    """The attributes that a class annotates, in its body or on `self`."""
    for node in ast.walk(cls):
        if isinstance(node, ast.AnnAssign):
            if isinstance(node.target, ast.Attribute) and ast.unparse(node.target.value) == "self":
                yield node.target.attr
            elif isinstance(node.target, ast.Name) and node in cls.body:
                yield node.target.id


def above(name, bases):
    """The names of all classes that a class derives from."""
    waiting, met = list(bases[name]), set()
    while waiting:
        base = waiting.pop()
        if base not in met:
            met.add(base)
            waiting += bases.get(base, ())
    return met - {name}
