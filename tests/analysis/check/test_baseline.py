"""A baseline recognises what it knows after the code has moved, and nothing else."""

import ast
import json
from pathlib import Path

import pytest

from troth.analysis.check.baseline import compare, read_baseline, write_baseline
from troth.analysis.findings import Finding, Span
from troth.analysis.report.fingerprint import fingerprints
from troth.analysis.source.lines import Lines
from troth.errors import MisuseError, RunError

OLD = """\
async def save(): ...


async def main():
    save()
    print("done")


async def other():
    save()
"""


def findings(root: Path) -> list[Finding]:
    """A finding for each bare call of `save` in the files there: what a rule would say, without the rule."""
    found = []
    for file in sorted(root.glob("*.py")):
        stack: list[tuple[ast.AST, str]] = [(ast.parse(file.read_text()), "")]
        while stack:
            node, symbol = stack.pop()
            if isinstance(node, ast.AsyncFunctionDef | ast.ClassDef):
                symbol = f"{symbol}.{node.name}".strip(".")
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                subject = ast.unparse(node.value.func)
                if subject.endswith("save"):
                    span = Span(file.name, node.lineno, node.col_offset + 1, node.lineno, 99)
                    found.append(
                        Finding("TR101", "unawaited-coroutine", span, "m", "certain", (), None, symbol, subject)
                    )
            stack += [(child, symbol) for child in ast.iter_child_nodes(node)]
    return sorted(found, key=lambda one: one.span)


def files(root: Path, contents: dict[str, str]) -> None:
    for file in root.glob("*.py"):
        file.unlink()
    for name, text in contents.items():
        (root / name).write_text(text)


def compared(root: Path, old: dict[str, str], new: dict[str, str]):
    files(root, old)
    write_baseline(root / "known.json", findings(root), Lines(root), set(old))
    files(root, new)
    return compare(findings(root), read_baseline(root / "known.json"), Lines(root), set(new))


@pytest.mark.parametrize(
    ("new", "loud", "repaired"),
    [
        pytest.param({"a.py": OLD}, [], 0, id="the same"),
        pytest.param({"a.py": "import os\n\n\n" + OLD}, [], 0, id="line shift"),
        pytest.param(
            {"a.py": OLD.replace("    save()\n    print", "    if True:\n        save()\n    print")},
            [],
            0,
            id="re-indent",
        ),
        pytest.param({"renamed.py": OLD}, [], 0, id="file rename"),
        pytest.param(
            {"a.py": OLD.split("async def other", maxsplit=1)[0], "b.py": "async def other():\n    save()\n"},
            [],
            0,
            id="function moved",
        ),
        pytest.param({"a.py": OLD.replace("def main", "def entry")}, [], 0, id="function rename"),
        pytest.param(
            {"a.py": OLD.replace("async def other():\n    save", "class A:\n    async def other(self):\n        save")},
            [],
            0,
            id="function moved into a class",
        ),
        pytest.param({"a.py": OLD + "\n\nasync def third():\n    save()\n"}, [("a.py", 14)], 0, id="new, elsewhere"),
        pytest.param(
            {"a.py": OLD.replace("    print", "    save()\n    print")}, [("a.py", 6)], 0, id="new, same function"
        ),
        pytest.param({"a.py": OLD, "b.py": OLD}, [("b.py", 5), ("b.py", 10)], 0, id="new, in a copy of the file"),
        pytest.param({"a.py": OLD.replace("    save()\n    print", "    print")}, [], 1, id="repaired"),
        pytest.param({"a.py": ""}, [], 2, id="all repaired"),
        pytest.param(
            {"a.py": OLD.replace("    save()\n    print", "    print") + "\n\nasync def third():\n    save()\n"},
            [("a.py", 13)],
            1,
            id="repaired here does not excuse elsewhere",
        ),
    ],
)
def test_what_a_baseline_recognises(new, loud, repaired, tmp_path):
    """Moves stay quiet, a new one of the same shape is loud, and a repaired one is reported as stale."""
    result = compared(tmp_path, {"a.py": OLD}, new)
    assert [(one.span.path, one.span.line) for one in result.new] == loud
    assert len(result.repaired) == repaired


def test_the_file_is_sorted_and_has_a_line_for_each(tmp_path):
    """A merge conflict or a review sees one line per finding, in an order that does not depend on the run."""
    files(tmp_path, {"b.py": OLD, "a.py": OLD})
    found = findings(tmp_path)
    write_baseline(tmp_path / "one.json", found, Lines(tmp_path), {"a.py", "b.py"})
    write_baseline(tmp_path / "two.json", found[::-1], Lines(tmp_path), {"a.py", "b.py"})
    text = (tmp_path / "one.json").read_text()
    assert text == (tmp_path / "two.json").read_text()
    entries = json.loads(text)["findings"]
    assert [entry["path"] for entry in entries] == ["a.py", "a.py", "b.py", "b.py"]
    assert len([line for line in text.splitlines() if '"path"' in line]) == 4
    assert "line" not in entries[0]


def test_writing_for_a_part_keeps_the_rest(tmp_path):
    """Taking stock of one folder does not forget the others."""
    files(tmp_path, {"a.py": OLD, "b.py": OLD})
    write_baseline(tmp_path / "k.json", findings(tmp_path), Lines(tmp_path), {"a.py", "b.py"})
    known = read_baseline(tmp_path / "k.json")
    assert write_baseline(tmp_path / "k.json", [], Lines(tmp_path), {"a.py"}, known) == 2
    assert {one.path for one in read_baseline(tmp_path / "k.json")} == {"b.py"}


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"version": 99, "findings": []}', '{"version": 1, "findings": [{}]}']
)
def test_what_is_no_baseline_is_refused(text, tmp_path):
    """Every old finding would look new."""
    (tmp_path / "k.json").write_text(text)
    with pytest.raises(MisuseError, match="not a baseline"):
        read_baseline(tmp_path / "k.json")
    with pytest.raises(MisuseError, match="--write-baseline"):
        read_baseline(tmp_path / "missing.json")


def test_a_baseline_that_cannot_be_written(tmp_path):
    """Says so, and leaves nothing behind."""
    with pytest.raises(RunError, match="could not be written"):
        write_baseline(tmp_path / "no/where.json", [], Lines(tmp_path), set())
    assert not list(tmp_path.iterdir())


def test_a_fingerprint_stays_when_lines_are_inserted_above(tmp_path):
    """So that a service that keeps alerts knows them again; two of a kind have two."""
    files(tmp_path, {"a.py": OLD.replace("    print", "    save()\n    print")})
    before = fingerprints(findings(tmp_path))
    files(tmp_path, {"a.py": "\n" * 10 + OLD.replace("    print", "    save()\n    print")})
    assert fingerprints(findings(tmp_path)) == before
    assert len(set(before)) == 3
