"""Awaited sync function.

What it finds: `await f()` where `f` is a plain `def` whose result cannot be awaited; also such a result given to
`asyncio.create_task`, `gather` or `wait_for`, which want a coroutine; also `await task.delay()` of a Celery task and
`await actor.send()` of Dramatiq, which only send a message.
Why it matters: the function runs, and then the line raises `TypeError: object … can't be used in 'await' expression`:
its effect happens, whatever follows does not, and a retry makes it happen again.
How to repair: remove the `await`, or make the function `async def` if it should wait.
How sure the fix is: likely, because the function may have been intended to wait; a guess where only a name suggests it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import (
    ASSIGN_TARGETS,
    ASSIGN_VALUE,
    ATTR_BASE,
    ATTR_NAME,
    CALL_FUNC,
    CALL_KEYWORDS,
    KIND,
)
from troth.analysis.facts.model import ASYNC
from troth.analysis.facts.names import last_name
from troth.analysis.facts.nodes import of_kind
from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.incremental.project_queries import part
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.project.test_files import is_test
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.registry import Case, rule
from troth.analysis.rules.wrong_color._task_queues import sending_methods, sent_task
from troth.analysis.semantics.evidence.common_method_names import GENERIC
from troth.analysis.semantics.evidence.witnesses.definition_name import is_in_family
from troth.analysis.semantics.infer.call_graph import names_of
from troth.analysis.semantics.infer.evaluator import BUILTIN_FUNCTIONS
from troth.analysis.semantics.infer.never_awaitable import (
    gives_a_result_sometimes,
    gives_no_awaitable,
    library_gives_no_awaitable,
)
from troth.analysis.semantics.infer.virtual_dispatch import hands_on_otherwise, overridden_otherwise
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.color_checks import ASKS_FOR_FUNCTION
from troth.analysis.semantics.resolve.library import LibraryClass, LibraryFunction
from troth.analysis.semantics.values import External, FunctionValue, Instance, Value, members_of
from troth.analysis.semantics.walk.library_callbacks import names_of_awaiters, wants_an_awaitable

if TYPE_CHECKING:
    from troth.analysis.facts.model import At, FileFacts, FunctionFacts, Node
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call
    from troth.analysis.semantics.symbols import Function

CASES = [
    Case(
        "an attribute that holds something else than its annotation says",
        good="import asyncio, subprocess\nfrom dataclasses import dataclass\n@dataclass\nclass Session:\n    process: subprocess.Popen\n"
        "async def start(command):\n    process = await asyncio.create_subprocess_exec(*command)\n    return Session(process=process)\n"
        "async def close(session: Session):\n    session.process.kill()\n    await session.process.wait()\n",
    ),
    Case(
        "one that may give back what it is given",
        good="async def load(): ...\ndef checked(value):\n    if not value:\n        return {}\n    return value\nasync def main():\n    await checked(load())\n",
    ),
    Case(
        "a function",
        bad="def load(n: int) -> str:\n    return str(n)\nasync def main():\n    return await load(1)  # here\n",
        fixed="def load(n: int) -> str:\n    return str(n)\nasync def main():\n    return load(1)  # here\n",
    ),
    Case(
        "a method that returns nothing",
        bad="class Log:\n    def add(self, text):\n        self.texts.append(text)\nasync def main(log: Log):\n    await log.add('x')  # here\n",
        fixed="class Log:\n    def add(self, text):\n        self.texts.append(text)\nasync def main(log: Log):\n    log.add('x')  # here\n",
    ),
    Case(
        "an attribute that holds what its annotation says",
        bad="import asyncio\n"
        "import subprocess\n"
        "from dataclasses import dataclass\n"
        "from typing import Optional\n"
        "@dataclass\n"
        "class Session:\n"
        "    name: str\n"
        "    process: Optional[subprocess.Popen]\n"
        "class Bridge:\n"
        "    def __init__(self):\n"
        "        self.sessions = {}\n"
        "    async def start(self, name, command):\n"
        "        process = subprocess.Popen(command)\n"
        "        session = Session(name=name, process=process)\n"
        "        self.sessions[name] = session\n"
        "    async def close(self, session: Session):\n"
        "        session.process.kill()\n"
        "        await session.process.wait()  # here\n",
    ),
    Case(
        "what is cast to the wrong Future",
        good="from concurrent.futures import Future\nfrom typing import cast\nclass Server:\n    def put_off(self, function) -> Future:\n"
        "        return cast(Future, self.loop.run_in_executor(None, function))\n    async def stop(self):\n        await self.put_off(print)\n",
    ),
    Case(
        "the only one of that name, which others call",
        bad="class Purge:\n    def start_purge(self, room) -> str:\n        return 'id'\nasync def main(handler):\n    await handler.start_purge('r')  # here\n"
        "async def again(handler):\n    return handler.start_purge('s')\n",
    ),
    Case(
        "the only one of that name, on an object that is called like its class",
        bad="class RoomPurge:\n    def start_purge(self, room) -> str:\n        return 'id'\nasync def main(room_purge):\n    await room_purge.start_purge('r')  # here\n",
    ),
    Case(
        "of another part of the same object",
        bad="class Captcha:\n    def captcha_resolve(self) -> str:\n        return 'x'\nclass Signup:\n    async def sign_up(self):\n        return await self.captcha_resolve()  # here\n"
        "class Client(Captcha, Signup): ...\n",
    ),
    Case(
        "the only one of that name, on an object of who knows where",
        good="class Purge:\n    def start_purge(self, room) -> str:\n        return 'id'\nasync def main(actor_ref):\n    await actor_ref.start_purge('r')\n",
    ),
    Case(
        "what several functions await",
        good="class Client:\n    def append_message(self, text) -> str:\n        return text\ndef ask(client):\n    return client.append_message('x')\n"
        "async def main(chat):\n    await chat.append_message('r')\nasync def other(chat):\n    await chat.append_message('s')\n",
    ),
    Case(
        "a name that another class gives to what a function makes",
        good="class Client:\n    def kernel_info(self) -> str:\n        return 'x'\nclass Waiting(Client):\n    kernel_info = waiting_for(Client.kernel_info)\n"
        "def ask(client):\n    return client.kernel_info()\nasync def main(client):\n    await client.kernel_info()\n",
    ),
    Case(
        "others await it too",
        good="class Capture:\n    def put_object(self, x) -> dict:\n        return {}\nasync def one(client):\n    await client.put_object(1)\n"
        "async def two(s3):\n    await s3.put_object(2)\n",
    ),
    Case(
        "a wrapper of what has it too",
        good="class Capture:\n    def __init__(self, inner):\n        self.inner = inner\n    def put_object(self, x) -> str:\n"
        "        return str(self.inner.put_object(x))\nasync def one(client):\n    await client.put_object(1)\n",
    ),
    Case(
        "called plainly on something else",
        good="class Utils:\n    def get_config(self) -> str:\n        return 'x'\ndef read(utils: Utils):\n    return utils.get_config()\nasync def main(group):\n    await group.get_config()\n",
    ),
    Case(
        "given to a task",
        bad="import asyncio\ndef work() -> None:\n    print(1)\nasync def main():\n    task = asyncio.create_task(work())  # here\n    await task\n",
    ),
    Case(
        "of a class whose async twin is meant",
        good="class Filter:\n    def entries(self) -> list:\n        return []\nclass AsyncFilter:\n    async def entries(self): ...\n"
        "def build() -> Filter: ...\nasync def main():\n    return await build().entries()\n",
    ),
    Case(
        "a collection of tasks",
        good="import asyncio\nasync def main(tasks: list[asyncio.Task[None]]):\n    await asyncio.wait(set(tasks), timeout=1)\n"
        "    for one in asyncio.as_completed(list(tasks)):\n        await one\n",
    ),
    Case(
        "a task that is cancelled",
        bad="import asyncio\nasync def work(): ...\nasync def main():\n    task = asyncio.create_task(work())\n    await task.cancel()  # here\n",
        fixed="import asyncio\nasync def work(): ...\nasync def main():\n    task = asyncio.create_task(work())\n    task.cancel()  # here\n",
    ),
    Case(
        "a task of another library that is cancelled",
        good="import curio\nasync def work(): ...\nasync def main():\n    task = await curio.spawn(work())\n    await task.cancel()\n",
    ),
    Case(
        "a list that is filled",
        bad="async def main():\n    rows = []\n    await rows.append(1)  # here\n    return rows\n",
        fixed="async def main():\n    rows = []\n    rows.append(1)  # here\n    return rows\n",
    ),
    Case(
        "what a dict holds",
        good="async def work(): ...\nasync def main():\n    jobs = {'a': work()}\n    await jobs.pop('a')\n",
    ),
    Case(
        "a sync method of an async session",
        bad="from sqlalchemy.ext.asyncio import AsyncSession\nasync def main(session: AsyncSession, row):\n    await session.add(row)  # here\n    await session.commit()\n",
        fixed="from sqlalchemy.ext.asyncio import AsyncSession\nasync def main(session: AsyncSession, row):\n    session.add(row)  # here\n    await session.commit()\n",
    ),
    Case(
        "an async method of an async session",
        good="from sqlalchemy.ext.asyncio import AsyncSession\nasync def main(session: AsyncSession, row):\n    await session.delete(row)\n    await session.flush()\n",
    ),
    Case(
        "a response that is there already",
        bad="import httpx\nasync def main():\n    async with httpx.AsyncClient() as client:\n        reply = await client.get('x')\n        return await reply.json()  # here\n",
    ),
    Case(
        "a response that is read as it comes",
        good="import aiohttp, httpx\nasync def main(session: aiohttp.ClientSession, client: httpx.AsyncClient):\n    async with session.get('x') as reply:\n        print(await reply.json())\n"
        "    async with client.stream('GET', 'x') as reply:\n        return await reply.aread()\n",
    ),
    Case(
        "a client that has an async twin",
        bad="from openai import OpenAI\nclient = OpenAI()\nasync def main():\n    return await client.chat.completions.create(model='x', messages=[])  # here\n",
    ),
    Case(
        "of a library that waits itself",
        bad="import requests\nasync def main():\n    return await requests.get('x')  # here\n",
    ),
    Case(
        "a task that is sent to a queue",
        bad="from celery import Celery\napp = Celery('x')\n@app.task(bind=True)\ndef add(self, n): ...\nasync def main():\n    return await add.delay(1)  # here\n",
        fixed="from celery import Celery\napp = Celery('x')\n@app.task(bind=True)\ndef add(self, n): ...\nasync def main():\n    return add.delay(1)  # here\n",
    ),
    Case(
        "tasks of another file",
        bad={
            "tasks.py": "from celery import shared_task\n@shared_task\ndef add(n): ...\n@shared_task(name='d')\ndef drop(n): ...\n",
            "case.py": "from tasks import add\nimport tasks\nasync def main():\n    await add.delay(1)  # here\n    await tasks.drop.apply_async((1,))  # here\n",
        },
    ),
    Case(
        "an actor that gets a message",
        bad="import dramatiq\n@dramatiq.actor(max_retries=3)\ndef add(n): ...\nasync def main(socket):\n    await add.send(1)  # here\n    await socket.send(1)\n",
    ),
    Case(
        "a task that is sent, and one of a queue that is async",
        good="from celery import shared_task\nimport taskiq\nbroker = taskiq.InMemoryBroker()\n@shared_task\ndef add(n): ...\n@broker.task\nasync def drop(n): ...\n"
        "async def main(delay):\n    add.delay(1)\n    await drop.kiq(1)\n    await delay.delay(1)\n    await maybe(add.delay(1))\n",
    ),
    Case(
        "a task of a class that may be sent otherwise",
        good="from celery import shared_task\nfrom lib import AsyncTask\n@shared_task(base=AsyncTask)\ndef add(n): ...\nasync def main():\n    await add.delay(1)\n",
    ),
    Case(
        "tasks that are sent by a coroutine",
        good="import celery_pool_asyncio\nfrom celery import shared_task\n@shared_task\ndef add(n): ...\nasync def main():\n    await add.delay(1)\n",
    ),
    Case(
        "tasks of a project's own class",
        good="from celery import Celery, Task\nclass AsyncTask(Task):\n    async def delay(self, *args): ...\napp = Celery('x', task_cls=AsyncTask)\n@app.task\ndef add(n): ...\n"
        "async def main():\n    await add.delay(1)\n",
    ),
    Case("from a library", bad="import json\nasync def main(text):\n    return await json.dumps(text)  # here\n"),
    Case(
        "a result on one of its paths",
        bad="class Counter:\n    def __init__(self, load):\n        self.current = load()\n    def token(self):\n        if self.open:\n            return len(self.open)\n        return self.current\n"
        "async def main(counter: Counter):\n    return await counter.token()  # here\n",
    ),
    Case(
        "of the color it is asked for",
        good="class Client:\n    def get(self, is_async=False):\n        if not is_async:\n            return 1\n        return self.later()\nasync def main(client: Client):\n    return await client.get(is_async=True)\n",
    ),
    Case(
        "a coroutine handed on",
        good="async def fetch(): ...\ndef load():\n    return fetch()\nasync def main():\n    await load()\n",
    ),
    Case(
        "annotated as awaitable",
        good="from typing import Awaitable\ndef load() -> Awaitable[int]:\n    return make()\nasync def main():\n    await load()\n",
    ),
    Case(
        "of unknown result", good="import lib\ndef load():\n    return lib.get()\nasync def main():\n    await load()\n"
    ),
    Case(
        "shared by a plain and an async client",
        good="class Commands:\n    def size(self) -> int:\n        return self.execute('SIZE')\nclass Client(Commands):\n"
        "    async def execute(self, *a): ...\nasync def main(c: Client):\n    await c.size()\n",
    ),
    Case(
        "handed on by what is sync or async, whatever the annotation says",
        good="from lib import run\nclass Either:\n    def sync(self, function, *args):\n        if self.asynchronous:\n            future = function(*args)\n"
        "            return future\n        return run(self.loop, function, *args)\nclass Client(Either):\n    async def _wait(self, n): ...\n"
        "    def wait(self, n: int) -> None:\n        return self.sync(self._wait, n)\nasync def main(c: Client):\n    await c.wait(2)\n",
    ),
    Case(
        "handed on to what an async socket defines again",
        good="import asyncio\nclass Socket:\n    def send(self, data) -> None:\n        print(data)\n    def send_json(self, data) -> None:\n"
        "        return self.send(str(data))\nclass AsyncSocket(Socket):\n    def send(self, data) -> asyncio.Future[None]:\n"
        "        return asyncio.get_running_loop().create_future()\nasync def main(s: AsyncSocket):\n    await s.send_json(1)\n",
    ),
    Case(
        "of an object of the class that makes it",
        good="from typing import Generic, TypeVar\nC = TypeVar('C', bound='Context')\nclass Context:\n    @classmethod\n"
        "    def instance(cls: type[C]) -> C:\n        return cls()\n    def send(self) -> None:\n        print(1)\n"
        "class AsyncContext(Context):\n    async def send(self) -> None: ...\nclass Other(Context): ...\n"
        "async def main():\n    await AsyncContext.instance().send()\n",
    ),
    Case(
        "of a class that a subclass replaces",
        good="class Socket:\n    def send(self) -> None:\n        print(1)\nclass AsyncSocket(Socket):\n    async def send(self) -> None: ...\n"
        "class Base:\n    Socket = Socket\n    def make(self):\n        return self.Socket()\nclass Test(Base):\n    Socket = AsyncSocket\n"
        "    async def test(self):\n        await self.make().send()\n",
    ),
    Case(
        "itself, of a class that one below it makes awaitable",
        good="class Query:\n    def where(self, text):\n        self.text = text\n        return self\nclass Update(Query):\n    def __await__(self):\n        yield\n"
        "class Find:\n    query = Query\n    def update(self):\n        return self.query().where('x')\nclass FindMany(Find):\n    query = Update\n"
        "async def main(find: FindMany):\n    await find.update()\n",
    ),
    Case(
        "set by a function inside",
        good="import threading\nasync def load(): ...\ndef run():\n    result = None\n    def work():\n        nonlocal result\n"
        "        result = load()\n    threading.Thread(target=work).start()\n    return result\nasync def main():\n    await run()\n",
    ),
    Case(
        "named after a class that has an async twin",
        good="class OAuthFlow:\n    def handle_callback(self) -> None:\n        print(1)\nclass AsyncOAuthFlow:\n    async def handle_callback(self) -> None: ...\nasync def main(oauth_flow):\n    await oauth_flow.handle_callback()\n",
    ),
    Case(
        "a client that is wrapped under the same name",
        good="class News:\n    def __init__(self, client):\n        self.client = client\n    def search_news(self) -> str:\n        return 'x'\n    async def asearch_news(self):\n        return await self.client.news.search_news()\n",
    ),
    Case(
        "asked of a remote object",
        good="class Scheduler:\n    def get_index(self):\n        return 1\nclass Rpc:\n    def __getattr__(self, key):\n"
        "        async def call(**kw): ...\n        return call\nasync def main(scheduler):\n    await scheduler.get_index()\n",
    ),
    Case(
        "overridden by an async one",
        good="class Base:\n    def on(self):\n        return None\nclass Real(Base):\n    async def on(self): ...\nasync def main(b: Base):\n    await b.on()\n",
    ),
    Case(
        "decorated into async",
        good="from asgiref.sync import sync_to_async\n@sync_to_async\ndef load():\n    return 1\nasync def main():\n    await load()\n",
    ),
    Case(
        "meant for subclasses",
        good="class Base:\n    def on(self): ...\n    async def go(self):\n        await self.on()\n",
    ),
    Case(
        "either color",
        good="import inspect\ndef call(f):\n    return None\nasync def main(f):\n    r = call(f)\n    if inspect.isawaitable(r):\n        await r\n",
    ),
]

_TAKING_MANY = frozenset({"wait", "as_completed"})  # a collection of awaitables, which a sync function may well give
_SYNC_LIBRARIES = frozenset({"boto3", "paramiko", "psycopg2", "pymysql", "requests", "urllib", "urllib3"})
_TELLING = 4  # letters of a receiver's name that says which class is meant
_ASKING = ASKS_FOR_FUNCTION | {"isawaitable", "iscoroutine", "maybe_await", "raises", "assertRaises"}


@rule("TR401", "awaited-plain-function", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Sync functions under `await`."""
    giving = {f for f in program.calling.asked_naming(names_of_awaiters()) if f.facts.flags & ASYNC}
    asking = {
        f
        for f in program.calling.asked_naming(_ASKING)
        if any(callee.rpartition(".")[2] in _ASKING for callee in f.facts.calls)
    }
    for path in program.asked:
        module = program.module(path)
        for index, facts in enumerate(module.facts.functions):
            if not facts.awaited and not facts.flags & ASYNC:
                continue
            function = module.function(index)
            gives = function in giving
            if (not facts.awaited and not gives) or function in asking:
                continue  # it looks at the color itself, or expects the error
            callees = (*facts.calls, *facts.awaited) if gives else facts.awaited  # some may be given to who awaits them
            if not any(_is_worth_a_look(program, function, callee) for callee in callees):
                continue
            calls = program.calling.of(function)
            by_place = {call.at: call for call in calls}
            for call in calls:
                if call.is_awaited:
                    yield from _judge(program, call, "await")
                for argument in _awaitables_wanted(call):
                    inner = by_place.get(argument)
                    if inner is not None:
                        yield from _judge(program, inner, call.text)


