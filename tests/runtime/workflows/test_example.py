"""The example workflow runs as it stands: no key, no network, and it ends by itself."""

import sys
from html import unescape
from pathlib import Path

import pytest
from IPython.core.formatters import HTMLFormatter

from troth.runtime import Runtime
from troth.runtime.workflows.record.report import RunWord
from troth.runtime.workflows.render.html import page

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


def test_a_notebook_shows_the_page_of_a_run(runtime):
    """Inside of a frame, which its style does not leave; no quote in the page ends the attribute that holds it."""
    run = runtime.run(ORDER, {"order": 'A7" onload="alert(1)'})
    before, frame, after = HTMLFormatter()(run).partition(' srcdoc="')
    inside, quote, rest = after.partition('"')
    assert (before, frame + quote) == ('<iframe title="order" sandbox', ' srcdoc=""')
    assert unescape(inside) == page(run)
    assert "<" not in rest.removesuffix("></iframe>")
