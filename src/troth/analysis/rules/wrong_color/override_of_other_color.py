"""Override of the other color.

What it finds: a method that overrides one of the other color, where it is called through the base: plain where the
base's is awaited, `async def` where the base's is called plainly. Or one of an abstract method or a protocol, which says
the color for all. Also a hook of a library's base class: `async def run` in a `threading.Thread`, a plain `dispatch` in
a Starlette middleware.
Why it matters: the caller knows the base only. It awaits a plain result and raises TypeError, or calls a coroutine
function, gets a coroutine and drops it: the override never runs.
How to repair: give the override the color of the base, or the base and all others that of the override (`troth recolor`).
How sure the fix is: `async` before a sync override is likely right: it runs the same lines, and its callers await it
already. None is offered for the other way.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import (
    ASSIGN_TARGETS,
    ASSIGN_VALUE,
    AT,
    ATTR_BASE,
    ATTR_NAME,
    CALL_ARGS,
    CALL_FUNC,
    KIND,
    NAME_ID,
    VALUE,
)
from troth.analysis.facts.nodes import children, of_kind, walk
from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.project.test_files import is_test
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.infer.never_awaitable import gives_no_awaitable, is_harmless, mentions_awaitable
from troth.analysis.semantics.infer.virtual_dispatch import async_implementations
from troth.analysis.semantics.queries.color_requirements import is_protocol
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.resolve.references import mentioned
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import Awaitable, Coroutine, External, FunctionValue, Instance, members_of
from troth.analysis.semantics.walk.coroutine_sinks import looks_like_runner

if TYPE_CHECKING:
    from troth.analysis.facts.model import At, Node
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call

CASES = [
    Case(
        "plain where the base is awaited",
        bad="class Base:\n    async def load(self):\n        return await self.fetch()\n    async def run(self):\n        return await self.load()\n"
        "class Memory(Base):\n    def load(self) -> int:  # here\n        return 1\n",
        fixed="class Base:\n    async def load(self):\n        return await self.fetch()\n    async def run(self):\n        return await self.load()\n"
        "class Memory(Base):\n    async def load(self) -> int:  # here\n        return 1\n",
    ),
    Case(
        "async where the base is called",
        bad="class Base:\n    def stop(self):\n        print(1)\n    def run(self):\n        self.stop()\nclass Remote(Base):\n    async def stop(self):  # here\n        await self.close()\n",
    ),
    Case(
        "plain where the contract is async",
        bad="import abc\nclass Store(abc.ABC):\n    @abc.abstractmethod\n    async def load(self) -> int: ...\nclass Memory(Store):\n    def load(self) -> int:  # here\n        return 1\n",
        fixed="import abc\nclass Store(abc.ABC):\n    @abc.abstractmethod\n    async def load(self) -> int: ...\nclass Memory(Store):\n    async def load(self) -> int:  # here\n        return 1\n",
    ),
    Case(
        "async where the contract is plain",
        bad="from typing import Protocol\nclass Store(Protocol):\n    def close(self) -> None: ...\nclass Remote(Store):\n    async def close(self) -> None:  # here\n        await self.say('bye')\n    async def say(self, word): ...\n",
    ),
    Case(
        "a contract of methods that are handed to who looks at their color",
        good="import inspect\nfrom abc import ABC, abstractmethod\nclass Connector(ABC):\n    @abstractmethod\n    def create(self): ...\n"
        "class Sensor(Connector):\n    async def create(self):\n        await self.start()\nasync def run(connector: Connector):\n"
        "    return await mirror(connector.create)\n",
    ),
    Case(
        "a contract that takes both, of whoever asks what came back",
        good="import abc, asyncio\nclass Listener(abc.ABC):\n    @abc.abstractmethod\n    def revoked(self, parts): ...\n"
        "class Saving(Listener):\n    async def revoked(self, parts):\n        await self.save(parts)\n"
        "class Coordinator:\n    async def run(self, parts):\n        result = self.subscription.listener.revoked(parts)\n"
        "        if asyncio.iscoroutine(result):\n            await result\n",
    ),
    Case(
        "a base that runs what it gets",
        good="import asyncio\nclass Base:\n    def work(self):\n        print(1)\n    def start(self):\n        asyncio.run(self.work())\n    async def later(self):\n        self.task = asyncio.create_task(self.work())\n"
        "class Remote(Base):\n    async def work(self):\n        await self.close()\n",
    ),
    Case(
        "plain where the base runs it",
        bad="import asyncio\nclass Base:\n    async def work(self):\n        await self.close()\n    def start(self):\n        asyncio.run(self.work())\n"
        "class Quick(Base):\n    def work(self) -> None:  # here\n        print(1)\n",
        fixed="import asyncio\nclass Base:\n    async def work(self):\n        await self.close()\n    def start(self):\n        asyncio.run(self.work())\n"
        "class Quick(Base):\n    async def work(self) -> None:  # here\n        print(1)\n",
    ),
    Case(
        "a base that prints what it gets",
        bad="class Base:\n    def work(self):\n        return 1\n    def start(self):\n        print(self.work())\n"
        "class Remote(Base):\n    async def work(self):  # here\n        return await self.close()\n",
    ),
    Case(
        "a contract that callers of this one do not hold to",
        good="import abc\nclass Store(abc.ABC):\n    @abc.abstractmethod\n    async def load(self) -> int: ...\nclass Memory(Store):\n    def load(self) -> int:\n        return 1\ndef main():\n    print(Memory().load())\n",
    ),
    Case(
        "a thread",
        bad="import threading\nclass Worker(threading.Thread):\n    async def run(self):  # here\n        await self.work()\n",
    ),
    Case(
        "a hook that is awaited",
        bad="from starlette.middleware.base import BaseHTTPMiddleware\nclass Log(BaseHTTPMiddleware):\n    def dispatch(self, request, call_next) -> None:  # here\n        print(request)\n",
    ),
    Case(
        "beside the hooks, called by the class itself",
        good="from agents import RunHooks\nclass Log(RunHooks):\n    def on_run_start(self, context) -> None:\n        print(context)\n"
        "def start(log: Log):\n    log.on_run_start(1)\n",
    ),
    Case(
        "of one color",
        good="class Base:\n    async def load(self): ...\n    async def run(self):\n        return await self.load()\nclass Memory(Base):\n    async def load(self):\n        return 1\n",
    ),
    Case(
        "nobody calls it through the base",
        good="class Client:\n    def get(self):\n        return 1\nclass AsyncClient(Client):\n    async def get(self):\n        return await self.fetch()\n",
    ),
    Case(
        "a base that hands on what it gets",
        good="class Commands:\n    def execute(self, name):\n        return name\n    def sizes(self, names):\n        return [self.execute(name) for name in names]\nclass Client(Commands):\n    async def execute(self, name):\n        return await self.ask(name)\n",
    ),
    Case(
        "a base that awaits what it gets, if it gets something",
        good="class Delegate:\n    def received(self, data):\n        print(data)\nclass Gzip(Delegate):\n    async def received(self, data):\n        await self.write(data)\nasync def deliver(delegate: Delegate):\n    ret = delegate.received(1)\n    if ret is not None:\n        await ret\n",
    ),
    Case(
        "a base that takes both",
        good="import inspect\nclass Base:\n    def stop(self): ...\n    async def run(self):\n        r = self.stop()\n        if inspect.isawaitable(r):\n            await r\nclass Remote(Base):\n    async def stop(self):\n        await self.close()\n",
    ),
    Case(
        "a base that promises either",
        good="from typing import Awaitable, TypeVar, Union\nT = TypeVar('T')\nMaybe = Union[T, Awaitable[T]]\nclass Base:\n    def stop(self) -> Maybe[None]:\n        return None\n"
        "    def run(self):\n        self.stop()\nclass Remote(Base):\n    async def stop(self):\n        await self.close()\n",
    ),
    Case(
        "all overrides have the other color",
        bad="from abc import ABC, abstractmethod\nclass Channel(ABC):\n    @abstractmethod\n    def close(self): ...\nclass Mail(Channel):\n"
        "    async def close(self):  # here\n        await self.flush()\nasync def stop(channel: Channel):\n    channel.close()\n",
    ),
    Case(
        "overrides of both colors, which somebody keeps apart",
        good="from abc import ABC, abstractmethod\nclass Channel(ABC):\n    @abstractmethod\n    def close(self): ...\n"
        "class Console(Channel):\n    def close(self):\n        print(1)\nclass Mail(Channel):\n    async def close(self):\n        await self.flush()\n"
        "def stop(channel: Channel):\n    channel.close()\n",
    ),
    Case(
        "called where only what is overridden leads",
        good="class Base:\n    def stop(self):\n        print(1)\n    def serve(self):\n        self._serve_again()\n    def _serve_again(self):\n        self.stop()\n"
        "class Embedded(Base):\n    async def stop(self):\n        await self.close()\n    async def serve(self):\n        await self.stop()\n",
    ),
    Case(
        "called on an object of a class that does not override it",
        good="class Base:\n    def stop(self):\n        print(1)\nclass Plain(Base):\n    pass\nclass Remote(Base):\n    async def stop(self):\n        await self.close()\n"
        "def test():\n    plain = Plain()\n    plain.stop()\n",
    ),
    Case(
        "called on an object of a sibling class",
        good="class Base:\n    def load(self):\n        print(1)\nclass Plain(Base):\n    def run(self):\n        self.load()\n"
        "class Remote(Base):\n    async def load(self):\n        await self.close()\n",
    ),
    Case(
        "one that hands a coroutine on",
        good="class Base:\n    async def load(self): ...\n    async def run(self):\n        return await self.load()\nclass Other(Base):\n    async def get(self): ...\n    def load(self):\n        return self.get()\n",
    ),
    Case(
        "a plain thread",
        good="import threading\nclass Worker(threading.Thread):\n    def run(self):\n        print(1)\n",
    ),
    Case(
        "a base that does nothing, and a class that leaves it so",
        bad="class Base:\n    def cleanup(self): pass\nclass One(Base):\n    async def cleanup(self): print(1)  # here\nclass Two(Base):\n    pass\n"
        "class Other:\n    async def cleanup(self): print(2)\nasync def first(other: Other):\n    await other.cleanup()\nasync def second(plugin: Base):\n    plugin.cleanup()\n",
    ),
]

_ASKING = re.compile(r"(?i)async|coro|awaitable|maybe|gather|ensure|future")
_RUNNING = frozenset({"run", "run_coroutine_threadsafe"})
_SHAPELESS = frozenset({"collections.abc.Callable"})


@rule("TR404", "override-of-other-color", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Overrides that callers of the base cannot use."""
    pairs: dict[Function, Function] = {}
    for path in program.asked:
        module = program.module(path)
        for index in range(len(module.facts.classes)):
            cls = module.cls(index)
            for indexes in cls.methods.values():
                function = module.function(indexes[-1])
                if function.is_generator or function.decorated_with(
                    "property", "cached_property", "setter", "overload"
                ):
                    continue
                base = _overridden(program, cls, function)
                if base is not None:
                    pairs[function] = base
                yield from _hook(program, cls, function)
    yield from _called_through_base(program, pairs)


