"""Our channels, and the example, do what every channel has to; one that breaks a promise is caught."""

import importlib.util
import sys
from pathlib import Path

import pytest

from troth.runtime import Capability, Channel, Receipt
from troth.runtime.channels import InProcessChannel
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


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.name)
@pytest.mark.parametrize("ground", [OfTheExample, InThisProcess, Storing])
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


def test_the_example_runs(capsys):
    """As its docstring says."""
    example().main()
    assert "TELL ME WHEN IT IS DONE" in capsys.readouterr().out
