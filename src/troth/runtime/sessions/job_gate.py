"""Let a member of a session start a job: judged in the commit that writes the job down, and stopped with the member."""

from troth.runtime.conversations.drivers import IN_STEP
from troth.runtime.engine.current_step import CURRENT
from troth.runtime.sessions.audit.trail import Trail
from troth.runtime.sessions.policy.gate import check_standing
from troth.runtime.store import Transaction
from troth.runtime.store.rows.sessions import WorkRow

__all__ = ["admit_job"]


def admit_job(tx: Transaction, job_id: str, title: str, now: float, trail: Trail | None = None) -> None:
    """Write down that a job belongs to the member that starts it; refused if the member may not act any more.

    It is an entry of the audit trail where this process keeps one.
    """
    work = _work_here(tx)
    if work is None:
        return  # no session governs whoever starts it
    standing = tx.sessions.standing(work.session, work.agent)
    refusal = check_standing(standing, work.session, work.agent, f"the job {title}", now)
    if refusal is not None:
        raise refusal.error()
    tx.sessions.add_work(job_id, work.session, work.agent, "job", title, now)
    if trail is not None:
        trail.add(tx, work.session, work.agent, "job.begun", {"job": job_id, "what": title}, now)


def _work_here(tx: Transaction) -> WorkRow | None:
    """The work of a session that the calling code is part of: a run's step, or a conversation's."""
    step, talk = CURRENT.get(), IN_STEP.get()
    ids = [None if step is None else step.run_id, None if talk is None else talk.conversation.id]
    return next(filter(None, (tx.sessions.work(work_id) for work_id in ids if work_id is not None)), None)
