"""Jobs: commands in the background whose end, output and exit status are there after any death of ours."""

from troth.runtime.jobs.errors import ForeignJobError, JobElsewhereError, JobInputError, JobStartError, UnknownJobError
from troth.runtime.jobs.jobs import Jobs
from troth.runtime.jobs.records import JobRecord, JobState, Output

__all__ = [
    "ForeignJobError",
    "JobElsewhereError",
    "JobInputError",
    "JobRecord",
    "JobStartError",
    "JobState",
    "Jobs",
    "Output",
    "UnknownJobError",
]
