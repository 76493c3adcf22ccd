"""Async function in a sync slot.

What it finds: a coroutine function, or a lambda that returns a coroutine, given to code that calls it and never
awaits: `threading.Thread(target=…)`, `Timer`, `submit`, `Executor.map`, `filter`, `sorted(key=…)`, `signal.signal`,
`atexit.register`, `call_soon`, `call_later`, `add_done_callback`, `weakref.finalize`, a click command, a celery task; and
functions of the project that call what they are given, at once or later, and drop what comes back.
Why it matters: the call makes a coroutine and throws it away, so the function never runs; nothing fails, and the warning
comes from the garbage collector, if at all.
How to repair: give it a sync function that starts the coroutine: `lambda: asyncio.create_task(work())` on the loop's own
thread, `lambda: asyncio.run(work())` in a thread or a command.
How sure the fix is: none is offered; the author has to decide which loop runs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import (
    AT,
    ATTR_BASE,
    ATTR_NAME,
    CALL_ARGS,
    CALL_FUNC,
    CALL_KEYWORDS,
    KIND,
    LAMBDA_BODY,
    VALUE,
)
from troth.analysis.facts.model import speaks_of
from troth.analysis.facts.names import dotted, last_name
from troth.analysis.facts.nodes import of_kind, walk
from troth.analysis.findings import Finding, Reason
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules._fixes.advice import (
    command_run_by_hand,
    coroutine_awaited_itself,
    plain_function_that_starts,
)
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.infer.call_graph import names_of
from troth.analysis.semantics.infer.never_awaitable import is_harmless
from troth.analysis.semantics.queries.call_target import called_body
from troth.analysis.semantics.queries.callback_colors import arguments_of, calling_makes_a_coroutine, definition_of
from troth.analysis.semantics.queries.dropped_callbacks import (
    dropped_by_decorator,
    dropped_callbacks,
    takers_of_callbacks,
)
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import ClassObject, External, FunctionValue, members_of
from troth.analysis.semantics.walk.coroutine_sinks import looks_like_keeper
from troth.analysis.semantics.walk.sync_variants import is_of_plain_flavor

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call
    from troth.analysis.semantics.infer.evaluator import Evaluator
    from troth.analysis.semantics.symbols import Module
    from troth.analysis.semantics.values import Value

_BUS = "class Bus:\n    def __init__(self):\n        self.handlers = []\n    def on(self, fn):\n        self.handlers.append(fn)\n"
_KEYED_BUS = (
    "class Bus:\n    def __init__(self):\n        self.handlers: dict[str, list] = {}\n    def on(self, name, handler):\n"
    "        if name not in self.handlers:\n            self.handlers[name] = []\n        self.handlers[name].append(handler)\n"
)
_DECORATING = (
    "class Bus:\n    def __init__(self):\n        self.handlers = []\n    def on(self, name):\n        def decorator(handler):\n"
    "            self.handlers.append(handler)\n            return handler\n        return decorator\n"
)
CASES = [
    Case(
        "a bus that asks for its keys",
        bad=f"{_KEYED_BUS}    def emit(self, name, event):\n        for handler in self.handlers.get(name, []):\n            try:\n                handler(event)\n"
        "            except Exception:\n                print(name)\nasync def handler(event): ...\nbus = Bus()\nbus.on('start', handler)  # here\n",
    ),
    Case(
        "a bus that hands its handlers out",
        good=f"{_KEYED_BUS}    def emit(self, name, event):\n        for handler in self.handlers.get(name, []):\n            handler(event)\n"
        "    def all(self, name):\n        return self.handlers[name]\nasync def handler(event): ...\nbus = Bus()\nbus.on('start', handler)\n",
    ),
    Case(
        "a bus that decorates",
        bad=f"{_DECORATING}    def emit(self, event):\n        for handler in self.handlers:\n            handler(event)\n"
        "bus = Bus()\n@bus.on('start')\nasync def handler(event):  # here\n    print(event)\n",
    ),
    Case(
        "a bus that decorates and awaits",
        good=f"{_DECORATING}    async def emit(self, event):\n        for handler in self.handlers:\n            await handler(event)\n"
        "bus = Bus()\n@bus.on('start')\nasync def handler(event):\n    print(event)\n",
    ),
    Case(
        "a bus that decorates, of sync handlers",
        good=f"{_DECORATING}    def emit(self, event):\n        for handler in self.handlers:\n            handler(event)\n"
        "bus = Bus()\n@bus.on('start')\ndef handler(event):\n    print(event)\n",
    ),
    Case(
        "a function of the project that calls it",
        bad="def each(items, fn):\n    for item in items:\n        fn(item)\nasync def save(item): ...\ndef main(items):\n    each(items, save)  # here\n",
    ),
    Case(
        "a lambda for a function of the project",
        bad="def each(items, fn):\n    for item in items:\n        fn(item)\nasync def save(item): ...\ndef main(items):\n    each(items, lambda item: save(item))  # here\n",
    ),
    Case(
        "a handler that an object keeps",
        bad="class Button:\n    def __init__(self, on_click=None):\n        self._on_click = on_click\n    def click(self):\n        if self._on_click:\n            self._on_click()\nasync def save(): ...\nButton(save)  # here\n",
    ),
    Case(
        "one of several handlers that an object keeps",
        bad=f"{_BUS}    def emit(self, event):\n        for handler in self.handlers:\n            handler(event)\nasync def save(event): ...\nbus = Bus()\nbus.on(save)  # here\n",
    ),
    Case(
        "a handler that an object keeps under a name",
        bad="class Bus:\n    def __init__(self):\n        self.slots = {}\n    def on(self, name, handler):\n        self.slots[name] = handler\n"
        "    def emit(self, name):\n        self.slots[name]()\nasync def save(): ...\nbus = Bus()\nbus.on('x', save)  # here\n",
    ),
    Case(
        "a handler that an object keeps under a name and awaits",
        good="class Bus:\n    def __init__(self):\n        self.slots = {}\n    def on(self, name, handler):\n        self.slots[name] = handler\n"
        "    async def emit(self, name):\n        await self.slots[name]()\nasync def save(): ...\nbus = Bus()\nbus.on('x', save)\n",
    ),
    Case(
        "beside a class that awaits its own handlers",
        bad=f"{_BUS}    def emit(self, event):\n        for handler in self.handlers:\n            handler(event)\n"
        "class Waiting:\n    def __init__(self):\n        self.handlers = []\n    async def emit(self, event):\n        for handler in self.handlers:\n            await handler(event)\n"
        "async def save(event): ...\nbus = Bus()\nbus.on(save)  # here\n",
    ),
    Case(
        "beside a function that awaits the handlers",
        good=f"{_BUS}    def emit(self, event):\n        for handler in self.handlers:\n            handler(event)\n"
        "class Waiting:\n    @staticmethod\n    async def emit(bus, event):\n        for handler in bus.handlers:\n            await handler(event)\n"
        "async def save(event): ...\nbus = Bus()\nbus.on(save)\n",
    ),
    Case(
        "a function of the project that hands on what it gets",
        good="def each(items, fn):\n    return [fn(item) for item in items]\nasync def save(item): ...\nasync def main(items):\n    for job in each(items, save):\n        await job\n",
    ),
    Case(
        "a function of the project that runs what it gets",
        good="import asyncio\ndef each(items, fn):\n    for item in items:\n        asyncio.run(fn(item))\nasync def save(item): ...\ndef main(items):\n    each(items, save)\n",
    ),
    Case(
        "a function of the project that asks what it gets",
        good="import inspect\ndef each(items, fn):\n    if inspect.iscoroutinefunction(fn):\n        return\n    for item in items:\n        fn(item)\nasync def save(item): ...\ndef main(items):\n    each(items, save)\n",
    ),
    Case(
        "a function of the project that hands the function on",
        good="from somewhere import start\ndef each(items, fn):\n    fn(items)\n    start(fn)\nasync def save(item): ...\ndef main(items):\n    each(items, save)\n",
    ),
    Case(
        "a sync function for a function of the project",
        good="def each(items, fn):\n    for item in items:\n        fn(item)\ndef save(item): ...\ndef main(items):\n    each(items, save)\n",
    ),
    Case(
        "handlers that are awaited",
        good=f"{_BUS}    async def emit(self, event):\n        for handler in self.handlers:\n            await handler(event)\nasync def save(event): ...\nbus = Bus()\nbus.on(save)\n",
    ),
    Case(
        "handlers of both kinds",
        good=f"import inspect\n{_BUS}    async def emit(self, event):\n        for handler in self.handlers:\n            result = handler(event)\n            if inspect.isawaitable(result):\n                await result\nasync def save(event): ...\nbus = Bus()\nbus.on(save)\n",
    ),
    Case(
        "handlers that others read",
        good=f"{_BUS}    def emit(self, event):\n        for handler in self.handlers:\n            handler(event)\nasync def save(event): ...\nasync def main(bus: Bus, event):\n    bus.on(save)\n    for handler in bus.handlers:\n        await handler(event)\n",
    ),
    Case(
        "handlers that a subclass may read",
        good=f"{_BUS}    def emit(self, event):\n        for handler in self.handlers:\n            handler(event)\nclass Waiting(Bus):\n    async def later(self, event):\n        for handler in self.handlers:\n            await handler(event)\nasync def save(event): ...\nbus = Waiting()\nbus.on(save)\n",
    ),
    Case(
        "the target of a thread",
        bad="import threading\nasync def work(): ...\ndef main():\n    threading.Thread(target=work).start()  # here\n",
    ),
    Case(
        "a callback of the loop",
        bad="import asyncio\nclass App:\n    async def stop(self): ...\n    async def main(self):\n"
        "        asyncio.get_running_loop().call_later(1, self.stop)  # here\n",
    ),
    Case(
        "a lambda",
        bad="import asyncio\nasync def stop(): ...\nasync def main():\n    loop = asyncio.get_running_loop()\n    loop.call_soon(lambda: stop())  # here\n",
    ),
    Case("at exit", bad="import atexit\nasync def close(): ...\natexit.register(close)  # here\n"),
    Case("a filter", bad="async def is_big(n): ...\ndef main(ns):\n    return list(filter(is_big, ns))  # here\n"),
    Case(
        "a map that is summed up", bad="async def size(n): ...\ndef main(ns):\n    return sum(map(size, ns))  # here\n"
    ),
    Case(
        "a pool",
        bad="from concurrent.futures import ThreadPoolExecutor\nasync def work(n): ...\ndef main():\n    with ThreadPoolExecutor() as pool:\n        pool.submit(work, 1)  # here\n",
    ),
    Case("a command", bad="import click\n@click.command()\nasync def main():  # here\n    print(1)\n"),
    Case(
        "a command of a group",
        bad="import click\n@click.group()\ndef cli(): ...\n@cli.command()\n@click.option('--x')\nasync def main(x):  # here\n    print(1)\n",
    ),
    Case(
        "a task", bad="from celery import Celery\napp = Celery()\n@app.task\nasync def work():  # here\n    print(1)\n"
    ),
    Case(
        "a task of a kind that the project makes itself",
        good="import asyncio\nfrom celery import Celery, Task\napp = Celery()\nclass AsyncTask(Task):\n    def __call__(self, *args):\n"
        "        return asyncio.run(self.run(*args))\n@app.task(base=AsyncTask)\nasync def work():\n    print(1)\n",
    ),
    Case(
        "a loop of unknown kind",
        bad="async def stop(): ...\ndef main(loop):\n    loop.call_soon_threadsafe(stop)  # here\n",
    ),
    Case(
        "a plain target",
        good="import threading\ndef work(): ...\ndef main():\n    threading.Thread(target=work).start()\n",
    ),
    Case(
        "run inside the thread",
        good="import asyncio, threading\nasync def work(): ...\ndef main():\n    threading.Thread(target=lambda: asyncio.run(work())).start()\n",
    ),
    Case(
        "a task made by the callback",
        good="import asyncio\nasync def stop(): ...\nasync def main():\n    loop = asyncio.get_running_loop()\n    loop.call_soon(lambda: asyncio.create_task(stop()))\n",
    ),
    Case(
        "a map that is gathered",
        good="import asyncio\nasync def load(n): ...\nasync def main(ns):\n    return await asyncio.gather(*map(load, ns))\n",
    ),
    Case(
        "a starmap that is gathered",
        good="import asyncio\nfrom itertools import starmap\nasync def load(n, m): ...\nasync def main(pairs):\n    return await asyncio.gather(*starmap(load, pairs))\n",
    ),
    Case(
        "a job of rq, which runs the coroutine",
        good="from rq.decorators import job\n@job('high')\nasync def notify(user):\n    print(user)\n",
    ),
    Case(
        "in a test of the sync flavor",
        good="import threading\nfrom helpers import context\nasync def work(): ...\n@context.require_sync\ndef test():\n    threading.Thread(target=work).start()\n",
    ),
    Case(
        "asyncio.run in the thread",
        good="import asyncio, threading\nasync def work(): ...\ndef main():\n    threading.Thread(target=asyncio.run, args=(work(),)).start()\n",
    ),
    Case(
        "given back by the thread, and run then",
        good="import asyncio\nasync def work(): ...\nasync def main():\n    task = asyncio.create_task(await asyncio.to_thread(work))\n"
        "    await task\n    await (await asyncio.to_thread(work))\n",
    ),
    Case(
        "given back by the thread, and dropped",
        bad="import asyncio\nasync def work(): ...\nasync def main():\n    await asyncio.to_thread(work)  # here\n",
    ),
    Case(
        "a namesake", good="def filter(f, ns): ...\nasync def big(n): ...\ndef main(ns):\n    return filter(big, ns)\n"
    ),
    Case(
        "a command made sync below",
        good="import asyncio, click, functools\ndef coro(f):\n    @functools.wraps(f)\n    def run(*a, **k):\n        return asyncio.run(f(*a, **k))\n    return run\n"
        "@click.command()\n@coro\nasync def main():\n    print(1)\n",
    ),
    Case(
        "a context manager",
        bad="from contextlib import contextmanager\n@contextmanager\nasync def opened():  # here\n    yield 1\n",
    ),
    Case(
        "context managers of both colors",
        good="import contextlib\nfrom contextlib import asynccontextmanager\n@asynccontextmanager\nasync def opened():\n    yield 1\n"
        "@contextlib.contextmanager\ndef other():\n    yield 1\n",
    ),
    Case(
        "a context manager of one's own",
        good="from here import contextmanager\n@contextmanager\nasync def opened():\n    yield 1\n",
    ),
    Case(
        "an async property",
        good="class A:\n    @property\n    async def size(self):\n        return 1\nasync def main(a: A):\n    return await a.size\n",
    ),
]

# What these hand back may still be awaited by somebody: a mock by the code under test, a property by its reader.
_HANDING_ON = frozenset({"unittest.mock.Mock", "builtins.property"})
# Hardly anything but a loop, a future or a list has methods of these names, whatever it is called.
_BY_NAME = {
    **{
        name: f"asyncio.AbstractEventLoop.{name}"
        for name in ("call_soon", "call_later", "call_at", "call_soon_threadsafe", "add_signal_handler")
    },
    "add_done_callback": "asyncio.Future.add_done_callback",
    "sort": "builtins.list.sort",
}
_PASSING = frozenset(
    {"option", "argument", "pass_context", "pass_obj", "version_option", "hybrid_property", "hybrid_method"}
)
_MAPPING = frozenset({"builtins.map", "itertools.starmap"})
_TAKING_RESULTS = frozenset({"sum", "any", "all", "sorted", "min", "max", "join", "Counter"})


_FACTORIES = frozenset({"dataclasses.field", "pydantic.Field", "pydantic.fields.Field", "attrs.field", "attr.ib"})
_OF_A_FACTORY = "an object is made without waiting: give it a sync function, or await the value first and pass it to the constructor"
_OF_A_MODEL = (
    "a model is made without waiting: make this a plain `def`, and await what it needs before the model is made, or in a "
    "method that is called afterwards"
)
_OF_FRAMEWORKS = {  # by what the decorator's full name starts with
    "pydantic.": _OF_A_MODEL,
    "sqlalchemy.": _OF_A_MODEL,
    "slack_bolt.": "make the app an `AsyncApp` of `slack_bolt.async_app`, which awaits its listeners",
    "apscheduler.": "make the scheduler an `AsyncIOScheduler`, which awaits its jobs",
    "django.db.transaction": (
        "move what has to be atomic into a sync function under this decorator, and await `sync_to_async` of it"
    ),
}


@rule("TR402", "async-function-in-sync-slot", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Coroutine functions that nobody will await."""
    hands_over: dict[Module, bool] = {}
    for function in program.calling.asked_naming(_names()):
        module = function.module
        if module not in hands_over:
            hands_over[module] = any(n == "lambda" or program.counts.colors(n)[0] for n in module.facts.mentions)
        if hands_over[module] and _may_hand_over(program, function):
            for call in program.calling.of(function):
                yield from _judge(program, call)
    yield from _own_slots(program)
    for path in program.asked:
        module = program.module(path)
        for index, facts in enumerate(module.facts.functions):
            if facts.decorators and facts.flags & 3 == 1:
                yield from _decorated(program, module, module.function(index))
            elif facts.decorators and facts.flags & 1:
                yield from _managed(program, module.function(index))


