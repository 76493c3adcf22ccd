"""What the bundled semantics say: blocking calls, spawners, slots, decorators and hooks."""

import typing

import pytest

from troth.analysis.knowledge import semantics as module
from troth.analysis.knowledge.semantics import semantics


@pytest.mark.parametrize(
    ("name", "waits_for", "twin"),
    [
        pytest.param("time.sleep", "sleep", "asyncio.sleep", id="sleep"),
        pytest.param("subprocess.run", "subprocess", "asyncio.create_subprocess_exec", id="subprocess"),
        pytest.param("requests.get", "network", "httpx.AsyncClient or aiohttp.ClientSession", id="requests"),
        pytest.param("requests.api.get", "network", "httpx.AsyncClient or aiohttp.ClientSession", id="as defined"),
        pytest.param("requests.sessions.Session.post", "network", "httpx.AsyncClient or aiohttp.ClientSession", id="session"),
        pytest.param("queue.Queue.get", "queue", "asyncio.Queue.get", id="queue"),
        pytest.param("threading.Lock.acquire", "lock", "asyncio.Lock.acquire", id="lock"),
        pytest.param("concurrent.futures._base.Future.result", "future", "asyncio.wrap_future", id="future"),
        pytest.param("sqlite3.Connection.execute", "database", "aiosqlite.Connection.execute", id="database"),
    ],
)  # fmt: skip
def test_blocking_call(name, waits_for, twin):
    """It stands under the name users write and under the name it is defined by, with what to say instead."""
    found = semantics().blocking[name]
    assert (found.waits_for, found.twin) == (waits_for, twin)


@pytest.mark.parametrize(
    "name", ["open", "pathlib.Path.exists", "asyncio.sleep", "redis.asyncio.Redis.get", "json.loads"]
)
def test_not_called_blocking(name):
    """Short file work is not blocking by default, and nothing async is."""
    assert name not in semantics().blocking


def test_waiting_can_be_turned_off():
    """`queue.get(block=False)` does not wait."""
    assert "block" in semantics().blocking["queue.Queue.get"].unless
    assert "blocking" in semantics().blocking["threading.Lock.acquire"].unless


@pytest.mark.parametrize(
    ("name", "keeper", "gives"),
    [
        pytest.param("asyncio.create_task", "caller", "task", id="create_task"),
        pytest.param("asyncio.tasks.create_task", "caller", "task", id="as defined"),
        pytest.param("asyncio.ensure_future", "caller", "task", id="ensure_future"),
        pytest.param("asyncio.AbstractEventLoop.create_task", "caller", "task", id="loop.create_task"),
        pytest.param("asyncio.TaskGroup.create_task", "callee", "task", id="task group"),
        pytest.param("anyio.abc.TaskGroup.start_soon", "callee", "task", id="anyio"),
        pytest.param("trio.Nursery.start_soon", "callee", "nothing", id="trio"),
        pytest.param("fastapi.BackgroundTasks.add_task", "callee", "nothing", id="FastAPI"),
        pytest.param("asyncio.run_coroutine_threadsafe", "loop", "thread_future", id="threadsafe"),
    ],
)
def test_spawner(name, keeper, gives):
    """Who has to hold the task decides whether dropping it loses it."""
    found = semantics().spawners[name]
    assert (found.keeper, found.gives) == (keeper, gives)