def _overridden(program: Program, cls: Class, function: Function) -> Function | None:
    """The method of the nearest base of the project that it overrides, if that has the other color."""
    if function.name.startswith("__") or function.is_abstract:
        return None  # what only says that it is not there is lost on nobody
    if cls.facts.parent and cls.module.function(cls.facts.parent).name.startswith("test"):
        return None  # a stand-in that a test makes for itself
    async_, plain = program.counts.colors(function.name)
    if not (async_ and plain):
        return None
    for ancestor in program.classes.order(cls)[1:]:
        if ancestor is None:
            return None
        if isinstance(ancestor, Class) and function.name in ancestor.methods:
            indexes = ancestor.methods[function.name]
            base = ancestor.module.function(indexes[-1])
            is_open = (
                base.is_generator or len(indexes) > 1 or base.decorated_with("property", "cached_property", "overload")
            )
            return None if is_open or base.is_async == function.is_async else base
    return None


def _called_through_base(program: Program, pairs: dict[Function, Function]) -> Iterator[Finding]:
    by_base: dict[Function, list[Function]] = {}
    for function, base in pairs.items():
        if not base.is_async and (_promises_either(program, base) or _is_async_in_all_but_name(program, base)):
            continue
        if any(
            not is_harmless(program, method, d) and not method.decorated_with("abstractmethod")
            for method in (function, base)
            for d in method.facts.decorators
        ):
            continue
        if function.is_async or gives_no_awaitable(program, function):
            by_base.setdefault(base, []).append(function)
    if not by_base:
        return
    calls: dict[Function, list[Call]] = {}
    names = {base.name for base in by_base}
    either: set[str] = set()  # somebody calls them and looks at what comes back
    for caller in program.calling.functions_naming(names):
        called = {callee.rpartition(".")[2] for callee in (*caller.facts.calls, *caller.facts.awaited)}
        if any(map(_ASKING.search, called)):
            either |= called
            continue
        if not (program.has_walked(caller) or program.glance.may_call(caller, names, by_base)):
            continue
        found = list(_calls_of(program, caller, by_base))
        if not found or _looks_at_results(program, caller):
            continue
        body = caller.body()
        handed_on = {*_returned_calls(body), *_awaited_later(body)}
        for target, call in found:
            if (
                call.is_awaited or call.at not in handed_on
            ):  # else whoever called it gets the coroutine, and may await it
                calls.setdefault(target, []).append(call)
    for base, functions in by_base.items():
        for function in functions:
            example = next(
                (
                    call
                    for call in calls.get(base, ())
                    if _may_reach(program, call, function, base) and not _is_a_twin(program, call, function)
                ),
                None,
            )
            if example is not None:
                yield _told(program, function, base, example)
            elif base not in calls and base.name not in either and _breaks_a_contract(program, function, base):
                yield _told_of_contract(program, function, base)