def _is_worth_a_look(program: Program, function: Function, callee: str) -> bool:
    """Whether an awaited callee may be plain, as far as its name and what can be seen of it at a glance tell."""
    if " " in callee:
        return False
    name = callee.rpartition(".")[2]
    if "." in callee and (name == "cancel" or name in sending_methods(program)):
        return True  # of a task, as only a walk can tell
    is_async, plain = program.counts.colors(name)
    scope = program.glance.scope(function, callee)
    if scope is None:
        return (
            _can_be_plain(program, name) if plain else not is_async and ("." in callee or callee in BUILTIN_FUNCTIONS)
        )
    members = members_of(program.glance.value(function, callee, scope))
    if None in members and not is_async and plain > 0 and _can_be_plain(program, name):
        return True
    return any(
        _is_of_sync_library(candidate) or (isinstance(candidate, FunctionValue) and _may_be_plain(program, candidate))
        for candidate in members
    )


def _can_be_plain(program: Program, name: str) -> bool:
    """Whether some function of that name gives nothing that can be awaited."""
    answers: MutableMapping[str, bool] = program.answers_to("can be plain")
    if name not in answers:
        answers[name] = any(
            not namesake.is_async and _gives_a_result(program, namesake) != ""
            for namesake in program.calling.functions_named(name)
        )
    return answers[name]


