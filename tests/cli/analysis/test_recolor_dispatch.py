"""What is async only because somebody awaits whatever he is given: dispatchers, callbacks, and their handlers."""

import pytest

BOT = """\
import asyncio
from collections.abc import Awaitable, Callable


class Bot:
    def __init__(self, on_error: Callable[[], Awaitable[None]] | None = None):
        self.on_error = on_error
        self.handlers = {"ping": self._ping, "join": self._join}

    async def dispatch(self, kind, message):
        handler = self.handlers[kind]
        return await handler(message)

    async def by_name(self, kind, message):
        handler = getattr(self, f"_on_{kind}")
        await handler(message)

    async def run(self):
        if self.on_error:
            await self.on_error()

    async def _ping(self, message):
        return message

    async def _join(self, message):
        await asyncio.sleep(0)

    async def _on_a(self, message):
        print(message)

    async def _on_b(self, message):
        await asyncio.sleep(0)


class App:
    async def failed(self) -> None:
        print("failed")

    def make(self):
        return Bot(on_error=self.failed)
"""
TEST = "from bot import Bot\n\n\nasync def test_ping():\n    bot = Bot()\n    assert await bot._ping(1) == 1\n"


def test_dispatchers_are_taught_and_their_handlers_freed(project):
    """Each picks, calls and awaits only what can be awaited; what waits stays async, and the tests follow."""
    project.write({"bot.py": BOT, "test_bot.py": TEST})
    done = project.troth("recolor", ".", "--needless", "--to", "sync")
    assert done.code == 0, done.out + done.err
    after = (project.root / "bot.py").read_text()
    assert "2 dispatchers changed to take both colors" in done.out
    assert (
        "        result = handler(message)\n        if inspect.isawaitable(result):\n            result = await result\n        return result\n"
        in after
    )
    assert "    def _ping" in after
    assert "    def _on_a" in after
    assert "async def _join" in after
    assert "async def _on_b" in after
    assert "import asyncio\nimport inspect\nfrom collections" in after
    assert "assert bot._ping(1) == 1" in (project.root / "test_bot.py").read_text()


def test_a_callback_is_freed_with_the_slot_that_awaits_it(project):
    """The slot takes both colors from now on, and its annotation says so."""
    project.write({"bot.py": BOT})
    assert project.troth("recolor", ".", "--needless", "--to", "sync").code == 0
    after = (project.root / "bot.py").read_text()
    assert "    def failed(self)" in after
    assert "on_error: Callable[[], Awaitable[None] | None] | None = None" in after
    assert (
        "            result = self.on_error()\n            if inspect.isawaitable(result):\n                await result\n"
        in after
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        pytest.param("x = [await handler(message), 1]", "cannot be written to take both colors", id="an odd place"),
        pytest.param("return await handler(message)  # sent\n        # on", "", id="a comment behind it"),
    ],
)
def test_a_dispatcher_that_cannot_be_taught_keeps_its_handlers(project, line, why):
    """It is named with the reason; one that can be is changed."""
    project.write({"bot.py": BOT.replace("return await handler(message)", line)})
    done = project.troth("recolor", ".", "--needless", "--to", "sync", "--all")
    assert done.code == 0, done.out + done.err
    assert ("async def _ping" in (project.root / "bot.py").read_text()) is bool(why)
    assert why in done.out


def test_what_loses_a_call_is_not_freed(project):
    """It never waits because an `await` is missing; to make it plain would hide the loss for good."""
    text = "async def save():\n    await send()\n\nasync def both():\n    save()\n\nasync def idle():\n    return 1\n\nasync def main():\n    await both()\n    await idle()\n"
    project.write({"app.py": text})
    assert project.troth("recolor", ".", "--needless").code == 0
    after = (project.root / "app.py").read_text()
    assert "async def both" in after
    assert "\ndef idle" in after
