"""Servers as users start them: a process on a free port, and the clients that come to it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

TROTH = Path(sys.executable).with_name("troth")
PATIENCE = 60.0

FLOW = """\
troth: 1
name: greet
inputs:
  who: string
steps:
  - id: hello
    function: greeting:hello
    inputs: {who: inputs.who}
output: {text: steps.hello}
"""


def wait_until(condition, what="it", patience=PATIENCE):
    """Poll until `condition()` is true, and return its answer."""
    deadline = time.monotonic() + patience
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"{what} did not happen within {patience} s"
        time.sleep(0.02)


class Served:
    """One `troth serve` process."""

    def __init__(self, folder, *args, env=None, key=None):
        self.folder = folder
        self.key = key
        self.log = (folder / f"server-{time.monotonic_ns()}.log").open("w+b")
        variables = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(folder), **(env or {})}
        self.process = subprocess.Popen(
            [TROTH, "serve", *args, "--port", "0"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            env=variables,
        )
        line = self.process.stdout.readline()
        assert "listens on " in line, f"{line!r}: {self.stderr()}"
        self.url = line.split("listens on ")[1].split()[0]

    def stderr(self):
        self.log.flush()
        return Path(self.log.name).read_text(errors="replace")

    def client(self, key=None, **options):
        secret = key or self.key
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        return httpx.Client(base_url=f"{self.url}/v1", headers=headers, timeout=PATIENCE, trust_env=False, **options)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)

    def stop(self):
        """SIGTERM, and wait for the end."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)
        self.process.stdout.close()
        self.log.close()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "greet.yaml").write_text(FLOW)
    (tmp_path / "greeting.py").write_text('def hello(who):\n    return f"hello {who}"\n')
    return tmp_path


@pytest.fixture
def serve(folder):
    """Start `troth serve` in the folder; every process ends with the test."""
    with contextlib.ExitStack() as stack:

        def start(*args, **options):
            served = Served(folder, *args, **options)
            stack.callback(served.close)
            return served

        yield start