def _own_slots(program: Program) -> Iterator[Finding]:
    """Functions of the project that call what they are given and drop the result."""
    names = takers_of_callbacks(program)
    colors = program.counts.colors
    by_module: dict[Module, list[str]] = {}  # the words of each file that an async function may be handed over by
    for function in program.calling.asked_naming(names):
        module = function.module
        if module not in by_module:
            by_module[module] = [n for n in module.facts.mentions if n == "lambda" or colors(n)[0]]
        if speaks_of(function.facts, by_module[module]) and _gives_an_async_one(program, function, names):
            for call in program.calling.of(function):
                if call.text.rpartition(".")[2] in names:
                    yield from _own_slot(program, call)


def _gives_an_async_one(program: Program, function: Function, names: frozenset[str]) -> bool:
    """Whether a callee of these names is given a lambda that calls, or something called like an async function."""
    colors = program.counts.colors
    for node in of_kind(function.body(), "call"):
        if last_name(node[CALL_FUNC]) in names:
            for argument in (*node[CALL_ARGS], *(value for _, value in node[CALL_KEYWORDS])):
                target = (
                    argument[LAMBDA_BODY][CALL_FUNC]
                    if argument[KIND] == "lambda" and argument[LAMBDA_BODY][KIND] == "call"
                    else argument
                )
                if target[KIND] in {"name", "attr"} and colors(last_name(target))[0] > 0:
                    return True
    return False


