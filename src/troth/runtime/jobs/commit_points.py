"""Every place where jobs commit, and where a command is started."""

from troth.runtime.store import commit_point
from troth.runtime.store.failpoints import effect_point

__all__ = ["JOB_END", "JOB_EXEC", "JOB_HEARD", "JOB_START", "JOB_STOP", "JOB_WATCH"]

JOB_START = commit_point("job.start", "a job with its promise, before its process exists")
JOB_EXEC = effect_point("job.exec", "the start of the command by the supervisor")
JOB_WATCH = commit_point("job.watch", "what was found in a job's output, how far that goes, and who is told of it")
JOB_STOP = commit_point("job.stop", "that a job is to be stopped, and why")
JOB_HEARD = commit_point("job.heard", "that the jobs of a machine are looked after, or when they last were")
JOB_END = commit_point("job.end", "how a job ended, what was left to tell of it, and the delivery of its end")
