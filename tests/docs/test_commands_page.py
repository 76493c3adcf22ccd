"""Every option that the command line takes stands in the reference."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from troth.cli import app
from troth.cli.environment import variable_of

DOCS = Path(__file__).resolve().parents[2] / "docs"

_spec = importlib.util.spec_from_file_location("troth_docs_commands", DOCS / "_ext/commands.py")
commands = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = commands
_spec.loader.exec_module(commands)


def test_the_page_of_all_commands_is_current():
    """As the parsers are now. If this fails: `python docs/_ext/commands.py`."""
    committed = (DOCS / "reference/commands.md").read_text(encoding="utf-8")
    assert committed == commands.commands_page(), "run `python docs/_ext/commands.py`"
    assert all(f"\n## `troth {name}`\n" in committed for name in app.COMMANDS)


@pytest.mark.parametrize("name", ["check", "fix", "recolor", "explain", "lsp", "mutate", "serve"])
def test_a_page_of_its_own_has_every_option(name):
    """In the words of that page, not only in the list of all."""
    page = (DOCS / "reference" / commands._PAGES[name]).read_text(encoding="utf-8")
    options = [
        action.option_strings
        for action in app.parser_of(name, app.load(name))._actions
        if action.help != "==SUPPRESS==" and action.option_strings and "--help" not in action.option_strings
    ]
    missing = [
        names[-1]
        for names in options
        if not any(re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", page) for option in names)
    ]
    assert [option for option in missing if option != "--color"] == []


def test_every_variable_is_listed():
    """Those that stand in for options of `troth check`; no other is promised."""
    page = (DOCS / "reference/check.md").read_text(encoding="utf-8")
    section = page.partition("\n## Variables\n")[2].partition("\n## ")[0]
    listed = set(re.findall(r"`(TROTH_[A-Z_]+[A-Z])`", section))
    assert listed == {variable_of(option) for option in (*app.load("check").variables, "--color")}