def _calls_of(program: Program, caller: Function, wanted: Collection[Function]) -> Iterator[tuple[Function, Call]]:
    """The calls of the wanted functions, in their own color, on what may be an object of a class below."""
    run = frozenset(_run_on_the_spot(caller.body()))
    for call in program.calling.of(caller):
        for member in members_of(call.callee):
            target = member.function if isinstance(member, FunctionValue) else None
            if (
                isinstance(target, Function)
                and target in wanted
                and (call.is_awaited or call.at in run) == target.is_async
                and call.text != f"super.{target.name}"
                and not _is_super(call)
                and not _is_made_here(call, target)
            ):
                yield target, call


def _breaks_a_contract(program: Program, function: Function, base: Function) -> bool:
    """Whether the base declares the method for others to fill in, and nobody treats it as the override does."""
    is_declared = base.decorated_with("abstractmethod") or (base.owner is not None and is_protocol(base.owner))
    if not is_declared or is_test(function.module.path):
        return False
    owner = function.owner
    assert owner is not None
    awaited, bare = program.judge.sites_of(function.name)
    if (awaited if function.is_async else bare) or any(word in owner.name for word in ("Async", "Aio", "Sync")):
        return False
    return not mentioned(program, {function.name})  # who is handed the method may look at its color


def _returned_calls(body: tuple[Node, ...]) -> Iterator[At]:
    """The places of the calls whose results are given back, by themselves or in a list."""
    for node in walk(body):
        if node[KIND] in ("return", "yield", "yieldfrom"):
            yield from (call[AT] for call in of_kind(children(node), "call"))


