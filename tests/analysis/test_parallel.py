"""Work in several processes: all of it or none, and nobody is waited for in vain."""

import os
import signal
import time
from pathlib import Path

import pytest

from troth.analysis.parallel import can_fork, in_processes

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


parent = os.getpid()


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    """The suite has threads of its own (timeouts), which do no harm to these children."""
    monkeypatch.setattr("threading.active_count", lambda: 1)


def test_results_come_in_order():
    """Whoever made them."""
    assert can_fork()
    assert in_processes([lambda number=number: (number, os.getpid() == parent) for number in range(4)]) == [
        (0, False),
        (1, False),
        (2, False),
        (3, True),
    ]


def busy(folder, name):
    """A child that hears nothing, as one that parses a large file."""

    def work() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        (folder / f"{name}.new").write_text(str(os.getpid()))
        (folder / f"{name}.new").rename(folder / name)
        time.sleep(600)

    return work


def pids(folder, count):
    deadline = time.monotonic() + 60
    while len(files := list(folder.glob("child?"))) < count:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return [int(file.read_text()) for file in files]


def open_files():
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def is_gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_an_interrupt_while_this_process_works(tmp_path):
    """The others are ended, not waited for."""
    started = []

    def last() -> None:
        started.extend(pids(tmp_path, 2))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_processes([busy(tmp_path, "child1"), busy(tmp_path, "child2"), last])
    assert [is_gone(pid) for pid in started] == [True, True]


def test_an_interrupt_while_others_are_waited_for(tmp_path):
    """The same, with a child that is done and one that is not."""
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    started = []

    def last() -> None:
        started.extend(pids(tmp_path, 1))
        signal.setitimer(signal.ITIMER_REAL, 0.05)

    try:
        with pytest.raises(KeyboardInterrupt):
            in_processes([lambda: 1, busy(tmp_path, "child1"), last])
    finally:
        signal.signal(signal.SIGALRM, handler)
    assert [is_gone(pid) for pid in started] == [True]


def test_no_file_is_left_open(tmp_path):
    """Neither by those who finish nor by those who are ended."""
    before = open_files()
    in_processes([lambda: 1, lambda: 2])

    def last() -> None:
        pids(tmp_path, 1)
        raise ValueError

    with pytest.raises(ValueError):
        in_processes([busy(tmp_path, "child1"), last])
    assert open_files() == before