def _may_be_plain(program: Program, value: FunctionValue) -> bool:
    function = value.function
    if isinstance(function, LibraryFunction):
        return library_gives_no_awaitable(program, function)
    return not function.is_async and _gives_a_result(program, function) != ""


def _awaitables_wanted(call: Call) -> Iterator[At]:
    """The places of the calls whose results are given to `call`, which wants coroutines."""
    if call.text.rpartition(".")[2] in _TAKING_MANY or not call.caller.is_async:
        return
    for position, node in enumerate(call.node[2]):
        if node[0] == "call" and wants_an_awaitable(call, str(position)):
            yield node[-1]


def _judge(program: Program, call: Call, under: str) -> Iterator[Finding]:
    members = members_of(call.callee)
    plain = [candidate for candidate in members if isinstance(candidate, FunctionValue)]
    if len(plain) == len(members) and members:
        whys = [_why_plain(program, function) for function in plain]
        reasons = [why for why in whys if why is not None]
        if (
            len(reasons) < len(whys)
            or _is_replaced(program, call)
            or any(_may_be_a_twin(program, function) for function in plain)
            or _holds_something_else(program, call, plain[0])
        ):
            return
        first = plain[0]
        is_guess = any(isinstance(function.receiver, Instance) and function.receiver.guess for function in plain)
        if is_guess and program.counts.colors(first.function.name)[0]:
            return  # a class of which another one has this method in async
        sure = len(plain) == 1 and not (isinstance(first.receiver, Instance) and first.receiver.guess)
        sure = sure and all(is_sure for _, is_sure in reasons)
        yield _told(
            program,
            call,
            under,
            first.function.qualname,
            tuple(reason for reason, _ in reasons),
            sure=sure,
            is_guess=is_guess,
        )
    elif members and all(map(_is_of_sync_library, members)) and not _is_replaced(program, call):
        yield _told_of_library(program, call, under)
    elif call.callee is None and (sent := sent_task(program, call)) is not None:
        if not _is_replaced(program, call):
            yield _told(program, call, under, sent.name, (sent.reason,), sure=False, is_guess=False)
    elif call.callee is None and call.node[1][0] == "attr":
        reason = None if program.counts.has_remote_objects else _by_name(program, call)
        if reason is not None and not _is_replaced(program, call):
            yield _told(program, call, under, call.text, (reason,), sure=False, is_guess=True)