def _may_reach(program: Program, call: Call, function: Function, base: Function) -> bool:
    """Whether the object may be of the class that overrides: one of a sibling class never is.

    What the base calls on itself, it calls on each. A function that takes any object of the base is a proof only where
    nobody implements the method in the color of the base: else there are two kinds of objects, which are kept apart.
    """
    assert function.owner is not None
    is_own = _is_on_itself(call) and call.caller.class_around in program.classes.order(function.owner)
    if not is_own and _is_implemented(program, base):
        return False
    receivers = [member.receiver for member in members_of(call.callee) if isinstance(member, FunctionValue)]
    clses = [receiver.cls for receiver in receivers if isinstance(receiver, Instance)]
    return not clses or any(cls in program.classes.order(function.owner) for cls in clses)


def _is_implemented(program: Program, base: Function) -> bool:
    """Whether the method is there in the color of the base: in itself, or in another class below."""
    assert base.owner is not None
    if not base.is_abstract:
        return True
    below = [child for child in program.classes.children(base.owner) if base.name in child.methods]
    overrides = [child.module.function(child.methods[base.name][-1]) for child in below]
    return any(override.is_async == base.is_async and not override.is_abstract for override in overrides)


def _is_on_itself(call: Call) -> bool:
    """`self.stop()`."""
    callee, around = call.node[1], call.caller
    while around.owner is None and around.parent is not None:
        around = around.parent
    params = around.facts.params
    return bool(
        callee[KIND] == "attr" and around.owner is not None and params and callee[ATTR_BASE] == ("name", params[0][0])
    )


