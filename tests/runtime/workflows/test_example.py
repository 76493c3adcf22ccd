"""The example workflow runs as it stands: no key, no network, and it ends by itself."""

import sys
from pathlib import Path

import pytest

from troth.runtime import Runtime
from troth.runtime.workflows.record.report import RunWord

ORDER = Path(__file__).resolve().parents[3] / "examples/workflow/order.yaml"


@pytest.fixture
def runtime(tmp_path):
    with Runtime(tmp_path / "runs.db") as opened:
        yield opened
    sys.modules.pop("shop", None)


def test_an_order_is_shipped_at_the_second_try(runtime):
    """The carrier does not answer the first time."""
    run = runtime.run(ORDER, {"order": "A7"})
    assert run.output == {"payment": "pay-A7", "parcel": "box-A7"}
    assert [one.error.type for one in run.step("ship").attempts] == ["ConnectionError"]


def test_an_order_that_is_too_heavy_is_taken_back(runtime, capsys):
    """Reservations and payment, the last done first."""
    run = runtime.run(ORDER, {"order": "A8", "weight": 198}, check=False)
    assert run.state is RunWord.ROLLED_BACK
    assert run.undone == ("stock[1].reserve", "stock[0].reserve", "charge")
    assert capsys.readouterr().out.splitlines()[-1] == "refunded A8"
