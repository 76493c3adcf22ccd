"""Object of the other color.

What it finds: an object given to a function or a constructor that asks for a `Protocol` or a base class, where a method
that is used there has the other color in the object's class: plain where it is awaited, `async def` where it is called
plainly.
Why it matters: Python looks at no annotation. The sync method runs, and then the `await` raises TypeError; the async one is
called, its coroutine is dropped, and it never runs.
How to repair: give the method the color that the protocol or the base has.
How sure the fix is: none is offered; the class may be in use elsewhere as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, MutableMapping
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import CALL_FUNC, KIND, VALUE
from troth.analysis.facts.model import ASYNC
from troth.analysis.facts.names import dotted, last_name
from troth.analysis.facts.nodes import of_kind
from troth.analysis.findings import Finding, Reason
from troth.analysis.incremental.project_queries import part, question
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.infer.never_awaitable import gives_no_awaitable
from troth.analysis.semantics.queries.call_target import called_body
from troth.analysis.semantics.queries.callback_colors import arguments_of
from troth.analysis.semantics.queries.color_requirements import is_protocol, says_protocol
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import Instance

if TYPE_CHECKING:
    from troth.analysis.facts.model import FileFacts
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call

_SINK = "from typing import Protocol\nclass Sink(Protocol):\n    async def put(self, item) -> None: ...\n    def close(self) -> None: ...\n"
_FILL = "async def fill(sink: Sink):\n    await sink.put(1)\n    sink.close()\n"
_BASE = "class Base:\n    async def work(self):\n        print(1)\n"
CASES = [
    Case(
        "plain below a base that is awaited",
        bad=f"{_BASE}class Quick(Base):\n    def work(self):\n        print(2)\nasync def run(base: Base):\n    await base.work()\n"
        "async def main():\n    await run(Quick())  # here\n    await run(Base())\n",
    ),
    Case(
        "async below a base that is called",
        bad="class Base:\n    def work(self):\n        print(1)\nclass Remote(Base):\n    async def work(self):\n        await self.close()\n"
        "def run(base: Base):\n    base.work()\nrun(Remote())  # here\nrun(Base())\n",
    ),
    Case(
        "async below a base, where what comes back is handed on",
        good="class Base:\n    def work(self):\n        return 1\nclass Remote(Base):\n    async def work(self):\n        await self.close()\n"
        "def run(base: Base):\n    return base.work()\nasync def main():\n    await run(Remote())\n",
    ),
    Case(
        "of the color of the base",
        good=f"{_BASE}class Slow(Base):\n    async def work(self):\n        print(2)\nclass Quick(Base):\n    def work(self):\n        print(2)\n"
        "async def run(base: Base):\n    await base.work()\nasync def main():\n    await run(Slow())\n    Quick().work()\n",
    ),
    Case(
        "plain where it is awaited",
        bad=_SINK
        + _FILL
        + "class Queue:\n    def put(self, item) -> None:\n        print(item)\n    def close(self) -> None: ...\nasync def main():\n    await fill(Queue())  # here\n",
    ),
    Case(
        "async where it is called",
        bad=_SINK
        + _FILL
        + "class Queue:\n    async def put(self, item) -> None: ...\n    async def close(self) -> None:\n        await self.put(0)\nasync def main(queue: Queue):\n    await fill(sink=queue)  # here\n",
    ),
    Case(
        "kept for later",
        bad=_SINK
        + "class Pump:\n    def __init__(self, sink: Sink):\n        self.sink = sink\n    async def run(self):\n        await self.sink.put(1)\n"
        "class Queue:\n    def put(self, item) -> None:\n        print(item)\ndef main():\n    return Pump(Queue())  # here\n",
    ),
    Case(
        "of one color",
        good=_SINK
        + _FILL
        + "class Queue:\n    async def put(self, item) -> None: ...\n    def close(self) -> None: ...\nasync def main():\n    await fill(Queue())\n",
    ),
    Case(
        "one that hands a coroutine on",
        good=_SINK
        + _FILL
        + "class Queue:\n    async def later(self, item): ...\n    def put(self, item):\n        return self.later(item)\n    def close(self) -> None: ...\nasync def main():\n    await fill(Queue())\n",
    ),
    Case(
        "not used there",
        good=_SINK
        + "async def fill(sink: Sink):\n    sink.close()\nclass Queue:\n    def put(self, item) -> None:\n        print(item)\n    def close(self) -> None: ...\nasync def main():\n    await fill(Queue())\n",
    ),
]


@rule("TR413", "object-of-other-color", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Objects that do not do what a protocol asks for."""
    names = program.names_found("functions that take async protocols")
    mine = {name for name in program.calling.names_asked() if name in names}
    takers = _takers(program) if mine else {}
    for caller in program.calling.asked_naming(mine):
        if not program.has_walked(caller) and not any(
            _may_take(program, caller, callee, mine, takers) for callee in _callees(caller)
        ):
            continue
        for call in program.calling.of(caller):
            target = called_body(program, call.callee) if call.callee is not None else None
            if target is not None and target[0] in takers:
                yield from _judge(program, call, target, takers[target[0]])


