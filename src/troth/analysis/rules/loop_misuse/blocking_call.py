"""Blocking call.

What it finds: a call that holds up its thread (sleep, network, subprocess, lock, queue, the result of a future, a file's
whole text) in an `async def`, or in a plain function that an `async def` calls. In a file of tests each such callee is told
once, and its fix repairs them all.
Why it matters: while it waits, the loop stands still: no other request, timer or heartbeat is served.
How to repair: await the async twin that the finding names, or hand the call to a thread: `await asyncio.to_thread(…)`.
How sure the fix is: `await asyncio.sleep` for `time.sleep` is sure, unless the code is named after blocking; handing a call to a thread is likely, because code
bound to its thread must not move. Where the file waits with anyio or trio, theirs is named instead. Nothing is offered
where nothing can be awaited (a lambda); a lock, a database connection or a queue stays with its thread.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from troth.analysis.facts.nodes import of_kind
from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.incremental.project_queries import question
from troth.analysis.knowledge.semantics import Blocking, semantics
from troth.analysis.rules._finding import span
from troth.analysis.rules._fixes.imports import imported, is_imported, may_use_asyncio, waits_otherwise
from troth.analysis.rules._fixes.intent import is_about_blocking
from troth.analysis.rules._syntax_position import standing
from troth.analysis.rules.loop_misuse._nonblocking import is_perhaps_done, takes_no_time
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.infer.call_graph import names_of
from troth.analysis.semantics.queries.call_chains import Chains, Link, chains_of
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.resolve.test_files import is_test

if TYPE_CHECKING:
    from troth.analysis.facts.model import At
    from troth.analysis.findings import Safety
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call
    from troth.analysis.semantics.symbols import Function

CASES = [
    Case(
        "a file of tests, where the first stands for the others",
        bad={
            "test_it.py": "import asyncio, subprocess\nasync def test_a():\n    subprocess.run(['a'])  # here\n"
            "async def test_b():\n    assert subprocess.run(['b']).returncode == 0\n",
        },
        fixed={
            "test_it.py": "import asyncio, subprocess\nasync def test_a():\n    await asyncio.to_thread(subprocess.run, ['a'])  # here\n"
            "async def test_b():\n    assert (await asyncio.to_thread(subprocess.run, ['b'])).returncode == 0\n",
        },
    ),
    Case(
        "a test of both sides",
        good={
            "client.py": "import httpx\nclass Models:\n    def get(self, n):\n        return httpx.get(n)\n    async def async_get(self, n): ...\n",
            "tests/test_models.py": "from client import Models\nasync def test_get(models: Models, waits):\n    if waits:\n"
            "        found = await models.async_get(1)\n    else:\n        found = models.get(1)\n    assert found\n",
        },
    ),
    Case(
        "a thread with a loop of its own",
        good="import asyncio, threading\nclass Heartbeat(threading.Thread):\n    def run(self):\n        asyncio.run(self.beat())\n"
        "    async def beat(self):\n        self.gone = threading.Event()\n        self.gone.wait(1)\n",
    ),
    Case(
        "a program whose end was awaited",
        good="import subprocess\nclass Child:\n    def __init__(self):\n        self.process = subprocess.Popen(['ls'])\n"
        "    async def poll(self):\n        return self.process.poll()\n    async def wait(self):\n        while await self.poll() is None:\n"
        "            await self.pause()\n        return self.process.wait()\n",
    ),
    Case(
        "sleep",
        bad="import asyncio\nimport time\nasync def main():\n    time.sleep(1)  # here\n",
        fixed="import asyncio\nimport time\nasync def main():\n    await asyncio.sleep(1)  # here\n",
    ),
    Case(
        "sleep by another name",
        bad="import asyncio\nfrom time import sleep\nasync def main():\n    return [sleep(n) for n in (1, 2)]  # here\n",
        fixed="import asyncio\nfrom time import sleep\nasync def main():\n    return [await asyncio.sleep(n) for n in (1, 2)]  # here\n",
    ),
    Case(
        "handed to a thread",
        bad="import asyncio\nimport requests\nasync def main(url, **more):\n    return requests.get(url, timeout=3, **more).json()['a']  # here\n",
        fixed="import asyncio\nimport requests\nasync def main(url, **more):\n"
        "    return (await asyncio.to_thread(requests.get, url, timeout=3, **more)).json()['a']  # here\n",
    ),
    Case(
        "over several lines",
        bad="import asyncio\nimport subprocess\nasync def main():\n    done = subprocess.run(\n        ['ls'],  # all\n        check=True,\n    )\n    return done\n",
        fixed="import asyncio\nimport subprocess\nasync def main():\n    done = await asyncio.to_thread(subprocess.run,\n        ['ls'],  # all\n        check=True,\n    )\n    return done\n",
    ),
    Case(
        "no arguments",
        bad="import asyncio\nimport requests\nasync def main():\n    return requests.get()  # here\n",
        fixed="import asyncio\nimport requests\nasync def main():\n    return await asyncio.to_thread(requests.get)  # here\n",
    ),
    Case("network", bad="import requests\nasync def main():\n    return requests.get('http://x')  # here\n"),
    Case("somebody types", bad="async def ask(bot):\n    return await bot.reply(input('?'))  # here\n"),
    Case(
        "somebody types, and nobody else waits",
        good="import asyncio\nasync def main(bot):\n    while True:\n        await bot.reply(input('?'))\nasyncio.run(main(None))\n",
    ),
    Case(
        "somebody types, in a thread or for a function of that name",
        good="import asyncio\ndef ask():\n    return input('?')\nasync def main(bot):\n    await bot.reply(await asyncio.to_thread(input, '?'))\n"
        "async def other(bot, input):\n    await bot.reply(input('?'))\n",
    ),
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
        "down a chain, twice",
        bad="import time\ndef wait():\n    time.sleep(5)\nasync def main():\n    wait()  # here\n    print(1)\n    wait()\n",
    ),
    Case(
        "down a chain, after a way out",
        good="import requests\nclass Log:\n    def tell(self, text):\n        if not self.url:\n            return\n        requests.post(self.url, text)\n"
        "async def main(log: Log):\n    log.tell('x')\n",
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
    Case(
        "a lookup to bind to",
        good="import socket\ndef bind_sockets(address):\n    return socket.getaddrinfo(address, 80)\nasync def main(address):\n    bind_sockets(address)\n",
    ),
    Case(
        "a lock that was just made",
        good="import threading\nasync def main(locks, key):\n    lock = threading.Lock()\n    lock.acquire()\n    locks[key] = lock\n",
    ),
    Case("a lookup", bad="import socket\nasync def main(host):\n    socket.getaddrinfo(host, 80)  # here\n"),
    Case(
        "a socket that does not block",
        good="import socket\nasync def main(wait):\n    s = socket.socket()\n    s.setblocking(False)\n    while True:\n"
        "        try:\n            return s.recv(10)\n        except BlockingIOError:\n            await wait(s)\n",
    ),
    Case(
        "a socket for datagrams, which only notes whom it will speak to",
        good="import socket\ndef own_address(host):\n    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n    s.connect((host, 1))\n    return s.getsockname()[0]\n"
        "async def main(host):\n    return own_address(host)\n",
    ),
    Case(
        "a program that has ended",
        good="import subprocess\nasync def main(p: subprocess.Popen):\n    if p.poll() is not None:\n        return p.communicate(timeout=1)\n",
    ),
    Case(
        "a database of a test",
        good={
            "tests/test_db.py": "import sqlite3\nasync def test_db(path):\n    sqlite3.connect(path).execute('vacuum')\n"
        },
    ),
    Case("put into a queue without a bound", good="import queue\nq = queue.Queue()\nasync def main():\n    q.put(1)\n"),
    Case(
        "the result of a future that was waited for",
        good="import asyncio\nasync def main(f, loop, done):\n"
        "    future = asyncio.run_coroutine_threadsafe(f, loop)\n    await done.wait()\n    return future.result()\n",
    ),
    Case(
        "the result of a job",
        bad="from concurrent.futures import ThreadPoolExecutor\ndef job(): ...\nasync def main():\n    with ThreadPoolExecutor() as pool:\n        future = pool.submit(job)\n        return future.result()  # here\n",
    ),
    Case(
        "the result of a job that was awaited",
        good="import asyncio\nfrom concurrent.futures import ThreadPoolExecutor\ndef job(): ...\nasync def main():\n    with ThreadPoolExecutor() as pool:\n        future = pool.submit(job)\n        await asyncio.wrap_future(future)\n        return future.result()\n",
    ),
    Case(
        "a queue that is asked first",
        good="import queue\nclass Out:\n    def __init__(self):\n        self.buffer = queue.Queue()\n    async def main(self):\n"
        "        if not self.buffer.empty():\n            return self.buffer.get()\n",
    ),
    Case(
        "in a file without asyncio",
        bad="import time\nasync def main():\n    time.sleep(1)  # here\n",
        fixed="import asyncio\nimport time\nasync def main():\n    await asyncio.sleep(1)  # here\n",
    ),
    Case(
        "in a file that waits with trio",
        bad="import subprocess\nimport trio\nasync def main():\n    subprocess.check_call(['ls'])  # here\n",
        fixed="import subprocess\nimport trio\nasync def main():\n    await trio.to_thread.run_sync(subprocess.check_call, ['ls'])  # here\n",
    ),
    Case(
        "a thread whose work was awaited",
        good="import threading\nasync def main(serve, connect):\n    thread = threading.Thread(target=serve)\n    thread.start()\n    await connect()\n    thread.join()\n",
    ),
    Case(
        "a program that was killed",
        good="import subprocess\nasync def main(p: subprocess.Popen):\n    p.kill()\n    p.wait()\n",
    ),
    Case(
        "a whole file",
        bad="from pathlib import Path\nasync def main(folder):\n    return (Path(folder) / 'a').read_text()  # here\n",
    ),
    Case(
        "a program started", bad="import subprocess\nasync def main():\n    return subprocess.Popen(['ls'])  # here\n"
    ),
    Case(
        "a whole file, in a script",
        good="import asyncio\nfrom pathlib import Path\nasync def main():\n    return Path('a').read_text()\nif __name__ == '__main__':\n    asyncio.run(main())\n",
    ),
    Case(
        "a look at what is ready",
        good="import select, sys\nasync def main():\n    return select.select([sys.stdin], [], [], 0.0)[0]\n",
    ),
    Case(
        "told not to wait",
        good="import os\nclass Child:\n    def poll(self, blocking):\n        os.waitpid(self.pid, 0 if blocking else os.WNOHANG)\n    async def wait(self):\n        self.poll(blocking=False)\n",
    ),
    Case(
        "a look at a child",
        good="import os\nasync def main(pid):\n    return os.waitpid(pid, os.WNOHANG)\n",
    ),
    Case(
        "expected to fail, in a test",
        good={
            "test_it.py": "import httpx, pytest\nasync def test_it(auth):\n    with httpx.Client(auth=auth) as client, pytest.raises(RuntimeError):\n        client.get('/')\n"
        },
    ),
    Case(
        "cut off by a test",
        good={
            "cloud.py": "import time\nclass Cloud:\n    def get(self):\n        time.sleep(1)\n    def login(self):\n        return self.get()\n",
            "test_cloud.py": "from cloud import Cloud\nasync def test_login():\n    cloud = Cloud()\n    cloud.get = lambda *a: 1\n    assert cloud.login()\n",
        },
    ),
    Case(
        "a datagram",
        good="import socket\nclass Camera:\n    def __init__(self, sock: socket.socket):\n        self.sock = sock\n    async def hello(self, data):\n        self.sock.sendto(data, ('255.255.255.255', 1))\n",
    ),
    Case(
        "the socket of a protocol",
        good="import asyncio, socket\nclass Wire(asyncio.Protocol):\n    def __init__(self, sock: socket.socket):\n        self.sock = sock\n    def connection_made(self, transport): ...\n"
        "    def write(self, data):\n        self.sock.send(data)\n    async def ask(self, data):\n        self.write(data)\n",
    ),
    Case(
        "coroutines of a blocking flavor, which somebody drives to their end",
        good="import time\nclass BlockingConnection:\n    async def sleep(self, n):\n        time.sleep(n)\n",
    ),
    Case(
        "a path, where something else reads asynchronously",
        bad="from pathlib import Path\nclass Store:\n    async def read_text(self): ...\nasync def main(folder: Path):\n    return (folder / 'a').read_text()  # here\n",
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
        "entered as its async twin is",
        good="from anthropic import Anthropic, AsyncAnthropic\nclass Agent:\n    def __init__(self, streams):\n        self.client = AsyncAnthropic() if streams else Anthropic()\n"
        "    async def stream(self):\n        async with self.client.messages.stream(model='x') as s:\n            print(s)\n",
    ),
    Case(
        "a namesake",
        good="class Clock:\n    def sleep(self, n): ...\nasync def main(time: Clock):\n    time.sleep(1)\n",
    ),
]

_DIRECT = frozenset({"sleep", "network", "subprocess", "lock", "queue", "future", "database", "file", "person"})
_FOR_A_THREAD = frozenset({"network", "subprocess", "file"})
_DOWN_A_CHAIN = frozenset({"sleep", "network", "subprocess"})
_FILES = ("read_text", "write_text", "read_bytes", "write_bytes")  # a whole file at once; `open` and `exists` are quick


_BLOCKING = re.compile(r"[Bb]locking|(?<![a-zA-Z])sync(?:_|\b)|(?<![a-z])Sync(?=[A-Z_]|\b)|_sync(?:_|\b)")
_WAITING = frozenset({"wait", "block", "blocking"})
_NOT_WAITING = re.compile(r"\b(?:wait|block|blocking)\s*=\s*False\b")
_LONGEST = 60  # letters of a callee that a message can bear
_ASYNC_WORD = re.compile(r"async_|_async")
_RUNNING = frozenset({"run_until_complete", "run_forever", "run"})


@rule("TR602", "blocking-call", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Calls that hold the loop up."""
    for call, blocking, callers in _told_once(program):
        phrase = f"waits for {_words(blocking)} and holds up the loop meanwhile"
        if "subprocess.Popen" in set(names_of(call.callee)):
            phrase = "holds up the loop while the program starts, and so will whoever waits for its end"
        if _makes_a_client(call):
            phrase = "makes a client whose every call waits for the network and holds up the loop meanwhile"
        yield _told(program, call, blocking, f"`{_shown(program, call)}(…)` {phrase}", (), callers)
    reported: set[tuple[Function, Function, At]] = set()
    for link in _chained(program).indirect():
        end = _kind(program, link.end)
        assert end is not None
        way = (link.call.caller, link.end.caller, link.end.at)
        if way in reported or _is_told_not_to_wait(program, link) or _is_of_a_blocking_flavor(link.call.caller):
            continue  # one that blocks there is repaired for all
        if is_test(link.call.caller.module.path) and (_is_cut_off(program, link) or _is_one_of_two(link.call)):
            continue
        reported.add(way)
        message = (
            f"`{link.call.text}(…)` leads to `{link.end.text}(…)`, which waits for {_words(end)} and holds up the loop"
        )
        yield _told(program, link.call, end, message, (link.rest or link).reasons())


