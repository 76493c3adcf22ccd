"""What the bundled tables say about well-known libraries."""

import pytest

from troth.analysis import knowledge

REQUEST = "aiohttp.client._BaseRequestContextManager[aiohttp.client_reqrep.ClientResponse]"
ACQUIRED = "asyncpg.pool.PoolAcquireContext[asyncpg.protocol.record.Record]"


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        pytest.param("asyncio.sleep", "a", id="asyncio function"),
        pytest.param("asyncio.gather", "w", id="gather gives a future"),
        pytest.param("asyncio.create_task", "w", id="create_task gives a task"),
        pytest.param("asyncio.timeout", "m", id="timeout is an async context manager"),
        pytest.param("asyncio.Queue.get", "a", id="asyncio queue"),
        pytest.param("asyncio.Queue.get_nowait", "", id="and its plain sibling"),
        pytest.param("asyncio.StreamWriter.write", "", id="sync method of a mixed class"),
        pytest.param("asyncio.StreamWriter.drain", "a", id="async method of a mixed class"),
        pytest.param("asyncio.run", "", id="run is plain"),
        pytest.param("time.sleep", "", id="sync function of the standard library"),
        pytest.param("contextlib.AsyncExitStack.aclose", "a", id="exit stack"),
        pytest.param("unittest.IsolatedAsyncioTestCase.asyncSetUp", "a", id="unittest hook"),
        pytest.param("anyio.sleep", "a", id="anyio function, defined in a private module"),
        pytest.param("anyio.create_task_group", "m", id="anyio task group"),
        pytest.param("anyio.to_thread.run_sync", "a", id="anyio submodule"),
        pytest.param("aiohttp.ClientResponse.json", "a", id="aiohttp response body"),
        pytest.param("aiohttp.ClientSession.get", "wm", id="aiohttp request: awaited or entered"),
        pytest.param("aiohttp.ClientSession.close", "a", id="aiohttp close"),
        pytest.param("aiohttp.web.Request.json", "a", id="aiohttp server request"),
        pytest.param("httpx.AsyncClient.get", "a", id="httpx async client"),
        pytest.param("httpx.Client.get", "", id="httpx sync client"),
        pytest.param("httpx.AsyncClient.stream", "m", id="httpx stream"),
        pytest.param("httpx.Response.json", "", id="httpx response is plain"),
        pytest.param("httpx.Response.aread", "a", id="httpx response read"),
        pytest.param("starlette.requests.Request.json", "a", id="starlette request"),
        pytest.param("fastapi.Request.json", "a", id="inherited across packages"),
        pytest.param("fastapi.WebSocket.send_text", "a", id="re-exported across packages"),
        pytest.param("discord.abc.Messageable.send", "a", id="discord send"),
        pytest.param("discord.TextChannel.send", "a", id="discord send, inherited"),
        pytest.param("discord.TextChannel.history", "g", id="discord async generator"),
        pytest.param("discord.Client.wait_until_ready", "a", id="discord wait_until_ready"),
        pytest.param("discord.Client.fetch_user", "a", id="discord fetch"),
        pytest.param("discord.Client.get_user", "", id="discord cache lookup is plain"),
        pytest.param("discord.ext.commands.Bot.add_cog", "a", id="discord add_cog"),
        pytest.param("discord.ext.commands.Bot.remove_cog", "a", id="discord remove_cog"),
        pytest.param("redis.asyncio.Redis.get", "a", id="redis async command"),
        pytest.param("redis.Redis.get", "", id="redis sync command, from the same mixin"),
        pytest.param("redis.asyncio.client.Pipeline.get", "o", id="redis pipeline: either"),
        pytest.param("asyncpg.Connection.fetch", "a", id="asyncpg"),
        pytest.param("asyncpg.Pool.acquire", "wm", id="asyncpg pool: awaited or entered"),
        pytest.param("aiosqlite.Connection.execute", "wm", id="aiosqlite, by its own decorator"),
        pytest.param("aiosqlite.Cursor.fetchone", "a", id="aiosqlite cursor"),
        pytest.param("django.db.models.QuerySet.aget", "a", id="django async ORM"),
        pytest.param("django.db.models.QuerySet.get", "", id="django sync ORM"),
        pytest.param("django.db.models.Manager.acreate", "a", id="django manager"),
        pytest.param("django.db.models.Model.asave", "a", id="django model"),
    ],
)
def test_color_of_a_known_callable(name, flags):
    """The name leads through re-exports and bases to a signature whose color flags are those."""
    found = knowledge.find(name)
    assert found is not None
    assert found.sig is not None
    assert "".join(flag for flag in found.sig[0] if flag in "agwmo") == flags