def _own_slot(program: Program, call: Call) -> Iterator[Finding]:
    callees = members_of(call.callee)
    target = called_body(program, callees[0]) if len(callees) == 1 else None
    if target is None or (not call.caller.is_async and is_of_plain_flavor(program, call.caller)):
        return
    function, shift = target
    if function.owner is not None and not shift and not function.decorated_with("staticmethod"):
        return  # borrowed from another class: which argument goes where is left open
    places = function.facts.positional
    for slot, node, value in arguments_of(call):
        position = int(slot) + shift if slot.isdigit() else -1
        name = places[position] if 0 <= position < len(places) else slot
        if not calling_makes_a_coroutine(program, value):
            continue
        dropped_callback = dropped_callbacks(program, function).get(name)
        if dropped_callback is not None:
            owner = function.owner
            who = owner.name if owner is not None and function.name == "__init__" else function.qualname
            dropped = Reason(
                f"`{who}` calls what `{name}` is given and drops what comes back",
                dropped_callback.path,
                dropped_callback.at[0],
            )
            yield _told(program, call, node, value, "", dropped=dropped, sure=not dropped_callback.is_kept)
            return


def _registered(program: Program, function: Function, decorator: Node) -> Finding | None:
    """`@bus.on("start")` above an async function, where the bus calls what it was given and drops what comes back."""
    value = program.effects.decorator(function, decorator)
    taker = value.function if isinstance(value, FunctionValue) else None
    if not isinstance(taker, Function) or taker.is_async:
        return None
    dropped = dropped_by_decorator(program, taker, is_called=decorator[KIND] == "call")
    if dropped is None:
        return None
    line, column = function.facts.at[:2]
    message = (
        f"`{taker.qualname}` keeps `{function.qualname}` and later throws away the coroutine it gets, "
        "so its body never runs"
    )
    reasons = (
        Reason(f"`{function.qualname}` is `async def`", *function.place),
        Reason(
            f"what `{taker.qualname}` decorates is called, and what comes back is dropped", dropped.path, dropped.at[0]
        ),
    )
    finding = tell_at(
        program, "TR402", "async-function-in-sync-slot", function, (line, column, line, column + len("async def")),
        message, sure=False, reasons=reasons,
    )  # fmt: skip
    return finding._replace(repair=plain_function_that_starts(function.module))


