"""Async dunder.

What it finds: an `async def` special method that Python calls and never awaits (`__init__`, `__del__`, `__len__`,
`__bool__`, `__enter__`, `__exit__`, `__iter__`, `__eq__`, … and property setters), `async def __aiter__` or `__await__`,
which must not be async, and a plain `__aenter__`, `__aexit__` or `__anext__` whose result cannot be awaited.
Why it matters: Python gets a coroutine where it wants a result: `__init__` and `__len__` raise TypeError, `__bool__` too,
`__del__`, `__exit__` and a setter lose their work in silence.
How to repair: make the method plain; put what waits into a method that is awaited (`async def open(self)`), a factory
(`await Store.create()`), or `__aenter__`/`__aexit__`.
How sure the fix is: removing the `async` is sure where the body never waits; where it does, none is offered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.facts.names import dotted
from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.infer.never_awaitable import gives_no_awaitable, is_harmless

if TYPE_CHECKING:
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.symbols import Function

CASES = [
    Case(
        "made a generator by a decorator",
        good="from async_generator import async_generator, yield_\nclass Body:\n    @async_generator\n    async def __aiter__(self):\n        await yield_(1)\n",
    ),
    Case(
        "a constructor",
        bad="class Store:\n    async def __init__(self):  # here\n        self.pool = await connect()\n",
    ),
    Case(
        "one that never waits",
        bad="class Store:\n    async def __len__(self):  # here\n        return 1\n",
        fixed="class Store:\n    def __len__(self):  # here\n        return 1\n",
    ),
    Case("a finalizer", bad="class Store:\n    async def __del__(self):  # here\n        await self.close()\n"),
    Case(
        "an iterator",
        bad="class Pages:\n    async def __aiter__(self):  # here\n        return self\n    async def __anext__(self):\n        return 1\n",
        fixed="class Pages:\n    def __aiter__(self):  # here\n        return self\n    async def __anext__(self):\n        return 1\n",
    ),
    Case(
        "a setter",
        bad="class Store:\n    @property\n    def size(self):\n        return 1\n    @size.setter\n    async def size(self, n):  # here\n        await self.resize(n)\n",
    ),
    Case(
        "a setter of what is no property of Python's own",
        good="from dbus import dbus_property\nclass Service:\n    @dbus_property()\n    def size(self):\n        return 1\n"
        "    @size.setter\n    async def size(self, n):\n        self.n = n\n",
    ),
    Case(
        "a plain `__anext__`",
        bad="class Pages:\n    def __aiter__(self):\n        return self\n    def __anext__(self):  # here\n        return 1\nasync def main():\n    async for page in Pages(): ...\n",
    ),
    Case(
        "awaited ones",
        good="class Store:\n    async def __aenter__(self):\n        return self\n    async def __aexit__(self, *e): ...\n",
    ),
    Case(
        "a class that users have through another one",
        good="import wrapping\nclass _Dict:\n    async def __setitem__(self, key, value):\n        await self.put(key, value)\nDict = wrapping.plain(_Dict)\n",
    ),
    Case(
        "what Python 3.5 asked for, beside what it asks for since",
        good="import sys\nclass Pages:\n    if sys.version_info < (3, 5, 2):\n        async def __aiter__(self):\n            return self\n"
        "    else:\n        def __aiter__(self):\n            return self\n    async def __anext__(self):\n        return 1\n",
    ),
    Case("a callable object", good="class Store:\n    async def __call__(self): ...\n"),
    Case("an async generator", good="class Pages:\n    async def __aiter__(self):\n        yield 1\n"),
    Case(
        "an item that is awaited",
        good="class Store:\n    async def __getitem__(self, key):\n        return await self.load(key)\n",
    ),
    Case(
        "a sync one that hands a coroutine on",
        good="class Store:\n    async def open(self): ...\n    def __aenter__(self):\n        return self.open()\n    async def __aexit__(self, *e): ...\n",
    ),
    Case(
        "a class that awaits its constructor itself",
        good="class Base:\n    async def __new__(cls):\n        self = super().__new__(cls)\n        await self.__init__()\n        return self\n    async def __init__(self): ...\n",
    ),
]

_FAILING = frozenset(
    [
        "__init__",
        "__len__",
        "__bool__",
        "__iter__",
        "__next__",
        "__str__",
        "__repr__",
        "__hash__",
        "__int__",
        "__float__",
        "__index__",
        "__bytes__",
        "__format__",
        "__length_hint__",
        "__aiter__",
        "__await__",
        "__dir__",
    ]
)
_LOSING = frozenset(
    [
        "__del__",
        "__enter__",
        "__exit__",
        "__eq__",
        "__ne__",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
        "__contains__",
        "__setattr__",
        "__delattr__",
        "__setitem__",
        "__delitem__",
        "__set__",
        "__delete__",
        "__post_init__",
        "__init_subclass__",
        "__set_name__",
    ]
)
_PROPERTIES = frozenset(
    [("name", "property"), ("name", "cached_property"), ("attr", ("name", "functools"), "cached_property")]
)
_AWAITED = frozenset({"__aenter__", "__aexit__", "__anext__"})


@rule("TR405", "async-dunder", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Special methods of the wrong color."""
    for path in program.asked:
        module = program.module(path)
        has_async = any(
            facts.flags & 1 for facts in module.facts.functions
        )  # else nobody enters or loops over anything
        for index, facts in enumerate(module.facts.functions):
            if facts.owner < 0:
                continue
            function = module.function(index)
            if facts.flags & 1:
                if facts.name in _FAILING or facts.name in _LOSING:
                    is_its_own = all(is_harmless(program, function, decorator) for decorator in facts.decorators)
                    if is_its_own and not _is_wrapped(program, function):
                        yield from _async(program, function)
                elif facts.decorators and _changes_a_property(function):
                    yield _told(program, function, "Python runs a setter and never awaits it, so the coroutine is lost")
            elif facts.name in _AWAITED and has_async and gives_no_awaitable(program, function):
                line = f"Python awaits what `{facts.name}` returns, and a plain result cannot be awaited: it raises TypeError"
                yield _told(program, function, line, fix=False)


