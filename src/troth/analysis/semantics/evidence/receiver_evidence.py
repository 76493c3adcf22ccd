"""Objects of unknown libraries that are asynchronous through and through, by the company a method keeps.

Where a class or a file awaits method after method of one object, and calls hardly any of it otherwise, a call that is
not awaited stands out, though nobody else calls that method.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.findings import Reason
from troth.analysis.semantics.evidence.common_method_names import GENERIC

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.facts.model import FunctionFacts
    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.symbols import Function, Module

__all__ = ["Company"]

_FEW = 3  # of so many that are awaited, one may be called otherwise
_FEWEST = 4  # methods of an object that are awaited; of two or three that often is all that is async about it
_UNNAMED = frozenset({"self", "cls", "?"})
_TELLING = 5  # letters; shorter names mean many things
# What sets an object up is plain in most libraries, however async the rest is.
_SETTING_UP = re.compile(
    r"(?:on|set|is|has|with|to|from|as|add|include|expire|call|use|mark|track|log)_|(?:un)?register|configure|(?:en|dis)able"
    r"|\w+_(?:listener|handler|callback|hook|nowait|soon|later|sync)$"
)
# What objects do that are async through and through, though others do it at once.
_DOING = frozenset(
    """
    close commit connect delete disconnect download execute executemany fetch flush insert login logout ping publish
    query refresh rollback save send send_bytes send_json send_message send_text shutdown start stop subscribe
    unsubscribe upload wait
    """.split()  # noqa: SIM905  a list of words
)
_ENDING = frozenset({"close", "disconnect", "shutdown", "start", "stop"})


class _Kept(NamedTuple):
    """What is called of one object, by who awaits it and who does not."""

    awaited: set[str]
    bare: set[str]
    line: int


_Objects = dict[str, dict[str, _Kept]]  # by what the object is called, and by the class in which it is called so


class Company:
    """Looks at what else is called of an object."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: MutableMapping[str, _Objects] = program.answers()

    def is_kept_by(self, function: Function) -> bool:
        """Whether the function calls something, without awaiting it, of an object that is otherwise awaited."""
        objects = self._in(function.module)
        if not objects:
            return False
        for callee in function.facts.calls:
            receiver, _, name = callee.rpartition(".")
            kept = self._here(receiver, function) if receiver in objects else None
            if kept is not None and _speaks(name, kept, is_tested=False):
                return True
        return False

    def speak_of(self, text: str, function: Function, *, is_tested: bool) -> Reason | None:
        """Why a callee, as it is written in `function`, is believed to give a promise.

        Where the result is tested, more has to speak for it.
        """
        receiver, _, name = text.rpartition(".")
        if self._program.evidence.is_plain_somewhere(name):
            return None
        kept = self._here(receiver, function)
        if kept is None or not _speaks(name, kept, is_tested=is_tested):
            return None
        plainly = len(kept.bare - kept.awaited - {name})
        told = f"{len(kept.awaited)} other methods of `{receiver}` are awaited here, {plainly or 'none'} called plainly"
        return Reason(told, function.module.path, kept.line)

    def _here(self, receiver: str, function: Function) -> _Kept | None:
        homes = self._in(function.module).get(receiver)
        return None if homes is None else homes.get(_home(function, receiver))

    def _in(self, module: Module) -> _Objects:
        """The objects of a file of which enough methods are awaited to speak for others."""
        known = self._known.get(module.path)
        if known is None:
            known = self._known[module.path] = _objects(module.facts.functions)
        return known


def _speaks(name: str, kept: _Kept, *, is_tested: bool) -> bool:
    """Whether the company that a call keeps speaks for it; what is tested, or done by plain objects too, needs more."""
    if name in kept.awaited or name.startswith("_") or _SETTING_UP.match(name):
        return False
    if name in _ENDING and any(one.startswith("wait") for one in kept.awaited):
        return False  # `writer.close()`, and then `await writer.wait_closed()`
    is_told_less = is_tested or name in _DOING
    plainly = len(kept.bare - kept.awaited - {name})
    if plainly * _FEW > len(kept.awaited) or (plainly and is_told_less):
        return False
    return (name in _DOING and not is_tested) or (name not in GENERIC and len(name) >= _TELLING)


def _objects(functions: tuple[FunctionFacts, ...]) -> _Objects:
    found: _Objects = {}
    for f in functions:
        for callee in f.awaited:
            receiver, dot, name = callee.rpartition(".")
            if dot and " " not in callee and receiver not in _UNNAMED:
                homes = found.setdefault(receiver, {})
                homes.setdefault(_home_of(f, functions, receiver), _Kept(set(), set(), f.at[0])).awaited.add(name)
    known = {
        receiver: {home: kept for home, kept in homes.items() if len(kept.awaited) >= _FEWEST}
        for receiver, homes in found.items()
        if any(len(kept.awaited) >= _FEWEST for kept in homes.values())
    }
    for f in functions if known else ():
        for callee in f.calls:
            receiver, _, name = callee.rpartition(".")
            if receiver in known:
                kept = known[receiver].get(_home_of(f, functions, receiver))
                if kept is not None:
                    kept.bare.add(name)
    return known


def _home(function: Function, receiver: str) -> str:
    """The place in which the same words mean the same object: the file, or for `self` the class."""
    return _home_of(function.facts, function.module.facts.functions, receiver)


def _home_of(f: FunctionFacts, functions: tuple[FunctionFacts, ...], receiver: str) -> str:
    if not receiver.startswith(("self.", "cls.")):
        return ""
    while f.owner == -1 and f.parent > 0:
        f = functions[f.parent]
    return f.qualname.rpartition(".")[0] if f.owner != -1 else ""
