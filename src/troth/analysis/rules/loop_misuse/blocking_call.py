"""Blocking call.

What it finds: a call that holds up its thread (sleep, network, subprocess, lock, queue, the result of a future, a file's
whole text) in an `async def`, or in a plain function that an `async def` calls.
Why it matters: while it waits, the loop stands still: no other request, timer or heartbeat is served.
How to repair: await the async twin that the finding names, or hand the call to a thread: `await asyncio.to_thread(…)`.
How sure the fix is: `await asyncio.sleep` for `time.sleep` is sure; handing a call to a thread is likely, because code
bound to its thread must not move.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.knowledge.semantics import Blocking, semantics
from troth.analysis.program.calling import names_of
from troth.analysis.program.chains import Chains
from troth.analysis.rules.loop_misuse.waiting_for_own_loop import waits_for_own_loop
from troth.analysis.rules.registry import Case, rule
from troth.analysis.rules.telling import span

if TYPE_CHECKING:
    from troth.analysis.program import Program
    from troth.analysis.program.calling import Call
    from troth.analysis.program.entities import Function

CASES = [
    Case(
        "sleep",
        bad="import asyncio\nimport time\nasync def main():\n    time.sleep(1)  # here\n",
        fixed="import asyncio\nimport time\nasync def main():\n    await asyncio.sleep(1)  # here\n",
    ),
    Case("network", bad="import requests\nasync def main():\n    return requests.get('http://x')  # here\n"),
    Case("subprocess", bad="import subprocess\nasync def main():\n    subprocess.run(['ls'])  # here\n"),
    Case(
        "down a chain",
        bad="import time\ndef wait():\n    time.sleep(5)\ndef work():\n    wait()\nasync def main():\n    work()  # here\n",
    ),
    Case(
        "a whole file",
        bad="from pathlib import Path\nasync def main(folder):\n    return (Path(folder) / 'a').read_text()  # here\n",
    ),
    Case(
        "a program started", bad="import subprocess\nasync def main():\n    return subprocess.Popen(['ls'])  # here\n"
    ),
    Case("an async path", good="import anyio\nasync def main(path: anyio.Path):\n    return await path.read_text()\n"),
    Case("in plain code", good="import time\ndef main():\n    time.sleep(1)\n"),
    Case(
        "in a thread",
        good="import asyncio, time\nasync def main():\n    await asyncio.get_running_loop().run_in_executor(None, time.sleep, 1)\n",
    ),
    Case(
        "in a function for a thread",
        good="import asyncio, time\ndef wait():\n    time.sleep(1)\nasync def main():\n"
        "    await asyncio.get_running_loop().run_in_executor(None, wait)\n",
    ),
    Case("no time at all", good="import time\nasync def main():\n    time.sleep(0)\n"),
    Case(
        "a queue that is only looked at",
        good="import queue\nq = queue.Queue()\nasync def main():\n    q.get(block=False)\n",
    ),
    Case(
        "a namesake",
        good="class Clock:\n    def sleep(self, n): ...\nasync def main(time: Clock):\n    time.sleep(1)\n",
    ),
]

_DIRECT = frozenset({"sleep", "network", "subprocess", "lock", "queue", "future", "database", "file"})
_DOWN_A_CHAIN = frozenset({"sleep", "network", "subprocess"})
_FILES = ("read_text", "write_text", "read_bytes", "write_bytes")  # a whole file at once; `open` and `exists` are quick


@rule("T602", "blocking-call", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Calls that hold the loop up."""
    known = semantics().blocking

    def kind(call: Call) -> Blocking | None:
        found = next((known[name] for name in names_of(call.callee) if name in known), None) or _also(program, call)
        if found is None or found.waits_for not in _DIRECT or _takes_no_time(program, call, found):
            return None
        if found.waits_for == "future" and _is_perhaps_done(call):
            return None
        return None if found.waits_for == "file" and call.text.rpartition(".")[2] not in _FILES else found

    names = {name.rpartition(".")[2] for name in known} | {"Popen", *_FILES}
    direct = Chains(program.calling, names, lambda call: kind(call) is not None, stops=lambda _: True)
    for call in direct.ends:
        if call.caller.is_async and not call.is_awaited:
            found = kind(call)
            assert found is not None
            yield _told(
                program, call, found, f"`{call.text}(…)` waits for {_words(found)} and holds up the loop meanwhile", ()
            )
    chained = Chains(
        program.calling,
        names,
        lambda call: not call.text.endswith("Popen") and _reaches(kind(call)),
        stops=_is_for_a_thread,
    )
    for link in chained.entered_from_async():
        found = kind(link.end)
        assert found is not None
        message = f"`{link.call.text}(…)` leads to `{link.end.text}(…)`, which waits for {_words(found)} and holds up the loop"
        yield _told(program, link.call, found, message, (link.rest or link).reasons())