def _changes_a_property(function: Function) -> bool:
    """`@size.setter`, where `size` is a property of Python's own; what a library calls one may await its setters."""
    names = set()
    for decorator in function.facts.decorators:
        name, _, last = dotted(decorator).rpartition(".")
        if last in {"setter", "deleter"}:
            names.add(name)
    return any(
        facts.name in names and facts.owner == function.facts.owner and _PROPERTIES & {*facts.decorators}
        for facts in function.module.facts.functions
    )


def _is_wrapped(program: Program, function: Function) -> bool:
    """`Dict = synchronize(_Dict)`: what users have is made of the class, and calls its methods in its own way.

    A stub beside a file only repeats what that says.
    """
    module, cls = function.module, function.owner
    assert cls is not None
    if module.path.endswith(".pyi") and module.path[:-1] in program.paths:
        return True
    own = ("name", cls.name)
    return any(
        value is not None
        and value[0] == "call"
        and (own in value[2] or any(own == argument for _, argument in value[3]))
        for _, _, value in module.facts.variables
    )


def _async(program: Program, function: Function) -> Iterator[Finding]:
    owner = function.owner
    assert owner is not None
    if function.is_generator and function.name in {"__aiter__", "__iter__"}:
        if function.name == "__iter__":
            yield _told(
                program, function, "a plain `for` cannot loop over an async generator: it raises TypeError", fix=False
            )
        return
    if function.name == "__aiter__" and any(
        facts.name == "__aiter__" and facts.owner == function.facts.owner and not facts.flags & 1
        for facts in function.module.facts.functions
    ):
        return  # Python 3.5.1 awaited it; the class has one for each
    if function.name in {"__init__", "__post_init__"} and _is_awaited_by_its_class(program, function):
        return
    if function.name in _LOSING:
        yield _told(
            program, function, f"Python calls `{function.name}` and never awaits it, so its work is lost in silence"
        )
    else:
        yield _told(program, function, f"Python gets a coroutine from `{function.name}` and raises TypeError")


def _is_awaited_by_its_class(program: Program, function: Function) -> bool:
    """Whether an ancestor makes its objects in a way of its own: `__await__`, an async `__new__`, a metaclass."""
    owner = function.owner
    assert owner is not None
    order = program.classes.order(owner)
    if None in order:
        return True
    text = program.text(owner.module.path).line(owner.facts.at[0])
    if "metaclass" in text or any(program.classes.has(owner, name) for name in ("__await__", "__new__")):
        return True
    return any("__init__" in callee for function in owner.module.facts.functions for callee in function.awaited)


def _told(program: Program, function: Function, why: str, *, fix: bool = True) -> Finding:
    line, column = function.facts.at[:2]
    word = "async def" if function.is_async else "def"
    path = function.module.path
    edit = None
    if fix and function.is_async and not function.waits and not path.endswith(".ipynb"):
        start = program.text(path).offset(line, column)
        if program.text(path).value.startswith("async def ", start):
            edit = Fix("make it plain", "sure", (Edit(path, start, start + len("async "), ""),))
    return tell_at(
        program, "TR405", "async-dunder", function, (line, column, line, column + len(word)), f"`{function.qualname}`: {why}",
        sure=True, reasons=(Reason(f"`{function.qualname}` is `{word}`", *function.place),), fix=edit,
    )  # fmt: skip
