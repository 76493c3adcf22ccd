"""Our channels, and the example, do what every channel has to; one that breaks a promise is caught."""

import importlib.util
import sys
import time
from pathlib import Path

import pytest

from troth.runtime import Capability, Channel, Receipt
from troth.runtime.channels import InProcessChannel
from troth.server.channels import HttpChannel, SocketChannel, StreamChannel
from troth.testing import channel_conformance
from troth.testing.channel_conformance import checks

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/channel/chat_channel.py"


def example():
    spec = importlib.util.spec_from_file_location("chat_channel", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["chat_channel"] = module
    spec.loader.exec_module(module)
    return module


class OfTheExample:
    def __init__(self):
        self.module = example()
        self.room = self.module.Room()

    def channel(self):
        return self.module.ChatChannel(self.room)

    def received(self):
        return self.room.received

    def acknowledge(self, runtime):
        """It answers `done`."""


class InThisProcess:
    def __init__(self):
        self.seen = []

    def channel(self):
        ground = self

        class Watched(InProcessChannel):
            def send(self, delivery):
                ground.seen.append(delivery.id)
                return InProcessChannel.send(self, delivery)

        self.last = Watched()
        return self.last

    def received(self):
        return self.seen

    def acknowledge(self, runtime):
        while self.last.inbox.take(0.2) is not None:
            pass


class Storing:
    def channel(self):
        class Box(Channel):
            name = "box"
            capability = Capability.STORE

            def send(self, delivery):
                return Receipt.refused("nobody is called")

        return Box()

    def received(self):
        return []

    def acknowledge(self, runtime):
        """Nothing arrives."""


class Connection:
    """A reader of the server's, that is told and acknowledges when it is asked to."""

    def __init__(self):
        self.seen = []

    def put(self, delivery):
        self.seen.append(delivery.id)


class OfTheStream:
    kind = StreamChannel

    def __init__(self):
        self.reader = Connection()

    def channel(self):
        channel = self.kind("conformance")
        channel.readers.add(self.reader)
        return channel

    def received(self):
        return self.reader.seen

    def acknowledge(self, runtime):
        for delivery in dict.fromkeys(self.reader.seen):
            runtime.outbox.ack(delivery)


class OfTheSocket(OfTheStream):
    kind = SocketChannel


class OfHttp(Storing):
    def channel(self):
        return HttpChannel()


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.name)
@pytest.mark.parametrize("ground", [OfTheExample, InThisProcess, Storing, OfTheStream, OfTheSocket, OfHttp])
def test_a_channel_does_what_it_has_to(ground, check):
    """Every check, for every channel of ours."""
    check.run(ground())


def test_a_channel_that_only_logs_is_caught():
    """F18: success without a receipt is none."""

    class Logging(Channel):
        name = "log"
        capability = Capability.PUSH

        def send(self, delivery):
            return True

    class OfTheLog(Storing):
        def channel(self):
            return Logging()

    with pytest.raises(AssertionError, match="counts as no delivery"):
        next(check for check in checks() if check.name == "answers_with_a_receipt").run(OfTheLog())


class Forgetful(StreamChannel):
    """It takes back nothing of what it has accepted."""

    def reset(self, session=None):
        self.lose_patience()
        return 0


class Greedy(StreamChannel):
    """It takes back what belongs to other sessions."""

    def reset(self, session=None):
        while not (given_back := super().reset()):
            time.sleep(0.01)
        return given_back


class Swallowing(StreamChannel):
    """It tells nobody a second time, and answers as if it had."""

    def send(self, delivery):
        return super().send(delivery) if delivery.attempt == 1 else Receipt.accepted()

    def reset(self, session=None):
        given_back = super().reset(session)
        if given_back:
            self.lose_patience()
        return given_back


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (Forgetful, "neither delivered, nor given back"),
        (Greedy, "belongs to a session it was not asked for"),
        (Swallowing, "did not arrive again"),
    ],
)
def test_a_channel_that_keeps_what_it_accepted_is_caught(monkeypatch, broken, problem):
    """`reset` gives back what nobody acknowledged, of one session, and it arrives again."""

    class Broken(OfTheStream):
        kind = broken

        def channel(self):
            made = super().channel()
            made.lose_patience = lambda: monkeypatch.setattr(channel_conformance, "_PATIENCE", 0.2)
            return made

    with pytest.raises(AssertionError, match=problem):
        next(check for check in checks() if check.name == "gives_back").run(Broken())


def test_the_example_runs(capsys):
    """As its docstring says."""
    example().main()
    assert "TELL ME WHEN IT IS DONE" in capsys.readouterr().out
