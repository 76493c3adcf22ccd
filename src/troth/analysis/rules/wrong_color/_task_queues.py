"""Tell the tasks of a queue: sending one is a plain call, which gives a handle that cannot be awaited."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.facts.fields import ATTR_NAME, CALL_FUNC, CALL_KEYWORDS, KIND
from troth.analysis.findings import Reason
from troth.analysis.incremental.project_queries import part
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import External, FunctionValue

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.facts.model import FileFacts, Node
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call
    from troth.analysis.semantics.values import Value

__all__ = ["sending_methods", "sent_task"]


class _Queue(NamedTuple):
    """A library that sends tasks to workers."""

    decorators: frozenset[str]
    sending: frozenset[str]
    owner: str
    """The class that a decorated function becomes an object of."""
    handle: str
    """What sending it gives."""


_QUEUES = {
    "celery": _Queue(
        frozenset({"task", "shared_task"}), frozenset({"delay", "apply_async"}), "celery.Task", "AsyncResult"
    ),
    "dramatiq": _Queue(frozenset({"actor"}), frozenset({"send", "send_with_options"}), "dramatiq.Actor", "Message"),
}
_MAKING_ASYNC = frozenset({"celery_pool_asyncio"})  # it patches `delay` and `apply_async`, which are coroutines then
_OTHER_CLASS = frozenset({"base", "actor_class"})  # a task of another class may be sent otherwise


class SentTask(NamedTuple):
    """The method that sends a task, and why it is one."""

    name: str
    reason: Reason


def sending_methods(program: Program) -> frozenset[str]:
    """The methods by which tasks of the queues that the project imports are sent, where nobody defines them anew."""
    answers: MutableMapping[str, frozenset[str]] = program.answers_to("sending methods")
    if "" not in answers:
        imported = frozenset().union(*program.said("task queues").values())
        names = [name for top in imported if top in _QUEUES for name in _QUEUES[top].sending]
        is_patched = not imported.isdisjoint(_MAKING_ASYNC)
        answers[""] = frozenset(name for name in names if not is_patched and program.counts.colors(name) == (0, 0))
    return answers[""]


@part("task queues")
def _queues_of(file: FileFacts) -> frozenset[str]:
    """The libraries of queues that a file imports, and those that change how tasks are sent."""
    tops = {imported.module.partition(".")[0] for imported in file.imports if not imported.level}
    return frozenset(tops & (_QUEUES.keys() | _MAKING_ASYNC))


def sent_task(program: Program, call: Call) -> SentTask | None:
    """How a task is sent by a call; None for any other call."""
    callee = call.node[CALL_FUNC]
    if callee[KIND] != "attr" or callee[ATTR_NAME] not in sending_methods(program):
        return None
    sending = callee[ATTR_NAME]
    receiver, _, _ = call.text.rpartition(".")
    scope = program.glance.scope(call.caller, receiver)
    task = None if scope is None else program.glance.value(call.caller, receiver, scope)
    function = task.function if isinstance(task, FunctionValue) else None
    if not isinstance(function, Function) or len(function.facts.decorators) != 1:
        return None
    (decorator,) = function.facts.decorators
    queue = _queue_behind(program, function, decorator)
    if queue is None or sending not in queue.sending:
        return None
    text = f"`{receiver}` is a task: `{sending}` gives it to the workers and gives back `{queue.handle}`"
    return SentTask(f"{queue.owner}.{sending}", Reason(text, *function.place))


def _queue_behind(program: Program, function: Function, decorator: Node) -> _Queue | None:
    """The queue whose decorator it is."""
    if decorator[KIND] == "call":
        if not _OTHER_CLASS.isdisjoint(name for name, _ in decorator[CALL_KEYWORDS]):
            return None
        decorator = decorator[CALL_FUNC]
    path = _path_of(program.static(function.module, function.parent).value(decorator))
    top, _, name = path.partition(".")
    queue = _QUEUES.get(top)
    return queue if queue is not None and name.rpartition(".")[2] in queue.decorators else None


def _path_of(value: Value | None) -> str:
    if isinstance(value, External):
        return value.path
    if isinstance(value, FunctionValue) and not isinstance(value.function, Function):
        return value.function.qualname
    return ""
