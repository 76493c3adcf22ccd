"""A receiver of webhooks on a real socket, which verifies with the library that receivers use."""

import asyncio
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook

from troth.runtime.engine import Step
from troth.runtime.promises import RetryPolicy

SECRET = "whsec_" + "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"
OTHER_SECRET = "whsec_" + "b3RoZXItb3RoZXItb3RoZXItb3RoZXItb3RoZXI="
QUICK = RetryPolicy(limit=2, over=0.0, first=0.02, longest=0.1, send_timeout=5.0)
PATIENT = RetryPolicy(limit=1000, over=86400.0, first=0.02, longest=0.1, send_timeout=5.0)


def until(condition, seconds=60.0):
    """Wait for a fact, with a deadline."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, "it did not become true in time"
        time.sleep(0.01)
    return answer


async def auntil(condition, seconds=60.0):
    """Wait for a fact on a loop, with a deadline."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, "it did not become true in time"
        await asyncio.sleep(0.01)
    return answer


def value_of(value):
    return value


def give(value):
    """A decision that returns what it was given."""
    return (yield Step("give", value_of, value))


class Receiver:
    """Answers as it is told: a status with headers, `hang`, or `half` a status line. `seen` is what it was sent."""

    def __init__(self, tls=None):
        self.answers = []
        self.seen = []
        self.names = []  # the names that clients asked for while they shook hands
        self.freed = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.seen.append((dict(self.headers), body, self.path))
                answer = receiver.answers.pop(0) if receiver.answers else (200, {})
                if answer == "hang":
                    receiver.freed.wait(60)
                elif answer == "half":
                    self.connection.sendall(b"HTTP/1.1 2")
                    self.close_connection = True
                else:
                    status, headers = answer
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.end_headers()

            do_GET = do_POST

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls is not None:
            tls.sni_callback = lambda _, name, __: self.names.append(name)
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/hook"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def verified(self, number=0, secret=SECRET):
        """What one delivery says, if its signature is good."""
        headers, body, _ = self.seen[number]
        return Webhook(secret).verify(body, headers)

    def ids(self):
        return [headers["webhook-id"] for headers, _, _ in self.seen]

    def close(self):
        self.freed.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)


def body_json(receiver, number=0):
    return json.loads(receiver.seen[number][1])