def _told_once(program: Program) -> Iterator[tuple[Call, Blocking, list[Call]]]:
    """The calls that are told, what they wait for, and in a file of tests the others for which each of them stands."""
    connections: set[tuple[Function, str]] = set()
    in_tests: dict[tuple[str, str], list[Call]] = {}
    findings: list[tuple[Call, Blocking, list[Call]]] = []
    for call in _direct(program).direct():
        if (
            call.is_awaited
            or _is_of_a_blocking_flavor(call.caller)
            or _has_a_thread(program, call.caller)
            or _is_entered_async(call)
        ):
            continue
        kind = _kind(program, call)
        assert kind is not None
        if kind.waits_for == "database":
            connection = (call.caller, call.text.rpartition(".")[0])
            if connection in connections:
                continue  # an async connection repairs all calls of it
            connections.add(connection)
        callers: list[Call] = []
        if is_test(call.caller.module.path):
            if _is_expected_to_fail(program, call):
                continue
            place = (call.caller.module.path, call.text)
            if place in in_tests:
                in_tests[place].append(call)
                continue
            in_tests[place] = callers
        findings.append((call, kind, callers))
    yield from findings


def _is_of_a_blocking_flavor(function: Function) -> bool:
    """`BlockingConnection`, `sync_client.py`: coroutines that somebody drives to their end without a loop."""
    owner = function.class_around
    names = (function.module.path.rpartition("/")[2], owner.name if owner is not None else "", function.name)
    return any(_BLOCKING.search(name) for name in names)


