"""Async surface without waiting.

What it finds: a class none of whose async methods ever waits, though other code awaits at least two of them; where some
methods are sync already, the surface is mixed for nothing.
Why it matters: callers have to know which method has to be awaited, and a forgotten await is silent. The sync side is
the consistent one.
How to repair: make the surface one color: `troth recolor MODULE:CLASS --to sync` changes the definitions and every call.
How sure the fix is: none is offered here, because it touches every caller.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import ATTR_BASE, ATTR_NAME, CALL_FUNC, KIND, NAME_ID, VALUE
from troth.analysis.facts.names import last_name
from troth.analysis.findings import Finding, Reason, Span
from troth.analysis.project.test_files import is_test
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.queries.needless_async import of_surfaces
from troth.analysis.semantics.symbols import Class

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.queries.needless_async import Needless
    from troth.analysis.semantics.symbols import Function

_MOST = 10  # calls that await for each that does not
_FEWEST = 2
_LOGGING = frozenset({"debug", "info", "warning", "error", "log"})
# One that stands in for something that waits has the color of that.
_STAND_IN = re.compile(r"^_*(?:Fake|Mock|Stub|Dummy|Null|No_?[Oo]p|InMemory|Memory)|(?:Fake|Mock|Stub|Dummy)$")

_CLASS = "class Session:  # here\n    def __init__(self):\n        self.members = []\n    def size(self):\n        return len(self.members)\n"
_USE = "async def main(s: Session):\n    await s.join(1)\n    await s.leave(1)\n"
CASES = [
    Case(
        "mixed",
        bad=_CLASS
        + "    async def join(self, m):\n        self.members.append(m)\n    async def leave(self, m):\n        self.members.remove(m)\n"
        + _USE,
    ),
    Case(
        "a stand-in",
        good=(
            _CLASS
            + "    async def join(self, m):\n        self.members.append(m)\n    async def leave(self, m):\n        self.members.remove(m)\n"
            + _USE
        )
        .replace("Session", "FakeSession")
        .replace("  # here", ""),
    ),
    Case(
        "a base that asks for it",
        good="from abc import ABC, abstractmethod\nclass Base(ABC):\n    @abstractmethod\n    async def join(self, m): ...\n    @abstractmethod\n    async def leave(self, m): ...\n"
        + (
            _CLASS
            + "    async def join(self, m):\n        self.members.append(m)\n    async def leave(self, m):\n        self.members.remove(m)\n"
            + _USE
        ).replace("class Session:  # here", "class Session(Base):"),
    ),
    Case(
        "hooks of a base for others to fill, and of one who fills them",
        good="from abc import ABC\nclass Hooks(ABC):\n    async def join(self, m):\n        return None\n    async def leave(self, m):\n        return None\n"
        + (
            _CLASS
            + "    async def join(self, m):\n        self.members.append(m)\n    async def leave(self, m):\n        self.members.remove(m)\n"
            + _USE
        ).replace("class Session:  # here", "class Session(Hooks):"),
    ),
    Case(
        "given to a runner once, awaited everywhere else",
        bad="from notebook import run\n"
        + _CLASS
        + "    async def join(self, m):\n        self.members.append(m)\n    async def leave(self, m):\n        self.members.remove(m)\n"
        + "async def main(s: Session):\n"
        + "    await s.join(1)\n    await s.leave(1)\n" * 10
        + "def cell(s: Session):\n    run(s.join(2))\n",
    ),
    Case(
        "one that waits",
        good=_CLASS
        + "    async def join(self, m):\n        self.members.append(m)\n    async def leave(self, m):\n        await m.bye()\n"
        + _USE,
    ),
    Case(
        "one that stands in for another, which waits",
        good=_CLASS
        + "    async def join(self, m):\n        self.members.append(m)\n    async def leave(self, m):\n        self.members.remove(m)\n"
        + "class Remote:\n    async def join(self, m):\n        await m.hello()\n    async def leave(self, m):\n        await m.bye()\n"
        + _USE,
    ),
    Case(
        "answers that those who derive from it give",
        good="import logging\n_LOG = logging.getLogger(__name__)\nclass Player:\n"
        '    async def browse(self, options):\n        """Browse."""\n        _LOG.warning(\'not supported: %s\', options)\n        return Status.NOT_IMPLEMENTED\n'
        "    async def search(self, options):\n        return None\n"
        "async def main(player: Player):\n    await player.browse(1)\n    await player.search(2)\n",
    ),
    Case("wholly sync", good="class Session:\n    def join(self, m): ...\ndef main(s: Session):\n    s.join(1)\n"),
]


@rule("TR302", "async-surface-without-waiting", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Classes that are async and never wait."""
    by_class: dict[Class, list[Needless]] = defaultdict(list)
    for of_surface in of_surfaces(program, _is_surface):
        if of_surface.function.owner is not None and not of_surface.is_pulled and _is_awaited(of_surface):
            by_class[of_surface.function.owner].append(of_surface)
    for cls, found in by_class.items():
        methods = [cls.module.function(index) for indexes in cls.methods.values() for index in indexes]
        is_async = [method for method in methods if method.is_async and not method.name.startswith("__")]
        public = [candidate for candidate in found if not candidate.function.name.startswith("_")]
        if _is_asked_for(program, cls, found) or _stands_in(program, cls, [c.function for c in public]):
            continue
        if len(public) < _FEWEST or {candidate.function for candidate in found} != set(is_async):
            continue
        plain = [method for method in methods if not method.is_async and not method.name.startswith("_")]
        calls = sum(len(candidate.awaited) for candidate in found)
        path, line = cls.place
        names = ", ".join(f"`{candidate.function.name}`" for candidate in found)
        side = f"{_side(len(plain))} the consistent side" if plain else "nothing in it needs to be async"
        gain = "1 await would go" if calls == 1 else f"{calls} awaits would go"
        yield Finding(
            "TR302",
            "async-surface-without-waiting",
            Span(path, line, 1, line, 1 + len("class")),
            f"none of the async methods of `{cls.name}` ever waits ({names}): {side}; {gain}",
            "likely",
            tuple(Reason(f"`{method.function.qualname}` never waits", *method.function.place) for method in found[:6]),
            None,
            cls.facts.qualname,
            cls.name,
        )


