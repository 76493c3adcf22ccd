"""What it would take to await in a sync function: who would have to become async with it."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import FunctionValue, members_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from troth.analysis.findings import Finding
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call

__all__ = ["Proposal", "proposals"]

_LOST = ("TR1", "TR2")  # the families whose repair is an `await`
_MOST = 200  # functions; what spreads further is nothing to propose


class Proposal(NamedTuple):
    """A sync function that loses calls, and the change of color that would let it await them.

    `others` are the functions that would become async with it, nearest callers first; `calls` how many calls would be
    awaited. At `tops`, further calls from module level, a loop would have to be started. `is_open` says that more
    callers may exist: calls of that name whose target is not known.
    """

    function: Function
    lost: int
    others: tuple[Function, ...]
    calls: int
    tops: int
    is_open: bool

    @property
    def target(self) -> str:
        """The function as `troth recolor` takes it."""
        return f"{self.function.module.name}:{self.function.qualname}"

    def command(self) -> str:
        """The command that makes the change; empty for a function inside another one, which no command can name."""
        cascade = " --cascade all" if self.others else ""
        return "" if self.function.parent is not None else f"troth recolor {self.target} --to async{cascade}"

    def words(self) -> str:
        """The size of the change, in one sentence."""
        name = self.function.name
        recolored = f"`{name}`"
        if self.others:
            names = ", ".join(f"`{function.name}`" for function in self.others[:3])
            more = f" and {len(self.others) - 3} more" if len(self.others) > 3 else ""
            callers = f"{len(self.others)} caller" + ("s" if len(self.others) != 1 else "")
            recolored += f" and {callers} ({names}{more})"
        parts = [f"makes {recolored} async"]
        calls = f"{self.calls} call" + ("s" if self.calls != 1 else "")
        parts.append(f"awaits {calls}" if self.calls else "changes no call, because nothing in the project calls it")
        if self.tops:
            parts.append(
                "starts a loop at " + ("1 call" if self.tops == 1 else f"{self.tops} calls") + " at module level"
            )
        sentence = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
        sentence += "; the calls that are certainly lost in it are awaited, too"
        return f"{sentence}; others may call it, too" if self.is_open else sentence


def proposals(program: Program, findings: Iterable[Finding]) -> list[Proposal]:
    """One for each sync function in which a call is lost that no fix can await, in the order of the findings."""
    lost = Counter(
        (finding.span.path, finding.symbol)
        for finding in findings
        if finding.fix is None and finding.code.startswith(_LOST) and finding.symbol
    )
    proposed: list[Proposal] = []
    functions = {path: _functions(program, path) for path, _ in lost}
    for (path, symbol), count in lost.items():
        function = functions[path].get(symbol)
        if function is not None and not function.is_async and not function.is_generator:
            proposed.append(_size(program, function, count))
    return proposed


def _functions(program: Program, path: str) -> dict[str, Function]:
    """The functions of a file by their names; the first of each name."""
    module = next((module for module in program.own_modules() if module.path == path), None)
    if module is None or path.endswith(".ipynb"):
        return {}
    numbers = range(len(module.facts.functions) - 1, 0, -1)
    return {module.facts.functions[number].qualname: module.function(number) for number in numbers}


def _size(program: Program, function: Function, lost: int) -> Proposal:
    callers: dict[Function, None] = {}
    calls = tops = 0
    is_open = False
    todo = deque([function])
    while todo and len(callers) < _MOST:
        callee = todo.popleft()
        for caller in program.calling.functions_naming({callee.name}):
            for call in _calls(program, caller, callee.name):
                targets = [member.function for member in members_of(call.callee) if isinstance(member, FunctionValue)]
                if callee not in targets:
                    is_open = is_open or call.callee is None
                    continue
                tops += caller.index == 0
                calls += caller.index != 0
                if caller.index != 0 and not caller.is_async and caller is not function and caller not in callers:
                    callers[caller] = None
                    todo.append(caller)
    return Proposal(function, lost, tuple(callers), calls, tops, is_open)


def _calls(program: Program, caller: Function, name: str) -> Iterator[Call]:
    return (call for call in program.calling.of(caller) if call.text.rpartition(".")[2] == name)
