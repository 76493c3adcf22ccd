"""The editor and `troth check -`, `troth fix -` say the same of the same text, and repair it in the same way."""

import io
import json
import sys

import pytest

from troth.analysis.check import CheckRequest
from troth.analysis.edits.apply import apply
from troth.analysis.findings import Edit
from troth.analysis.rules import all_rules
from troth.cli.app import run
from troth.lsp.features.jobs import carry_out
from troth.lsp.protocol.positions import Positions, split
from troth.lsp.sessions.checker import FolderChecker
from troth.lsp.sessions.places import Addresses, Places

CASES = [
    pytest.param(case.bad, id=f"{rule.code} {case.name}")
    for rule in all_rules()
    if rule.is_default
    for case in [case for case in rule.cases if isinstance(case.bad, str)][:2]
]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A file on the disk that says something else, and another one that imports it."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    (tmp_path / "app.py").write_text("def older():\n    return 1\n")
    (tmp_path / "user.py").write_text("import app\n\n\nasync def use():\n    app.main()\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("text", CASES)
def test_same_as_on_stdin(project, text, monkeypatch, capsysbinary):
    """What is found in an unsaved text, where, how sure it is; and the text after all repairs that are sure."""

    def command(*words):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        run([*words, "-", "--stdin-filename", "app.py"])
        return capsysbinary.readouterr().out

    checker = FolderChecker(CheckRequest(cwd=project))
    look = checker.look({project / "app.py": text.encode()})
    shown = [
        [finding.code, finding.message, finding.confidence, finding.span.line, finding.span.column]
        for finding in look.findings_in("app.py")
    ]
    told = json.loads(command("check", "--output-format", "json"))["findings"]
    assert shown == [[item[key] for key in ("code", "message", "confidence", "line", "column")] for item in told]
    outcome = carry_out({"do": "fix all", "path": "app.py"}, checker, Places(look, Addresses({}, {}, {}, {}), "utf-32"))
    positions = Positions(split(text), "utf-32")
    edits = []
    for piece in outcome.pieces:
        assert piece.uri == (project / "app.py").as_uri()
        start, end = positions.offset(piece.edit.range.start), positions.offset(piece.edit.range.end)
        edits.append(Edit("app.py", start, end, piece.edit.new_text))
    assert apply(text, edits) == command("fix").decode()