def _is_one_of_two(call: Call) -> bool:
    """`await client.async_get(1) if waits else client.get(1)`: a test of both sides, where nobody else is waiting."""
    base, _, name = call.text.rpartition(".")
    return any(
        callee.startswith(f"{base}.") and _ASYNC_WORD.sub("", callee.rpartition(".")[2]) in {name, f"a{name}"}
        for callee in call.caller.facts.awaited
    )


def _has_a_thread(program: Program, function: Function) -> bool:
    """Whether the function belongs to a thread that runs a loop of its own: nobody else is on it."""
    owner = function.class_around
    if owner is None or not owner.facts.bases:
        return False
    order = program.classes.order(owner)
    if not any(isinstance(ancestor, LibraryClass) and ancestor.qualified == "threading.Thread" for ancestor in order):
        return False
    methods = (owner.module.function(index).facts for indexes in owner.methods.values() for index in indexes)
    return any(callee.rpartition(".")[2] in _RUNNING for facts in methods for callee in facts.calls)


def _is_entered_async(call: Call) -> bool:
    """`async with client.stream(…)`: whatever the table knows, the author has a client that is entered so."""
    if not any(callee.startswith("with ") for callee in call.caller.facts.awaited):
        return False
    entered = (node for node in of_kind(call.caller.body(), "with") if node[1])
    return any(item[0] == call.node for node in entered for item in node[2])


