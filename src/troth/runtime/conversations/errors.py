"""What a conversation refuses, and what it cannot finish."""

from troth.errors import MisuseError, RunError

__all__ = ["AgentExitError", "AlreadyRunning", "ConversationClosed", "StepLimitReached", "TooManyRuns"]


class AlreadyRunning(MisuseError):  # noqa: N818 - a state, said as users say it
    """One run at a time: somebody else is at it."""


class TooManyRuns(MisuseError):  # noqa: N818
    """The runtime is at its limit of runs at once."""


class ConversationClosed(MisuseError):  # noqa: N818
    """It was closed; open it again."""


class StepLimitReached(RunError):  # noqa: N818
    """The agent asked for another step again and again."""


class AgentExitError(RunError):
    """A step raised `SystemExit` on a loop. Let through, it would have ended the whole server."""
