"""What a watch notices, and when."""

import time
from types import SimpleNamespace

import pytest

import troth.analysis.check.watch as watch
from troth.analysis.check.request import CheckRequest


@pytest.mark.parametrize("is_new", [False, True], ids=["an edit", "a new file"])
def test_what_is_saved_while_the_folders_are_listed(tmp_path, monkeypatch, is_new):
    """Belongs to the next answer: a look that lists the project must not take it for known."""
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "b.py").write_text("y = 1\n")
    listing = watch.prepare
    looks: list[bool] = []
    saved: list[bool] = []

    def while_listing(request):
        prepared = listing(request)
        if looks and not saved:
            saved.append(True)
            (tmp_path / ("c.py" if is_new else "a.py")).write_text("async def f(): ...\nasync def g():\n    f()\n")
        return prepared

    monkeypatch.setattr(watch, "prepare", while_listing)
    # Every look lists the folders, however short ago the last one was.
    hours = iter(float(hour) * 3600 for hour in range(10_000))
    clock = SimpleNamespace(monotonic=hours.__next__, perf_counter=time.perf_counter, sleep=time.sleep)
    monkeypatch.setattr(watch, "time", clock)
    monkeypatch.setattr(watch, "_SHARE", 0)

    def rest(_seconds: float) -> None:
        looks.append(True)
        assert len(looks) < 10, "nobody noticed"

    answers = watch.watch(CheckRequest(tmp_path.resolve(), cache=False, jobs=1), rest=rest)
    assert not next(answers).report.findings
    answer = next(answers)
    assert saved
    assert [one.code for one in answer.report.findings] == ["TR101"]