def _is_told_not_to_wait(program: Program, link: Link) -> bool:
    """`self._poll(blocking=False)` on the way."""
    current: Link | None = link
    while current is not None:
        source = program.text(current.call.caller.module.path).cut(*current.call.at)
        if any(keyword in _WAITING for keyword, _ in current.call.node[3]) and _NOT_WAITING.search(source):
            return True
        current = current.rest
    return False


def _is_expected_to_fail(program: Program, call: Call) -> bool:
    """`with pytest.raises(…)` around the call: it is there to fail before it waits for anybody."""
    position = standing(program, call.caller.module.path, call.at)
    return position is not None and any(
        isinstance(node, ast.With | ast.AsyncWith) and any("aises" in ast.unparse(item) for item in node.items)
        for node in position.around
    )


def _is_cut_off(program: Program, link: Link) -> bool:
    """Whether a test has put something else in the place of a function on the way."""
    caller = link.call.caller
    source = program.text(caller.module.path).cut(*caller.facts.at)
    current = link.rest
    while current is not None:
        name = re.escape(current.call.text.rpartition(".")[2])
        if re.search(rf"""\.{name}\s*=[^=]|["'.]{name}["']""", source):
            return True
        current = current.rest
    return False


def _kind(program: Program, call: Call) -> Blocking | None:
    """What a call waits for while it holds the loop up; None where it holds up nothing."""
    answers: MutableMapping[tuple[Function, At], Blocking | None] = program.answers_to("kind of blocking")
    key = (call.caller, call.at)
    if key not in answers:
        answers[key] = _look(program, call)
    return answers[key]


