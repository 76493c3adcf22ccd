"""Every place where sessions commit, and what each commit keeps together."""

from troth.runtime.store import commit_point

__all__ = [
    "ACT",
    "ACT_REFUSE",
    "ANCHOR_EVENT",
    "ANSWER_ASK",
    "CREATE",
    "END",
    "JOIN",
    "KILL",
    "KILL_ANSWER",
    "MEMBER",
    "RECORD",
    "STATE",
    "TOOL",
    "WORK",
    "WORKSPACE",
]

CREATE = commit_point("session.create", "a new session and its audit entry")
JOIN = commit_point("session.join", "a member, the session's state, and the audit entry")
STATE = commit_point("session.state", "a session's new state and the audit entry")
MEMBER = commit_point("session.member", "what changes of a member, and the audit entry")
RECORD = commit_point("session.record", "a note, what is left of the member's rate, and the audit entry")
ACT = commit_point("session.act", "an act as a run, the beginning of its step, and the audit entry")
WORK = commit_point("session.work", "that something goes on for a member, and the audit entry")
TOOL = commit_point("session.tool", "which calls of tools are made and which are refused, as audit entries")
WORKSPACE = commit_point("session.workspace", "a change of the texts and the audit entry")
KILL = commit_point("session.kill", "that a membership is revoked, what is cancelled with it, and the audit entry")
KILL_ANSWER = commit_point("session.kill_answer", "what came of a kill, and the audit entry")
END = commit_point("session.end", "that a session ends, what is cancelled with it, and the audit entry")
ACT_REFUSE = commit_point("session.refuse", "that something was refused before it began, as an audit entry")
ANSWER_ASK = commit_point("session.answer", "what a person answered, the signal to the act, and the audit entry")
ANCHOR_EVENT = commit_point("session.anchor", "that the anchor fails, or works again, as an audit entry")