def _callees(function: Function) -> Iterator[str]:
    """What the function calls, as written."""
    yield from function.facts.calls
    for callee in function.facts.awaited:
        yield callee.rpartition(" ")[2]


def _may_take(
    program: Program, caller: Function, callee: str, names: Collection[str], takers: Collection[Function]
) -> bool:
    """Whether a callee is one of the takers, as far as a glance tells."""
    if callee.rpartition(".")[2] not in names:
        return False
    members = program.glance.alternatives(caller, callee)
    if members is None or None in members:
        return True
    targets = [called_body(program, member) for member in members]
    return any(target is not None and target[0] in takers for target in targets)


def _protocols(program: Program) -> dict[str, Class]:
    """The protocols of the project that ask for something async, by name; two of one name count for nothing."""
    by_name: dict[str, list[tuple[str, int, bool]]] = {}
    for path, protocols in program.said("async protocols").items():
        for name, index, is_async in protocols:
            by_name.setdefault(name, []).append((path, index, is_async))
    return {
        name: program.module(same[0][0]).cls(same[0][1])
        for name, same in by_name.items()
        if len(same) == 1 and same[0][2]
    }


def _bases(program: Program) -> dict[str, Class]:
    """The classes of the project below which a method has another color than in them, by name; as above."""
    by_name: dict[str, set[tuple[str, bool]]] = {}
    for below in program.said("methods of derived classes").values():
        for name, method, is_async in below:
            by_name.setdefault(name, set()).add((method, is_async))
    bases: dict[str, Class] = {}
    for name, methods in by_name.items():
        same = [cls for cls in program.index.classes_like(name.lower()) if cls.name == name]
        if len(same) == 1 and not is_protocol(same[0]):
            (cls,) = same
            if any(m in cls.methods and cls.module.function(cls.methods[m][-1]).is_async != a for m, a in methods):
                bases[name] = cls
    return bases


@part("methods of derived classes")
def _derived_in(file: FileFacts) -> list[tuple[str, str, bool]]:
    return [
        (last_name(base), method, bool(file.functions[indexes[-1]].flags & ASYNC))
        for c in file.classes
        for base in c.bases
        for method, indexes in c.methods
        if last_name(base) and not method.startswith("__")
    ]


@part("async protocols")
def _protocols_in(file: FileFacts) -> list[tuple[str, int, bool]]:
    return [
        (c.name, index, any(file.functions[index].flags & ASYNC for _, indexes in c.methods for index in indexes))
        for index, c in enumerate(file.classes)
        if c.bases and says_protocol(c)
    ]


def _takers(program: Program) -> dict[Function, dict[str, Class]]:
    """The functions that ask for such a protocol, with the parameters that do."""
    answers: MutableMapping[str, dict[Function, dict[str, Class]]] = program.answers_to("takers of protocols")
    if "" not in answers:
        by_function: dict[Function, dict[str, Class]] = {}
        for protocol, cls in (_bases(program) | _protocols(program)).items():
            for function in program.index.functions_annotated(protocol):
                for name, annotation, _, _ in function.facts.params:
                    if annotation is not None and last_name(annotation) == protocol:
                        by_function.setdefault(function, {})[name] = cls
        answers[""] = by_function
    return answers[""]


@question("functions that take async protocols")
def _names_of_takers(program: Program) -> set[str]:
    return {
        taker.owner.name if taker.name == "__init__" and taker.owner is not None else taker.name
        for taker in _takers(program)
    }


