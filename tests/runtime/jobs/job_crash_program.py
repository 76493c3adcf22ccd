"""A program that starts jobs and is killed; started again, it goes on. Its receiver writes down what it saw."""

import json
import os
import time
from pathlib import Path

from troth.runtime import Capability, Channel, Receipt, Runtime, bind
from troth.runtime.jobs import JobState, UnknownJobError
from troth.runtime.promises import RetryPolicy
from troth.runtime.store import SqliteStore

POLICY = RetryPolicy(limit=50, over=600.0, first=0.02, longest=0.1, send_timeout=5.0, probe=0.2)
HOUR = 3600.0
# The hit comes when both run: a kill that it brings about must not fall into the start of the second.
ENDS = (
    "echo ran >> ran-1; until [ -e ran-2 ]; do sleep 0.02; done; echo hit; until [ -e go ]; do sleep 0.02; done; exit 7"
)
STAYS = "echo ran >> ran-2; exec sleep 60"


def append(file, line):
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)


class FileChannel(Channel):
    """Its effect is a line in a file."""

    capability = Capability.PUSH

    def __init__(self, name, folder):
        self.name = name
        self.file = Path(folder) / "seen.jsonl"

    def send(self, delivery):
        append(self.file, json.dumps({"id": delivery.id, "session": delivery.session, "text": delivery.text}) + "\n")
        return Receipt.done(delivery.id)


def seen(folder):
    file = Path(folder) / "seen.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def until(condition, what):
    deadline = time.monotonic() + 20
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(what)
        time.sleep(0.003)


def begin(jobs, job_id, command, folder, **options):
    try:
        jobs.get(job_id)
    except UnknownJobError:
        jobs.start(command, job_id=job_id, cwd=folder, **options)


def program(folder):
    """Two jobs: one ends by itself, one is stopped. `restart.json` says what there is after a restart."""
    restart = Path(folder) / "restart.json"
    how = json.loads(restart.read_text()) if restart.exists() else {"channel": "chat", "later": False}
    shift = HOUR if how["later"] else 0.0
    with (
        SqliteStore(Path(folder) / "troth.db", clock=lambda: time.time() + shift) as store,
        Runtime(store, delivery=POLICY, in_process=False) as runtime,
    ):
        channel = None if how["channel"] is None else FileChannel(how["channel"], folder)
        if channel is not None:
            runtime.open_channel(channel)
        with bind("crash", channel):
            jobs = runtime.jobs
            begin(jobs, "j-1", ENDS, folder, watch="hit")
            begin(jobs, "j-2", STAYS, folder)
            until(lambda: jobs.get("j-1").hits or jobs.get("j-1").is_over, "nothing was found")
            (Path(folder) / "go").touch()
            ended, stopped = jobs.wait("j-1", 60), jobs.stop("j-2", timeout=60)
            until(lambda: channel is None or not runtime.outbox.counts().stored, "something stays owed")
        counts = runtime.outbox.counts()
        assert ended.is_over, ended
        assert stopped.state in (JobState.STOPPED, JobState.FAILED), stopped
        states = {job.id: [job.state, job.exit_code, job.reason, job.hits] for job in (ended, stopped)}
    return {"counts": counts._asdict(), "balanced": counts.is_balanced, "jobs": states}
