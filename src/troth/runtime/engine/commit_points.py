"""Every place where the engine commits, and what each commit keeps together."""

from troth.runtime.store import commit_point

__all__ = [
    "BRANCH_END",
    "CHILD_START",
    "OWNER_BEAT",
    "OWNER_ENROLL",
    "OWNER_RETIRE",
    "RUN_CALLBACK",
    "RUN_CANCEL",
    "RUN_CLAIM",
    "RUN_FINISH",
    "RUN_FORK",
    "RUN_RECORD",
    "RUN_RELEASE",
    "RUN_RESUME",
    "RUN_START",
    "SIGNAL_SEND",
    "SIGNAL_TAKE",
    "STEP_BEGIN",
    "STEP_RETRY",
    "WAIT_BEGIN",
]

RUN_START = commit_point("run.start", "a new run, what is promised of it, and its owner's lease")
RUN_CLAIM = commit_point("run.claim", "the lease of a run whose owner is gone")
RUN_RELEASE = commit_point("run.release", "the lease given back by an owner who was interrupted")
RUN_FINISH = commit_point("run.finish", "the last step's answer, the run's end, its promise's end, its lease")
RUN_RECORD = commit_point("run.record", "what a run on Temporal has written since it was last recorded")
RUN_CALLBACK = commit_point("run.callback", "that a callback of a run raised")
RUN_CANCEL = commit_point("run.cancel", "that a run is to be cancelled")
RUN_FORK = commit_point("run.fork", "a new run with the settled steps of another")
RUN_RESUME = commit_point("run.resume", "that a failed run goes on, without the answer it failed on")
STEP_BEGIN = commit_point(
    "step.begin", "the answer of the step before, its events, and that the next one begins", is_step=True
)
STEP_RETRY = commit_point("step.retry", "a failed attempt, its error, and when the next one is due")
WAIT_BEGIN = commit_point("wait.begin", "the answer of the step before, and what the run waits for now")
SIGNAL_SEND = commit_point("signal.send", "a message to a run")
SIGNAL_TAKE = commit_point("signal.take", "that a message is received, and the answer of the step that waited for it")
CHILD_START = commit_point(
    "child.start", "the answer of the step before, another run, and the answer that it is started"
)
BRANCH_END = commit_point("branch.end", "the last answer of a branch")
OWNER_ENROLL = commit_point("owner.enroll", "who this engine is")
OWNER_BEAT = commit_point("owner.beat", "that this engine lives")
OWNER_RETIRE = commit_point("owner.retire", "that this engine is gone, and every lease it had")
