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
import ipaddress
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.facts.model import body_of
from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.knowledge.semantics import Blocking, semantics
from troth.analysis.program.calling import names_of
from troth.analysis.program.chains import Chains
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
        "down a chain, in a loop",
        bad="import time\ndef wait(ready):\n    while not ready():\n        time.sleep(5)\n"
        "async def main():\n    wait(ready)  # here\n",
    ),
    Case(
        "down a chain, on a branch that need not be taken",
        good="import socket\ndef node(host, name=None):\n    if host == 'localhost':\n        host = socket.gethostbyname(host)\n"
        "    return host\nasync def main():\n    node('x')\n",
    ),
    Case(
        "a lookup that only reads numbers",
        good="import socket\nasync def main(host):\n    socket.getaddrinfo(host, 80, flags=socket.AI_NUMERICHOST)\n"
        "    socket.getaddrinfo('127.0.0.1', 80)\n    socket.getnameinfo(host, socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)\n",
    ),
    Case("a lookup", bad="import socket\nasync def main(host):\n    socket.getaddrinfo(host, 80)  # here\n"),
    Case(
        "a socket that does not block",
        good="import socket\nasync def main(wait):\n    s = socket.socket()\n    s.setblocking(False)\n    while True:\n"
        "        try:\n            return s.recv(10)\n        except BlockingIOError:\n            await wait(s)\n",
    ),
    Case("put into a queue without a bound", good="import queue\nq = queue.Queue()\nasync def main():\n    q.put(1)\n"),
    Case(
        "the result of a future that is on its way",
        bad="import asyncio\nasync def main(f, loop):\n"
        "    future = asyncio.run_coroutine_threadsafe(f, loop)\n    return future.result()  # here\n",
    ),
    Case(
        "the result of a future that was waited for",
        good="import asyncio\nasync def main(f, loop, done):\n"
        "    future = asyncio.run_coroutine_threadsafe(f, loop)\n    await done.wait()\n    return future.result()\n",
    ),
    Case(
        "a queue that is asked first",
        good="import queue\nclass Out:\n    def __init__(self):\n        self.buffer = queue.Queue()\n    async def main(self):\n"
        "        if not self.buffer.empty():\n            return self.buffer.get()\n",
    ),
    Case(
        "a program that was killed",
        good="import subprocess\nasync def main():\n    p = subprocess.Popen(['ls'])\n    p.kill()\n    p.wait()\n",
    ),
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


_NONBLOCKING = re.compile(r"setblocking\(|BlockingIOError|settimeout\(0|SOCK_NONBLOCK|EWOULDBLOCK")
_SETTLING = ("empty", "qsize", "kill", "is_alive")  # who asks or says so first does not wait afterwards
_LOOKUPS = frozenset({"getaddrinfo", "getnameinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr"})


@rule("T602", "blocking-call", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Calls that hold the loop up."""
    known = semantics().blocking

    def kind(call: Call) -> Blocking | None:
        found = next((known[name] for name in names_of(call.callee) if name in known), None)
        if found is None or found.waits_for not in _DIRECT or _takes_no_time(program, call, found):
            return None
        return None if found.waits_for == "file" and call.text.rpartition(".")[2] not in _FILES else found

    names = {name.rpartition(".")[2] for name in known}
    direct = Chains(program, names, lambda call: kind(call) is not None, stops=lambda _: True)
    for call in direct.direct():
        if not call.is_awaited:
            found = kind(call)
            assert found is not None
            yield _told(
                program, call, found, f"`{call.text}(…)` waits for {_words(found)} and holds up the loop meanwhile", ()
            )
    chained = Chains(program, names, lambda call: _reaches(kind(call)), stops=_is_for_a_thread)
    for link in chained.indirect():
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
    if call.text.rpartition(".")[2] in _LOOKUPS and any(_is_numeric(value) for value in given.values()):
        return True
    if found.waits_for == "future" and not _is_fresh(call):
        return True
    if any(f"{call.text.rpartition('.')[0]}.{question}" in call.caller.facts.calls for question in _SETTLING):
        return True
    if call.text.rpartition(".")[2] == "put" and found.waits_for == "queue":
        return True  # most queues have no bound, and then nobody waits
    if any("socket.socket." in name for name in names_of(call.callee)) and _is_nonblocking(program, call):
        return True
    off = [value.value for name, value in given.items() if name in found.unless and isinstance(value, ast.Constant)]
    first = given.get("0")
    is_zero = found.waits_for == "sleep" and isinstance(first, ast.Constant) and first.value == 0
    return is_zero or any(value is False for value in off)


def _is_fresh(call: Call) -> bool:
    """Whether a future is asked for its result before anything was awaited since it was made.

    Who gets a future from elsewhere, or has awaited meanwhile, may well know that it is done.
    """
    receiver = call.node[1][1] if call.node[1][0] == "attr" else call.node[1]
    if receiver[0] != "name":
        return bool(receiver[0] == "call")
    body = body_of(call.caller.facts)
    made = [line for name, line in _made_by_calls(body) if name == receiver[1] and line <= call.at[0]]
    return bool(made) and not any(max(made) <= line < call.at[0] for line in _lines_of_awaits(body))


def _made_by_calls(node: object) -> Iterator[tuple[str, int]]:
    if isinstance(node, tuple):
        if len(node) == 3 and node[0] == "assign" and node[2][0] == "call":
            yield from ((target[1], node[2][-1][0]) for target in node[1] if target[0] == "name")
        for part in node:
            yield from _made_by_calls(part)


def _lines_of_awaits(node: object) -> Iterator[int]:
    if isinstance(node, tuple):
        if len(node) == 3 and node[0] == "await":
            yield node[2][0]
        for part in node:
            yield from _lines_of_awaits(part)


def _is_nonblocking(program: Program, call: Call) -> bool:
    """Whether the file speaks of sockets that do not block; which of them do cannot be seen at the call."""
    return _NONBLOCKING.search(program.text(call.caller.module.path).value) is not None


def _is_numeric(value: ast.expr) -> bool:
    """Whether a name lookup is told to ask nobody: by a flag, or because it is given a number or nothing to look up."""
    if any(isinstance(n, ast.Name | ast.Attribute) and "NUMERIC" in ast.unparse(n) for n in ast.walk(value)):
        return True
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return any(isinstance(p, ast.Constant) and isinstance(p.value, str) and _is_address(p.value) for p in parts)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return text == "localhost"
    return True


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
