"""A session against a model of it: whatever is asked in whatever order, both agree on who is in and what is allowed."""

import os
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from troth.errors import MisuseError
from troth.runtime.sessions import Hypervisor, SessionConfig

KEY = "a key that is only used in tests"
AGENTS = st.sampled_from(["a", "b", "c"])


class SessionMachine(RuleBasedStateMachine):
    """The model is a state and who is what."""

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        os.environ["XDG_STATE_HOME"] = self.folder.name
        self.hypervisor = Hypervisor(Path(self.folder.name) / "troth.db", audit_key=KEY)
        self.session = self.hypervisor.create("ops", SessionConfig(max_members=2)).id
        self.state = "created"
        self.members = {}

    def attempt(self, is_allowed, call):
        before = len(self.hypervisor.events())
        try:
            call()
        except MisuseError:
            assert not is_allowed
            after = self.hypervisor.events()[before:]
            assert {row.kind for row in after} <= {"refused"}
            return False
        assert is_allowed
        return True

    @property
    def present(self):
        return sorted(agent for agent, state in self.members.items() if state == "present")

    @rule(agent=AGENTS)
    def join(self, agent):
        is_open = self.state in ("created", "handshaking", "active")
        is_allowed = is_open and self.members.get(agent) in (None, "left") and len(self.present) < 2
        if self.attempt(is_allowed, lambda: self.hypervisor.join(self.session, agent, score=0.8)):
            self.members[agent] = "present"
            self.state = "handshaking" if self.state == "created" else self.state

    @rule(agent=AGENTS)
    def leave(self, agent):
        is_allowed = self.state != "archived" and self.members.get(agent) == "present"
        if self.attempt(is_allowed, lambda: self.hypervisor.leave(self.session, agent)):
            self.members[agent] = "left"

    @rule()
    def activate(self):
        is_allowed = self.state == "handshaking" and bool(self.present)
        if self.attempt(is_allowed, lambda: self.hypervisor.activate(self.session)):
            self.state = "active"

    @rule(agent=AGENTS)
    def record(self, agent):
        if agent in self.members:
            is_allowed = self.state == "active" and self.members[agent] == "present"
            self.attempt(is_allowed, lambda: self.hypervisor.member(self.session, agent).record("note"))

    @rule(agent=AGENTS)
    def kill(self, agent):
        is_allowed = self.state != "archived" and agent in self.members
        if self.attempt(is_allowed, lambda: self.hypervisor.kill(self.session, agent, reason="a test")):
            self.members[agent] = "killed"

    @rule(agent=AGENTS)
    def readmit(self, agent):
        is_open = self.state in ("created", "handshaking", "active")
        is_allowed = is_open and self.members.get(agent) == "killed"
        if self.attempt(is_allowed, lambda: self.hypervisor.readmit(self.session, agent, reason="a test")):
            self.members[agent] = "left"

    @rule()
    def terminate(self):
        is_allowed = self.state != "archived"
        if self.attempt(is_allowed, lambda: self.hypervisor.terminate(self.session)):
            self.state = "archived"

    @invariant()
    def agree(self):
        if hasattr(self, "session"):
            session = self.hypervisor.get(self.session)
            assert session.state.value == self.state
            assert {member.agent: member.state for member in session.members} == self.members
            assert self.hypervisor.verify_audit().is_valid

    def teardown(self):
        if hasattr(self, "hypervisor"):
            self.hypervisor.close()
            self.folder.cleanup()


SessionMachine.TestCase.settings = settings(max_examples=15, stateful_step_count=15, deadline=None)
TestSession = SessionMachine.TestCase
