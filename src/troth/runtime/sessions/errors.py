"""What a session refuses, and what it cannot finish.

MisuseError
├── UnknownSessionError    there is no such session
├── SessionStateError      the session is in a state in which that is not done
├── NotAMemberError        the agent is not in the session
├── CannotJoinError        full, already in, killed, or not trusted
├── UnknownActionError     no action of that name is registered here
├── WorkspacePathError     the path leads out of the session's tree
└── RefusedError           a rule said no; `rule` names it, and nothing was done
RunError
├── AuditBrokenError       the audit trail does not hold; `verdict` tells where
├── AnchorFailedError      the newest entry could not be anchored, and nothing goes on meanwhile
├── HookFailedError        a hook raised, or took too long
└── SessionNotEndedError   something resists; `left` names it, and the session stays terminating
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from troth.errors import MisuseError, RunError

if TYPE_CHECKING:
    from troth.runtime.sessions.audit.verify import AuditVerdict

__all__ = [
    "AnchorFailedError",
    "AuditBrokenError",
    "CannotJoinError",
    "HookFailedError",
    "NotAMemberError",
    "RefusedError",
    "SessionNotEndedError",
    "SessionStateError",
    "UnknownActionError",
    "UnknownSessionError",
    "WorkspacePathError",
]


class UnknownSessionError(MisuseError):
    """There is no session of that id in the store."""


class SessionStateError(MisuseError):
    """The session is in a state in which that is not done. Nothing was changed."""


class NotAMemberError(MisuseError):
    """The agent is not in the session."""


class CannotJoinError(MisuseError):
    """The agent was not admitted. Nothing was changed."""


class UnknownActionError(MisuseError):
    """No action of that name is registered with this hypervisor."""


class WorkspacePathError(MisuseError):
    """The path leads out of the session's tree, or is none."""


class RefusedError(MisuseError):
    """A rule of the session said no, so nothing was done. `rule` is the rule's name."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule

    def __reduce__(self) -> tuple[type["RefusedError"], tuple[str, str]]:
        return RefusedError, (self.rule, str(self))


class AuditBrokenError(RunError):
    """The audit trail does not hold. `verdict` tells where and why."""

    def __init__(self, message: str, verdict: "AuditVerdict") -> None:
        super().__init__(message)
        self.verdict = verdict


class AnchorFailedError(RunError):
    """The newest audit entry could not be anchored. With `strict=True`, nothing continues until it can be."""


class HookFailedError(RunError):
    """A hook raised, took too long, or answered what is no answer."""


class SessionNotEndedError(RunError):
    """Something in the session resists. `left` names it; the session stays terminating, and `terminate` tries again."""

    def __init__(self, message: str, left: Sequence[str]) -> None:
        super().__init__(message)
        self.left = tuple(left)
