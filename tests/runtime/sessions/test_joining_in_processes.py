"""Joining is exact between processes on one file, and for many threads over many trials."""

import json
import subprocess
import sys
import textwrap

import pytest

from troth.runtime.sessions import CannotJoinError, Hypervisor, SessionConfig
from troth.runtime.store import SqliteStore

KEY = "a key that is only used in tests"
PROGRAM = textwrap.dedent(
    """
    import json, sys
    from troth.runtime.sessions import CannotJoinError, Hypervisor

    path, trials = sys.argv[1], int(sys.argv[2])
    won = []
    with Hypervisor(path, audit_key="a key that is only used in tests") as hypervisor:
        print("ready", flush=True)
        sys.stdin.readline()
        for trial in range(trials):
            for number in range(8):
                try:
                    hypervisor.join(f"s{trial}", f"agent-{number}", score=0.9)
                except CannotJoinError:
                    continue
                won.append([trial, number])
    print(json.dumps(won), flush=True)
    """
)


def race(path, trials):
    with Hypervisor(path, audit_key=KEY) as hypervisor:
        for trial in range(trials):
            hypervisor.create("ops", SessionConfig(max_members=5), session_id=f"s{trial}")
    command = [sys.executable, "-c", PROGRAM, str(path), str(trials)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    won = [tuple(one) for process in processes for one in json.loads(process.communicate(timeout=300)[0])]
    assert len(won) == len(set(won)) == 5 * trials
    with Hypervisor(path, audit_key=KEY) as hypervisor:
        for trial in range(trials):
            assert len(hypervisor.get(f"s{trial}").present) == 5
        assert hypervisor.verify_audit().is_valid


def test_four_processes(path):
    """Capacity is never exceeded, one winner for each id, and one chain."""
    race(path, 10)


@pytest.mark.soak
def test_four_processes_for_long(path):
    """The same, a thousand times."""
    race(path, 1000)


def test_a_restart_keeps_everything(path):
    """A session goes on in the next process; a file of the first version is brought up to date."""
    with Hypervisor(path, audit_key=KEY) as hypervisor:
        session = hypervisor.create("ops", SessionConfig(max_members=1))
        hypervisor.join(session, "a", score=0.8)
        hypervisor.activate(session)
    with SqliteStore(path) as store, Hypervisor(store, audit_key=KEY) as hypervisor:
        hypervisor.member(session, "a").record("still here")
        with pytest.raises(CannotJoinError):
            hypervisor.join(session, "b", score=0.8)
        assert hypervisor.verify_audit().is_valid
