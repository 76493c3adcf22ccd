"""An exception of our own costs one rule in one file, and is told."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from troth.analysis import crash
from troth.analysis.crash import Crash, grouped
from troth.analysis.facts.from_ast.extract import extract
from troth.analysis.facts.model import FileFacts
from troth.analysis.findings import Finding, Span
from troth.analysis.incremental.project_queries import PARTS, part
from troth.analysis.pipeline import analyse
from troth.analysis.pipeline.warm_state import Memory
from troth.analysis.project.project import Project
from troth.analysis.result import Analysis
from troth.analysis.rules import registry
from troth.analysis.rules.registry import rule
from troth.analysis.semantics import Program
from troth.analysis.source.read import parse
from troth.analysis.source.text import DecodedText

LOST = "async def save(): ...\ndef main():\n    save()\n"


@pytest.fixture(autouse=True)
def _told() -> Iterator[None]:
    """As for a user: what fails is told."""
    crash.raise_at_once(is_on=False)
    yield
    crash.raise_at_once(is_on=True)


@pytest.fixture(autouse=True)
def _failing_rule() -> Iterator[None]:
    """A rule that finds each file, and fails where `FAIL` is written."""

    @rule("TR999", "on-purpose", cases=())
    def check(program: Program) -> Iterator[Finding]:
        for path in program.asked:
            yield Finding("TR999", "on-purpose", Span(path, 1, 1, 1, 1), "here", "certain")
            if "FAIL" in program.text(path).value:
                raise ValueError("on\npurpose")

    registry.all_rules.cache_clear()
    yield
    del registry._declared[__name__]
    registry.all_rules.cache_clear()


def write(root: Path, files: dict[str, str]) -> Project:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return Project(root, tuple(sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py"))))


def codes(found: Analysis) -> list[tuple[str, str]]:
    return sorted((one.span.path, one.code) for one in found.findings)


def told(found: Analysis) -> list[tuple[str, str, str, str]]:
    return [(one.path, one.rule, one.error, one.message) for one in found.crashes]


FILES = {"a.py": LOST, "bad.py": f"{LOST}# FAIL\n", "c.py": LOST}
ALL_BUT_ONE = [("a.py", "TR101"), ("a.py", "TR999"), ("bad.py", "TR101"), ("c.py", "TR101"), ("c.py", "TR999")]


@pytest.mark.parametrize("kind", ["nothing kept", "a cache", "a memory", "both"])
def test_a_rule_that_fails_in_one_file(tmp_path: Path, kind: str) -> None:
    """It still finds what there is in the others, and the other rules in that one; each time anew."""
    project = write(tmp_path / "project", FILES)
    cache = tmp_path / "cache" if kind in ("a cache", "both") else None
    memory = Memory() if kind in ("a memory", "both") else None
    for _ in range(3):
        found = analyse(project, cache=cache, memory=memory)
        assert codes(found) == ALL_BUT_ONE
        assert told(found) == [("bad.py", "TR999", "ValueError", "on purpose")]
    assert found.crashes[0].cost == "TR999 was skipped in this file"
    assert found.crashes[0].place.startswith("test_crash.py:")
    assert "raise ValueError" in found.crashes[0].trace
    write(project.root, {"bad.py": LOST})
    found = analyse(project, cache=cache, memory=memory)
    assert codes(found) == sorted([*ALL_BUT_ONE, ("bad.py", "TR999")])
    assert found.crashes == ()


@pytest.mark.parametrize("kind", ["a cache", "a memory"])
def test_a_file_that_is_edited_so_that_a_rule_fails(tmp_path: Path, kind: str) -> None:
    """Nothing of that run is kept: neither for the file itself nor for those that depend on it."""
    cache = tmp_path / "cache" if kind == "a cache" else None
    memory = Memory() if kind == "a memory" else None
    user = "from bad import save\ndef other():\n    save()\n"
    project = write(tmp_path / "project", {**FILES, "bad.py": LOST.replace("async ", ""), "user.py": user})
    assert not analyse(project, cache=cache, memory=memory).crashes
    write(project.root, FILES)
    expected = sorted([*ALL_BUT_ONE, ("user.py", "TR101"), ("user.py", "TR999")])
    for _ in range(2):
        found = analyse(project, cache=cache, memory=memory)
        assert codes(found) == expected
        assert told(found) == [("bad.py", "TR999", "ValueError", "on purpose")]
    write(project.root, {"bad.py": LOST.replace("async ", "")})
    found = analyse(project, cache=cache, memory=memory)
    assert ("user.py", "TR101") not in codes(found)
    assert not found.crashes


@pytest.mark.parametrize("is_kept", [False, True])
def test_in_several_processes(tmp_path: Path, is_kept: bool) -> None:
    """Whoever meets it, it is told; and what the others find is not lost."""
    many = "".join(f"def f{number}(): ...\n" for number in range(300))
    files = {f"m{number}.py": f"{LOST}{many}{'# FAIL' if number in (1, 2) else ''}\n" for number in range(6)}
    project = write(tmp_path / "project", files)
    found = analyse(project, jobs=3, cache=tmp_path / "cache" if is_kept else None)
    assert codes(found) == sorted(
        [(name, "TR101") for name in files] + [(name, "TR999") for name in files if name not in ("m1.py", "m2.py")]
    )
    assert sorted(told(found)) == [(name, "TR999", "ValueError", "on purpose") for name in ("m1.py", "m2.py")]
    assert grouped(found.crashes) == (found.crashes[0]._replace(others=1),)


def test_a_file_that_we_fail_to_read() -> None:
    """It is told as our fault, and the others are checked."""
    overlay = {"a.py": LOST.encode(), "bad.py": [1], "c.py": b"from bad import x\nx()\n"}
    found = analyse(Project(Path("/nowhere"), tuple(overlay)), overlay=overlay)  # type: ignore[arg-type]
    assert ("a.py", "TR101") in codes(found)
    assert not [one for one in found.findings if one.span.path == "bad.py"]
    assert [(one.path, one.rule, one.error) for one in found.crashes] == [("bad.py", "", "TypeError")]
    assert found.unreadable == ("bad.py",)


def test_a_function_that_we_fail_to_follow() -> None:
    """What is known of the others stands; what it gives is unknown."""
    tree = parse(b"async def save(): ...\ndef bad(x):\n    return save()\ndef main():\n    save()\n")
    facts = extract(tree)  # type: ignore[arg-type]
    damaged = tuple(one._replace(body=b"?") if one.name == "bad" else one for one in facts.functions)
    found: dict[str, FileFacts] = {"a.py": facts._replace(functions=damaged)}
    program = Program(("a.py",), ("",), found.get, lambda _path: DecodedText(""))
    program.walk(["a.py"])
    assert [one.site.at[0] for one in program.incidents()] == [5]
    assert [(one.path, one.line, one.rule) for one in program.crashes] == [("a.py", 2, "")]
    assert "`bad` was not followed" in program.crashes[0].cost


def test_what_an_earlier_run_left_is_not_to_be_used(tmp_path: Path) -> None:
    """Everything is looked at anew, so that nothing is missing; it is told all the same, and once."""
    project = write(tmp_path / "project", {"a.py": LOST, "b.py": LOST})
    cache = tmp_path / "cache"
    analyse(project, cache=cache)

    @part("on purpose")
    def fails(file: FileFacts) -> bool:
        if any(one.name == "unheard_of" for one in file.functions):
            raise KeyError("unheard_of")
        return False

    try:
        write(project.root, {"b.py": f"{LOST}def unheard_of(): ...\n"})
        found = analyse(project, cache=cache)
        again = analyse(project, cache=cache)
    finally:
        del PARTS["on purpose"]
    assert codes(found) == codes(again) == [(name, code) for name in ("a.py", "b.py") for code in ("TR101", "TR999")]
    assert told(found) == [("", "", "KeyError", "'unheard_of'")]
    assert not again.crashes


def test_whoever_looks_for_the_bug_gets_the_exception(tmp_path: Path) -> None:
    """Tests are such, and so is `TROTH_DEBUG=1`."""
    crash.raise_at_once(is_on=True)
    with pytest.raises(ValueError, match="purpose"):
        analyse(write(tmp_path, FILES))


def test_one_bug_in_many_places_is_one_line() -> None:
    """What differs in nothing but the place is one bug."""
    one = Crash("a.py", 3, "", "`f` was not followed", "KeyError", "'x'", "flow.py:9", "")
    others = [one._replace(path=name, cost=f"`{name}` was not followed", message=f"'{name}'") for name in "bcd"]
    other = one._replace(place="flow.py:10")
    assert grouped([one, one, *others, other]) == (one._replace(others=3), other)


def test_it_can_be_copied() -> None:
    """Between processes, that is."""
    import pickle

    one = Crash("a.py", 3, "TR101", "cost", "KeyError", "'x'", "flow.py:9", "trace")
    assert pickle.loads(pickle.dumps(one)) == one
