"""Governed sessions: several agents act in one place, and somebody can answer for it.

from troth.runtime.sessions import Action, Hypervisor

with Hypervisor("troth.db", actions=[Action("deploy", deploy, undo=roll_back)]) as hypervisor:
    session = hypervisor.create("ops")
    member = hypervisor.join(session, "agent-1", score=0.8)
    hypervisor.activate(session)
    member.act("deploy", version=3)
"""

from troth.runtime.sessions.action import Action
from troth.runtime.sessions.audit.anchor import Anchor
from troth.runtime.sessions.audit.verify import AuditVerdict
from troth.runtime.sessions.config import SessionConfig
from troth.runtime.sessions.errors import (
    AnchorFailedError,
    AuditBrokenError,
    CannotJoinError,
    HookFailedError,
    NotAMemberError,
    RefusedError,
    SessionNotEndedError,
    SessionStateError,
    UnknownActionError,
    UnknownSessionError,
    WorkspacePathError,
)
from troth.runtime.sessions.hypervisor import Hypervisor
from troth.runtime.sessions.kill import Kill
from troth.runtime.sessions.member import Member
from troth.runtime.sessions.policy.consent import Ask
from troth.runtime.sessions.policy.decision import Answer, PolicyRequest, PolicyTable, Rule
from troth.runtime.sessions.policy.ring import Reversibility, Ring
from troth.runtime.sessions.session import Session
from troth.runtime.sessions.state import SessionState

__all__ = [
    "Action",
    "Anchor",
    "AnchorFailedError",
    "Answer",
    "Ask",
    "AuditBrokenError",
    "AuditVerdict",
    "CannotJoinError",
    "HookFailedError",
    "Hypervisor",
    "Kill",
    "Member",
    "NotAMemberError",
    "PolicyRequest",
    "PolicyTable",
    "RefusedError",
    "Reversibility",
    "Ring",
    "Rule",
    "Session",
    "SessionConfig",
    "SessionNotEndedError",
    "SessionState",
    "SessionStateError",
    "UnknownActionError",
    "UnknownSessionError",
    "WorkspacePathError",
]
