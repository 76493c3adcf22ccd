"""Finished promise awaited.

What it finds: `await f()` where `f` is a sync function that only ever returns awaitables that are finished already:
`defer.succeed(value)`.
Why it matters: nothing is waited for. The function is sync but looks async; a caller that forgets the `await` gets a
Deferred for a value, and every caller has to be async for nothing.
How to repair: return the value itself and take the `await` away at every call.
How sure the fix is: none is offered here, because every caller changes with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.facts.model import ASYNC, GENERATOR, body_of
from troth.analysis.facts.nodes import of_kind
from troth.analysis.findings import Finding, Reason
from troth.analysis.incremental.project_queries import part
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.evidence.common_method_names import GENERIC
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import FunctionValue, members_of

if TYPE_CHECKING:
    from troth.analysis.facts.model import FileFacts, FunctionFacts
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call

CASES = [
    Case(
        "a method",
        bad="from twisted.internet import defer\nclass Auth:\n    def allowed(self, user):\n        if user:\n            return defer.succeed(True)\n        return defer.succeed(False)\n"
        "    async def go(self, user):\n        return await self.allowed(user)  # here\n",
    ),
    Case(
        "by its name alone",
        bad="from twisted.internet import defer\nclass Auth:\n    def compute_events(self):\n        return defer.succeed([])\nasync def main(auth):\n    return await auth.compute_events()  # here\n",
    ),
    Case(
        "one that waits sometimes",
        good="from twisted.internet import defer\nclass Auth:\n    def allowed(self, user):\n        if user:\n            return defer.succeed(True)\n        return self.ask(user)\n    async def go(self, user):\n        return await self.allowed(user)\n",
    ),
    Case(
        "a coroutine",
        good="async def allowed(user):\n    return await ask(user)\nasync def main():\n    await allowed(1)\n",
    ),
    Case(
        "a namesake",
        good="class Job:\n    def succeed(self, n): ...\ndef work(job: Job):\n    return job.succeed(1)\nasync def main(job: Job):\n    await work(job)\n",
    ),
]


@rule("TR304", "finished-promise-awaited", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Awaits of what is there already."""
    finished: dict[str, list[Function]] = {}
    for path, indexes in program.said("finished promises").items():
        for function in map(program.module(path).function, indexes):
            finished.setdefault(function.name, []).append(function)
    for caller in program.calling.asked_naming(finished):
        for call in program.calling.of(caller):
            if call.is_awaited:
                yield from _judge(program, call, finished)


@part("finished promises")
def _finished_in(file: FileFacts) -> list[int]:
    if not any(imported.module.startswith("twisted") for imported in file.imports):
        return []
    return [
        index
        for index, facts in enumerate(file.functions)
        if any(callee.endswith("succeed") for callee in facts.calls) and _is_finished(facts)
    ]


def _is_finished(facts: FunctionFacts) -> bool:
    if facts.flags & (ASYNC | GENERATOR) or facts.decorators:
        return False
    returned = [node[1] for node in of_kind(body_of(facts), "return")]
    return bool(returned) and all(
        node is not None
        and node[0] == "call"
        and node[1][0] == "attr"
        and node[1][2] == "succeed"
        and node[1][1] == ("name", "defer")
        for node in returned
    )


def _judge(program: Program, call: Call, finished: dict[str, list[Function]]) -> Iterator[Finding]:
    functions = [member.function for member in members_of(call.callee) if isinstance(member, FunctionValue)]
    name = call.text.rpartition(".")[2]
    answer = finished.get(name, [])
    is_known = functions and all(isinstance(candidate, Function) and candidate in answer for candidate in functions)
    is_only_one = call.callee is None and answer and program.counts.colors(name) == (0, len(answer))
    if is_known or (is_only_one and name not in GENERIC):
        yield _told(program, call, answer[0])


def _told(program: Program, call: Call, function: Function) -> Finding:
    message = f"`await {call.text}(…)` waits for nothing: `{function.qualname}` is sync and returns awaitables that are finished already"
    reason = Reason(f"`{function.qualname}` returns `defer.succeed(…)` and nothing else", *function.place)
    return tell_at(
        program,
        "TR304",
        "finished-promise-awaited",
        call.caller,
        call.at,
        message,
        sure=False,  # it may be awaited for the sake of others that wait
        reasons=(reason,),
        subject=call.text,
    )
