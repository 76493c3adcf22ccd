"""Sync function where an async one is awaited.

What it finds: a sync function or lambda given to code that awaits what it returns: to a function of the project that
says `await executor()`, to an object that keeps it and awaits it later, or to a framework's slot for coroutine functions.
Why it matters: the function runs and does its work, and then the `await` raises TypeError. The step counts as failed
although its effect has happened; a retry makes it happen again.
How to repair: make it `async def`, or let the one who awaits take both: `troth.bridge.call(executor)`.
How sure the fix is: likely. Where the one who awaits is written in the project it is taught to await only what can be
awaited, unless its annotation asks for something awaitable; else a function that stands nowhere but in this place
becomes `async def`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, MutableMapping
from functools import cache
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import KIND
from troth.analysis.facts.names import last_name
from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.project.test_files import is_test
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules._fixes.make_sync import is_said
from troth.analysis.rules._fixes.maybe_await import both_colors
from troth.analysis.rules._syntax_position import standing
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.evidence.awaited_parameters import awaited_parameters
from troth.analysis.semantics.infer.call_graph import names_of
from troth.analysis.semantics.queries.call_target import called_body
from troth.analysis.semantics.queries.callback_colors import arguments_of, calling_gives_nothing_to_await, definition_of
from troth.analysis.semantics.queries.dropped_callbacks import awaited_listeners, takers_of_callbacks
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import members_of

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.evidence.awaited_parameters import AwaitedParameter
    from troth.analysis.semantics.infer.call_graph import Call
    from troth.analysis.semantics.values import Value

CASES = [
    Case(
        "an async context manager",
        bad="from contextlib import asynccontextmanager\n@asynccontextmanager\ndef opened():  # here\n    yield 1\n",
    ),
    Case(
        "a context manager of either color",
        good="from contextlib import asynccontextmanager, contextmanager\n@asynccontextmanager\nasync def opened():\n    yield 1\n"
        "@contextmanager\ndef other():\n    yield 1\n",
    ),
    Case(
        "made async by what stands between",
        good="from contextlib import asynccontextmanager\nfrom async_generator import async_generator\n@asynccontextmanager\n@async_generator\ndef opened():\n    yield 1\n",
    ),
    Case(
        "a listener of a bus that awaits each",
        bad="class Bus:\n    def __init__(self):\n        self.handlers = []\n    def on(self, handler):\n        self.handlers.append(handler)\n"
        "    async def emit(self, event):\n        for handler in self.handlers:\n            await handler(event)\ndef show(event):\n    print(event)\n"
        "async def load(event): ...\ndef main():\n    bus = Bus()\n    bus.on(load)\n    bus.on(show)  # here\n",
    ),
    Case(
        "listeners by the name of an event",
        bad="class Bus:\n    def __init__(self):\n        self.handlers = {}\n    def on(self, name, handler):\n        self.handlers.setdefault(name, []).append(handler)\n"
        "    async def emit(self, name, event):\n        for handler in self.handlers.get(name, []):\n            await handler(event)\ndef show(event):\n    print(event)\n"
        "async def load(event): ...\nbus = Bus()\ndef main():\n    bus.on('a', load)\n    bus.on('b', show)  # here\n",
    ),
    Case(
        "a listener of a bus that takes both",
        good="import inspect\nclass Bus:\n    def __init__(self):\n        self.handlers = []\n    def on(self, handler):\n        self.handlers.append(handler)\n"
        "    async def emit(self, event):\n        for handler in self.handlers:\n            result = handler(event)\n            if inspect.isawaitable(result):\n                await result\n"
        "def show(event):\n    print(event)\ndef main():\n    bus = Bus()\n    bus.on(show)\n",
    ),
    Case(
        "a listener that is also called, or that others may take out",
        good="class Bus:\n    def __init__(self):\n        self.handlers = []\n    def on(self, handler):\n        self.handlers.append(handler)\n"
        "    async def emit(self, event):\n        for handler in self.handlers:\n            await handler(event)\n    def emit_now(self, event):\n        for handler in self.handlers:\n            handler(event)\n"
        "class Hub:\n    def __init__(self):\n        self.sinks = []\n    def on(self, sink):\n        self.sinks.append(sink)\n    async def emit(self, event):\n        for sink in self.sinks:\n            await sink(event)\n"
        "def show(event):\n    print(event)\ndef main(hub: Hub):\n    bus = Bus()\n    bus.on(show)\n    hub.on(show)\n    return hub.sinks\n",
    ),
    Case(
        "given to a helper that waits for an error",
        good="import pytest\nasync def fails(func):\n    with pytest.raises(ValueError):\n        await func()\ndef make(x):\n    return int(x)\n"
        "async def test():\n    await fails(lambda: make('x'))\n    await fails(make)\n",
    ),
    Case(
        "an executor",
        bad="async def execute(step, executor):\n    return await executor()\ndef charge():\n    print('paid')\nasync def main():\n    await execute(1, charge)  # here\n",
        fixed="import inspect\n\n\nasync def execute(step, executor):\n    result = executor()\n    if inspect.isawaitable(result):\n        result = await result\n    return result\n"
        "def charge():\n    print('paid')\nasync def main():\n    await execute(1, charge)  # here\n",
    ),
    Case(
        "where something awaitable is asked for",
        bad="from collections.abc import Awaitable, Callable\nasync def execute(executor: Callable[[], Awaitable[None]]):\n    await executor()\ndef charge():\n    print('paid')\nasync def main():\n    await execute(charge)  # here\n",
        fixed="from collections.abc import Awaitable, Callable\nasync def execute(executor: Callable[[], Awaitable[None]]):\n    await executor()\nasync def charge():\n    print('paid')\nasync def main():\n    await execute(charge)  # here\n",
    ),
    Case(
        "under a time limit",
        bad="import asyncio\nclass Saga:\n    async def execute(self, executor):\n        return await asyncio.wait_for(executor(), 5)\ndef charge() -> int:\n    return 1\n"
        "async def main(saga: Saga):\n    await saga.execute(charge)  # here\n",
        fixed="import asyncio\nimport inspect\nclass Saga:\n    async def execute(self, executor):\n        result = executor()\n        if inspect.isawaitable(result):\n            result = await asyncio.wait_for(result, 5)\n        return result\n"
        "def charge() -> int:\n    return 1\nasync def main(saga: Saga):\n    await saga.execute(charge)  # here\n",
    ),
    Case(
        "a lambda",
        bad="async def undo(step, compensator):\n    await compensator(step)\nasync def main():\n    await undo(1, lambda step: 'undone')  # here\n",
        fixed="import inspect\n\n\nasync def undo(step, compensator):\n    result = compensator(step)\n    if inspect.isawaitable(result):\n        await result\nasync def main():\n    await undo(1, lambda step: 'undone')  # here\n",
    ),
    Case(
        "kept for later",
        bad="class Runner:\n    def __init__(self, on_error):\n        self.on_error = on_error\n    async def run(self):\n        await self.on_error()\n"
        "def report() -> None:\n    print(1)\ndef make():\n    return Runner(on_error=report)  # here\n",
        fixed="import inspect\n\n\nclass Runner:\n    def __init__(self, on_error):\n        self.on_error = on_error\n    async def run(self):\n        result = self.on_error()\n        if inspect.isawaitable(result):\n            await result\n"
        "def report() -> None:\n    print(1)\ndef make():\n    return Runner(on_error=report)  # here\n",
    ),
    Case(
        "put into a dict by a constructor",
        bad="class Bus:\n    def __init__(self, first):\n        self.handlers = {}\n        self.handlers['first'] = first\n    async def emit(self):\n        for handler in self.handlers.values():\n            await handler()\n"
        "def report() -> None:\n    print(1)\ndef make():\n    return Bus(report)  # here\n",
    ),
    Case(
        "given to a constructor of the base",
        bad="class Runner:\n    def __init__(self, on_error):\n        self.on_error = on_error\n    async def run(self):\n        await self.on_error()\n"
        "class Loud(Runner):\n    def __init__(self):\n        super().__init__(lambda: print(1))  # here\n",
    ),
    Case(
        "an async one",
        good="async def execute(step, executor):\n    return await executor()\nasync def charge():\n    print('paid')\nasync def main():\n    await execute(1, charge)\n",
    ),
    Case(
        "a lambda that returns a coroutine",
        good="async def execute(executor):\n    return await executor()\nasync def charge(n): ...\nasync def main():\n    await execute(lambda: charge(1))\n",
    ),
    Case(
        "somebody who takes both",
        good="import inspect\nasync def execute(executor):\n    result = executor()\n    if inspect.isawaitable(result):\n        result = await result\n    return result\ndef charge():\n    print('paid')\n"
        "async def main():\n    await execute(charge)\n",
    ),
    Case(
        "in a test that expects an error",
        good="import pytest\nasync def execute(executor):\n    return await executor()\ndef charge():\n    print('paid')\nasync def test():\n    with pytest.raises(TypeError):\n        await execute(charge)\n",
    ),
    Case(
        "a lambda in a test that needs one",
        good={
            "run.py": "class Runner:\n    def __init__(self, launch):\n        self.launch = launch\n    async def run(self):\n        await self.launch()\n    def size(self):\n        return 1\n",
            "test_run.py": "from run import Runner\ndef test():\n    assert Runner(launch=lambda: None).size() == 1\n",
        },
    ),
    Case(
        "a sync handler of aiohttp",
        good="from aiohttp import web\ndef index(request):\n    return web.Response()\napp = web.Application()\napp.router.add_get('/', index)\n",
    ),
    Case(
        "of unknown result",
        good="import lib\nasync def execute(executor):\n    return await executor()\ndef charge():\n    return lib.pay()\nasync def main():\n    await execute(charge)\n",
    ),
]


_WRAPPING = ("aiohttp.web",)  # a sync handler of a route is made async by it
_TWICE = 2  # its `def`, and the place where it is handed over


_EXPECTING = frozenset({"raises", "assertRaises", "assertRaisesRegex"})
_COMMON = frozenset({"get", "post", "put", "delete", "patch", "head", "options", "route", "view", "subscribe", "serve"})


@rule("TR403", "plain-function-where-awaited", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Sync functions handed to somebody who awaits them."""
    slots = _slots()
    called = program.calling.names_asked()
    names = {name for name in called if name in slots or _awaits_what_it_is_given(program, name)}
    for function in program.calling.asked_naming(names):
        if any(callee.rpartition(".")[2] in _EXPECTING for callee in function.facts.calls):
            continue  # a test that waits for an error
        if not (program.has_walked(function) or _may_hand_over(program, function, names)):
            continue
        for call in program.calling.of(function):
            if call.text.rpartition(".")[2] in names:
                yield from _own(program, call)
                yield from _framework(program, call)
    for path in program.asked:
        module = program.module(path)
        for index, facts in enumerate(module.facts.functions):
            if facts.decorators and facts.flags & 3 == 2:
                yield from _managed(program, module.function(index))