def _is_of_sync_library(value: Value | None) -> bool:
    """Whether it is a function that waits itself, of a library that has nothing async."""
    if not isinstance(value, External) or value.path.partition(".")[0] not in _SYNC_LIBRARIES:
        return False
    return any(name in semantics().blocking for name in names_of(value))


def _told_of_library(program: Program, call: Call, under: str) -> Finding:
    name = next(names_of(call.callee))
    waits = f"`{name}` waits itself, and gives nothing that can be awaited"
    message = (
        f"`await {call.text}(…)` raises TypeError: {waits}"
        if under == "await"
        else f"`{under}` wants a coroutine: {waits}"
    )
    reason = Reason(f"`{name}` is a function of a library that has nothing async")
    return tell_at(
        program, "TR401", "awaited-plain-function", call.caller, call.at, message,
        sure=True, reasons=(reason,), subject=call.text,
    )  # fmt: skip


def _why_plain(program: Program, value: FunctionValue) -> tuple[Reason, bool] | None:
    """Why awaiting what the function gives must fail, and whether that is so on all of its paths."""
    function = value.function
    if isinstance(function, LibraryFunction):
        if not library_gives_no_awaitable(program, function):
            return None
        phrase = f"gives `{function.returns}`" if function.returns else "gives nothing that can be awaited"
        return Reason(f"`{function.qualname}` is a sync function that {phrase}"), True
    if overridden_otherwise(program, function, value.receiver) or hands_on_otherwise(program, function, value.receiver):
        return None
    gives = _gives_a_result(program, function)
    if not gives:
        return None
    on = "" if gives == "always" else " on one of its paths"
    text = f"`{function.qualname}` is a plain `def`, and what it returns{on} cannot be awaited"
    return Reason(text, *function.place), gives == "always"


