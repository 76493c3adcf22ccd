"""What jobs refuse, and what can go wrong with them.

MisuseError
├── UnknownJobError   there is no such job
├── ForeignJobError   the job belongs to another session
├── JobElsewhereError the files of the job are on another machine
└── JobInputError     the job takes no input (any more)
RunError
└── JobStartError     the command could not be started; nothing runs
"""

from troth.errors import MisuseError, RunError

__all__ = ["ForeignJobError", "JobElsewhereError", "JobInputError", "JobStartError", "UnknownJobError"]


class UnknownJobError(MisuseError):
    """There is no job of that id in the store, and there never was."""


class ForeignJobError(MisuseError):
    """The job belongs to another session. Nothing was done."""


class JobElsewhereError(MisuseError):
    """The output and the input of the job are on another machine, which shares the store."""


class JobInputError(MisuseError):
    """Nobody reads what is written to the job."""


class JobStartError(RunError):
    """The command could not be started. Nothing runs, and nothing will be delivered."""
