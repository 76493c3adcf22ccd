"""Where a plain `def` loses a call, the change of color that would repair it is proposed with its size."""

from pathlib import Path

import pytest

from troth.analysis.fix.proposal import proposals
from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project

HEAD = "async def save(): ...\ndef record():\n    save()\n"


@pytest.mark.parametrize(
    ("source", "others", "calls", "tops"),
    [
        pytest.param(HEAD, [], 0, 0, id="it has no callers"),
        pytest.param(f"{HEAD}async def main():\n    record()\n", [], 1, 0, id="an async caller only awaits"),
        pytest.param(f"{HEAD}def main():\n    record()\n    record()\nmain()\n", ["main"], 2, 1, id="up to the module"),
        pytest.param(
            f"{HEAD}def a():\n    record()\ndef b():\n    a()\nasync def c():\n    b()\n",
            ["a", "b"],
            3,
            0,
            id="a chain",
        ),
        pytest.param(f"{HEAD}def a():\n    record()\n    b()\ndef b():\n    a()\n", ["a", "b"], 3, 0, id="a circle"),
    ],
)
def test_size_of_the_change(source, others, calls, tops):
    """Every sync caller on the way up has to become async; an async one has to await."""
    result = analyse(Project(Path("/nowhere"), ("app.py",)), overlay={"app.py": source.encode()})
    (proposal,) = proposals(result.program, result.findings)
    assert proposal.target == "app:record"
    assert ([one.name for one in proposal.others], proposal.calls, proposal.tops) == (others, calls, tops)
    assert proposal.words().startswith("makes `record` and " if others else "makes `record` async")


def test_where_a_fix_is_offered_none_is_proposed():
    """An async caller needs no change of color."""
    source = "async def save(): ...\nasync def main():\n    save()\n"
    result = analyse(Project(Path("/nowhere"), ("app.py",)), overlay={"app.py": source.encode()})
    assert not proposals(result.program, result.findings)