def _is_async_in_all_but_name(program: Program, base: Function) -> bool:
    """A method without a body that all who implement it make async: whoever calls it bare is told there."""
    return base.owner is not None and bool(async_implementations(program, base, base.owner))


def _promises_either(program: Program, base: Function) -> bool:
    """`-> None | Awaitable[None]`: the base itself says that overrides may be async."""
    returns = base.facts.returns
    if returns is None:
        return False
    declared = program.types.annotated(returns, base.module, base.parent, base.owner)
    return any(isinstance(m, Awaitable | Coroutine) for m in members_of(declared)) or mentions_awaitable(returns)


def _awaited_later(body: tuple[Node, ...]) -> Iterator[At]:
    """The places of the calls whose results are bound to a name that is awaited further on."""
    awaited = {node[VALUE] for node in of_kind(body, "await")}
    for statement in of_kind(body, "assign"):
        if statement[ASSIGN_VALUE][KIND] == "call" and any(target in awaited for target in statement[ASSIGN_TARGETS]):
            yield statement[ASSIGN_VALUE][AT]


def _run_on_the_spot(body: tuple[Node, ...]) -> Iterator[At]:
    """The places of the calls whose results are given to who runs them: `asyncio.run(self.work())`."""
    for node in of_kind(body, "call"):
        name = _last_of(node[CALL_FUNC])
        if name in _RUNNING or looks_like_runner(name):
            yield from (argument[AT] for argument in node[CALL_ARGS] if argument[KIND] == "call")


def _looks_at_results(program: Program, caller: Function) -> bool:
    """`isinstance(result, Awaitable)`: the caller takes both."""
    return re.search(r"(?i)awaitable|iscoro", program.text(caller.module.path).cut(*caller.facts.at)) is not None


def _is_super(call: Call) -> bool:
    """`super().stop()`: the base's own method is meant, whatever overrides it."""
    callee = call.node[1]
    return bool(
        callee[KIND] == "attr"
        and callee[ATTR_BASE][KIND] == "call"
        and callee[ATTR_BASE][CALL_FUNC] == ("name", "super")
    )


def _is_made_here(call: Call, target: Function) -> bool:
    """`team = Team()` and `team.hire()`: an object of that very class, which no override can be behind."""
    callee = call.node[1]
    if callee[KIND] != "attr" or callee[ATTR_BASE][KIND] not in {"name", "call"}:
        return False
    receiver = callee[ATTR_BASE]
    found = call.callee.receiver if isinstance(call.callee, FunctionValue) else None
    makers = {cls.name for cls in (target.owner, getattr(found, "cls", None)) if cls is not None}
    if receiver[KIND] == "call":
        return _last_of(receiver[CALL_FUNC]) in makers
    statements = [
        statement[ASSIGN_VALUE]
        for statement in of_kind(call.caller.body(), "assign")
        if any(target == receiver for target in statement[ASSIGN_TARGETS])
    ]
    return bool(statements) and all(node[KIND] == "call" and _last_of(node[CALL_FUNC]) in makers for node in statements)


def _last_of(node: Node) -> str:
    return str(node[NAME_ID]) if node[KIND] == "name" else str(node[ATTR_NAME]) if node[KIND] == "attr" else ""


def _is_a_twin(program: Program, call: Call, function: Function) -> bool:
    """Whether the class has the calling method anew as well: a surface of its own, in the other color."""
    owner, calling = function.owner, call.caller.owner
    assert owner is not None
    if any(word in owner.name for word in ("Async", "Aio", "Sync")):
        return True
    order = program.classes.order(owner)
    first = next(
        (ancestor for ancestor in order if isinstance(ancestor, Class) and call.caller.name in ancestor.methods), None
    )
    return calling is not None and (
        call.caller.name in owner.methods
        or (calling in order and first is not calling)
        or not _is_reached(program, owner, call.caller)
    )


def _is_reached(program: Program, owner: Class, method: Function) -> bool:
    """Whether a private method of a base may be called on an object of the class, which has some of its callers anew."""
    if not method.name.startswith("_") or method.name.startswith("__") or method.owner is None:
        return True
    hidden: set[str] = {method.name}
    for ancestor in program.classes.order(owner):
        if isinstance(ancestor, Class):
            callers = [
                ancestor.module.function(ancestor.methods[name][-1]) for name in ancestor.methods.keys() - hidden
            ]
            if any(_speaks_of(caller, method.name) for caller in callers):
                return True
            hidden |= ancestor.methods.keys()
    return False


