"""End the process with a failing exit code without cutting its ending short.

Python offers nothing between the end of the main program and the exit code but a failing `flush` of the standard
streams, which makes it exit with 120. `os._exit` would set any code, at the price of files left unflushed and exit
functions not called. So stderr is wrapped, at the very end, in something that flushes and then fails.
"""

import sys
from typing import Any

__all__ = ["EXIT_CODE", "fail_at_exit"]

EXIT_CODE = 120
"""What Python exits with when its ending did not go well; `mode="raise"` and `python -m troth.guard` use it."""


def fail_at_exit() -> None:
    """Make this process exit with `EXIT_CODE`, whatever its code was going to be. Called from an exit function."""
    stream = "stderr" if getattr(sys, "stderr", None) is not None else "stdout"
    if not isinstance(getattr(sys, stream, None), _FailingStream):
        setattr(sys, stream, _FailingStream(getattr(sys, stream, None)))


class _FailingStream:
    """The stream it wraps, except that `flush` fails once the interpreter is being taken down."""

    closed = False  # Python does not flush a closed stream

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._is_finalizing = sys.is_finalizing  # kept here: modules lose their names towards the end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def flush(self) -> None:
        if self._stream is not None and not self._stream.closed:
            self._stream.flush()
        if self._is_finalizing():
            raise OSError(
                "troth.guard: coroutines or tasks were lost"
            )  # never shown: Python only counts that the flush failed
