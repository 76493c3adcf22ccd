"""How answers are written to a connection: the head of one goes together with what follows it at once."""

import asyncio

import pytest

from troth.server.protocol import HeadWithBody

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


HEAD = b"HTTP/1.1 200 OK\r\n\r\n"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"


class Recorder:
    """A transport that notes what it is to do."""

    def __init__(self):
        self.done = []

    def write(self, data):
        self.done.append(data)

    def close(self):
        self.done.append("closed")

    def get_write_buffer_size(self):
        return 7


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        pytest.param([HEAD, b"body", b""], [HEAD + b"body", b""], id="a body"),
        pytest.param([HEAD, b"", b""], [HEAD, b""], id="no body"),
        pytest.param([HEAD, b"one", b"two"], [HEAD + b"one", b"two"], id="a body in pieces"),
        pytest.param([INTERIM, HEAD, b"body"], [INTERIM, HEAD + b"body"], id="an interim answer before it"),
        pytest.param([HEAD, HEAD], [HEAD + HEAD], id="a body that looks like a head"),
        pytest.param([HEAD], [HEAD], id="nothing that follows"),
        pytest.param([HEAD, b"a", HEAD, b"b"], [HEAD + b"a", HEAD + b"b"], id="two answers"),
    ],
)
async def test_a_head_goes_with_its_body(written, sent):
    """Or by itself, in the next turn of the loop."""
    recorder = Recorder()
    transport = HeadWithBody(recorder, asyncio.get_running_loop())
    for data in written:
        transport.write(data)
    await asyncio.sleep(0)
    assert recorder.done == sent


async def test_closing_sends_what_is_kept():
    """First what was written, then the end; nothing comes after it."""
    recorder = Recorder()
    transport = HeadWithBody(recorder, asyncio.get_running_loop())
    transport.write(HEAD)
    transport.close()
    await asyncio.sleep(0)
    assert recorder.done == [HEAD, "closed"]
    assert transport.get_write_buffer_size() == 7