def _may_be_a_twin(program: Program, value: FunctionValue) -> bool:
    """Whether the method is that of a class by a guess, or of one with an async twin, and async elsewhere."""
    receiver = value.receiver
    if not isinstance(receiver, Instance) or not program.counts.colors(value.function.name)[0]:
        return False
    return receiver.guess or any(
        namesake.owner is not None
        and namesake.owner.name.replace("Async", "") == receiver.cls.name
        and namesake.is_async
        for namesake in program.calling.functions_named(value.function.name)
    )


def _holds_something_else(program: Program, call: Call, plain: FunctionValue) -> bool:
    """Whether the file makes the object with something else than its annotation says: `Session(process=process)`.

    `process: subprocess.Popen` may hold what `await asyncio.create_subprocess_exec(…)` gave, and then the `await` is right.
    """
    callee, receiver = call.node[CALL_FUNC], plain.receiver
    if callee[KIND] != "attr" or callee[ATTR_BASE][KIND] != "attr" or not isinstance(receiver, Instance):
        return False
    name, module = callee[ATTR_BASE][ATTR_NAME], call.caller.module
    for number, facts in enumerate(module.facts.functions):
        if not facts.calls and not facts.awaited:
            continue
        function = module.function(number)
        for construction in of_kind(function.body(), "call"):
            argument = dict(construction[CALL_KEYWORDS]).get(name)
            if argument is not None and _is_of_another_class(program, argument, function, receiver):
                return True
    return False


