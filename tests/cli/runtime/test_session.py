"""`troth session` and `troth audit` on the store of a running program."""

import json
import sqlite3
import threading
import time
from contextlib import closing

import pytest

from troth.cli import app
from troth.runtime.sessions import Action, Hypervisor, PolicyTable, Rule, SessionConfig


@pytest.fixture
def troth(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TROTH_AUDIT_KEY", "a key that is only used in tests")

    def run(*argv):
        code = app.run(argv)
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def running(troth, tmp_path):
    """A program that has a session open while the command looks."""
    with Hypervisor(tmp_path / "s.db") as hypervisor:
        session = hypervisor.create("ops")
        hypervisor.join(session, "a", score=0.8)
        hypervisor.activate(session)
        yield hypervisor, session


def test_sessions_are_listed_shown_killed_and_terminated(troth, running):
    """With real effects on the running program."""
    hypervisor, session = running
    code, out, _ = troth("session", "list", "--store", "s.db", "--json")
    assert (code, [one["id"] for one in json.loads(out)]) == (0, [session.id])
    assert session.id in troth("session", "list", "--store", "s.db")[1]
    code, out, _ = troth("session", "show", session.id, "--store", "s.db")
    assert code == 0
    assert "a  present  ring 2" in out
    code, out, _ = troth("session", "kill", session.id, "a", "--store", "s.db", "--json")
    assert (code, json.loads(out)["terminated"]) == (0, True)
    assert hypervisor.get(session).present == ()
    code, out, _ = troth("session", "terminate", session.id, "--store", "s.db")
    assert (code, "archived" in out) == (0, True)
    assert troth("session", "terminate", session.id, "--store", "s.db")[0] == 2


def test_nothing_is_valid_json(troth, tmp_path):
    """Also where there is nothing."""
    Hypervisor(tmp_path / "s.db").close()
    for words in (["session", "list"], ["session", "asks"], ["audit", "show"], ["audit", "export"]):
        code, out, _ = troth(*words, "--store", "s.db", "--json")
        assert (code, json.loads(out)) == (0, [])
    assert troth("audit", "verify", "--store", "s.db")[0] == 0


@pytest.mark.parametrize("words", [["show", "nobody"], ["kill", "nobody", "a"], ["terminate", "nobody"]])
def test_what_there_is_not_is_wrong_use(troth, running, words):
    """Exit code 2, and nothing on stdout."""
    code, out, err = troth("session", *words, "--store", "s.db")
    assert (code, out) == (2, "")
    assert "nobody" in err
    assert troth("session", "list", "--store", "nothing.db")[0] == 2


def test_the_audit_trail_is_verified_and_exported(troth, running, tmp_path):
    """Valid exits with 0, broken with 1."""
    code, out, _ = troth("audit", "verify", "--store", "s.db", "--json")
    assert (code, json.loads(out)["verdict"]) == (0, "valid")
    lines = troth("audit", "export", "--jsonl", "--store", "s.db")[1].splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [1, 2, 3]
    assert "member.joined" in troth("audit", "show", "--store", "s.db")[1]
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as connection:
        connection.execute("DELETE FROM audit WHERE seq = 3")
    code, out, _ = troth("audit", "verify", "--store", "s.db")
    assert (code, out.startswith("broken")) == (1, True)


def test_a_waiting_act_is_answered(troth, tmp_path):
    """Listed with what is asked, answered by a person, and done by the running program."""
    done = threading.Event()
    actions = [Action("deploy", lambda version: done.set(), reversibility="partial")]
    policy = PolicyTable([Rule("ask", reason="it is live", people=2)])
    with Hypervisor(tmp_path / "s.db", actions=actions) as hypervisor:
        session = hypervisor.create("ops", SessionConfig(policy=policy))
        member = hypervisor.join(session, "a", score=0.8)
        hypervisor.activate(session)
        thread = threading.Thread(target=lambda: member.act("deploy", version=3))
        thread.start()
        deadline = time.monotonic() + 60
        while not hypervisor.asks() and time.monotonic() < deadline:
            time.sleep(0.01)
        (ask,) = json.loads(troth("session", "asks", "--store", "s.db", "--json")[1])
        assert (ask["arguments"], ask["people"]) == ({"version": 3}, 2)
        out = troth("session", "asks", session.id, "--store", "s.db")[1]
        assert ask["digest"] in out
        assert "it is live" in out
        answer = ("session", "answer", ask["id"], "--store", "s.db")
        assert troth(*answer, "--yes", "--by", "ann", "--digest", "another")[0] == 2
        assert "more approvals are needed" in troth(*answer, "--yes", "--by", "ann")[1]
        code, out, _ = troth(*answer, "--yes", "--by", "bob", "--json")
        assert (code, json.loads(out)["state"]) == (0, "yes")
        assert done.wait(60)
        thread.join(60)
        assert troth(*answer, "--no", "--by", "eve")[0] == 2


def test_a_policy_is_tried_on_what_is_recorded(troth, tmp_path):
    """It tells what it would have refused, and changes nothing."""
    (tmp_path / "tried_rules.py").write_text(
        "from troth.runtime.sessions import PolicyTable, Rule\n"
        "TABLE = PolicyTable([Rule('deny', arguments={'version': 3}, reason='too new')], otherwise='allow')\n"
        "def all_of_it(request):\n    return 'allow'\n"
        "async def none_of_it(request):\n    return ('ask', request.kind)\n"
    )
    actions = [Action("deploy", lambda version: None, reversibility="partial")]
    with Hypervisor(tmp_path / "s.db", actions=actions) as hypervisor:
        session = hypervisor.create("ops")
        member = hypervisor.join(session, "a", score=0.8)
        hypervisor.activate(session)
        for version in (1, 3):
            member.act("deploy", version=version)
        before = len(hypervisor.events())
        code, out, _ = troth("session", "try", "tried_rules:TABLE", "--on", "s.db")
        assert code == 1
        assert "too new" in out
        assert "1 of 2 recorded acts" in out
        assert troth("session", "try", "tried_rules:all_of_it", "--store", "s.db")[0] == 0
        code, out, _ = troth("session", "try", "tried_rules:none_of_it", "--on", "s.db", "--json")
        tried = json.loads(out)
        assert (tried["count"], [one["reason"] for one in tried["differing"]]) == (2, ["act", "act"])
        assert troth("session", "try", "tried_rules:nothing", "--on", "s.db")[0] == 2
        assert len(hypervisor.events()) == before
