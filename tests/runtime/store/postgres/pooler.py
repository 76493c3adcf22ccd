"""A pooler that lends each transaction another session: PgBouncer, on a port of the loopback, gone with the test."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

CONFIG = """
[databases]
postgres = host={socket} user=troth

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 500
server_round_robin = 1
logfile = {folder}/log
pidfile = {folder}/pid
"""


class Pooler:
    """PgBouncer before `server`, with a few sessions that take turns. Without its binary, `missing` says so."""

    def __init__(self, server, sessions=4):
        self._folder = Path(tempfile.mkdtemp(prefix="troth-pooler-", dir="/tmp"))
        user = pwd.getpwnam("postgres").pw_uid if os.getuid() == 0 else None  # it refuses to run as root
        if user is not None:
            os.chown(self._folder, user, -1)
        self._config = {"socket": server.folder, "sessions": sessions, "folder": self._folder}
        self._user = user
        self._start()

    @staticmethod
    def missing():
        """Why there is no pooler; nothing where there is one."""
        return None if _binary() else "`pgbouncer` is not to be found; `apt-get install pgbouncer` brings it"

    def _start(self):
        deadline = time.monotonic() + 60
        while True:  # a port that is free now may be taken a moment later
            with socket.create_server(("127.0.0.1", 0)) as probe:
                self.port = probe.getsockname()[1]
            (self._folder / "ini").write_text(CONFIG.format(port=self.port, **self._config))
            self._process = subprocess.Popen(
                [_binary(), "-q", str(self._folder / "ini")],
                user=self._user,
                extra_groups=[] if self._user is not None else None,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            while self._process.poll() is None:
                assert time.monotonic() < deadline, (self._folder / "log").read_text()
                try:
                    socket.create_connection(("127.0.0.1", self.port)).close()
                except OSError:
                    time.sleep(0.02)
                else:
                    return
            assert time.monotonic() < deadline, (self._folder / "log").read_text()

    def address(self, schema, **more):
        """The address of a store, through the pooler."""
        options = "".join(f"&{name}={value}" for name, value in more.items())
        return f"postgresql://troth@127.0.0.1:{self.port}/postgres?sslmode=disable&schema={schema}{options}"

    def restart(self):
        """End it at once, and start it again on the same port."""
        self.close(keeps=True)
        self._process = subprocess.Popen(
            [_binary(), "-q", str(self._folder / "ini")],
            user=self._user,
            extra_groups=[] if self._user is not None else None,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def close(self, keeps=False):
        self._process.kill()
        self._process.wait(60)
        (self._folder / "pid").unlink(missing_ok=True)
        if not keeps:
            shutil.rmtree(self._folder, ignore_errors=True)


def _binary():
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
