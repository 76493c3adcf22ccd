"""A program that promises, delivers and is killed at any moment: `python chaos_program.py STORE NAME SECONDS`.

What was promised is written to STORE.promised once the caller has its handle, what arrives to STORE.received.
"""

import os
import random
import sys
import time

from troth.runtime import Capability, Channel, Receipt, Runtime, bind
from troth.runtime.engine import Step
from troth.runtime.promises import RetryPolicy

QUICK = RetryPolicy(limit=1000, over=3600.0, first=0.01, longest=0.1, send_timeout=5.0, probe=0.2)


def note(path, line):
    """One line, at once whole, whoever else writes."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, f"{line}\n".encode())
    os.close(file)


def value_of(value):
    return value


def give(value):
    return (yield Step("give", value_of, value))


class Chat(Channel):
    """Writes down what arrives; now and then it is down."""

    capability = Capability.PUSH

    def __init__(self, name, path):
        self.name = name
        self.path = path

    def send(self, delivery):
        if random.random() < 0.1:
            raise ConnectionError("down")
        note(f"{self.path}.received", f"{delivery.id} {delivery.session}")
        return Receipt.done(delivery.id)


def main(path, name, seconds):
    end = time.monotonic() + seconds
    with Runtime(path, delivery=QUICK, in_process=False) as runtime:
        runtime.register(give)
        channel = Chat(f"chat-{name}", path)
        runtime.open_channel(channel)
        number = 0
        while time.monotonic() < end:
            number += 1
            session = random.choice("abc")
            with bind(session, channel, random.choice([None, Capability.STORE])):
                if number % 3:
                    promise = runtime.promises.start(give, number).promise.id
                else:
                    promise = runtime.jobs.start(f"echo {number}; exit {number % 5}").promise.id
            note(f"{path}.promised", f"{promise} {session}")
            time.sleep(random.uniform(0, 0.02))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
