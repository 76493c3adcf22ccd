"""Lock held over an await.

What it finds: `with lock:` around an `await` in an `async def`, where `lock` is one of `threading` or `multiprocessing`.
Why it matters: while the function waits, other tasks run on the same thread with the lock still taken. One that wants it
stops the whole loop, including the holder, which never releases it; an `RLock` lets all tasks in, as if there were no lock.
How to repair: `async with` an `asyncio.Lock`, or release the lock before the `await`.
How sure the fix is: none is offered; the lock may guard against real threads as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import (
    ASSIGN_TARGETS,
    ASSIGN_VALUE,
    ATTR_BASE,
    ATTR_NAME,
    CALL_FUNC,
    KIND,
    NAME_ID,
    WITH_BODY,
    WITH_IS_ASYNC,
    WITH_ITEMS,
)
from troth.analysis.facts.model import ASYNC, WAITS, body_of
from troth.analysis.facts.names import last_name
from troth.analysis.facts.nodes import of_kind, walk
from troth.analysis.findings import Finding, Reason
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.queries.await_points import awaits_in
from troth.analysis.semantics.queries.call_target import called_body
from troth.analysis.semantics.values import ClassObject, External, FunctionValue, Instance

if TYPE_CHECKING:
    from troth.analysis.facts.model import At, Node
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.symbols import Function, Module
    from troth.analysis.semantics.values import Value

CASES = [
    Case(
        "of the module",
        bad="import threading\nguard = threading.Lock()\nasync def main(job):\n    with guard:  # here\n        await job()\n",
    ),
    Case(
        "of the object",
        bad="from threading import RLock\nclass Store:\n    def __init__(self):\n        self._lock = RLock()\n    async def save(self, job):\n        with self._lock:  # here\n            if job:\n                await job()\n",
    ),
    Case(
        "of the function",
        bad="import threading\nasync def main(job):\n    lock = threading.Semaphore(2)\n    with lock:  # here\n        await job()\n",
    ),
    Case(
        "let go before",
        good="import threading\nguard = threading.Lock()\nasync def main(job):\n    with guard:\n        n = 1\n    await job(n)\n",
    ),
    Case(
        "an async lock",
        good="import asyncio\nguard = asyncio.Lock()\nasync def main(job):\n    async with guard:\n        await job()\n",
    ),
    Case(
        "in a function inside",
        good="import threading\nguard = threading.Lock()\nasync def main():\n    with guard:\n        async def later(job):\n            await job()\n    return later\n",
    ),
    Case(
        "in a test",
        good="import threading\nguard = threading.Lock()\nasync def test_save(job):\n    with guard:\n        await job()\n",
    ),
    Case("something else", good="async def main(job, path):\n    with open(path):\n        await job()\n"),
]

_LOCKS = frozenset({"Lock", "RLock", "Semaphore", "BoundedSemaphore", "Condition"})
_HOMES = ("threading", "_thread", "multiprocessing")


@rule("TR605", "lock-held-over-await", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Locks of threads that are held while something else runs on the loop."""
    for path in program.asked:
        module = program.module(path)
        if not any(imported.module.partition(".")[0] in _HOMES for imported in module.facts.imports):
            continue
        for index, facts in enumerate(module.facts.functions):
            if not (facts.flags & ASYNC and facts.flags & WAITS) or not facts.taken or facts.name.startswith("test"):
                continue  # a test has its loop for itself
            for entered, body, at in _held(body_of(facts)):
                maker = _maker(program, module, module.function(index), entered)
                if maker and not _never_suspends(program, module.function(index), body):
                    yield _told(program, module.function(index), entered, at, maker)


def _held(body: tuple[Node, ...]) -> Iterator[tuple[Node, tuple[Node, ...], At]]:
    """What a plain `with` enters around an `await`, where it is a name or an attribute, and its body."""
    for node in of_kind(body, "with"):
        if not node[WITH_IS_ASYNC] and _waits(node[WITH_BODY]):
            for entered, _ in node[WITH_ITEMS]:
                if entered[KIND] in {"name", "attr"}:
                    yield entered, node[WITH_BODY], node[4]


def _never_suspends(program: Program, function: Function, body: tuple[Node, ...]) -> bool:
    """Whether all that is awaited are methods of the project without a single `await`: no other task comes between."""
    places = awaits_in(body)
    callees = {call.at: call.callee for call in program.calling.of(function)} if places else {}
    for at in places:
        target = called_body(program, callees.get(at))
        if target is None or not target[0].is_async or target[0].facts.flags & WAITS or target[0].facts.decorators:
            return False
    return bool(places)


def _waits(body: tuple[Node, ...]) -> bool:
    return any(node[KIND] == "await" or (node[KIND] in ("for", "with") and node[1]) for node in walk(body))


def _maker(program: Program, module: Module, function: Function, entered: Node) -> str:
    """What made the lock, by its full name; empty where that is no lock of threads."""
    if entered[KIND] == "name":
        for statement in of_kind(function.body(), "assign"):
            if entered in statement[ASSIGN_TARGETS]:
                assigned = statement[ASSIGN_VALUE]
                value = (
                    program.static(module, function).value(assigned[CALL_FUNC]) if assigned[KIND] == "call" else None
                )
                return _named(value)
    maker = _named(program.static(module, function).value(entered))
    if maker or entered[KIND] != "attr" or entered[ATTR_BASE][KIND] != "name":
        return maker
    owner = function.class_around
    values = (
        [self_attribute[3] for self_attribute in owner.facts.self_attributes if self_attribute[0] == entered[ATTR_NAME]]
        if owner is not None
        else []
    )
    if owner is None or len(values) != 1 or values[0] is None or values[0][KIND] != "call":
        return ""
    if not function.facts.params or function.facts.params[0][0] != entered[ATTR_BASE][NAME_ID]:
        return ""
    return _named(program.static(owner.module).value(values[0][CALL_FUNC]))


def _named(value: Value | None) -> str:
    """The lock that `value` is, or makes."""
    if isinstance(value, Instance | ClassObject):
        name = getattr(value.cls, "qualified", "")
    elif isinstance(value, FunctionValue):
        name = value.function.qualname
    else:
        name = value.path.removesuffix("()") if isinstance(value, External) else ""
    last = name.rpartition(".")[2]
    if name.startswith("multiprocessing.dummy."):
        name = f"threading.{last}"  # which only hands on those of threads
    is_lock = last in _LOCKS or name in {"_thread.lock", "_thread.allocate_lock"}
    return name if is_lock and name.partition(".")[0] in _HOMES else ""


def _told(program: Program, function: Function, entered: Node, at: At, made: str) -> Finding:
    name = last_name(entered)
    written = (
        name if entered[KIND] == "name" else f"{entered[1][NAME_ID]}.{name}" if entered[1][KIND] == "name" else name
    )
    line, column = at[:2]
    if made.endswith("RLock"):
        phrase = "other tasks of the loop are on the same thread, and it lets them in"
    else:
        phrase = "another task of the loop that waits for it blocks the whole loop, so this one never continues and never releases it"
    return tell_at(
        program, "TR605", "lock-held-over-await", function, (line, column, line, column + len("with")),
        f"`{written}` is held while this function waits: {phrase}", sure=False,
        reasons=(Reason(f"`{written}` is a `{made}`, which is for threads, not for tasks"), Reason(f"`{function.qualname}` is `async def`", *function.place)),
        subject=written,
    )  # fmt: skip
