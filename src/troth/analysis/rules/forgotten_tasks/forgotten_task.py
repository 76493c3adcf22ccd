"""Forgotten task.

What it finds: a task, or a list of tasks, that is bound to a name that is not read again, in a request handler, or at the end
of the function that `asyncio.run` runs. A request handler is recognized by its decorator, or by the request it takes.
Why it matters: when the handler returns, nothing holds the task: it may be garbage-collected before it is done, and its error reaches no
log. At the end of `asyncio.run` every task that is still running is cancelled: the work never gets done.
How to repair: await it, keep it in a set until it is done, use a task group, or pass it to something that reports
(`BackgroundTasks`, a queue, a job).
How sure the fix is: awaiting the task at the end of an `asyncio.run` is clearly what the code intends, so `await` is likely;
in a handler none is offered, because waiting would delay the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.facts.fields import ASSIGN_TARGETS, ASSIGN_VALUE, CALL_FUNC, COMP_KIND, KIND, NAME_ID, SCOPE_NAMES
from troth.analysis.facts.model import body_of
from troth.analysis.facts.names import last_name
from troth.analysis.facts.nodes import of_kind, walk
from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.infer.call_graph import names_of
from troth.analysis.semantics.infer.call_results import SPAWNERS
from troth.analysis.semantics.symbols import Function
from troth.analysis.semantics.values import Coroutine

if TYPE_CHECKING:
    from troth.analysis.facts.model import At, Node
    from troth.analysis.semantics import Program

CASES = [
    Case(
        "in a handler",
        bad="import asyncio\nfrom fastapi import FastAPI\napp = FastAPI()\nasync def mail(): ...\n@app.get('/')\nasync def root():\n    task = asyncio.create_task(mail())  # here\n    return {'ok': True}\n",
    ),
    Case(
        "at the end of the program",
        bad="import asyncio\nasync def mail(): ...\nasync def main():\n    await mail()\n    task = asyncio.create_task(mail())  # here\n    print('done')\nasyncio.run(main())\n",
        fixed="import asyncio\nasync def mail(): ...\nasync def main():\n    await mail()\n    task = await asyncio.create_task(mail())  # here\n    print('done')\nasyncio.run(main())\n",
    ),
    Case(
        "several at the end of the program",
        bad="import asyncio\nasync def mail(n): ...\nasync def main():\n    tasks = [asyncio.create_task(mail(n)) for n in (1, 2)]  # here\n    print('started')\nasyncio.run(main())\n",
    ),
    Case(
        "in a handler by its request",
        bad="import asyncio\nfrom aiohttp import web\nasync def mail(): ...\nasync def root(request: web.Request):\n    task = asyncio.create_task(mail())  # here\n    return web.Response()\n",
    ),
    Case(
        "in any function that then ends",
        bad="import asyncio\nasync def mail(): ...\nasync def start():\n    task = asyncio.create_task(mail())  # here\n    print('started')\n",
    ),
    Case(
        "in a sync function",
        bad="import asyncio\nasync def mail(): ...\ndef start():\n    _ = asyncio.create_task(mail())  # here\n",
    ),
    Case(
        "in a function that goes on waiting",
        good="import asyncio\nasync def mail(): ...\nasync def start(server):\n    task = asyncio.create_task(mail())\n    await server.serve()\n",
    ),
    Case(
        "read by a function inside",
        good="import asyncio\nasync def mail(): ...\nasync def start(bot):\n    task = asyncio.create_task(mail())\n    def stop():\n        task.cancel()\n    bot.on_stop(stop)\n",
    ),
    Case(
        "a `gather` in a function that then ends",
        bad="import asyncio\nasync def mail(): ...\nasync def start():\n    mails = asyncio.gather(mail(), mail())  # here\n    print('started')\n",
    ),
    Case(
        "in a sync function that runs the loop",
        good="import asyncio\nasync def mail(): ...\ndef start():\n    loop = asyncio.new_event_loop()\n    task = loop.create_task(mail())\n    loop.run_forever()\n",
    ),
    Case(
        "a variable of the module",
        good="import asyncio\ntask = None\nasync def mail(): ...\ndef start():\n    global task\n    task = asyncio.create_task(mail())\n",
    ),
    Case(
        "several, gathered",
        good="import asyncio\nasync def mail(n): ...\nasync def main():\n    tasks = [asyncio.create_task(mail(n)) for n in (1, 2)]\n    await asyncio.gather(*tasks)\nasyncio.run(main())\n",
    ),
    Case(
        "awaited",
        good="import asyncio\nasync def mail(): ...\nasync def main():\n    task = asyncio.create_task(mail())\n    await task\nasyncio.run(main())\n",
    ),
    Case(
        "kept",
        good="import asyncio\nfrom fastapi import FastAPI\napp = FastAPI()\nkept = set()\nasync def mail(): ...\n@app.get('/')\nasync def root():\n    task = asyncio.create_task(mail())\n    kept.add(task)\n    return 1\n",
    ),
    Case(
        "with time to run",
        good="import asyncio\nasync def mail(): ...\nasync def serve(): ...\nasync def main():\n    task = asyncio.create_task(mail())\n    await serve()\nasyncio.run(main())\n",
    ),
    Case(
        "given back",
        good="import asyncio\nasync def mail(): ...\ndef start():\n    task = asyncio.create_task(mail())\n    return task\nasync def main():\n    await start()\nasyncio.run(main())\n",
    ),
]


class _Unread(NamedTuple):
    """What a call gives, bound to a name that nobody reads; `rest` are the statements after it."""

    variable: str
    made: Node
    rest: tuple[Node, ...]
    is_one: bool


_RUNNING_THE_LOOP = frozenset({"run_forever", "run_until_complete"})
_STARTING = frozenset({"create_task", "ensure_future", "gather"})
_WEB = ("fastapi", "starlette", "aiohttp", "quart", "sanic", "litestar", "flask", "django")


@rule("TR701", "forgotten-task", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Tasks that outlive everybody who knows of them."""
    for path in program.asked:
        module = program.module(path)
        for index, facts in enumerate(module.facts.functions):
            if not index or facts.flags & 2 or not any(c.rpartition(".")[2] in _STARTING for c in facts.calls):
                continue
            unread = list(_unread(body_of(facts)))
            if not unread:
                continue
            function = module.function(index)
            if facts.flags & 1 and _ends_with_the_loop(program, function):
                yield from _left(program, function, unread, when="at the end")
            elif facts.flags & 1 and _is_handler(program, function):
                yield from _left(program, function, unread, when="answered")
            elif not facts.name.startswith("test"):
                yield from _left(program, function, unread, when="over")


