"""Ask Troth what it finds: the one module here that names modules of the analysis."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import troth
from tools.same.record import Row
from troth.analysis.compiled import is_compiled
from troth.analysis.findings import Finding
from troth.analysis.mutate.operators import all_operators
from troth.analysis.pipeline import analyse
from troth.analysis.project.discover import Root, discover
from troth.analysis.project.project import Project
from troth.analysis.rules import all_rules

__all__ = [
    "findings_in_program",
    "findings_in_tree",
    "is_compiled",
    "operator_cases",
    "reported_in_tree",
    "rule_cases",
]

_FOUND = 1  # the exit code of `troth check` where something is found


def rule_cases() -> Iterator[tuple[str, str | Mapping[str, str]]]:
    """The programs that rules are documented and tested with, by the code of the rule and the name of the case."""
    for rule in all_rules():
        for case in rule.cases:
            for kind, sources in (("bad", case.bad), ("fixed", case.fixed), ("good", case.good)):
                if sources is not None:
                    yield f"{rule.code}/{case.name}/{kind}", sources


def operator_cases() -> Iterator[tuple[str, str]]:
    """The programs that mutation operators are tested with, before and after a mismatch is planted."""
    for name, operator in all_operators().items():
        for case in operator.cases:
            for kind, text in (("before", case.before), ("after", case.after)):
                if text is not None:
                    yield f"{name}/{case.name}/{kind}", text


def findings_in_program(files: Mapping[str, bytes]) -> list[Row]:
    """What all rules find in a program that stands in no folder."""
    project = Project(Path("/nowhere"), tuple(sorted(files)))
    return [_as_row(finding) for finding in _analyse(project, files)]


def findings_in_tree(tree: Path, overlay: Mapping[str, bytes]) -> list[Row]:
    """What all rules find in a project whose files have the contents in `overlay` where there are any."""
    project = discover((), tree, root=Root(tree)).project
    return [_as_row(finding) for finding in _analyse(project, overlay)]


def reported_in_tree(tree: Path) -> list[Row]:
    """What `troth check` prints for a project: the rules that are on by default, comments and settings obeyed."""
    command = [sys.executable, "-m", "troth", "check", ".", "--no-cache", "--output-format", "json"]
    # No environment that happens to be active may be read.
    env = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "CONDA_PREFIX"}}
    env["PYTHONPATH"] = str(Path(troth.__file__).resolve().parents[1])
    process = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False)
    if process.returncode not in {0, _FOUND}:
        raise RuntimeError(f"`troth check` failed in {tree} (exit code {process.returncode}):\n{process.stderr}")
    rows: list[Row] = json.loads(process.stdout)["findings"]
    return rows


def _analyse(project: Project, overlay: Mapping[str, bytes]) -> tuple[Finding, ...]:
    codes = {rule.code for rule in all_rules()}
    return analyse(project, jobs=1, overlay=overlay, on_request=codes).findings


def _as_row(finding: Finding) -> Row:
    span, fix = finding.span, finding.fix
    return {
        "code": finding.code,
        "rule": finding.rule,
        "path": span.path,
        "cell": span.cell,
        "line": span.line,
        "column": span.column,
        "end": [span.end_line, span.end_column],
        "confidence": finding.confidence,
        "message": finding.message,
        "reasons": [list(reason) for reason in finding.reasons],
        "fix": fix and {"title": fix.title, "safety": fix.safety, "edits": [list(edit) for edit in fix.edits]},
        "symbol": finding.symbol,
        "subject": finding.subject,
    }
