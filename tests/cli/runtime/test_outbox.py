"""`troth outbox`: what is owed, on a store of its own or of a running program."""

import json

import pytest

from troth.cli import app
from troth.runtime import Runtime
from troth.runtime.engine import Wait


@pytest.fixture
def troth(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*argv):
        code = app.run(argv)
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def promise(tmp_path):
    with Runtime(tmp_path / ".troth/runs.db", in_process=False) as runtime:
        promise = runtime.promises.start(str.upper, prompt="hello").promise
        promise.wait(60)
    return promise.id


def test_list_show_ack_replay(troth, promise):
    """Each verb, in words and as JSON."""
    delivery = f"{promise}-done-1"
    code, out, _ = troth("outbox", "list")
    assert code == 0
    assert f"{delivery}  stored" in out
    assert "1 promised = 0 delivered + 1 stored + 0 expired + 0 dead" in out
    listed = json.loads(troth("outbox", "list", "--json")[1])
    assert [one["id"] for one in listed["deliveries"]] == [delivery]
    assert "HELLO" in troth("outbox", "show", promise)[1]
    assert json.loads(troth("outbox", "show", delivery, "--json")[1])["text"] == "HELLO"
    assert troth("outbox", "ack", delivery)[1] == f"{delivery} is delivered\n"
    assert troth("outbox", "ack", delivery)[1] == f"{delivery} was already over\n"
    assert troth("outbox", "list")[1].startswith("No delivery is pending.")
    assert "pending again" in troth("outbox", "replay", delivery)[1]
    assert json.loads(troth("outbox", "list", "--json")[1])["counts"]["stored"] == 1
    (attempt,) = json.loads(troth("outbox", "show", delivery, "--json")[1])["attempts"]
    assert (attempt["outcome"], attempt["words"]) == ("acknowledged", "troth outbox ack")
    assert "  acknowledged  " in troth("outbox", "show", delivery)[1]


def test_an_empty_list_does_not_hide_what_is_owed(troth, tmp_path):
    """Work that is not over has no delivery yet, and its result is owed; a filter that matches nothing is no answer."""

    def hold():
        return (yield Wait("go"))

    with Runtime(tmp_path / ".troth/runs.db", in_process=False) as runtime:
        for count, says in (
            (1, "1 promise is open: its result is delivered"),
            (2, "2 promises are open: their results are"),
        ):
            runtime.promises.start(hold, promise_id=f"p-{count}")
            out = troth("outbox", "list")[1]
            assert out.startswith(f"No delivery is pending yet. {says}")
            assert f"{count} promised = 0 delivered + {count} stored" in out
        assert troth("outbox", "list", "--session", "nobody")[1].startswith("There is no such delivery.")
        for promise in ("p-1", "p-2"):
            runtime.promises.cancel(promise)
            runtime.promises.wait(promise, 30)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        pytest.param(("list", "--state", "lost"), "There is no state 'lost'", id="a state"),
        pytest.param(("show", "p-nobody"), "never was", id="a delivery"),
        pytest.param(("ack", "\udcff"), "half of a character", id="bytes that are no text"),
        pytest.param(("list", "--limit", "0"), "would list nothing", id="a limit"),
    ],
)
def test_wrong_use(troth, promise, argv, says):
    """Told, with exit code 2."""
    code, _, err = troth("outbox", *argv)
    assert code == 2
    assert says in err
