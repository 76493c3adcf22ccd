"""Findings of one cause that come in crowds are told, but not as certain."""

from collections import Counter
from pathlib import Path

import pytest
from tests.analysis.test_pipeline import write

from troth.analysis.pipeline import analyse

STORE = "class Store:\n    async def save(self): ...\n    async def load(self): ...\n"


def calls(names: str) -> dict[str, str]:
    body = "".join(f"async def use{n}(s: Store):\n    s.{name}()\n" for n, name in enumerate(names.split()))
    return {"store.py": STORE, "app.py": f"from store import Store\n{body}"}


@pytest.mark.parametrize(
    ("names", "confidence"),
    [
        pytest.param("save " * 7, {"certain": 7}, id="a few"),
        pytest.param("save " * 8, {"likely": 8}, id="a crowd"),
        pytest.param("save " * 4 + "load " * 3, {"certain": 7}, id="two causes"),
        pytest.param("save " * 4 + "load " * 4, {"likely": 8}, id="a file full of them"),
    ],
)
def test_a_crowd_of_one_cause_is_not_certain(tmp_path: Path, names: str, confidence: dict[str, int]) -> None:
    """What a project does so often it may mean; each place is told all the same."""
    found = analyse(write(tmp_path, calls(names))).findings
    assert Counter(f.confidence for f in found if f.code == "TR101") == confidence


@pytest.mark.parametrize(
    ("store", "confidence"),
    [
        pytest.param(STORE, "certain", id="of an async def that nothing changes"),
        pytest.param(f"from somewhere import Base\n{STORE.replace('Store', 'Store(Base)')}", "likely", id="of a base that nobody knows"),
    ],
)  # fmt: skip
def test_a_crowd_whose_results_are_used(tmp_path: Path, store: str, confidence: str) -> None:
    """Where what is missing is used, no habit of the project makes it right: whoever converted a file left many."""
    files = {
        f"use{n}.py": f"from store import Store\nasync def f(s: Store):\n    x = s.load()\n    return x.y{n}\n"
        for n in range(8)
    }
    found = analyse(write(tmp_path, {"store.py": store, **files})).findings
    assert {(f.code, f.confidence) for f in found} == {("TR102", confidence)}


def test_the_fixes_of_a_crowd_stay_sure_where_the_definition_is_at_hand(tmp_path: Path) -> None:
    """An `async def` that nothing changes is one, however many calls of it are lost."""
    found = analyse(write(tmp_path, calls("save " * 8))).findings
    assert {f.fix.safety for f in found if f.fix is not None} == {"sure"}
    assert all(f.reasons[-1].text.startswith("8 findings share this cause") for f in found)


def test_a_crowd_that_shrinks_is_certain_again(tmp_path: Path) -> None:
    """What an earlier run kept is judged anew with what there is now."""
    (tmp_path / "project").mkdir()
    project = write(tmp_path / "project", calls("save " * 8))
    analyse(project, cache=tmp_path / "cache")
    write(tmp_path / "project", calls("save " * 7))
    assert {f.confidence for f in analyse(project, cache=tmp_path / "cache").findings} == {"certain"}


def test_a_crowd_in_plain_functions(tmp_path: Path) -> None:
    """Where nothing can be awaited there is no repair, and what is missing is missing all the same."""
    files = {
        f"use{n}.py": f"from store import Store\ndef f():\n    x = Store().load()\n    return x.y{n}\n"
        for n in range(8)
    }
    found = analyse(write(tmp_path, {"store.py": STORE, **files})).findings
    assert {(f.code, f.confidence, f.fix) for f in found} == {("TR102", "certain", None)}
