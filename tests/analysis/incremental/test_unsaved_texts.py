"""A memory and unsaved texts together, and files that are broken for the moment."""

import pytest

from troth.analysis.check import CheckRequest, check, prepare
from troth.analysis.pipeline.warm_state import Memory

LOST = "async def f(): ...\n\n\nasync def g():\n    f()\n"


@pytest.fixture
def prepared(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "app.py").write_text(LOST)
    return prepare(CheckRequest(cwd=tmp_path, cache=False))


def told(prepared, memory, text):
    report = check(prepared._replace(overlay={"app.py": text.encode()}), memory=memory)
    return [(one.code, one.span.line) for one in report.findings]


def test_a_text_that_is_not_on_the_disk_is_looked_at_anew(prepared):
    """Two unsaved texts after one another are two texts, also if they are equally long."""
    memory = Memory()
    assert told(prepared, memory, LOST) == [("TR101", 5)]
    assert told(prepared, memory, LOST.replace("    f()", "    g)").replace("g)", "1\n")) == []
    assert told(prepared, memory, LOST) == [("TR101", 5)]


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        pytest.param("x = (\n" + LOST, [("TR001", 1), ("TR101", 6)], id="above: it moves with its line"),
        pytest.param(LOST + "x = (\n", [("TR001", 6), ("TR101", 5)], id="below: it stays"),
        pytest.param(LOST.replace("f()\n", "f(\n"), [("TR001", 5)], id="in the broken part nothing is said"),
        pytest.param(
            "import os\n\n" + LOST + "x = (\n",
            [("TR001", 8), ("TR101", 7)],
            id="between two parts it moves with its line",
        ),
        pytest.param(
            "import os\n" + LOST.replace("f()\n", "f(1)\n") + "x = (\n", [("TR001", 7)], id="one of three broken parts"
        ),
    ],
)
def test_a_broken_file_keeps_its_findings(prepared, broken, found):
    """Where the memory asks for it; else it has none but that it cannot be read."""
    keeping, plain = Memory(judges_broken=True), Memory()
    for memory in (keeping, plain):
        assert told(prepared, memory, LOST) == [("TR101", 5)]
    now = told(prepared, keeping, broken)
    assert sorted(code for code, _ in now) == sorted(code for code, _ in found)
    assert [one for one in now if one[0] == "TR101"] == [one for one in found if one[0] == "TR101"]
    assert [code for code, _ in told(prepared, plain, broken)] == ["TR001"]
    assert told(prepared, keeping, LOST) == [("TR101", 5)]


def test_a_fix_moves_with_its_finding(prepared):
    """Its edits are counted in the text of now."""
    memory = Memory(judges_broken=True)
    told(prepared, memory, LOST)
    text = "x = (\n" + LOST
    report = check(prepared._replace(overlay={"app.py": text.encode()}), memory=memory)
    (edit,) = next(one.fix.edits for one in report.findings if one.code == "TR101")
    assert text[: edit.start].endswith("async def g():\n    ")