def _look(program: Program, call: Call) -> Blocking | None:
    by_name = semantics().blocking
    names = set(names_of(call.callee))
    blocking = next((by_name[name] for name in names if name in by_name), None) or _also(program, call)
    if blocking is None or blocking.waits_for not in _DIRECT:
        return None
    if blocking.waits_for == "database" and is_test(call.caller.module.path):
        return None  # a test that makes its own small database has nobody waiting meanwhile
    if blocking.waits_for == "person" and (_runs_alone(program, call.caller) or is_test(call.caller.module.path)):
        return None
    if blocking.waits_for == "file" and (
        call.text.rpartition(".")[2] not in _FILES or _runs_alone(program, call.caller)
    ):
        return None
    if blocking.waits_for == "future" and is_perhaps_done(call):
        return None
    return None if takes_no_time(program, call, blocking) else blocking


def _direct(program: Program) -> Chains:
    names = {*semantics().blocking, "subprocess.Popen"}

    def make() -> Chains:
        return Chains(
            program,
            "blocking",
            names,
            lambda call: _kind(program, call) is not None,
            stops=lambda _: True,
            whoever=(*_FILES, "input"),
        )

    return chains_of(program, "blocking", make)


def _chained(program: Program) -> Chains:
    blocking = semantics().blocking

    def make() -> Chains:
        return Chains(
            program,
            "blocking at a distance",
            [name for name in blocking if _reaches(blocking[name])],
            lambda call: (
                not call.text.endswith("Popen") and not _makes_a_client(call) and _reaches(_kind(program, call))
            ),
            stops=_is_for_a_thread,
            up_to=("return",),
        )

    return chains_of(program, "blocking at a distance", make)


