"""What can be a channel, and what a turn is bound to."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from troth import bridge
from troth.errors import MisuseError
from troth.runtime import Capability, Channel, Receipt, Runtime, bind, current
from troth.runtime.channels import stateless
from troth.runtime.engine import Step


class Pager(Channel):
    name = "pager"
    capability = Capability.PUSH

    def send(self, delivery):
        return Receipt.done("1")


def without_capability():
    class Silent(Channel):
        name = "silent"

        def send(self, delivery): ...

    return Silent


def with_a_boolean():
    class Flag(Channel):
        capability = True

        def send(self, delivery): ...

    return Flag


def without_send():
    class Mute(Channel):
        capability = Capability.PUSH

    return Mute


def with_a_generator():
    class Lazy(Channel):
        capability = Capability.PUSH

        def send(self, delivery):
            yield delivery

    return Lazy


def without_color():
    class Odd(Channel):
        capability = Capability.PUSH
        send = 3

    return Odd


def without_a_delivery():
    class Deaf(Channel):
        capability = Capability.PUSH

        def send(self): ...

    return Deaf


def with_too_much():
    class Greedy(Channel):
        capability = Capability.PUSH

        async def send(self, delivery, *, session): ...

    return Greedy


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        pytest.param(without_capability, "does not declare its capability", id="no capability"),
        pytest.param(with_a_boolean, "which is not a `Capability`", id="a boolean for a capability"),
        pytest.param(without_send, "has no `send`", id="no send"),
        pytest.param(with_a_generator, "sends nothing", id="a generator"),
        pytest.param(without_color, "whose color cannot be determined", id="no color"),
        pytest.param(without_a_delivery, "cannot be called with a delivery", id="a send that takes nothing"),
        pytest.param(with_too_much, "cannot be called with a delivery", id="a send that wants more"),
    ],
)
def test_what_cannot_be_a_channel(kind, says):
    """F17, F18: nothing is supported by default."""
    with pytest.raises(MisuseError, match=says):
        kind()()


@dataclass(frozen=True)
class Frozen(Channel):
    """A value as a channel."""

    name: str
    capability = Capability.PUSH

    def send(self, delivery, note=""):
        return Receipt.done(note)


class Static(Channel):
    """Its `send` needs no channel."""

    name = "static"
    capability = Capability.PUSH

    @staticmethod
    def send(delivery):
        return Receipt.done(delivery.id)


@pytest.mark.parametrize("make", [lambda: Frozen("frozen"), Static], ids=["a frozen dataclass", "a static send"])
def test_what_can_be_a_channel(tmp_path, make):
    """However it is written, it is opened, bound and sent through."""
    channel = make()
    with Runtime(tmp_path / "troth.db", in_process=False) as runtime:
        runtime.open_channel(channel)
        with bind("a", channel):
            assert runtime.jobs.start("true", detach="must").channel == channel.name


def state():
    binding = current()
    return binding.session, binding.channel, binding.capability


def test_a_binding_is_a_stack():
    """Restored exactly, also by an inner block that ends or fails."""
    outer, inner = Pager(), Pager()
    before = state()
    with bind("a", outer, Capability.STORE):
        assert state() == ("a", outer, Capability.STORE)
        with bind("b", inner):
            assert state() == ("b", inner, Capability.PUSH)
            with bind(None):
                assert state() == before
            with stateless():
                assert state() == ("b", inner, Capability.NONE)
        with pytest.raises(ValueError, match="out"), bind("c", inner):
            raise ValueError("out")
        assert state() == ("a", outer, Capability.STORE)
    assert state() == before == ("main", None, Capability.STORE)


def test_a_binding_never_widens():
    """What the channel declares is the most there is."""

    class Box(Pager):
        capability = Capability.STORE

    with pytest.raises(MisuseError, match="cannot extend"), bind("a", Box(), Capability.PUSH):
        pass


def test_a_binding_does_not_follow_the_session():
    """A later turn of the same session is bound to nothing by itself."""
    with bind("a", Pager(), Capability.NONE):
        pass
    with bind("a"):
        assert state() == ("a", None, Capability.STORE)


@pytest.mark.parametrize("way", ["task", "call", "to_thread"])
def test_tasks_and_our_threads_inherit(way):
    """F16: whoever works for the turn is bound as the turn is."""
    pager = Pager()

    async def main():
        with bind("a", pager, Capability.NONE):
            match way:
                case "task":
                    return await asyncio.create_task(asyncio.to_thread(state))
                case "call":
                    return await bridge.call(state)
                case _:
                    return await asyncio.to_thread(state)

    assert asyncio.run(main()) == ("a", pager, Capability.NONE)


def test_steps_of_an_engine_inherit(tmp_path):
    """F16: also what is begun in the background, in threads of the engine, sync and async."""
    pager = Pager()
    seen = []

    def sync_step():
        seen.append(state())

    async def async_step():
        await asyncio.sleep(0)
        seen.append(state())

    def decision():
        yield Step("sync", sync_step)
        yield Step("async", async_step)

    with Runtime(tmp_path / "troth.db") as runtime:
        with bind("a", pager, Capability.NONE):
            handle = runtime.engine.start(decision)
        handle.result(10)
        assert seen == [("a", pager, Capability.NONE)] * 2


def test_foreign_threads_inherit_nothing():
    """Python's own threads start unbound: then the answer is what is true of an unbound turn."""
    with bind("a", Pager()):
        seen = []
        thread = threading.Thread(target=lambda: seen.append(state()))
        thread.start()
        thread.join()
        with ThreadPoolExecutor() as pool:
            seen.append(pool.submit(state).result())
    assert seen == [("main", None, Capability.STORE)] * 2


def test_the_default_channel_is_one_that_runs(tmp_path):
    """Unbound means the default channel while there is one."""
    with Runtime(tmp_path / "troth.db"):
        assert current().channel.name == "in-process"
        assert current().capability is Capability.PUSH
    assert state() == ("main", None, Capability.STORE)
