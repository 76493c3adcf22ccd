"""The color of a function: what its caller has to do to make it happen."""

from enum import Enum

__all__ = ["Color"]


class Color(Enum):
    """The one word that analysis and run time share.

    SYNC     calling it does the work
    ASYNC    calling it makes a promise of work, which has to be awaited
    EITHER   depends on the arguments or on the environment; its result has to be looked at
    UNKNOWN  not known; never treated as one of the others
    """

    SYNC = "sync"
    ASYNC = "async"
    EITHER = "either"
    UNKNOWN = "unknown"