def _ends_with_the_loop(program: Program, function: Function) -> bool:
    """Whether `asyncio.run` is given the function's coroutine somewhere: the loop ends when it does."""
    starting = {"run", "run_until_complete"}
    for caller in program.calling.functions_naming({function.name}):
        if not any(callee.rpartition(".")[2] in starting for callee in (*caller.facts.calls, *caller.facts.awaited)):
            continue
        for call in program.calling.of(caller):
            if call.given and semantics().runs_a_loop.get(next(iter(names_of(call.callee)), "")) == "runs":
                awaitable = call.given[0][1]
                if (
                    isinstance(awaitable, Coroutine)
                    and awaitable.site is not None
                    and awaitable.site.target is function
                ):
                    return True
    return False


def _is_handler(program: Program, function: Function) -> bool:
    scope = program.static(function.module, function.parent)
    for name, annotation, _, _ in function.facts.params[:2]:  # before it, the object that the handler is a method of
        taken = names_of(scope.value(annotation)) if annotation is not None and name != "self" else ()
        if any(type_name.startswith(_WEB) and type_name.endswith("Request") for type_name in taken):
            return True
    for decorator in function.facts.decorators:
        names = names_of(scope.value(decorator[CALL_FUNC] if decorator[KIND] == "call" else decorator))
        if any(
            name.startswith(_WEB) and semantics().decorators.get(name) in {"either", "wants_async"} for name in names
        ):
            return True
    return False


def _unread(body: tuple[Node, ...]) -> Iterator[_Unread]:
    """The statements of a body that bind what a call gives to a name that nobody reads."""
    shared = {name for node in of_kind(body, "scope") for name in node[SCOPE_NAMES].split()}
    for position, statement in enumerate(body):
        if statement[KIND] != "assign" or statement[ASSIGN_TARGETS][0][KIND] != "name":
            continue
        created = statement[ASSIGN_VALUE]
        is_one = created[KIND] != "comp" or created[COMP_KIND] != "list"
        if not is_one:
            created = created[2][0]
        if created[KIND] != "call":
            continue
        variable, following = statement[ASSIGN_TARGETS][0][NAME_ID], body[position + 1 :]
        if variable not in shared and not _reads(following, variable) and not _reads(body[:position], variable):
            yield _Unread(variable, created, following, is_one)


def _left(program: Program, function: Function, unread: list[_Unread], *, when: str) -> Iterator[Finding]:
    for task in unread:
        if when != "answered" and _waits(task.rest):
            continue  # until then, the variable holds it
        at = task.made[-1]
        call = next((call for call in program.calling.of(function) if call.at == at), None)
        if (
            call is not None
            and not function.is_async
            and not any(isinstance(argument, Coroutine) for _, argument in call.given)
        ):
            continue  # whatever it is given
        if call is not None and any(name in SPAWNERS for name in names_of(call.callee)):
            yield _told(program, function, at, call.text, task.variable, when=when, is_one=task.is_one)


def _reads(body: tuple[Node, ...], variable: str) -> bool:
    # A function inside may read it.
    return any(node[KIND] == "def" or node == ("name", variable) for node in walk(body))


def _waits(body: tuple[Node, ...]) -> bool:
    return any(
        node[KIND] == "await"
        or (node[KIND] in ("for", "with") and node[1])
        or (node[KIND] == "call" and last_name(node[CALL_FUNC]) in _RUNNING_THE_LOOP)
        for node in walk(body)
    )


def _told(
    program: Program, function: Function, at: At, text: str, variable: str, *, when: str, is_one: bool
) -> Finding:
    path, fix = function.module.path, None
    if when == "at the end":
        message = f"`{function.qualname}` ends without waiting for `{variable}`, and the loop ends with it: the work is cancelled before it is done"
        reason = Reason(
            f"`{function.qualname}` is what the loop is run for, and nothing is awaited after this", *function.place
        )
        if is_one and not path.endswith(".ipynb"):
            start = program.text(path).offset(*at[:2])
            fix = Fix("await the task", "likely", (Edit(path, start, start, "await "),))
    elif when == "over":
        message = f"`{variable}` is not kept after `{function.qualname}` ends: the task may be garbage-collected before it is done, and its error is lost"
        reason = Reason(
            f"`{function.qualname}` never reads `{variable}` again and waits for nothing more", *function.place
        )
    else:
        message = f"`{variable}` is not kept after `{function.qualname}` has answered: the task may be garbage-collected before it is done, and its error is lost"
        reason = Reason(
            f"`{function.qualname}` is a request handler that never reads `{variable}` again", *function.place
        )
    return tell_at(
        program, "TR701", "forgotten-task", function, at, message, sure=False, reasons=(reason,), fix=fix, subject=text
    )
