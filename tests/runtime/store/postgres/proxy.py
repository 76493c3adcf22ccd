"""Stand between a client and the server, and cut the connection where a test wants it."""

import contextlib
import socket
import threading


class Proxy:
    """A port on the loopback that leads to the server's socket. Everything passes until `cut` is called."""

    def __init__(self, server):
        self._target = str(server.folder / ".s.PGSQL.5432")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._how = None
        self._flows = threading.Event()
        self._flows.set()
        self._pairs = []
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self):
        return self._listener.getsockname()[1]

    def cut(self, how):
        """At the next thing that a connection for commits sends: `before` the server hears of it, or `after` it has done it."""
        with self._lock:
            self._how = how

    def freeze(self):
        """Let nothing through any more, in either direction, and end nothing: neither side hears that the other is gone."""
        self._flows.clear()

    def drop(self):
        """End every connection that there is. What was frozen on its way never arrives."""
        pairs, self._pairs = self._pairs, []
        _close(*pairs)
        self._flows.set()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._target)
                self._pairs += [client, server]
                threading.Thread(target=self._up, args=(client, server), daemon=True).start()

    def _up(self, client, server):
        """From the client to the server, until it is cut; the way back is a thread of its own."""
        is_muted = threading.Event()
        threading.Thread(target=self._down, args=(client, server, is_muted), daemon=True).start()
        commits = False
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                self._flows.wait()
                commits = commits or b"UPDATE writers" in data
                with self._lock:
                    how, self._how = (self._how, None) if commits else (None, self._how)
                if how == "before":
                    break
                if how == "after":
                    is_muted.set()
                    server.sendall(data)
                    self._await_answer(server)
                    break
                server.sendall(data)
        _close(client, server)

    def _down(self, client, server, is_muted):
        with contextlib.suppress(OSError):
            while True:
                if is_muted.is_set():
                    return
                if server.recv(1, socket.MSG_PEEK) == b"" or is_muted.is_set():
                    break
                data = server.recv(65536)
                self._flows.wait()
                client.sendall(data)
        if not is_muted.is_set():
            _close(client, server)

    @staticmethod
    def _await_answer(server):
        server.settimeout(10)
        with contextlib.suppress(TimeoutError):
            server.recv(65536)

    def refuse(self):
        """Let nobody in any more."""
        _close(self._listener)

    def close(self):
        _close(self._listener, *self._pairs)


def _close(*sockets):
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