def _managed(program: Program, function: Function) -> Iterator[Finding]:
    """`@asynccontextmanager` above a sync generator: `async with` asks it for what only an async one has."""
    innermost = function.facts.decorators[-1]
    if last_name(innermost) != "asynccontextmanager":
        return
    if "contextlib.asynccontextmanager" in set(names_of(program.effects.decorator(function, innermost))):
        line, column = function.facts.at[:2]
        name = function.qualname
        message = (
            f"`asynccontextmanager` wants an async generator, and `{name}` is a sync one: `async with` raises TypeError"
        )
        reasons = (
            Reason(f"`{name}` is a plain `def` that yields", *function.place),
            Reason("`contextlib.contextmanager` is for sync generators, which `with` enters"),
        )
        finding = tell_at(
            program, "TR403", "plain-function-where-awaited", function, (line, column, line, column + len("def")),
            message, sure=True, reasons=reasons,
        )  # fmt: skip
        yield finding._replace(
            repair="make it `async def`, or decorate it with `contextlib.contextmanager` for a plain `with`"
        )


def _may_hand_over(program: Program, function: Function, names: Collection[str]) -> bool:
    """Whether one of its callees of these last names awaits what it is given, as far as a glance tells."""
    for callee in (*function.facts.calls, *function.facts.awaited):
        text = callee.rpartition(" ")[2]
        if text.rpartition(".")[2] in names:
            members = program.glance.callees(function, text)
            if members is None or any(_may_await(program, member) for member in members):
                return True
    return False