def _reaches(found: Blocking | None) -> bool:
    return found is not None and found.waits_for in _DOWN_A_CHAIN


def _told(program: Program, call: Call, found: Blocking, message: str, way: tuple[Reason, ...]) -> Finding:
    caller = call.caller
    reasons = (Reason(f"`{caller.qualname}` is `async def`, so the loop waits with it", *caller.place), *way)
    sure = not way and found.waits_for in {"sleep", "network", "subprocess"}
    if found.twin and not way:
        reasons = (*reasons, Reason(f"async programs say `{found.twin}`" if "." in found.twin else found.twin))
    fix = None if way else _fix(program, call, found)
    return Finding(
        "T602", "blocking-call", span(program, caller, call.at), message, "certain" if sure else "likely",
        reasons, fix, caller.qualname, call.text,
    )  # fmt: skip


def _words(found: Blocking) -> str:
    return {
        "sleep": "time to pass",
        "network": "the network",
        "subprocess": "another program",
        "lock": "a lock",
        "queue": "a queue",
        "future": "the result of another thread",
        "database": "a database",
        "file": "a file",
    }[found.waits_for]


def _takes_no_time(program: Program, call: Call, found: Blocking) -> bool:
    """Whether the call says itself that it does not wait: `sleep(0)`, `get(block=False)`."""
    try:
        tree = ast.parse(program.text(call.caller.module.path).cut(*call.at), mode="eval").body
    except SyntaxError:  # a call over several lines of a notebook, say
        return False
    if not isinstance(tree, ast.Call):
        return False
    given = {str(position): value for position, value in enumerate(tree.args)}
    given |= {keyword.arg: keyword.value for keyword in tree.keywords if keyword.arg}
    off = [value.value for name, value in given.items() if name in found.unless and isinstance(value, ast.Constant)]
    first = given.get("0")
    is_zero = found.waits_for == "sleep" and isinstance(first, ast.Constant) and first.value == 0
    return is_zero or any(value is False for value in off)


def _also(program: Program, call: Call) -> Blocking | None:
    """A program started, or a whole file read or written, by a path that nobody need know the type of."""
    if "subprocess.Popen" in names_of(call.callee):
        return Blocking("subprocess", "asyncio.create_subprocess_exec")
    name = call.text.rpartition(".")[2]
    if name not in _FILES or call.is_awaited or any(program.evidence.colors(name)) or "test" in call.caller.module.path:
        return None
    names = tuple(names_of(call.callee))
    if (call.callee is None or any(one.startswith("pathlib.") for one in names)) and not _has_async_paths(call.caller):
        return Blocking("file", "await asyncio.to_thread(…)")
    return None


def _has_async_paths(function: Function) -> bool:
    """Whether the file knows paths whose methods are awaited."""
    return any(one.module.partition(".")[0] in {"anyio", "aiopath", "trio"} for one in function.module.facts.imports)


def _is_perhaps_done(call: Call) -> bool:
    """Whether a future's result may be there already: one that is kept for long, or was asked or waited for before."""
    if any(node[-1] == call.at for node, _ in waits_for_own_loop(call.caller.facts)):
        return True  # worse than blocking: the rule about the own loop tells of it
    receiver = call.node[1][1] if call.node[1][0] == "attr" else call.node[1]
    asked = any(callee.rpartition(".")[2] in {"done", "wait", "as_completed"} for callee in call.caller.facts.calls)
    return receiver[0] not in {"name", "call"} or asked or bool(call.caller.facts.awaited and receiver[0] == "name")


def _is_for_a_thread(function: Function) -> bool:
    """Whether the name says that the function is meant to be run in a thread."""
    return any(word in function.name.lower() for word in ("sync", "blocking", "thread", "worker"))


def _fix(program: Program, call: Call, found: Blocking) -> Fix | None:
    path = call.caller.module.path
    if path.endswith(".ipynb") or found.twin != "asyncio.sleep" or call.text != "time.sleep":
        return None
    if not any(
        i.module == "asyncio" and i.name is None and i.local == "asyncio" and not i.scope
        for i in call.caller.module.facts.imports
    ):
        return None
    text = program.text(path)
    callee_end = call.node[1][-1]
    start = text.offset(call.at[0], call.at[1])
    end = text.offset(callee_end[2], callee_end[3])
    return Fix("await asyncio.sleep instead", "sure", (Edit(path, start, end, "await asyncio.sleep"),))