def _managed(program: Program, function: Function) -> Iterator[Finding]:
    """`@contextmanager` above an async generator: `with` calls `next` on it, which it does not have."""
    innermost = function.facts.decorators[-1]
    if last_name(innermost) != "contextmanager":
        return
    if "contextlib.contextmanager" in set(names_of(program.effects.decorator(function, innermost))):
        line, column = function.facts.at[:2]
        message = f"`contextmanager` wants a sync generator, and `{function.qualname}` is an async one: `with` raises TypeError"
        reasons = (
            Reason(f"`{function.qualname}` is `async def` and yields", *function.place),
            Reason("`contextlib.asynccontextmanager` is for async generators, which `async with` enters"),
        )
        finding = tell_at(
            program, "TR402", "async-function-in-sync-slot", function, (line, column, line, column + len("async def")),
            message, sure=True, reasons=reasons,
        )  # fmt: skip
        yield finding._replace(
            repair="decorate it with `contextlib.asynccontextmanager`, and enter it with `async with`"
        )


@cache
def _slots() -> dict[str, Mapping[str, str]]:
    """What slots want, and what those who run sync functions in threads do, by full name."""
    knowledge = semantics()
    runners = {
        name: dict.fromkeys(spawner.parameter, "plain")
        for name, spawner in knowledge.spawners.items()
        if spawner.takes == "plain"
    }
    return runners | {name: slot.wants for name, slot in knowledge.slots.items()}


