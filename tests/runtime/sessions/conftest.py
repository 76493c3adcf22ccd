"""A hypervisor on a file of its own, with a clock that can be set and a state folder that is nobody else's."""

import pytest

from troth.runtime.sessions import Action, Hypervisor
from troth.runtime.store import SqliteStore

KEY = "a key that is only used in tests"


class Clock:
    """A clock that stands still until it is set forward."""

    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture(autouse=True)
def state_home(tmp_path, monkeypatch):
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    monkeypatch.delenv("TROTH_AUDIT_KEY", raising=False)
    return folder


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def effects():
    return []


@pytest.fixture
def actions(effects):
    def deploy(version):
        effects.append(("deploy", version))
        return {"version": version}

    def roll_back(version):
        effects.append(("roll back", version))

    return [
        Action("deploy", deploy, undo=roll_back),
        Action("wipe", lambda: effects.append("wipe")),
        Action("look", lambda: "seen", read_only=True),
    ]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "troth.db"


@pytest.fixture
def hypervisor(path, clock, actions):
    with SqliteStore(path, clock=clock) as store, Hypervisor(store, actions=actions, audit_key=KEY) as hypervisor:
        yield hypervisor


@pytest.fixture
def session(hypervisor):
    return hypervisor.create("ops")


@pytest.fixture
def member(hypervisor, session):
    member = hypervisor.join(session, "a", score=0.8)
    hypervisor.activate(session)
    return member
