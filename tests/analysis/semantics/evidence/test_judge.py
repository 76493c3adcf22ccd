"""Each witness and each doubt decides by itself: switched off, its case turns out otherwise."""

import importlib
import pkgutil

import pytest

from tools.same.troth import findings_in_program
from troth.analysis.semantics.evidence import judge, switches

PACKAGE = "troth.analysis.semantics.evidence"
MODULES = {"started-by-decorator": "opaque_decorator"}


def cases(room, names):
    """The cases of all modules of a room, by the name of the witness or the doubt."""
    for name in names:
        module = importlib.import_module(f"{PACKAGE}.{room}.{MODULES.get(name, name.replace('-', '_'))}")
        for case in module.CASES:
            yield pytest.param(name, case.program, id=f"{name}: {case.name}")


def lost(program):
    """The lines on which a lost call is reported."""
    rows = findings_in_program({"case.py": program.encode()})
    return {row["line"] for row in rows if row["code"].startswith(("TR1", "TR2"))}


def marked(program):
    """The lines that end in `# lost`."""
    return {number for number, line in enumerate(program.splitlines(), 1) if line.endswith("# lost")}


@pytest.mark.parametrize(("room", "names"), [("witnesses", judge.WITNESSES), ("doubts", judge.DOUBTS)])
def test_the_judge_hears_every_module(room, names):
    """A module that `judge.py` does not name is never asked, and its cases are never tried."""
    modules = {module.name for module in pkgutil.iter_modules(importlib.import_module(f"{PACKAGE}.{room}").__path__)}
    assert modules == {MODULES.get(name, name.replace("-", "_")) for name in names}, "name it in judge.py"


@pytest.fixture(autouse=True)
def all_on():
    """Whatever a test switches off is on again after it."""
    yield
    switches.OFF.clear()


@pytest.mark.parametrize(("name", "program"), list(cases("witnesses", judge.WITNESSES)))
def test_only_this_witness_reports_it(name, program):
    """With the witness the marked line is reported, without it nothing is."""
    assert lost(program) == marked(program) != set()
    switches.OFF.add(name)
    assert lost(program) == set()


@pytest.mark.parametrize(("name", "program"), list(cases("doubts", judge.DOUBTS)))
def test_only_this_doubt_silences_it(name, program):
    """With the doubt nothing is reported, without it the marked line is."""
    assert lost(program) == set()
    switches.OFF.add(name)
    assert lost(program) == marked(program) != set()