def _is_of_another_class(program: Program, argument: Node, function: Function, expected: Instance) -> bool:
    """Whether an argument, or what its variable is set to, is surely an object of another class of a library."""
    candidates = [argument]
    if argument[KIND] == "name":
        candidates = [
            statement[ASSIGN_VALUE]
            for statement in of_kind(function.body(), "assign")
            if argument in statement[ASSIGN_TARGETS]
        ]
    objects = [program.value_of(candidate, function.module, function) for candidate in candidates]
    return any(
        type(candidate) is Instance
        and not candidate.guess
        and isinstance(candidate.cls, LibraryClass)
        and expected.cls.qualified not in library.lineage(candidate.cls.qualified)
        for candidate in objects
    )


def _by_name(program: Program, call: Call) -> Reason | None:
    """Every definition of the name in the project is plain and gives nothing that can be awaited."""
    if _has_remote_objects(program):
        return None
    name = call.node[1][2]
    is_async, plain = program.counts.colors(name)
    if is_async or not plain or name in GENERIC or name.startswith("__") or "_" not in name.strip("_"):
        return None
    owner = call.caller.class_around
    if "async" in call.text.lower() or (owner is not None and name in owner.methods):
        return None  # an async client, or one that the class wraps under the same names
    tops = call.caller.module.packages
    if any(name in library.async_names(top) for top in tops):
        return None  # the object may be of a library that the file imports, where it is awaited rightly
    defined = [function for function in program.calling.functions_named(name) if function.owner is not None]
    real = [function for function in defined if not function.is_abstract]
    if not is_test(call.caller.module.path) and all(is_test(function.module.path) for function in real):
        return None  # what stands for it in tests says nothing of the real one
    if len(defined) != plain or not real or not all(_gives_a_result(program, function) for function in real):
        return None
    if any(_hands_on(function) for function in real) or not _is_seconded(program, call, name, real):
        return None
    if name in _made_attributes(program):
        return None
    which = "the only definition" if len(real) == 1 else f"all {len(real)} definitions"
    return Reason(
        f"{which} of `{name}` in this project: plain `def`, and nothing that can be awaited comes back", *real[0].place
    )