@cache
def _names() -> frozenset[str]:
    return frozenset(name.rpartition(".")[2] for name, wants in _slots().items() if "plain" in wants.values())


def _may_hand_over(program: Program, function: Function) -> bool:
    """Whether a call of such a name is given a lambda, or something called like an async function."""
    names = _names()
    for node in of_kind(function.body(), "call"):
        if last_name(node[CALL_FUNC]) in names:
            arguments = [*node[CALL_ARGS], *(value for _, value in node[CALL_KEYWORDS])]
            if any(_could_be_async(program, argument) for argument in arguments) and (
                program.has_walked(function) or _may_be_slot(program, function, node[CALL_FUNC])
            ):
                return True
    return False


def _may_be_slot(program: Program, function: Function, callee: Node) -> bool:
    """Whether a callee is one of those slots, as far as a glance tells."""
    text = dotted(callee)
    members = program.glance.alternatives(function, text) if text else None
    return members is None or any(member is None or _slot(member) is not None for member in members)


def _could_be_async(program: Program, node: Node) -> bool:
    if node[KIND] == "lambda":
        return True
    if node[KIND] == "call":
        return any(_could_be_async(program, argument) for argument in node[CALL_ARGS])  # `partial(work, 1)`
    name = last_name(node)
    return bool(name) and (program.counts.colors(name)[0] > 0 or node[KIND] == "name")