@pytest.mark.parametrize(
    ("name", "returns"),
    [
        pytest.param("asyncio.create_task", "asyncio.tasks.Task", id="task"),
        pytest.param("asyncio.get_running_loop", "asyncio.events.AbstractEventLoop", id="loop"),
        pytest.param("aiohttp.ClientSession.request", REQUEST, id="request context"),
        pytest.param("discord.abc.Messageable.send", "discord.message.Message", id="awaited value"),
        pytest.param("django.db.models.QuerySet.filter", "typing.Self", id="the receiver's own class"),
        pytest.param("aiosqlite.Connection.execute", "aiosqlite.context.Result[aiosqlite.cursor.Cursor]", id="generic"),
    ],
)
def test_type_of_a_result(name, returns):
    """Enough of the type is known to judge calls on the result."""
    found = knowledge.find(name)
    assert found is not None
    assert found.sig is not None
    assert found.sig[1] == returns


@pytest.mark.parametrize(
    ("name", "role"),
    [
        pytest.param("asyncio.gather", {"*": "consumes"}, id="gather"),
        pytest.param("asyncio.create_task", {"0": "consumes", "coro": "consumes"}, id="create_task"),
        pytest.param("asyncio.as_completed", {"0": "consumes"}, id="a list of awaitables"),
        pytest.param("asyncio.TaskGroup.create_task", {"0": "consumes"}, id="task group"),
        pytest.param("asyncio.AbstractEventLoop.call_soon", {"0": "plain_function"}, id="call_soon"),
        pytest.param("asyncio.AbstractEventLoop.call_later", {"1": "plain_function"}, id="call_later"),
        pytest.param("asyncio.Task.add_done_callback", {"0": "plain_function"}, id="add_done_callback"),
        pytest.param("builtins.sorted", {"key": "plain_function"}, id="sorted key"),
        pytest.param("anyio.run", {"0": "coroutine_function"}, id="anyio.run"),
        pytest.param("anyio.abc.TaskGroup.start_soon", {"0": "coroutine_function"}, id="start_soon"),
        pytest.param("contextlib.AsyncExitStack.push_async_callback", {"0": "coroutine_function"}, id="exit stack"),
    ],
)
def test_role_of_a_parameter(name, role):
    """A parameter says what it does with what it is given, by position and by name."""
    found = knowledge.find(name)
    assert found is not None
    assert found.sig is not None
    assert role.items() <= found.sig[2].items()


@pytest.mark.parametrize(
    ("type_", "by", "result"),
    [
        pytest.param(REQUEST, "__aenter__", "aiohttp.client_reqrep.ClientResponse", id="by type argument"),
        pytest.param("aiohttp.ClientSession", "__aenter__", "aiohttp.client.ClientSession", id="the object itself"),
        pytest.param(ACQUIRED, "__aenter__", "asyncpg.pool.PoolConnectionProxy", id="said by the class"),
        pytest.param("no.such.Thing", "__await__", "", id="not known"),
    ],
)
def test_what_awaiting_or_entering_gives(type_, by, result):
    """The class says it, or leaves it to its type argument."""
    assert knowledge.fulfilled(type_, by).startswith(result)
    assert bool(knowledge.fulfilled(type_, by)) == bool(result)


@pytest.mark.parametrize(
    "name", ["no_such_package.thing", "aiohttp.NoSuchThing", "aiohttp.ClientSession.no_such_method", "../etc/passwd"]
)
def test_a_name_that_is_not_known(name):
    """Nothing is guessed."""
    assert knowledge.find(name) is None


def test_a_name_that_is_a_module_and_a_function():
    """The package gives the name of one of its modules to a function; users mean the function."""
    found = knowledge.find("tenacity.retry")
    assert found is not None
    assert found.kind == "function"


def test_attribute_of_a_model():
    """A metaclass adds `objects`; the catalogue declares it."""
    found = knowledge.find("django.db.models.Model.objects")
    assert found is not None
    assert found.type == "django.db.models.manager.Manager"