def _is_seconded(program: Program, call: Call, name: str, defined: list[Function]) -> bool:
    """Whether more than its name says that one of these methods is meant.

    Somebody else calls it on an object of that name without awaiting, or the object is called like the class. What
    several functions await is no slip: it belongs to a library, or to the other side of a wire.
    """
    functions = [f for f in program.calling.functions_naming({name}) if f is not call.caller and f.name != name]
    if any(callee.rpartition(".")[2] == name for user in functions for callee in user.facts.awaited):
        return False
    tail = call.text.split(".")[-2:]
    if any(callee.split(".")[-2:] == tail for user in functions for callee in user.facts.calls):
        return True
    around = call.caller.class_around
    if call.node[1][1] == ("name", "self"):
        return around is not None and is_in_family(program, name, around)
    receiver = last_name(call.node[1][1]).replace("_", "").lower()
    owners = {function.owner.name.lower() for function in defined if function.owner is not None}
    return len(receiver) >= _TELLING and any(receiver in owner for owner in owners)


def _made_attributes(program: Program) -> frozenset[str]:
    answers: MutableMapping[str, frozenset[str]] = program.answers_to("made attributes")
    if "" not in answers:
        answers[""] = frozenset().union(*program.said("made attributes").values())
    return answers[""]


@part("made attributes")
def _set_in_classes(file: FileFacts) -> frozenset[str]:
    """The attributes that classes set to what a call gives, which may be a function of any color."""
    return frozenset(name for cls in file.classes for name, value in cls.values if value[0] == "call")


