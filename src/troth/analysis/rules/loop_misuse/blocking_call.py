"""Blocking call.

What it finds: a call that blocks its thread (sleep, network, subprocess, lock, queue, the result of a future) in an
`async def`, or in a sync function that an `async def` calls: such a function is reported once, with the number of its
callers. In a file of tests each such callee is reported once, and its fix repairs them all. Reading a whole file and starting
a program are reported by `brief-blocking-call` (TR606), on request.
Why it matters: while it waits, the loop is blocked: no other request, timer or heartbeat is served.
How to repair: await the async twin that the finding names, or run the call in a thread: `await asyncio.to_thread(…)`.
How sure the fix is: `await asyncio.sleep` for `time.sleep` is sure, unless the code is named after blocking or stands in the `with` of what watches for it or runs it in a thread,
and likely where the function awaits `asyncio.sleep` too and blocks under a condition; running a call in a thread is likely, because code
bound to its thread must not move. Where the file waits with anyio or trio, theirs is named instead. Nothing is offered
where nothing can be awaited (a lambda); a lock, a database connection or a queue stays with its thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.findings import Finding
from troth.analysis.rules.loop_misuse._blocking import told_down_a_chain, told_in_place
from troth.analysis.rules.registry import Case, rule

if TYPE_CHECKING:
    from troth.analysis.semantics import Program

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
    Case(
        "in the child of a fork",
        good="import os, pty, subprocess\nasync def main():\n    child, fd = pty.fork()\n    if child == 0:\n        subprocess.run(['sh'])\n    return fd\n",
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
        "under a condition in a function that knows the other sleep: it may hold up everything on purpose",
        bad="import asyncio\nimport time\nasync def main(limit):\n    await asyncio.sleep(1)\n    if limit:\n        time.sleep(1)  # here\n",
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


@rule("TR602", "blocking-call", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Calls that hold the loop up."""
    yield from told_in_place(program, "TR602", "blocking-call", brief=False)
    yield from told_down_a_chain(program)
