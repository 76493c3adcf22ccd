"""A kill again and again, at every moment of an act: it answers the truth, and nothing lands after it."""

import threading
import time

import pytest

from troth.errors import TrothError
from troth.runtime.sessions import Action, Hypervisor, SessionConfig

KEY = "a key that is only used in tests"


def kill_while_acting(path, trials):
    effects = []

    def add(x):
        effects.append(x)

    def take(x):
        effects.remove(x)

    with Hypervisor(path, audit_key=KEY, actions=[Action("add", add, undo=take)]) as hypervisor:
        session = hypervisor.create("ops", SessionConfig(rates={}, max_members=1000))
        hypervisor.join(session, "watcher", score=0.8)
        hypervisor.activate(session)
        for trial in range(trials):
            agent = f"agent-{trial}"
            member = hypervisor.join(session, agent, score=0.8)
            begun = threading.Event()

            def act(member=member, begun=begun, trial=trial):
                try:
                    for number in range(1000):
                        member.act("add", x=f"{trial}-{number}")
                        begun.set()
                except TrothError:
                    begun.set()

            thread = threading.Thread(target=act)
            thread.start()
            assert begun.wait(30)
            time.sleep(trial % 7 * 0.0005)  # another moment of the act each time
            kill = hypervisor.kill(session, agent, reason="a test", timeout=30)
            assert kill.terminated, kill.left
            after = len(effects)
            thread.join(30)
            assert not thread.is_alive()
            assert len(effects) == after
            assert hypervisor.kill(session, agent, reason="again") == kill
        assert hypervisor.verify_audit().is_valid


def test_killed_while_acting(path):
    """Whatever the moment."""
    kill_while_acting(path, 10)


@pytest.mark.soak
def test_killed_while_acting_for_long(path):
    """A thousand agents, one after the other."""
    kill_while_acting(path, 1000)
