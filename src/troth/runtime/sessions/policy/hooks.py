"""Ask hooks of either color, within a time limit. What goes wrong with one is an outcome, not an accident."""

import inspect
import threading
from collections.abc import Callable
from typing import Any

from troth import bridge
from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.sessions.errors import HookFailedError

__all__ = ["Hook"]


class Hook:
    """One hook. Its color is decided when it is given; an async one runs on the caller's loop where there is one."""

    def __init__(self, name: str, call: Callable[..., Any], limit: float) -> None:
        self.color = bridge.color_of(call)
        if self.color not in (Color.SYNC, Color.ASYNC):
            raise MisuseError(
                f"The hook `{name}` is {call!r}, and it is unclear whether it is sync or async.\n"
                "It was refused, because it might never be called. Give a sync or an async function."
            )
        self._name = name
        self._call = call
        self._limit = limit

    def ask(self, *args: object) -> object:
        """What the hook answers; `HookFailedError` if it raises or takes too long."""
        try:
            if self.color is Color.ASYNC:
                return bridge.run(self._call, *args, timeout=self._limit)
            return self._in_thread(args)
        except HookFailedError:
            raise
        except Exception as problem:
            raise HookFailedError(f"The hook `{self._name}` failed: {type(problem).__name__}: {problem}.") from problem

    def _in_thread(self, args: tuple[object, ...]) -> object:
        """Only a thread of its own can be given up."""
        answer: list[object] = []
        error: list[BaseException] = []
        finished = threading.Event()

        def work() -> None:
            try:
                value = self._call(*args)
                if inspect.isawaitable(value):
                    value = bridge.run(value, timeout=self._limit)
                answer.append(value)
            except BaseException as problem:  # noqa: BLE001  raised to whoever asked
                error.append(problem)
            finally:
                finished.set()

        threading.Thread(target=work, name=f"troth-hook-{self._name}", daemon=True).start()
        if not finished.wait(self._limit):
            raise HookFailedError(f"The hook `{self._name}` did not answer within {self._limit:g} s.")
        if error:
            raise error[0]
        return answer[0]