def _speaks_of(function: Function, name: str) -> bool:
    return any(node[ATTR_NAME] == name for node in of_kind(function.body(), "attr"))


def _told(program: Program, function: Function, base: Function, call: Call) -> Finding:
    who = f"`{call.caller.qualname or call.caller.module.path}`"
    if base.is_async:
        message = f"`{function.qualname}` is plain and overrides an async method that {who} awaits: it runs, then `await` raises TypeError"
    else:
        message = f"`{function.qualname}` is async and overrides a sync method that {who} calls without awaiting: it never runs there"
    does = "awaits" if base.is_async else "calls"
    reasons = (
        Reason(f"`{base.qualname}` is `{'async def' if base.is_async else 'def'}`", *base.place),
        Reason(f"{who} {does} it through the base", call.caller.module.path, call.at[0]),
    )
    return _finding(program, function, message, reasons, sure=False)


def _told_of_contract(program: Program, function: Function, base: Function) -> Finding:
    if base.is_async:
        message = f"`{function.qualname}` is sync, but overrides a method that is declared async: awaiting it raises TypeError"
    else:
        message = f"`{function.qualname}` is async, but overrides a method that is declared sync: its callers drop a coroutine"
    kind = "async def" if base.is_async else "def"
    reasons = (Reason(f"`{base.qualname}` is declared as `{kind}`", *base.place),)
    return _finding(program, function, message, reasons, sure=False)


def _library_base(program: Program, cls: Class) -> str:
    """The nearest base that is a library's, by its full name; of one that has no table, the name it is imported by."""
    nearest = next(
        (
            ancestor
            for ancestor in program.classes.order(cls)[1:]
            if ancestor is None or isinstance(ancestor, LibraryClass)
        ),
        None,
    )
    if nearest is not None:
        return nearest.qualified
    values = [program.static(cls.module).value(base) for base in cls.facts.bases if base[KIND] in {"name", "attr"}]
    return next((value.path for value in values if isinstance(value, External)), "")


def _is_called_plainly(program: Program, function: Function) -> bool:
    """Whether the project calls it itself and nobody awaits it: then it is a method of its own beside the hooks."""
    awaited, bare = program.judge.sites_of(function.name)
    return bare > 0 and not awaited


def _hook(program: Program, cls: Class, function: Function) -> Iterator[Finding]:
    """A method that a library calls by its name."""
    base = _library_base(program, cls)
    if not base or base in _SHAPELESS or function.name.startswith("test") or function.facts.decorators:
        return
    if function.is_abstract:
        return  # what only says that it is not there is lost on nobody
    verb = semantics().hook(base, function.name)
    if base.startswith("unittest"):
        return  # the rule about tests tells of these
    name = base.rpartition(".")[2]
    library = Reason(
        f"`{base}` {'awaits' if verb == 'awaits' else 'calls'} `{function.name}`{'' if verb == 'awaits' else ' and never awaits it'}"
    )
    if verb == "calls" and function.is_async:
        message = f"`{name}` calls `{function.qualname}` and drops its coroutine, so its body never runs"
        yield _finding(
            program,
            function,
            message,
            (Reason(f"`{function.qualname}` is `async def`", *function.place), library),
            sure=True,
        )
    elif verb == "awaits" and gives_no_awaitable(program, function) and not _is_called_plainly(program, function):
        message = (
            f"`{name}` awaits `{function.qualname}`, which is plain: it runs, and then the `await` raises TypeError"
        )
        yield _finding(
            program,
            function,
            message,
            (Reason(f"`{function.qualname}` is a plain `def`", *function.place), library),
            sure=False,
        )


def _finding(program: Program, function: Function, message: str, reasons: tuple[Reason, ...], *, sure: bool) -> Finding:
    line, column = function.facts.at[:2]
    path = function.module.path
    word = "async def" if function.is_async else "def"
    fix = None
    if not function.is_async and not path.endswith(".ipynb"):
        start = program.text(path).offset(line, column)
        fix = Fix("make it async", "likely", (Edit(path, start, start, "async "),))
    return tell_at(
        program, "TR404", "override-of-other-color", function, (line, column, line, column + len(word)), message,
        sure=sure, reasons=reasons, fix=fix,
    )  # fmt: skip
