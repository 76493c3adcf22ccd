"""Loop in a running loop.

What it finds: `asyncio.run`, `run_until_complete` and their like where a loop is running already: in an `async def`, in
a sync function that an `async def` calls, or in a cell of a notebook. Also `troth.bridge.run` in the body of an
`async def`.
Why it matters: it raises "cannot be called from a running event loop", and the coroutine it was given never runs. In a
script it works; inside FastAPI, Jupyter or another coroutine it does not. `bridge.run` works there too, but it is made for
sync functions: it blocks the loop around it until the coroutine is done, which `await` does not.
How to repair: await the coroutine in the async function itself. Where the sync function has to stay plain, cross with
`troth.bridge.run`, or call it in a thread.
How sure the fix is: `await` in place of `asyncio.run(…)` does what was intended; it is sure where the call stands in the
async function itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.facts.model import ASYNC
from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.incremental.project_queries import part, question
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.project.test_files import is_test
from troth.analysis.rules._finding import span
from troth.analysis.rules._syntax_position import standing
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.infer.call_graph import names_of
from troth.analysis.semantics.queries.call_chains import Chains, chains_of

if TYPE_CHECKING:
    from troth.analysis.facts.model import FileFacts
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call
    from troth.analysis.semantics.queries.call_chains import Link
    from troth.analysis.semantics.symbols import Function

CASES = [
    Case(
        "a bridge for sync functions, in an async one",
        bad="from troth import bridge\nasync def f(): ...\nasync def main():\n    return bridge.run(f())  # here\n",
        fixed="from troth import bridge\nasync def f(): ...\nasync def main():\n    return await f()  # here\n",
    ),
    Case(
        "a bridge under another name, with a limit",
        bad="from troth.bridge import run as cross\nasync def f(): ...\nasync def main():\n    return cross(f(), timeout=3)  # here\n",
    ),
    Case(
        "a bridge in a sync function, whoever calls it",
        good="from troth import bridge\nasync def f(): ...\ndef load():\n    return bridge.run(f())\nasync def main():\n    return load()\n",
    ),
    Case(
        "a bridge in a sync function within an async one",
        good="from troth import bridge\nasync def f(): ...\nasync def main(each, rows):\n    each(rows, lambda row: bridge.run(f()))\n    def load():\n        return bridge.run(f())\n    each(rows, load)\n",
    ),
    Case(
        "a namesake of the bridge",
        good="from troth import bridge\nfrom mine import run\nasync def f(): ...\nasync def main():\n    run(f())\n    return await bridge.call(f)\n",
    ),
    Case(
        "in the child of a fork",
        good="import asyncio, os\nasync def load(): ...\nasync def main():\n    if os.fork() == 0:\n        loop = asyncio.new_event_loop()\n"
        "        loop.run_until_complete(load())\n        os._exit(0)\n",
    ),
    Case(
        "in an async function",
        bad="import asyncio\nasync def f(): ...\nasync def main():\n    return asyncio.run(f())  # here\n",
        fixed="import asyncio\nasync def f(): ...\nasync def main():\n    return await f()  # here\n",
    ),
    Case(
        "on the loop object",
        bad="import asyncio\nasync def f(): ...\nasync def main():\n"
        "    loop = asyncio.get_event_loop()\n    loop.run_until_complete(f())  # here\n",
        fixed="import asyncio\nasync def f(): ...\nasync def main():\n"
        "    loop = asyncio.get_event_loop()\n    await f()  # here\n",
    ),
    Case(
        "its result is used at once",
        bad="import asyncio\nasync def f(): ...\nasync def main():\n    return asyncio.run(\n        f(),\n    )['a']\n",
        fixed="import asyncio\nasync def f(): ...\nasync def main():\n    return (await f())['a']\n",
    ),
    Case(
        "down a chain",
        bad="import asyncio\nasync def f(): ...\ndef load():\n    return asyncio.run(f())\ndef get():\n    return load()\n"
        "async def main():\n    return get()  # here\n",
    ),
    Case(
        "in a loop of its own",
        bad="import asyncio\nasync def f(): ...\nasync def main():\n    loop = asyncio.new_event_loop()\n    loop.run_until_complete(f())  # here\n",
    ),
    Case(
        "where loops may be nested",
        good="import asyncio, nest_asyncio\nnest_asyncio.apply()\nasync def f(): ...\nasync def main():\n    asyncio.run(f())\n",
    ),
    Case(
        "trio inside asyncio",
        good="import asyncio, trio\nasync def f(): ...\nasync def main():\n    await f()\n    trio.run(f)\n",
    ),
    Case("at the top", good="import asyncio\nasync def f(): ...\ndef main():\n    asyncio.run(f())\n"),
    Case(
        "in a thread",
        good="import asyncio\nasync def f(): ...\ndef load():\n    return asyncio.run(f())\n"
        "async def main():\n    return await asyncio.to_thread(load)\n",
    ),
    Case(
        "where it is asked first",
        good="import asyncio\nasync def f(): ...\ndef load():\n    try:\n        asyncio.get_running_loop()\n"
        "    except RuntimeError:\n        return asyncio.run(f())\n    return None\nasync def main():\n    load()\n",
    ),
    Case(
        "after a way out that may be taken",
        good="import asyncio\nasync def f(): ...\ndef load(simulated):\n    if simulated:\n        return\n"
        "    asyncio.run(f())\nasync def main():\n    load(True)\n",
    ),
    Case(
        "in a function inside it that somebody else calls",
        good="import asyncio, threading\nasync def f(): ...\nasync def main():\n    def work():\n        asyncio.run(f())\n"
        "    threading.Thread(target=work).start()\n",
    ),
]

# A test that puts something else in the place of the loop: `monkeypatch.setattr(server.asyncio, "run", Mock())`.
_REPLACED = re.compile(r"""["'](?:[\w.]+\.)?(?:run|run_until_complete|run_forever)["']""")
_BRIDGES = frozenset({"troth.bridge.run", "troth.bridge._run.run"})
NESTING = frozenset({"nest_asyncio", "nest_asyncio2"})  # packages that patch asyncio
_ASKING = frozenset({"get_running_loop", "_get_running_loop", "is_running", "new_event_loop", "current_task"})


@rule("TR601", "loop-in-running-loop", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Loops started where one runs."""
    nesting = program.said("nested loops")
    if any(not path.endswith(".ipynb") for path in nesting):
        return  # the project patches asyncio so that loops may be nested
    for call in nested_starts(program):
        if call.caller.module.path in nesting:
            continue  # the patch of a notebook is its own
        message = f"`{call.text}(…)` is called while a loop is running: it raises, and the coroutine never runs"
        yield Finding(
            "TR601", "loop-in-running-loop", span(program, call.caller, call.at), message, "certain",
            (why_a_loop_runs(call.caller, call),),
            await_instead(program, call), call.caller.qualname, call.text,
        )  # fmt: skip
    for call in _crossings(program):
        message = (
            f"`{call.text}(…)` blocks the loop that runs already until the coroutine is done: it is for sync functions"
        )
        yield Finding(
            "TR601", "loop-in-running-loop", span(program, call.caller, call.at), message, "certain",
            (why_a_loop_runs(call.caller, call),),
            await_instead(program, call), call.caller.qualname, call.text,
        )  # fmt: skip
    for link in ways_to_nested_starts(program):
        caller = link.call.caller
        if caller.module.path in nesting:
            continue
        message = f"`{link.call.text}(…)` leads to `{link.end.text}(…)`, which raises because a loop is running already"
        yield Finding(
            "TR601", "loop-in-running-loop", span(program, caller, link.call.at), message, "likely",
            (why_a_loop_runs(caller, link.call), *(link.rest or link).reasons()),
            None, caller.qualname, link.call.text,
        )  # fmt: skip


def nested_starts(program: Program) -> Iterator[Call]:
    """The calls that start a loop in an async function itself."""
    for call in _chains(program).direct():
        if not _looks_whether_one_runs(call.caller) and not _is_of_another_kind(call):
            yield call


def _crossings(program: Program) -> Iterator[Call]:
    """The calls of `bridge.run` in the body of an async function, where an `await` does the same and blocks nothing."""
    for path in program.said("files that import troth"):
        module = program.module(path)
        if is_test(path) or "greenback" in module.packages:
            continue  # a test may block on purpose, and with greenback nothing is blocked
        for number, facts in enumerate(module.facts.functions):
            if facts.flags & ASYNC and facts.calls:
                for call in program.calling.of(module.function(number)):
                    if _BRIDGES.intersection(names_of(call.callee)):
                        yield call


@part("files that import troth")
def _imports_troth(file: FileFacts) -> bool:
    return any(imported.module.partition(".")[0] == "troth" for imported in file.imports)


def ways_to_nested_starts(program: Program) -> Iterator[Link]:
    """The calls in async functions that lead to a sync one that starts a loop."""
    for link in _chains(program).indirect():
        caller = link.call.caller
        if is_test(caller.module.path) and _REPLACED.search(program.text(caller.module.path).cut(*caller.facts.at)):
            continue
        yield link


def why_a_loop_runs(function: Function, call: Call) -> Reason:
    """The reason why there is a loop around a call."""
    if function.index == 0:
        return Reason("Jupyter runs the cells of a notebook in a loop", function.module.path, call.at[0])
    return Reason(f"`{function.qualname}` is `async def`, so a loop runs it", *function.place)


def _chains(program: Program) -> Chains:
    starters = {name for name, way in semantics().runs_a_loop.items() if way == "runs"}

    def starts(call: Call) -> bool:
        return any(name in starters for name in names_of(call.callee))

    def make() -> Chains:
        return Chains(program, "loops", starters, starts, stops=_asks, up_to=("return", "raise"), cells=True)

    return chains_of(program, "loops", make)


@question("reaching loops")
def _reaching(program: Program) -> set[str]:
    return _chains(program).reach()


def _looks_whether_one_runs(function: Function) -> bool:
    """In `async def` a loop runs whatever loop is made or fetched; only a branch on `is_running` is never taken.

    A notebook whose cells ask for the running loop may be meant to run as a script, too. In the child of a fork no loop
    runs.
    """
    asking = {"is_running", "fork"} if function.index else {"is_running", "get_running_loop", "_get_running_loop"}
    return any(callee.rpartition(".")[2] in asking for callee in function.facts.calls)


def _is_of_another_kind(call: Call) -> bool:
    """`trio.run` refuses to run inside trio; inside asyncio it blocks, and works."""
    is_trio = any(name.startswith("trio.") for name in names_of(call.callee))
    return is_trio and not any(callee.startswith("trio.") for callee in call.caller.facts.awaited)


@part("nested loops")
def _nests(file: FileFacts) -> bool:
    return any(imported.module in NESTING for imported in file.imports)


def _asks(function: Function) -> bool:
    """Whether the function looks for a running loop itself, or makes one of its own."""
    return any(callee.rpartition(".")[2] in _ASKING for callee in function.facts.calls)


def await_instead(program: Program, call: Call) -> Fix | None:
    """The fix that awaits the coroutine in the place of the call that starts a loop for it."""
    if not (
        call.text in {"asyncio.run", "run"}
        or call.text.endswith(".run_until_complete")
        or _BRIDGES.intersection(names_of(call.callee))
    ):
        return None
    position = standing(program, call.caller.module.path, call.at)
    if (
        position is None
        or not isinstance(position.node, ast.Call)
        or len(position.node.args) != 1
        or position.node.keywords
    ):
        return None
    (argument,) = position.node.args
    if not isinstance(argument, ast.Call | ast.Name | ast.Attribute):
        return None  # `await` binds tighter than what else there is
    start, end = position.offsets(argument)
    edits = position.awaited(
        "await ", Edit(position.path, position.start, start, ""), Edit(position.path, end, position.end, "")
    )
    return Fix("await it instead", "sure" if isinstance(argument, ast.Call) else "likely", edits) if edits else None
