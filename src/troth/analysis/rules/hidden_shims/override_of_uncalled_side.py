"""Override of the uncalled side.

What it finds: a base class offers a method in two colors (`run` and `arun`, `load` and `load_async`), neither of which
asks the other; a class below overrides one of them, and the program only ever calls the other one, be it the base itself.
Why it matters: the override is never consulted. The object is accepted, runs, and does what the base does: a tool without
its own work, a store without its own storage; nothing fails.
How to repair: override the side that is called, or let the base's method call its twin.
How sure the fix is: none is offered; its author has to decide which color the override should have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.facts.nodes import of_kind
from troth.analysis.findings import Finding, Reason
from troth.analysis.project.test_files import is_test
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import ClassObject, FunctionValue, Instance, members_of

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call

_BASE = "class Tool:\n    def run(self, x):\n        return x\n    async def arun(self, x):\n        return await self.wait(x)\n    async def wait(self, x): ...\n"
_PLAIN = "class Search(Tool):\n    def run(self, x):{mark}\n        return find(x)\n"
_AWAITS = "async def main(tool: Tool):\n    return await tool.arun(1)\n"
CASES = [
    Case("the sync side, and the async one is awaited", bad=_BASE + _PLAIN.format(mark="  # here") + _AWAITS),
    Case(
        "the async side, and the sync one is called",
        bad=_BASE
        + "class Search(Tool):\n    async def arun(self, x):  # here\n        return await self.wait(x)\n"
        + "def main(tool: Tool):\n    return tool.run(1)\n",
    ),
    Case(
        "named with async behind",
        bad="class Store:\n    def load(self): ...\n    async def load_async(self):\n        return await self.wait()\n    async def wait(self): ...\n"
        "class Files(Store):\n    def load(self):  # here\n        return 1\nasync def main(store: Store):\n    return await store.load_async()\n",
    ),
    Case(
        "the base hands on",
        good=_BASE.replace("await self.wait(x)", "self.run(x)") + _PLAIN.format(mark="") + _AWAITS,
    ),
    Case(
        "the base hands on to a thread",
        good="import asyncio\n"
        + _BASE.replace("await self.wait(x)", "await asyncio.to_thread(self.run, x)")
        + _PLAIN.format(mark="")
        + _AWAITS,
    ),
    Case(
        "both sides are overridden",
        good=_BASE
        + _PLAIN.format(mark="")
        + "    async def arun(self, x):\n        return await self.wait(x)\n"
        + _AWAITS,
    ),
    Case(
        "both sides are called",
        good=_BASE + _PLAIN.format(mark="") + _AWAITS + "def other(tool: Tool):\n    return tool.run(1)\n",
    ),
    Case(
        "a caller that chooses",
        good=_BASE
        + _PLAIN.format(mark="")
        + "import asyncio\nasync def main(tool: Tool, waits):\n    if waits:\n        return await tool.arun(1)\n    return await asyncio.to_thread(tool.run, 1)\n",
    ),
    Case(
        "a side that only refuses",
        good=_BASE + "class Search(Tool):\n    def run(self, x):\n        raise NotImplementedError\n" + _AWAITS,
    ),
    Case(
        "a base that uses it elsewhere",
        good=_BASE
        + "    def many(self, xs):\n        return [self.run(x) for x in xs]\n"
        + _PLAIN.format(mark="")
        + _AWAITS,
    ),
    Case(
        "called by the base",
        bad="class Tool:\n    def _run(self, x):\n        raise NotImplementedError\n    async def _arun(self, x):\n        raise NotImplementedError\n    async def invoke(self, x):\n        return await self._arun(x)\n"
        "class Search(Tool):\n    def _run(self, x):  # here\n        return find(x)\nasync def main(tool: Tool):\n    return await tool.invoke(1)\n",
    ),
    Case(
        "called by the class itself",
        good=_BASE
        + _PLAIN.format(mark="")
        + "    def all(self, xs):\n        return [self.run(x) for x in xs]\n"
        + _AWAITS,
    ),
    Case(
        "one that hands on to the side that is called",
        good=_BASE
        + "class Search(Tool):\n    async def arun(self, x):\n        return self.run(x)\n"
        + "def main(tool: Tool):\n    return tool.run(1)\n",
    ),
    Case(
        "a class below has the side that is called",
        good=_BASE
        + "class Waiting(Tool):\n    async def arun(self, x):\n        return await self.wait(x)\n"
        + "class Search(Waiting):\n    def run(self, x):\n        return find(x)\n"
        + "def main(tool: Tool):\n    return tool.run(1)\n",
    ),
    Case(
        "called on who knows what",
        good=_BASE
        + "class Search(Tool):\n    async def arun(self, x):\n        return await self.wait(x)\n"
        + "def main(process):\n    return process.run(1)\n",
    ),
    Case("nobody calls either", good=_BASE + _PLAIN.format(mark="")),
    Case(
        "a sync way to the async side",
        good=_BASE + "class Search(Tool):\n    def run(self, x):\n        return asyncio.run(self.arun(x))\n" + _AWAITS,
    ),
    Case(
        "a property of that name",
        good="class Camera:\n    @property\n    def arm(self):\n        return self.state\n    async def async_arm(self):\n        await self.send(1)\n"
        "class Mini(Camera):\n    @property\n    def arm(self):\n        return self.sync\nasync def main(camera: Camera):\n    await camera.async_arm()\n",
    ),
    Case(
        "only a test asks",
        good={
            "tools.py": _BASE + _PLAIN.format(mark=""),
            "tests/test_tools.py": "from tools import Tool\nasync def test_it(tool: Tool):\n    assert await tool.arun(1)\n",
        },
    ),
]


@rule("TR502", "override-of-uncalled-side", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Overrides that the callers pass by."""
    for path in program.asked:
        module = program.module(path)
        for index, facts in enumerate(module.facts.classes):
            if facts.bases and not is_test(path):
                cls = module.cls(index)
                for name, indexes in cls.methods.items():
                    override = module.function(indexes[-1])
                    is_read = override.decorated_with(
                        "property", "cached_property", "setter"
                    )  # read, not asked to do it
                    if not override.is_abstract and not is_read:  # one that only refuses does not want to be asked
                        yield from _judge(program, cls, override, name)