@question("reaching blocking at a distance")
def _reaching(program: Program) -> set[str]:
    return _chained(program).reach()


def _reaches(found: Blocking | None) -> bool:
    return found is not None and found.waits_for in _DOWN_A_CHAIN


def _told(
    program: Program, call: Call, found: Blocking, message: str, way: tuple[Reason, ...], others: Sequence[Call] = ()
) -> Finding:
    caller = call.caller
    reasons = (Reason(f"`{caller.qualname}` is `async def`, so the loop waits with it", *caller.place), *way)
    # Whether a socket blocks and whether a host has to be looked up cannot be seen at the call.
    is_plain = not any(name.startswith("socket.") for name in set(names_of(call.callee)))
    is_plain = is_plain and "subprocess.Popen" not in set(names_of(call.callee)) and not _makes_a_client(call)
    sure = not way and is_plain and found.waits_for in {"sleep", "network", "subprocess"}
    speaks_asyncio = not (found.twin.startswith("asyncio.") and waits_otherwise(caller.module))
    if found.twin and not way and speaks_asyncio:
        twin = f"`{found.twin.replace(' or ', '` or `')}`" if "." in found.twin else found.twin
        reasons = (*reasons, Reason(f"in async code, use {twin}"))
    fix = None if way else _fix_of_all(program, [call, *others])
    return Finding(
        "TR602", "blocking-call", span(program, caller, call.at), message, "certain" if sure else "likely",
        reasons, fix, caller.qualname, call.text,
    )  # fmt: skip


def _shown(program: Program, call: Call) -> str:
    """The callee as it is written, where it is more than names: `(folder / "a.json").read_text`."""
    callee = call.node[1]
    if "…" not in call.text or callee[0] != "attr":
        return call.text
    written = program.text(call.caller.module.path).cut(*callee[3])
    return written if "\n" not in written and len(written) <= _LONGEST else call.text


def _makes_a_client(call: Call) -> bool:
    """`boto3.client("s3")` asks nobody yet; its methods, which do, are made up at run time and cannot be known."""
    return any(name.startswith("boto3.") for name in set(names_of(call.callee)))


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
        "person": "somebody to type",
    }[found.waits_for]


def _also(program: Program, call: Call) -> Blocking | None:
    """A program started, or a whole file read or written, by a path that nobody need know the type of."""
    if "subprocess.Popen" in set(names_of(call.callee)):
        return Blocking("subprocess", "asyncio.create_subprocess_exec")
    name = call.text.rpartition(".")[2]
    if call.text == "input" and "builtins.input" in set(names_of(call.callee)):
        return Blocking("person", "asyncio.to_thread(input)")
    if name in {"result", "exception"} and call.callee is None and _is_of_a_pool(program, call):
        return Blocking("future", "asyncio.wrap_future")
    if name not in _FILES or call.is_awaited or "test" in call.caller.module.path or _has_async_paths(call.caller):
        return None
    is_path = any(path.startswith("pathlib.") for path in names_of(call.callee))
    if is_path or (call.callee is None and not any(program.counts.colors(name))):
        return Blocking("file", "await asyncio.to_thread(…)")
    return None


