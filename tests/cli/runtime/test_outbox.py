"""`troth outbox`: what is owed, on a store of its own or of a running program."""

import json

import pytest

from troth.cli import app
from troth.runtime import Runtime


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
    assert troth("outbox", "ack", delivery)[1] == f"{delivery} was over before\n"
    assert troth("outbox", "list")[1].startswith("Nothing is owed.")
    assert "once more" in troth("outbox", "replay", delivery)[1]
    assert json.loads(troth("outbox", "list", "--json")[1])["counts"]["stored"] == 1


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        pytest.param(("list", "--state", "lost"), "There is no state 'lost'", id="a state"),
        pytest.param(("show", "p-nobody"), "never was", id="a delivery"),
        pytest.param(("list", "--limit", "0"), "would list nothing", id="a limit"),
    ],
)
def test_wrong_use(troth, promise, argv, says):
    """Told, with exit code 2."""
    code, _, err = troth("outbox", *argv)
    assert code == 2
    assert says in err