def _judge(program: Program, call: Call) -> Iterator[Finding]:
    if call.text.rpartition(".")[2] not in _names():
        return
    found = _BY_NAME.get(call.text.rpartition(".")[2]) if call.callee is None else _slot(call.callee)
    if found is None or found in _HANDING_ON:
        return
    if not call.caller.is_async and is_of_plain_flavor(program, call.caller):
        return
    if found in _MAPPING and not _is_taken_for_results(program, call):
        return  # a list of coroutines, which somebody may gather
    if call.is_awaited and _is_awaited_after_all(call):
        return  # the thread gives the coroutine back
    wants = _slots()[found]
    for slot, node, value in arguments_of(call):
        if wants.get(slot) == "plain" and calling_makes_a_coroutine(program, value):
            yield _told(program, call, node, value, found)
            return


def _slot(callee: Value | None) -> str | None:
    """The slot that a callee is, by its full name."""
    slots = _slots()
    return next((name for name in names_of(callee) if name in slots), None) or _of_unknown_maker(callee)


def _of_unknown_maker(callee: Value | None) -> str | None:
    """The slot of a package that a method reached through calls (`schedule.every(10).minutes.do`) must be."""
    if not isinstance(callee, External) or "()." not in callee.path:
        return None
    top, last = callee.path.partition(".")[0], callee.path.rpartition(".")[2]
    slots = _slots()
    candidates = [name for name in slots if name.startswith(f"{top}.") and name.endswith(f".{last}")]
    return candidates[0] if candidates and all(slots[name] == slots[candidates[0]] for name in candidates) else None