@pytest.mark.parametrize(
    ("name", "parameter", "wanted"),
    [
        pytest.param("threading.Thread", "target", "plain", id="thread"),
        pytest.param("threading.Timer", "1", "plain", id="timer, by position"),
        pytest.param("concurrent.futures.ThreadPoolExecutor.submit", "0", "plain", id="submit"),
        pytest.param("asyncio.AbstractEventLoop.call_soon", "0", "plain", id="call_soon"),
        pytest.param("asyncio.AbstractEventLoop.add_signal_handler", "1", "plain", id="signal handler of a loop"),
        pytest.param("signal.signal", "1", "plain", id="signal"),
        pytest.param("atexit.register", "0", "plain", id="atexit"),
        pytest.param("builtins.map", "0", "plain", id="map"),
        pytest.param("builtins.sorted", "key", "plain", id="sorted"),
        pytest.param("weakref.finalize", "1", "plain", id="finalize"),
        pytest.param("asyncio.to_thread", "0", "plain", id="to_thread"),
        pytest.param("aiohttp.web.get", "1", "async", id="aiohttp handler"),
        pytest.param("fastapi.Depends", "0", "either", id="FastAPI dependency"),
    ],
)
def test_slot(name, parameter, wanted):
    """A slot says which color of function it takes, by position and by name."""
    assert semantics().slots[name].wants[parameter] == wanted


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        pytest.param("functools.lru_cache", "caches", id="lru_cache"),
        pytest.param("functools.wraps", "keeps", id="wraps"),
        pytest.param("contextlib.asynccontextmanager", "async_manager", id="asynccontextmanager"),
        pytest.param("click.command", "wants_plain", id="click"),
        pytest.param("celery.Celery.task", "wants_plain", id="celery"),
        pytest.param("fastapi.FastAPI.get", "either", id="FastAPI route"),
        pytest.param("fastapi.applications.FastAPI.get", "either", id="FastAPI route, as defined"),
        pytest.param("asgiref.sync.sync_to_async", "makes_async", id="sync_to_async"),
        pytest.param("discord.ext.commands.command", "wants_async", id="discord command"),
        pytest.param("pytest.fixture", "either", id="fixture"),
        pytest.param("temporalio.workflow.run", "wants_async", id="Temporal workflow"),
        pytest.param("tenacity.retry", "keeps", id="tenacity"),
    ],
)
def test_decorator(name, effect):
    """What it does to the color of a function, or demands of it."""
    assert semantics().decorators[name] == effect


@pytest.mark.parametrize(
    ("base", "method", "verb"),
    [
        pytest.param("unittest.TestCase", "test_save", "calls", id="sync test case never awaits"),
        pytest.param("unittest.IsolatedAsyncioTestCase", "test_save", "either", id="isolated test case"),
        pytest.param("unittest.IsolatedAsyncioTestCase", "asyncSetUp", "awaits", id="async setup"),
        pytest.param("unittest.IsolatedAsyncioTestCase", "setUp", "calls", id="plain setup"),
        pytest.param("discord.Client", "on_message", "awaits", id="discord event"),
        pytest.param("discord.Client", "dispatch", None, id="not a hook"),
        pytest.param("starlette.endpoints.HTTPEndpoint", "get", "either", id="endpoint"),
        pytest.param("langchain_core.tools.BaseTool", "_arun", "awaits", id="LangChain async tool"),
        pytest.param("langchain_core.tools.BaseTool", "_run", "calls", id="LangChain sync tool"),
        pytest.param("threading.Thread", "run", "calls", id="thread"),
    ],
)
def test_hook(base, method, verb):
    """What a framework does with a method it calls by name."""
    assert semantics().hook(base, method) == verb


def test_every_entry_uses_the_words_of_its_type():
    """A misspelt effect or verb would be silently ignored by every rule."""
    known = semantics()
    assert set(known.decorators.values()) <= set(typing.get_args(module.Effect))
    assert {verb for patterns in known.hooks.values() for verb in patterns.values()} <= set(
        typing.get_args(module.Verb)
    )
    assert {color for slot in known.slots.values() for color in slot.wants.values()} <= set(
        typing.get_args(module.Wanted)
    )
    assert {found.waits_for for found in known.blocking.values()} <= {
        "sleep", "network", "subprocess", "lock", "queue", "future", "database", "file",
    }  # fmt: skip
    assert {found.keeper for found in known.spawners.values()} <= {"caller", "callee", "loop"}
    assert {found.takes for found in known.spawners.values()} <= {"coroutine", "function", "either", "plain", "any"}
    assert {hook.verb for hook in known.module_hooks} <= set(typing.get_args(module.Verb))
