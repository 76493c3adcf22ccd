"""Shim taken for native.

What it finds: a check for a capability (`hasattr(agent, "astep")`, `getattr(agent, "astep", None)`,
`iscoroutinefunction(agent.astep)`) on a class whose
base has that async method already, as a shim that only runs its sync twin in a thread (`await asyncio.to_thread(self.step)`).
Why it matters: the check is always true: every subclass, the purely sync ones included, is taken for natively async. A
router that prefers async sends all of them through threads, and one that falls back to sync never does.
How to repair: ask whether the class overrides the shim: `type(agent).astep is not Base.astep`.
How sure the fix is: none is offered; the base has to be imported where the question is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.facts.model import ASYNC, body_of
from troth.analysis.facts.nodes import of_kind
from troth.analysis.findings import Finding, Reason
from troth.analysis.incremental.project_queries import part
from troth.analysis.project.test_files import is_test
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.symbols import Class
from troth.analysis.semantics.values import ClassObject, Instance

if TYPE_CHECKING:
    from troth.analysis.facts.model import FileFacts, FunctionFacts
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call
    from troth.analysis.semantics.symbols import Function

_BASE = "import asyncio\nclass Agent:\n    def step(self):\n        return 1\n    async def astep(self):\n        return await asyncio.to_thread(self.step)\n"
CASES = [
    Case("hasattr", bad=_BASE + "def is_native(agent: Agent):\n    return hasattr(agent, 'astep')  # here\n"),
    Case(
        "the color of it",
        bad=_BASE
        + "import inspect\ndef is_native(agent: Agent):\n    return inspect.iscoroutinefunction(agent.astep)  # here\n",
    ),
    Case(
        "fetched if it is there",
        bad=_BASE + "def native(agent: Agent):\n    return getattr(agent, 'astep', None)  # here\n",
    ),
    Case(
        "whether it is overridden",
        good=_BASE + "def is_native(agent: Agent):\n    return type(agent).astep is not Agent.astep\n",
    ),
    Case(
        "a native one",
        good="class Agent:\n    def step(self):\n        return 1\n    async def astep(self):\n        return await self.ask()\ndef is_native(agent: Agent):\n    return hasattr(agent, 'astep')\n",
    ),
    Case("of an unknown object", good=_BASE + "def is_native(agent):\n    return hasattr(agent, 'astep')\n"),
]

_OFFLOADING = frozenset({"to_thread", "run_in_executor", "run_sync", "run_in_threadpool"})
_QUESTIONS = frozenset({"hasattr", "getattr", "iscoroutinefunction"})


@rule("TR501", "shim-taken-for-native", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Questions that every object answers with yes."""
    shims: dict[str, list[Function]] | None = None
    for caller in program.calling.asked_naming(_QUESTIONS):
        if shims is None:
            shims = _shims(program)
        if not shims:
            return
        for call in program.calling.of(caller):
            if call.text.rpartition(".")[2] in _QUESTIONS:
                yield from _judge(program, call, shims)


def _shims(program: Program) -> dict[str, list[Function]]:
    """The async methods that only hand a sync method of the same object to a thread, by name."""
    by_name: dict[str, list[Function]] = {}
    for path, indexes in program.said("shims").items():
        for function in map(program.module(path).function, indexes):
            by_name.setdefault(function.name, []).append(function)
    return by_name


@part("shims")
def _shims_in(file: FileFacts) -> list[int]:
    return [
        index
        for index, facts in enumerate(file.functions)
        if facts.flags & 3 == 1
        and facts.owner >= 0
        and any(c.rpartition(".")[2] in _OFFLOADING for c in facts.awaited)
        and _only_offloads(file, facts)
    ]


def _only_offloads(file: FileFacts, function: FunctionFacts) -> bool:
    body = [s for s in body_of(function) if s[0] != "import" and not (s[0] == "expr" and s[1][0] == "const")]
    waiting = list(of_kind(body, "await"))
    if len(waiting) != 1 or waiting[0][1][0] != "call" or len(body) > 3:
        return False
    receiver = function.params[0][0] if function.params else ""
    arguments = waiting[0][1][2]
    methods = dict(file.classes[function.owner].methods)
    return any(
        node[0] == "attr"
        and node[1] == ("name", receiver)
        and node[2] in methods
        and not file.functions[methods[node[2]][-1]].flags & ASYNC
        for node in arguments
    )


def _judge(program: Program, call: Call, shims: dict[str, list[Function]]) -> Iterator[Finding]:
    arguments = call.node[2]
    answer = {"hasattr": 2, "getattr": 3}.get(call.text)
    if len(arguments) == answer and arguments[1][:2] == ("const", "str") and len(arguments[1]) == 3:
        name, base = arguments[1][2], call.given[0][1]
    elif answer is None and arguments and arguments[0][0] == "attr":
        name, base = arguments[0][2], program.static(call.caller.module, call.caller).value(arguments[0][1])
    else:
        return
    cls = base.cls if isinstance(base, Instance | ClassObject) else None
    if not isinstance(cls, Class) or name not in shims or is_test(call.caller.module.path):
        return  # a test that looks whether the method is there routes nothing by it
    for shim in shims[name]:
        if shim.owner is not None and shim.owner is program.classes.holder(cls, name):
            message = f"every `{cls.name}` says yes to `{call.text}(…)` here: its `{name}` is a shim that runs the sync twin in a thread"
            yield tell_at(
                program, "TR501", "shim-taken-for-native", call.caller, call.at, message, sure=False,
                reasons=(Reason(f"`{shim.qualname}` does nothing but hand its twin to a thread", *shim.place),), subject=name,
            )  # fmt: skip