def _judge(program: Program, cls: Class, override: Function, name: str) -> Iterator[Finding]:
    for twin in _twins(name):
        if twin in cls.methods:
            return
        base = next(
            (
                ancestor
                for ancestor in program.classes.order(cls)[1:]
                if isinstance(ancestor, Class) and name in ancestor.methods and twin in ancestor.methods
            ),
            None,
        )
        if base is None:
            continue
        mine = base.module.function(base.methods[name][-1])
        function = base.module.function(base.methods[twin][-1])
        if (
            mine.is_async == function.is_async
            or override.is_async != mine.is_async
            or _leads_to(program, base, function, name)
            or _leads_to(program, base, override, twin)  # a sync way to the async side, for others to take
            or _is_used_within(program, cls, name)
        ):
            continue
        if twin in _used_by(program, override):
            continue  # it hands on to the side that is called, for whoever asks in the other color
        if any(
            twin in relative.methods for relative in (*_between(program, cls, base), *program.classes.children(cls))
        ):
            continue
        if any(_calls(program, cls, name)):
            continue
        calls = (call for call in _calls(program, cls, twin) if call.caller.name != name and call.callee is not None)
        outside_tests = [call for call in calls if not is_test(call.caller.module.path)]
        if outside_tests and not any(
            node[2] == name for call in outside_tests for node in of_kind(call.caller.body(), "attr")
        ):
            yield _told(program, override, function, outside_tests[0])  # nobody chooses between the two