def _is_taken_for_results(program: Program, call: Call) -> bool:
    return any(
        other_call.text.rpartition(".")[2] in _TAKING_RESULTS and any(node == call.node for node in other_call.node[2])
        for other_call in program.calling.of(call.caller)
    )


def _is_awaited_after_all(call: Call) -> bool:
    """`create_task(await to_thread(work))`, `await (await to_thread(work))`: the result is taken for a coroutine."""
    for node in walk(call.caller.body()):
        arguments = node[CALL_ARGS] if node[KIND] == "call" and looks_like_keeper(last_name(node[CALL_FUNC])) else ()
        arguments = node[1:2] if node[KIND] == "await" else arguments
        if any(
            argument[KIND] == "await" and argument[VALUE][KIND] == "call" and argument[VALUE][AT] == call.at
            for argument in arguments
        ):
            return True
    return False


def _told(
    program: Program,
    call: Call,
    node: Node,
    value: Value | None,
    slot: str,
    *,
    dropped: Reason | None = None,
    sure: bool = True,
) -> Finding:
    function = definition_of(value)
    name = last_name(node) or (function.name if function else "the function")
    phrase = "the lambda" if node[KIND] == "lambda" else f"`{name}`"
    if function is not None:
        made = "`async def`" if function.is_async else "a plain `def` that gives a coroutine"
        why = Reason(f"`{function.qualname}` is {made}", *function.place)
    else:
        why = Reason(f"{phrase} gives a coroutine when it is called", call.caller.module.path, call.at[0])
    reasons = (why, dropped or Reason(f"`{slot}` calls what it is given and never awaits"))
    message = f"`{call.text}(…)` calls {phrase} and throws away the coroutine it gets, so its body never runs"
    if dropped is not None and not sure:
        message = f"`{call.text}(…)` keeps {phrase} and later throws away the coroutine it gets, so its body never runs"
    finding = tell_at(
        program, "TR402", "async-function-in-sync-slot", call.caller, call.at, message,
        sure=sure and function is not None, reasons=reasons, subject=name,
    )  # fmt: skip
    if slot in _FACTORIES:
        return finding._replace(repair=_OF_A_FACTORY)
    if call.is_awaited and "thread" in slot and node[KIND] != "lambda":
        return finding._replace(repair=coroutine_awaited_itself(name))
    return finding._replace(repair=plain_function_that_starts(call.caller.module))