def _is_surface(cls: Class) -> bool:
    """Whether a class may stand for itself: one that stands in for another is async because that is."""
    return not _STAND_IN.search(cls.name) and not is_test(cls.module.path)


def _is_awaited(one: Needless) -> bool:
    """Whether calls were seen that await it, all of them or nearly all: one in a notebook may be given to a runner."""
    awaited = sum(call.is_awaited for call in one.awaited)
    return one.is_seen or (awaited > 0 and awaited >= _MOST * (len(one.awaited) - awaited))


def _is_asked_for(program: Program, cls: Class, found: list[Needless]) -> bool:
    """Whether a base has such methods, and tells their color, or the class is itself a base for others to fill."""
    if any(last_name(base) in {"ABC", "Protocol"} for base in cls.facts.bases):
        return True
    if all(_only_answers(candidate.function) for candidate in found):
        return True  # "not supported": those who derive from it say what it does
    above = [ancestor for ancestor in program.classes.order(cls)[1:] if isinstance(ancestor, Class)]
    return any(candidate.function.name in base.methods for candidate in found for base in above)


def _only_answers(method: Function) -> bool:
    """Whether a method at most logs and gives the same answer to everybody."""
    return all(
        statement[0] == "pass"
        or (statement[KIND] == "expr" and (statement[VALUE][KIND] == "const" or _is_log(statement[VALUE])))
        or (statement[KIND] == "return" and (statement[VALUE] is None or _is_constant(statement[VALUE])))
        for statement in method.body()
    )


def _is_constant(node: Node) -> bool:
    """`None`, `"text"` or `Status.NOT_IMPLEMENTED`."""
    if node[KIND] == "attr":
        return bool(node[ATTR_BASE][KIND] == "name" and node[ATTR_BASE][NAME_ID][:1].isupper())
    return bool(node[KIND] == "const")


def _is_log(node: Node) -> bool:
    return bool(node[KIND] == "call" and node[CALL_FUNC][KIND] == "attr" and node[CALL_FUNC][ATTR_NAME] in _LOGGING)


def _side(count: int) -> str:
    return "its one sync method is" if count == 1 else f"its {count} sync methods are"


def _stands_in(program: Program, cls: Class, methods: list[Function]) -> bool:
    """Whether another class has all of these methods in async and waits in one: whoever takes both awaits both."""
    owners = [
        {
            other.owner
            for other in program.calling.functions_named(method.name)
            if other.is_async and other.owner is not None
        }
        for method in methods
    ]
    twins = set[Class]().union(*owners).intersection(*owners) - {cls}
    return any(
        other.module.function(index).facts.awaited
        for other in twins
        for method in methods
        for index in other.methods[method.name]
    )
