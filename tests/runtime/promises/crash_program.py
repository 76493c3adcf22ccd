"""A program that promises, delivers and is killed; started again, it goes on. Its receivers write down what they saw."""

import json
import os
import time
from pathlib import Path

from troth.runtime import Capability, Channel, Receipt, Runtime, bind
from troth.runtime.engine import Step
from troth.runtime.promises import RetryPolicy

POLICY = RetryPolicy(limit=50, over=600.0, first=0.02, longest=0.1, send_timeout=5.0, probe=0.2)
SESSION = "crash"


def value_of(value):
    return value


def give(value):
    return (yield Step("give", value_of, value))


class FileChannel(Channel):
    """Its effect is a line in a file: what a receiver saw, whatever became of the sender."""

    capability = Capability.PUSH

    def __init__(self, name, folder):
        self.name = name
        self.file = Path(folder) / "seen.jsonl"

    def send(self, delivery):
        line = json.dumps({"id": delivery.id, "via": self.name, "session": delivery.session}) + "\n"
        handle = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)
        return Receipt.done(delivery.id)


def seen(folder):
    file = Path(folder) / "seen.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def program(folder):
    """Promise two results, and see them delivered. `restart.json` says which channel there is after a restart."""
    restart = Path(folder) / "restart.json"
    name = json.loads(restart.read_text())["channel"] if restart.exists() else "chat"
    with Runtime(Path(folder) / "troth.db", delivery=POLICY, in_process=False) as runtime:
        runtime.register(give)
        promises = runtime.promises
        channel = None
        if name is not None:
            channel = FileChannel(name, folder)
            runtime.open_channel(channel)
        with bind(SESSION, channel):
            for number in (1, 2):
                if not [one for one in promises.list() if one.id == f"p-{number}"]:
                    promises.start(give, number, promise_id=f"p-{number}", detach="must")
            for number in (1, 2):
                promises.wait(f"p-{number}", 20)
            deadline = time.monotonic() + 20
            while channel is not None and runtime.outbox.counts().stored and time.monotonic() < deadline:
                time.sleep(0.005)
        counts = runtime.outbox.counts()
    return {"counts": counts._asdict(), "balanced": counts.is_balanced, "results": [1, 2]}