def _judge(program: Program, call: Call, target: tuple[Function, int], wanted: dict[str, Class]) -> Iterator[Finding]:
    function, shift = target
    places = function.facts.positional
    for slot, _, value in arguments_of(call):
        position = int(slot) + shift if slot.isdigit() else -1
        name = places[position] if 0 <= position < len(places) else slot
        if name not in wanted or not isinstance(value, Instance) or value.guess or not isinstance(value.cls, Class):
            continue
        protocol, cls = wanted[name], value.cls
        if is_protocol(cls) or (is_protocol(protocol) == (protocol in program.classes.order(cls))):
            continue
        for method, indexes in protocol.methods.items():
            declared = protocol.module.function(indexes[-1])
            mine = _method(program, cls, method)
            if mine is None or declared.is_generator or mine.is_generator or mine.is_async == declared.is_async:
                continue
            if (
                not declared.facts.decorators
                and _is_used(function, name, declared)
                and _is_of_its_color(program, mine)
                and (is_protocol(protocol) or _counts_for_base(function, name, declared))
            ):
                yield _told(program, call, protocol, declared, mine)
                return


def _method(program: Program, cls: Class, name: str) -> Function | None:
    owner = next(
        (
            ancestor
            for ancestor in program.classes.order(cls)
            if not isinstance(ancestor, Class) or name in ancestor.methods
        ),
        None,
    )
    if not isinstance(owner, Class) or len(owner.methods[name]) > 1:
        return None
    function = owner.module.function(owner.methods[name][0])
    return None if function.facts.decorators or function.is_abstract else function


def _is_of_its_color(program: Program, function: Function) -> bool:
    return program.effects.of(function) == "coroutine" if function.is_async else gives_no_awaitable(program, function)


def _is_used(taker: Function, param: str, asked: Function) -> bool:
    """Whether the method is called on the parameter as its color asks for, there or where a constructor keeps it."""
    written = {f"{param}.{asked.name}"}
    functions = [taker.facts]
    owner = taker.owner
    if taker.name == "__init__" and owner is not None:
        attributes = [
            self_attribute[0]
            for self_attribute in owner.facts.self_attributes
            if self_attribute[3] == ("name", param) and self_attribute[1] == taker.index
        ]
        written |= {f"self.{attribute}.{asked.name}" for attribute in attributes}
        functions += [owner.module.function(index).facts for indexes in owner.methods.values() for index in indexes]
    return any(
        not written.isdisjoint(function.awaited if asked.is_async else function.calls)
        and not any("iscoroutine" in callee or "isawaitable" in callee for callee in function.calls)
        for function in functions
    )


def _counts_for_base(taker: Function, param: str, asked: Function) -> bool:
    """Whether a method of a base is awaited there, or what it gives is dropped: else the taker's caller may await it.

    Of one that only declares it, TR404 tells.
    """
    return not asked.is_abstract and (asked.is_async or _is_dropped(taker, param, asked))


def _is_dropped(taker: Function, param: str, asked: Function) -> bool:
    return any(
        statement[VALUE][KIND] == "call" and dotted(statement[VALUE][CALL_FUNC]) == f"{param}.{asked.name}"
        for statement in of_kind(taker.body(), "expr")
    )


def _told(program: Program, call: Call, protocol: Class, asked: Function, mine: Function) -> Finding:
    if asked.is_async:
        phrase = f"awaits `{protocol.name}.{asked.name}`, but `{mine.qualname}` is plain: it runs, and then the `await` raises TypeError"
    else:
        phrase = (
            f"calls `{protocol.name}.{asked.name}` plainly, but `{mine.qualname}` is async: its coroutine is dropped"
        )
    reasons = (
        Reason(f"`{mine.qualname}` is `{'async def' if mine.is_async else 'def'}`", *mine.place),
        Reason(
            f"`{protocol.name}` {'asks for' if is_protocol(protocol) else 'has'} "
            f"`{'async def' if asked.is_async else 'def'} {asked.name}`",
            *asked.place,
        ),
    )
    return tell_at(
        program, "TR413", "object-of-other-color", call.caller, call.at, f"`{call.text}` {phrase}", sure=False,
        reasons=reasons, subject=mine.name,
    )  # fmt: skip