def _twins(name: str) -> Iterator[str]:
    """The names that the method of the other color may have."""
    bare = name.lstrip("_")
    dashes = name[: len(name) - len(bare)]
    if not bare:
        return
    yield from (f"{dashes}a{bare}", f"{dashes}{bare}_async", f"{dashes}async_{bare}")
    if bare.startswith("a"):
        yield f"{dashes}{bare[1:]}"
    if bare.startswith("async_"):
        yield f"{dashes}{bare[6:]}"
    if bare.endswith("_async"):
        yield f"{dashes}{bare[:-6]}"


def _between(program: Program, cls: Class, base: Class) -> Iterator[Class]:
    for ancestor in program.classes.order(cls)[1:]:
        if ancestor is base:
            return
        if isinstance(ancestor, Class):
            yield ancestor


def _leads_to(program: Program, base: Class, function: Function, name: str) -> bool:
    """Whether the base's side asks its twin, itself or through what else it calls on the object."""
    names: set[str] = set()
    todo = [function]
    while todo:
        current = todo.pop()
        used = _used_by(program, current)
        if name in used:
            return True
        for method in used:
            if method in names or method not in base.methods:
                continue
            names.add(method)
            todo += [base.module.function(index) for index in base.methods[method]]
    return None in program.classes.order(base)  # an unknown base may do anything


def _is_used_within(program: Program, cls: Class, name: str) -> bool:
    """Whether another method of the class or of its bases uses the overridden one."""
    return any(
        name in _used_by(program, ancestor.module.function(index))
        for ancestor in program.classes.order(cls)
        if isinstance(ancestor, Class)
        for method, indexes in ancestor.methods.items()
        if method != name
        for index in indexes
    )


def _used_by(program: Program, function: Function) -> frozenset[str]:
    """The attributes of `self` that a method uses; a base is asked for each class that derives from it."""
    answers: MutableMapping[Function, frozenset[str]] = program.answers_to("attributes of self")
    if function not in answers:
        answers[function] = frozenset(
            node[2] for node in of_kind(function.body(), "attr") if node[1] == ("name", "self")
        )
    return answers[function]


def _calls(program: Program, cls: Class, name: str) -> Iterator[Call]:
    """The calls of that name that may be made on an object of the class: by itself, by others, or on who knows what."""
    for caller in program.calling.functions_naming({name}):
        if caller.name == name:
            continue  # it hands on to itself, further up or elsewhere
        owner = caller.class_around
        for call in program.calling.of(caller):
            callee = call.node[1]
            if call.text.rpartition(".")[2] != name or callee[0] != "attr":
                continue
            if owner is not None and callee[1] == ("name", "self"):
                if _is_one_family(program, cls, owner):
                    yield call
            elif call.callee is None or any(_is_of(program, member, cls) for member in members_of(call.callee)):
                yield call


def _is_of(program: Program, value: object, cls: Class) -> bool:
    receiver = value.receiver if isinstance(value, FunctionValue) else None
    receiver_cls = receiver.cls if isinstance(receiver, Instance | ClassObject) else None
    return isinstance(receiver_cls, Class) and _is_one_family(program, cls, receiver_cls)


def _is_one_family(program: Program, cls: Class, other: Class) -> bool:
    """Whether an object of the class may be what is taken for one of the other."""
    return other in program.classes.order(cls) or cls in program.classes.order(other)


def _told(program: Program, override: Function, called: Function, seen: Call) -> Finding:
    line, column = override.facts.at[:2]
    kind = "async def" if override.is_async else "def"
    owner = override.owner
    assert owner is not None
    message = (
        f"`{override.qualname}` is never called: callers use `{called.name}`, and `{called.qualname}` does its work "
        f"without `{override.name}`"
    )
    reasons = (
        Reason(f"`{seen.caller.qualname}` calls `{seen.text}`", seen.caller.module.path, seen.at[0]),
        Reason(f"`{owner.name}` leaves `{called.name}` as `{called.qualname}` has it", *called.place),
        Reason(f"`{override.name}` is never called on such an object"),
    )
    return tell_at(
        program, "TR502", "override-of-uncalled-side", override, (line, column, line, column + len(kind)), message,
        sure=False, reasons=reasons, subject=override.name,
    )  # fmt: skip