def _hands_on(function: Function) -> bool:
    """Whether a method wraps one of the same name of another object, which may be of a library that has it async too."""
    return any(
        callee.rpartition(".")[2] == function.name and not callee.startswith("?.") for callee in function.facts.calls
    )


def _gives_a_result(program: Program, function: Function) -> str:
    """Whether what a sync function gives cannot be awaited: "always", "sometimes", or never ("")."""
    answers: MutableMapping[Function, str] = program.answers_to("gives a result")
    if function not in answers:
        if gives_no_awaitable(program, function):
            answers[function] = "always"
        else:
            answers[function] = "sometimes" if gives_a_result_sometimes(program, function) else ""
    return answers[function]


def _has_remote_objects(program: Program) -> bool:
    """Whether some `__getattr__` makes async methods up: whatever is called on such an object goes elsewhere."""
    return bool(program.said("remote objects"))


@part("remote objects")
def _makes_up_async(file: FileFacts) -> bool:
    return any(
        facts.name in {"__getattr__", "__getattribute__"} and _makes_async(file.functions, index)
        for index, facts in enumerate(file.functions)
    )


def _makes_async(functions: tuple[FunctionFacts, ...], index: int) -> bool:
    return any(function.parent == index and function.flags & ASYNC for function in functions) or bool(
        {"partial", "functools.partial"} & set(functions[index].calls)
    )


def _is_replaced(program: Program, call: Call) -> bool:
    """Whether a test puts something else in the place of the function."""
    path = call.caller.module.path
    if "test" not in path and "mock" not in path:
        return False
    name = re.escape(call.text.rpartition(".")[2])
    text = program.text(path).value
    return re.search(rf"""\.{name}\s*=[^=]|{name}["']|\b{name}=""", text) is not None or "Mock" in text


def _told(
    program: Program, call: Call, under: str, name: str, reasons: tuple[Reason, ...], *, sure: bool, is_guess: bool
) -> Finding:
    caller = call.caller
    if under == "await":
        message = (
            f"`await {call.text}(…)` raises TypeError: `{name}` is a sync function, whose result cannot be awaited"
        )
    else:
        message = f"`{under}` wants a coroutine, and `{call.text}(…)` gives a result: `{name}` is a sync function"
    return tell_at(
        program, "TR401", "awaited-plain-function", caller, call.at, message,
        sure=sure, reasons=reasons, fix=_fix(program, call, is_guess=is_guess) if under == "await" else None, subject=call.text,
    )  # fmt: skip


def _fix(program: Program, call: Call, *, is_guess: bool) -> Fix | None:
    path = call.caller.module.path
    if path.endswith(".ipynb"):
        return None
    text = program.text(path)
    start = text.offset(call.at[0], call.at[1])
    match = re.search(r"\bawait[ \t]+\Z", text.value[max(0, start - 40) : start])
    if match is None:
        return None
    first = start - len(match[0])
    return Fix("take the await away", "guess" if is_guess else "likely", (Edit(path, first, start, ""),))
