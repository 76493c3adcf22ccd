"""Packages that are installed beside a project: read where no table tells of them, and never a reason to see less."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.analysis.rules.test_cases import CASES, files
from tests.analysis.test_specimens import programs_in

from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project
from troth.analysis.rules import Case, CheckRule

ASKED = """\
import asyncio
import {library}

async def main():
    client = {library}.Client()
    client.load()
    await asyncio.sleep(0)
"""
CLIENT = "class Client:\n    {color}def load(self):\n        return 1\n"


def said(
    sources: Mapping[str, str], python: Path | None = None, codes: tuple[str, ...] = (), root: Path = Path("/nowhere")
) -> set[tuple[str, int, str, str]]:
    texts = {path: text.encode() for path, text in sources.items()}
    found = analyse(Project(root, tuple(sorted(texts))), overlay=texts, python=python, on_request=codes).findings
    return {(f.span.path, f.span.line, f.code, f.confidence) for f in found}


@pytest.mark.parametrize("sources", [*programs_in("specimens"), *programs_in("families")])
def test_as_much_is_found_beside_the_packages(sources: dict[str, str]) -> None:
    """The packages of this interpreter at hand, FastAPI, click and requests among them, the findings are the same."""
    assert said(sources, Path(sys.executable)) == said(sources)


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_cases_hold_beside_the_packages(rule: CheckRule, case: Case) -> None:
    """So are those of every rule's own cases."""
    for sources in (case.bad, case.good):
        if sources is not None:
            beside = said(files(sources), Path(sys.executable), (rule.code,))
            assert beside == said(files(sources), None, (rule.code,))


@pytest.mark.parametrize(
    ("library", "version", "color", "is_lost"),
    [
        pytest.param("nobody_knows", "1.0", "async ", True, id="no table, async in its source"),
        pytest.param("nobody_knows", "1.0", "", False, id="no table, plain in its source"),
        pytest.param("pymodbus", "1.5", "async ", True, id="older than its table, async in its source"),
        pytest.param("pymodbus", "1.5", "", False, id="older than its table, plain in its source"),
    ],
)
def test_sources_that_are_believed(library: str, version: str, color: str, is_lost: bool, tmp_path: Path) -> None:
    """The source of a package counts where no table tells of it, or only one of a later major version."""
    packages = tmp_path / ".venv/lib/python3.11/site-packages"
    (packages / library).mkdir(parents=True)
    (packages / library / "__init__.py").write_text(CLIENT.format(color=color))
    (packages / f"{library}-{version}.dist-info").mkdir()
    found = said({"main.py": ASKED.format(library=library)}, root=tmp_path)
    assert [(path, line, code) for path, line, code, _ in found] == ([("main.py", 6, "TR101")] if is_lost else [])
