"""Find which sync functions run in a thread that has no loop, and who started it.

A function counts where it is given to a thread, a timer or an executor, or where one that counts calls it; not where it
makes a loop of its own, or is prepared for there being none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.knowledge.semantics import semantics
from troth.analysis.semantics.infer.call_graph import names_of
from troth.analysis.semantics.queries.call_chains import plain_target
from troth.analysis.semantics.queries.callback_colors import arguments_of, definition_of

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.semantics.infer.call_graph import Call
    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.symbols import Function

__all__ = ["tasks_in_threads"]

_THREADS = frozenset(
    {"Thread", "Timer", "submit", "to_thread", "run_in_executor", "run_sync", "run_in_threadpool", "apply_async"}
)
_NEEDING = frozenset({"create_task", "ensure_future", "get_running_loop"})
_OWN_LOOP = frozenset({"new_event_loop", "set_event_loop", "run_until_complete", "run_forever", "run"})
_BACK_ON_THE_LOOP = ("asyncio.events.AbstractEventLoop.call", "anyio.from_thread", "trio.from_thread")
_DEEPEST = 3


def tasks_in_threads(program: Program) -> dict[Function, Call]:
    """The sync functions that need a loop in a thread without one, each with the call that starts it; found once."""
    answers: MutableMapping[str, dict[Function, Call]] = program.answers_to("tasks in threads")
    if "" not in answers:
        answers[""] = _find(program)
    return answers[""]


def _find(program: Program) -> dict[Function, Call]:
    makers = {function for function in program.calling.functions_naming(_NEEDING) if not function.is_async}
    leading = {maker.name for maker in makers}
    for _ in range(_DEEPEST):
        leading |= {function.name for function in program.calling.functions_naming(leading) if not function.is_async}
    by_function: dict[Function, Call] = {}
    mentioning = set(program.index.files_mentioning(leading)) if makers else set[str]()
    for caller in program.calling.functions_naming(_THREADS) if makers else ():
        if caller.module.path not in mentioning:
            continue
        for call in program.calling.of(caller):
            for function in _started(call):
                _follow(program, function, call, leading, by_function, _DEEPEST)
    return {function: start for function, start in by_function.items() if function in makers}


def _started(call: Call) -> list[Function]:
    """The sync functions that a call gives to a thread."""
    if call.text.rpartition(".")[2] not in _THREADS:
        return []
    slots = semantics().slots
    name = next((slot_name for slot_name in names_of(call.callee) if slot_name in slots), None)
    if name is None or name.startswith(_BACK_ON_THE_LOOP):
        return []
    definitions = ((slot, definition_of(value)) for slot, _, value in arguments_of(call))
    return [
        definition
        for slot, definition in definitions
        if definition is not None and slots[name].wants.get(slot) == "plain" and not definition.is_async
    ]


def _follow(
    program: Program, function: Function, start: Call, leading: set[str], found: dict[Function, Call], left: int
) -> None:
    if function in found or left == 0 or function.name not in leading or _sees_to_it(program, function):
        return
    found[function] = start
    for call in program.calling.of(function):
        target = plain_target(call, program)
        if target is not None:
            _follow(program, target, start, leading, found, left - 1)


def _sees_to_it(program: Program, function: Function) -> bool:
    if any(callee.rpartition(".")[2] in _OWN_LOOP for callee in function.facts.calls):
        return True
    return "RuntimeError" in program.text(function.module.path).cut(*function.facts.at)