def _may_await(program: Program, callee: Value | None) -> bool:
    target = called_body(program, callee)
    if target is not None and _awaited_in(program, target[0]):
        return True
    return callee is None or any(name in semantics().slots for name in names_of(callee))


@cache
def _slots() -> frozenset[str]:
    """The last names of library functions that await what they are given, but for those that name much else as well."""
    rpartitions = {
        name.rpartition(".")[2] for name, slot in semantics().slots.items() if "async" in slot.wants.values()
    }
    return frozenset(rpartitions) - _COMMON


def _awaits_what_it_is_given(program: Program, name: str) -> bool:
    """Whether a function or a class of that name has a parameter that it awaits."""
    answers: MutableMapping[str, bool] = program.answers_to("awaits what it is given")
    if name not in answers:
        takers = program.index.may_await_parameters(name)
        if name in takers_of_callbacks(program):
            takers = [*takers, *program.calling.functions_named(name), *program.calling.constructors_of(name)]
        answers[name] = any(_awaited_in(program, taker) for taker in takers)
    return answers[name]


def _awaited_in(program: Program, function: Function) -> dict[str, AwaitedParameter]:
    """The parameters of a function that it awaits, or that it keeps for others of its class who do."""
    return {**awaited_listeners(program, function), **awaited_parameters(program, function)}