def _runs_alone(program: Program, function: Function) -> bool:
    """`asyncio.run(main())` in the file itself: a script, in which nobody waits while `main` reads a file."""
    called = rf"\brun\(\s*{re.escape(function.name)}\("
    return function.owner is None and re.search(called, program.text(function.module.path).value) is not None


def _is_of_a_pool(program: Program, call: Call) -> bool:
    """Whether a result is asked of what a pool of threads or processes gave for a job: `pool.submit(job).result()`."""
    future: Any = call.node[1][1] if call.node[1][0] == "attr" else ()
    if future[:1] == ("name",):
        values = [node[2] for node in of_kind(call.caller.body(), "assign") if node[1] == (future,)]
        future = values[0] if len(values) == 1 else ()
    if future[:1] != ("call",):
        return False
    maker = next((candidate for candidate in program.calling.of(call.caller) if candidate.at == future[-1]), None)
    names = () if maker is None else tuple(names_of(maker.callee))
    return any(name.startswith("concurrent.futures.") and name.endswith(".submit") for name in names)


def _has_async_paths(function: Function) -> bool:
    """Whether the file knows paths whose methods are awaited."""
    return not function.module.packages.isdisjoint({"anyio", "aiopath", "trio"})


def _is_for_a_thread(function: Function) -> bool:
    """Whether the name says that the function is meant to be run in a thread."""
    return any(word in function.name.lower() for word in ("sync", "blocking", "thread", "worker"))


_TO_THREAD = 9  # the minor version of Python 3 that brought `asyncio.to_thread`


def _fix_of_all(program: Program, calls: Sequence[Call]) -> Fix | None:
    """The fix of a call and of those that it stands for: one that is left would be told next."""
    fixes = [_fix(program, call, kind) for call in calls if (kind := _kind(program, call)) is not None]
    first = fixes[0] if fixes else None
    every = [fixe for fixe in fixes if fixe is not None]
    if first is None or len(every) < len(fixes):
        return None
    more = f"; likewise the {len(every) - 1} below it" if len(every) > 1 else ""
    edits = tuple(dict.fromkeys(edit for function in every for edit in function.edits))
    return Fix(f"{first.title}{more}", first.safety, edits)  # all call the same, so that all are as safe


def _fix(program: Program, call: Call, found: Blocking) -> Fix | None:
    """The async twin of a sleep, a thread for what waits for somebody else, both of the library the file waits with.

    Locks, database connections and what else belongs to its thread stay where they are.
    """
    position = standing(program, call.caller.module.path, call.at)
    if position is None or not isinstance(position.node, ast.Call):
        return None
    tree = position.around[-1]
    assert isinstance(tree, ast.Module)
    library = next(
        (module_name for module_name in ("asyncio", "anyio", "trio") if is_imported(tree, module_name)), None
    )
    if library is None and (not may_use_asyncio(program) or waits_otherwise(call.caller.module)):
        return None
    added = imported(position, library or "asyncio")
    library = library or "asyncio"
    _, callee = position.offsets(position.node.func)
    if added is None:
        return None
    if found.twin == "asyncio.sleep":
        renamed = Edit(position.path, position.start, callee, f"{library}.sleep")
        edits = position.awaited("await ", renamed)
        safety: Safety = "guess" if is_about_blocking(position) else "sure"
        return Fix(f"await {library}.sleep instead", safety, (*added, *edits)) if edits is not None else None
    if found.waits_for not in _FOR_A_THREAD or position.text[callee : callee + 1] != "(":
        return None
    if library != "asyncio" and position.node.keywords:
        return None  # these threads take no keywords
    if library == "asyncio" and program.oldest_python < _TO_THREAD:
        return None
    thread = f"{library}.to_thread" if library == "asyncio" else f"{library}.to_thread.run_sync"
    has_arguments = position.node.args or position.node.keywords
    comma = "" if not has_arguments else "," if position.text[callee + 1].isspace() else ", "
    edits = position.awaited(f"await {thread}(", Edit(position.path, callee, callee + 1, comma))
    return Fix(f"hand it to a thread: `await {thread}(…)`", "likely", (*added, *edits)) if edits is not None else None