def _is_of_a_group(program: Program, module: Module, function: Function, node: Node) -> bool:
    """`@cli.command()`, where `cli` is a function of the project that `click.group` made a group of."""
    if node[KIND] != "attr" or node[ATTR_NAME] not in {"command", "group"}:
        return False
    group = program.static(module, function.parent).value(node[ATTR_BASE])
    maker = group.function if isinstance(group, FunctionValue) else None
    if not isinstance(maker, Function) or maker is function:
        return False
    scope = program.static(maker.module, maker.parent)
    for decorator in maker.facts.decorators:
        above = decorator[CALL_FUNC] if decorator[KIND] == "call" else decorator
        if any(name in {"click.group", "click.decorators.group"} for name in names_of(scope.value(above))):
            return not _is_told_how(scope, decorator)
        if _is_of_a_group(program, maker.module, maker, above):
            return True
    return False


def _is_told_how(scope: Evaluator, decorator: Node) -> bool:
    """`@app.task(base=AsyncTask)`, `@click.command(cls=AsyncCommand)`: a class of the project says how it is called."""
    if decorator[KIND] != "call":
        return False
    values = [scope.value(node) for node in (*decorator[CALL_ARGS], *(node for _, node in decorator[CALL_KEYWORDS]))]
    return any(isinstance(value, ClassObject) and isinstance(value.cls, Class) for value in values)


def _decorated(program: Program, module: Module, function: Function) -> Iterator[Finding]:
    """A decorator that wants a sync function, above an async one that nothing below made sync."""
    for decorator in reversed(function.facts.decorators):
        node = decorator[CALL_FUNC] if decorator[KIND] == "call" else decorator
        names = tuple(names_of(program.effects.decorator(function, decorator)))
        decorator_name = next((n for n in names if semantics().decorators.get(n) == "wants_plain"), None)
        if decorator_name is None and _is_of_a_group(program, module, function, node):
            decorator_name = "click.command"
        if decorator_name is not None and decorator_name not in _HANDING_ON and last_name(node) not in _PASSING:
            if _is_told_how(program.static(module, function.parent), decorator):
                return
            line, column = function.facts.at[:2]
            message = f"`{last_name(node)}` calls `{function.qualname}` and never awaits its coroutine, so its body never runs"
            reasons = (
                Reason(f"`{function.qualname}` is `async def`", *function.place),
                Reason(f"`{decorator_name}` wants a sync function"),
            )
            finding = tell_at(
                program, "TR402", "async-function-in-sync-slot", function, (line, column, line, column + len("async def")),
                message, sure=True, reasons=reasons,
            )  # fmt: skip
            own = next((advice for top, advice in _OF_FRAMEWORKS.items() if decorator_name.startswith(top)), "")
            yield finding._replace(repair=own or command_run_by_hand(module))
            return
        registered = _registered(program, function, decorator)
        if registered is not None:
            yield registered
            return
        if not is_harmless(program, function, decorator) and last_name(node) not in _PASSING:
            return  # whatever it makes of the function, it is not for us to say
