"""Tell other workers what was committed, and hear it from them: LISTEN and NOTIFY, over one connection and one thread.

What somebody may wait for before it goes on (a run, a lease, a promise) is told by the commit itself, so it cannot be
lost. What is only followed (a stream, a history, changes of states) is told a moment after the commit, several
together: a worker that dies in that moment leaves others to find it by looking again, which everybody who follows does
every few seconds. The same looking is all there is where the server cannot be listened to, as behind a pooler; it is
then done more often, and for everything.
"""

import contextlib
import json
import logging
import os
import selectors
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any

import psycopg
from psycopg import sql

from troth.runtime.store.notifications import Notifications
from troth.runtime.store.postgres import statements
from troth.runtime.store.postgres.commits.prepared import PreparedStatements, can_be_prepared

__all__ = ["News"]

log = logging.getLogger("troth.store")

_LOOK_AGAIN = 5.0  # seconds between looks for what nobody told of, while somebody is listened to
_LOOK_OFTEN = 0.25  # the same while nobody can be listened to
_PAUSE = 0.05  # seconds in which what is told is collected: to tell of one step costs more than the step
_MOST = 7000  # bytes of one message; the server refuses 8000
_FOLLOWED = ("history:", "stream:", "changes")
_ALL = "*"


class News:
    """The news of one store. Every method may be called from any thread."""

    def __init__(
        self,
        connect: "Callable[[], psycopg.Connection[Any]]",
        channel: str,
        notices: Notifications,
        where: str,
        *,
        can_listen: bool = True,
    ) -> None:
        self._connect = connect
        self._can_listen = can_listen
        self.channel = channel
        self._notices = notices
        self._where = where
        self._fresh()

    def _fresh(self) -> None:
        self._me = uuid.uuid4().hex[:12]
        self._lock = threading.Lock()
        self._pending: set[str] = set()
        self._thread: threading.Thread | None = None
        self._wake: tuple[int, int] | None = None
        self._is_closed = False
        self._is_listening = threading.Event()
        self._backlog: list[bytes | str] = []  # heard, and not looked at

    def after_fork(self) -> None:
        """In the child: there is no thread, and the connection is the parent's."""
        self._fresh()

    def in_commit(self, topics: Iterable[str]) -> str | None:
        """What a commit itself tells of `topics`; nothing if nobody waits for any of them."""
        urgent = [topic for topic in topics if not topic.startswith(_FOLLOWED)]
        return self._message(urgent) if urgent else None

    def tell(self, topics: Iterable[str]) -> None:
        """Tell others, in a moment, of what was committed and has not been told by the commit itself."""
        followed = {topic for topic in topics if topic.startswith(_FOLLOWED)}
        if followed and not followed <= self._pending:  # what is pending is told after this moment
            with self._lock:
                is_first = not self._pending
                self._pending |= followed
            if is_first:
                self._ring()

    def listen(self) -> None:
        """Begin to listen, if that was not begun before."""
        self._ring()

    def wait_until_listening(self, timeout: float) -> bool:
        """For tests: whether the server is being listened to."""
        return self._is_listening.wait(timeout)

    def _ring(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            if self._thread is None:
                self._wake = os.pipe()
                os.set_blocking(self._wake[1], False)
                self._thread = threading.Thread(target=self._live, name="troth-news", daemon=True)
                self._thread.start()
            assert self._wake is not None
            with contextlib.suppress(BlockingIOError):  # it is full of calls already
                os.write(self._wake[1], b".")

    def _message(self, topics: Iterable[str]) -> str:
        text = json.dumps([self._me, *topics])
        return text if len(text) < _MOST else json.dumps([self._me, _ALL])

    # The thread

    def _live(self) -> None:
        assert self._wake is not None
        is_told = False
        while not self._is_closed:
            try:
                with contextlib.closing(self._connect()) as connection:
                    self._serve(connection, self._wake[0])
                    is_told = False
            except psycopg.Error as error:
                if not is_told and not self._is_closed:
                    log.warning(
                        "Notifications of %s are not available; polling instead: %s", self._where, _first(error)
                    )
                    is_told = True
            finally:
                self._is_listening.clear()
            if not self._is_closed:
                self._doze(self._wake[0])
        for end in self._wake:
            os.close(end)

    def _serve(self, connection: "psycopg.Connection[Any]", wake: int) -> None:
        if self._can_listen:
            connection.execute(sql.SQL(statements.LISTEN).format(channel=sql.Identifier(self.channel)))
        connection.add_notify_handler(lambda notice: self._backlog.append(notice.payload))  # heard by psycopg meanwhile
        prepared = PreparedStatements(connection) if self._can_listen and can_be_prepared(connection) else None
        send = connection.execute if prepared is None else prepared.execute
        self._send(send)
        self._notices.publish_all()  # of what was told while nobody listened
        if self._can_listen:
            self._is_listening.set()
        every = _LOOK_AGAIN if self._can_listen else _LOOK_OFTEN
        look_at = time.monotonic() + every
        told_at = 0.0
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(wake, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select(max(0.0, look_at - time.monotonic()))}
                if wake in ready:
                    os.read(wake, 4096)
                    pause = told_at + _PAUSE - time.monotonic()
                    if pause > 0 and not self._is_closed:
                        time.sleep(pause)
                    self._send(send)
                    told_at = time.monotonic()
                if self._is_closed:
                    self._send(send)
                    return
                self._hear(connection)
                if time.monotonic() >= look_at:
                    if self._can_listen:
                        self._notices.publish([name for name in self._notices.topics() if name.startswith(_FOLLOWED)])
                    else:
                        self._notices.publish_all()
                    look_at = time.monotonic() + every

    def _send(self, send: Callable[[str, tuple[str, str]], object]) -> None:
        with self._lock:
            topics, self._pending = self._pending, set()
        try:
            if topics:
                send(statements.NOTIFY, (self.channel, self._message(topics)))
        except psycopg.Error:
            with self._lock:
                self._pending |= topics
            raise

    def _hear(self, connection: "psycopg.Connection[Any]") -> None:
        topics: set[str] = set()
        pgconn = connection.pgconn
        pgconn.consume_input()  # what `notifies` of psycopg does, without a generator and a clock: this is done often
        while (notice := pgconn.notifies()) is not None:
            if notice.be_pid != pgconn.backend_pid:
                self._backlog.append(notice.extra)
        backlog, self._backlog = self._backlog, []
        for text in backlog:
            sender, *named = json.loads(text)
            if sender != self._me:
                topics.update(named)
        if _ALL in topics:
            self._notices.publish_all()
        elif topics:
            self._notices.publish(topics)

    def _doze(self, wake: int) -> None:
        """Look again after a moment: nobody can be listened to."""
        with selectors.DefaultSelector() as selector:
            selector.register(wake, selectors.EVENT_READ)
            deadline = time.monotonic() + _LOOK_OFTEN
            while not self._is_closed and (remaining := deadline - time.monotonic()) > 0:
                if selector.select(remaining):
                    os.read(wake, 4096)
        self._notices.publish_all()

    def close(self) -> None:
        """Tell what is still to be told, and end the thread."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
            if self._wake is not None and thread is not None and thread.is_alive():
                with contextlib.suppress(OSError):
                    os.write(self._wake[1], b".")
        if thread is not None and thread is not threading.current_thread():
            thread.join(10.0)


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
