"""Two programs on one store, both killed again and again at any moment: nothing that was promised is lost."""

import contextlib
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from troth.runtime import Runtime, bind

from .chaos_program import QUICK, Chat, give
from .conftest import until

PROGRAM = Path(__file__).with_name("chaos_program.py")


def lines_of(path):
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def chaos(path, kills, seed):
    """Kill and start again; then let one program deliver what is left. Answers what was promised and what arrived."""
    chance = random.Random(seed)
    promised, received = Path(f"{path}.promised"), Path(f"{path}.received")

    def begin(name):
        return subprocess.Popen([sys.executable, str(PROGRAM), str(path), name, "600"], stdout=subprocess.DEVNULL)

    programs = {name: begin(name) for name in ("one", "two")}
    try:
        for _ in range(kills):
            count = len(lines_of(promised))
            until(lambda count=count: len(lines_of(promised)) > count, 60)
            time.sleep(chance.uniform(0.0, 0.5))  # any moment will do
            name = chance.choice(sorted(programs))
            programs[name].send_signal(signal.SIGKILL)
            assert programs[name].wait(60) == -signal.SIGKILL
            programs[name] = begin(name)
    finally:
        for program in programs.values():
            program.kill()
            program.wait(60)
    with Runtime(path, delivery=QUICK, in_process=False) as runtime:
        runtime.register(give)
        channel = Chat("chat-last", path)
        runtime.open_channel(channel)
        with contextlib.ExitStack() as turns:
            for session in "abc":
                turns.enter_context(bind(session, channel))
            until(lambda: runtime.outbox.counts().stored == 0, 110)
        counts = runtime.outbox.counts()
    assert counts.is_balanced, counts
    assert counts.delivered == counts.promised
    return lines_of(promised), lines_of(received), counts


@pytest.mark.parametrize(("kills", "seed"), [(6, 1), pytest.param(60, 2, marks=pytest.mark.soak)])
def test_killed_at_any_moment(path, kills, seed):
    """Each promise whose handle somebody had arrives at least once, in its own session, and the counts add up."""
    promised, received, counts = chaos(path, kills, seed)
    arrived = {(delivery.removesuffix("-done-1"), session) for delivery, session in received}
    assert {tuple(line) for line in promised} <= arrived
    assert len({delivery for delivery, _ in received}) == counts.promised, "and of those nobody had a handle of"
