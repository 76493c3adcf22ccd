"""What functions of libraries take in which place: a coroutine, or a function that they call themselves."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from troth.analysis.knowledge.semantics import semantics
from troth.analysis.semantics.infer.call_graph import names_of

if TYPE_CHECKING:
    from troth.analysis.semantics.infer.call_graph import Call
    from troth.analysis.semantics.values import Value

__all__ = ["calls_what_it_gets", "names_of_awaiters", "wants_an_awaitable"]


def calls_what_it_gets(func: Value | None, place: str) -> str:
    """The name of a library's function that wants a function in that place: `Thread(target=…)`, `loop.call_soon(…)`.

    A place is the position of an argument as text, or its keyword.
    """
    knowledge = semantics()
    for name in names_of(func):
        slot, spawner = knowledge.slots.get(name), knowledge.spawners.get(name)
        if slot is not None and place in slot.wants:
            return name
        if spawner is not None and spawner.takes in {"function", "either", "plain"} and place in spawner.parameter:
            return name
    return ""


def wants_an_awaitable(call: Call, place: str) -> bool:
    """Whether what is called takes a coroutine in that place, and neither a function nor a collection."""
    if call.text.rpartition(".")[2] not in names_of_awaiters():
        return False
    spawners = semantics().spawners
    spawner = next((spawners[name] for name in names_of(call.callee) if name in spawners), None)
    if spawner is None or spawner.takes != "coroutine" or "fs" in spawner.parameter:
        return False
    return place in spawner.parameter or ("*" in spawner.parameter and place.isdigit())


@cache
def names_of_awaiters() -> frozenset[str]:
    """The last names of what takes a coroutine: `create_task`, `gather`, `wait_for`."""
    return frozenset(
        name.rpartition(".")[2] for name, spawner in semantics().spawners.items() if spawner.takes == "coroutine"
    )
