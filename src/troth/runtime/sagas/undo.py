"""How an undo is called: what it is given, and that nothing it returns keeps it from being done."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from types import AsyncGeneratorType, GeneratorType

from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.engine.commands import Step
from troth.runtime.engine.retry import Retry
from troth.runtime.sagas.checked_callable import CheckedCallable

__all__ = ["undo_arguments", "undo_names_of", "undo_step"]


def undo_names_of(steps: Iterable[str]) -> dict[str, str]:
    """The name under which the undo of each step is recorded: `undo a`, unless a step or another undo is called so."""
    names = list(steps)
    used = set(names)
    undo_names: dict[str, str] = {}
    for name in names:
        inner = name
        while f"undo {inner}" in used:
            inner = f"({inner})"
        undo_names[name] = f"undo {inner}"
        used.add(undo_names[name])
    return undo_names


def undo_arguments(action: CheckedCallable, inputs: Mapping[str, object], output: object) -> dict[str, object]:
    """The inputs of the step that the undo takes, and the step's output if a parameter is named `result`.

    A bare `**kwargs` is no such parameter: mostly it is a decorator's, and the function behind it takes no `result`.
    """
    arguments = action.accepted(inputs)
    if "result" in action.names:
        arguments["result"] = output
    return arguments


def undo_step(
    name: str, action: CheckedCallable, arguments: Mapping[str, object], *, retry: Retry, timeout: float | None
) -> Step:
    """The step that calls an undo. It is done once the call has returned; what it returned is not kept.

    Nobody reads that value. If it were kept, one that is not JSON would make a failure of an undo that took effect.
    """
    return Step(name, _without_value(action), kwargs=arguments, retry=retry, timeout=timeout, is_undo=True)


def _without_value(action: CheckedCallable) -> Callable[..., object]:
    call = action.call

    async def awaited(value: object) -> None:
        while inspect.isawaitable(value):
            value = await value
        _check_begun(value)

    if action.color is Color.ASYNC:

        async def aundo(**arguments: object) -> None:
            await awaited(call(**arguments))

        return aundo

    def undo(**arguments: object) -> object:
        value = call(**arguments)
        if inspect.isawaitable(value):  # a lambda that returns a coroutine: the engine awaits what comes back
            return awaited(value)
        _check_begun(value)
        return None

    return undo


def _check_begun(value: object) -> None:
    """Refuse a generator that nobody has begun: the call returned, and did none of its work."""
    is_unbegun = isinstance(value, GeneratorType) and inspect.getgeneratorstate(value) == inspect.GEN_CREATED
    if is_unbegun or isinstance(value, AsyncGeneratorType):
        raise MisuseError(
            f"The undo returned a generator (`{value.__qualname__}`), so its work was not done.\n"  # type: ignore[attr-defined]
            "Consume the generator in a separate function."
        )
