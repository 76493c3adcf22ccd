"""Crossing between sync and async code at run time.

run, sync, iterate, enter      async code from sync code, anywhere
call, aio, aiterate            code of either color from async code
Portal                         a loop in a thread of its own, for clients shared between threads
color_of, overrides, explain   what will happen, before it does
"""

from troth.bridge._aiterate import aiterate
from troth.bridge._call import call
from troth.bridge._color.classify import Verdict as Verdict
from troth.bridge._color.classify import color_of
from troth.bridge._color.overrides import Override as Override
from troth.bridge._color.overrides import overrides
from troth.bridge._crossing.strategy import Explanation as Explanation
from troth.bridge._crossing.strategy import Way as Way
from troth.bridge._enter import enter
from troth.bridge._errors import (
    BlockedLoopError,
    BlockedLoopWarning,
    DeadlockError,
    InterpreterExitError,
    LeftoverTaskWarning,
    LoopGoneError,
    NotRunnableError,
    PortalClosedError,
    RunTimeoutError,
    WrongThreadError,
)
from troth.bridge._explain import explain
from troth.bridge._facade import aio, sync
from troth.bridge._iterate import iterate
from troth.bridge._portal import Portal
from troth.bridge._run import run

__all__ = [
    "BlockedLoopError",
    "BlockedLoopWarning",
    "DeadlockError",
    "InterpreterExitError",
    "LeftoverTaskWarning",
    "LoopGoneError",
    "NotRunnableError",
    "Portal",
    "PortalClosedError",
    "RunTimeoutError",
    "WrongThreadError",
    "aio",
    "aiterate",
    "call",
    "color_of",
    "enter",
    "explain",
    "iterate",
    "overrides",
    "run",
    "sync",
]