def _own(program: Program, call: Call) -> Iterator[Finding]:
    callees = members_of(call.callee)
    if len(callees) != 1:
        return
    target = called_body(program, callees[0])
    if target is None:
        return
    function, shift = target
    awaited = _awaited_in(program, function)
    places = function.facts.positional
    for slot, node, value in arguments_of(call):
        position = int(slot) + shift if slot.isdigit() else -1
        name = places[position] if 0 <= position < len(places) else slot
        answer = awaited.get(name)
        if answer is not None and any(c.rpartition(".")[2] in _EXPECTING for c in answer.function.facts.calls):
            continue  # what it is given shall raise, before there is anything to await
        if answer is not None and calling_gives_nothing_to_await(program, value) and not _is_stand_in(call, node):
            why = Reason(f"{_awaiter(answer)} awaits what `{name}` returns", answer.path, answer.at[0])
            taught = None if _asks_for_awaitable(function, name) else _taught(program, answer)
            yield _told(
                program,
                call,
                node,
                value,
                who=f"{_awaiter(answer)} awaits what `{name}` returns",
                why=why,
                fix=taught,
            )


def _framework(program: Program, call: Call) -> Iterator[Finding]:
    slots = semantics().slots
    slot_name = next((name for name in names_of(call.callee) if name in slots), None)
    if slot_name is None or slot_name.startswith(_WRAPPING):
        return
    for slot, node, value in arguments_of(call):
        if (
            slots[slot_name].wants.get(slot) == "async"
            and calling_gives_nothing_to_await(program, value)
            and not _is_stand_in(call, node)
        ):
            function = definition_of(value)
            if function is not None and function.is_generator:
                continue  # a context manager written as a generator
            why = Reason(f"`{slot_name}` wants an async function")
            yield _told(program, call, node, value, who=f"`{slot_name}` awaits what it is given", why=why)


def _is_stand_in(call: Call, node: Node) -> bool:
    """A lambda that a test gives where something has to be given: one that was awaited would fail in every run."""
    return node[KIND] == "lambda" and is_test(call.caller.module.path)


def _asks_for_awaitable(function: Function, param: str) -> bool:
    """Whether the annotation of a parameter says that what it gives is awaited: `Callable[[], Awaitable[None]]`."""
    annotation = function.params[param][1]
    return any(word in str(annotation) for word in ("Awaitable", "Coroutine"))


def _taught(program: Program, awaiting: AwaitedParameter) -> Fix | None:
    """Let the one who awaits take both colors."""
    position = standing(program, awaiting.path, awaiting.at)
    edits = both_colors(position) if position is not None and not position.path.endswith(".ipynb") else None
    title = f"let {_awaiter(awaiting)} await only what can be awaited"
    return Fix(title, "likely", edits) if edits else None


def _awaiter(awaiting: AwaitedParameter) -> str:
    """The one who awaits as a reader knows it: what a method keeps is awaited by its class."""
    function = awaiting.function
    first, _, last, _ = function.facts.at
    line, *_ = awaiting.at
    is_kept = function.owner is not None and not first <= line <= last
    return f"`{function.owner.name if is_kept and function.owner is not None else function.qualname}`"


def _made_async(program: Program, function: Function | None) -> Fix | None:
    """`async` before a sync function that is used for nothing else than what it is handed over for."""
    if function is None or function.is_generator or function.facts.decorators:
        return None
    path, name = function.module.path, function.name
    if path.endswith(".ipynb") or not is_said(program, name, _TWICE):
        return None
    start = program.text(path).offset(*function.facts.at[:2])
    if not program.text(path).value.startswith("def ", start):
        return None
    return Fix(f"make `{name}` async", "likely", (Edit(path, start, start, "async "),))


def _told(
    program: Program, call: Call, node: Node, value: Value | None, *, who: str, why: Reason, fix: Fix | None = None
) -> Finding:
    function = definition_of(value)
    phrase = "the lambda" if node[KIND] == "lambda" or function is None else f"`{function.name}`"
    reasons: tuple[Reason, ...] = (why,)
    if function is not None:
        reasons = (
            Reason(f"`{function.qualname}` is a plain `def`, and what it returns cannot be awaited", *function.place),
            why,
        )
    message = f"{who}, but {phrase} is plain: it runs, and then the `await` raises TypeError"
    return tell_at(
        program, "TR403", "plain-function-where-awaited", call.caller, call.at, message,
        sure=function is not None, reasons=reasons, fix=fix or _made_async(program, function), subject=call.text,
    )  # fmt: skip
