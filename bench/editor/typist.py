"""A client that types: it starts a server, sends it texts, and waits for a diagnostic on a line."""

import itertools
import json
import subprocess
import threading
import time
from pathlib import Path

__all__ = ["Server", "memory_of", "precise"]

QUIET = 0.4  # seconds without any CPU used: it is settled
PATIENCE = 8.0


def precise(pid: int) -> float:
    """The CPU seconds that a process and its children have used, to the nanosecond."""
    total = 0
    for process in _tree(pid):
        try:
            for task in Path(f"/proc/{process}/task").iterdir():
                total += int((task / "schedstat").read_text().split()[0])
        except (OSError, ValueError):
            continue
    return total / 1e9


def _tree(pid: int) -> list[int]:
    """A process and its children: some servers are started by a script in another language."""
    processes = [pid]
    for process in processes:
        try:
            for task in Path(f"/proc/{process}/task").iterdir():
                processes += map(int, (task / "children").read_text().split())
        except (OSError, ValueError):
            continue
    return processes


def memory_of(pid: int) -> float:
    """The most memory a process and its children had, in MB."""
    most = 0
    for process in _tree(pid):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        most += next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return most / 1024


class Server:
    """One server, typed at."""

    def __init__(self, command: list[str], project: Path) -> None:
        self.begun = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=Path.cwd()
        )
        self.answers: dict[int, dict] = {}
        self.pushed: dict[str, list] = {}
        self.news = threading.Condition()
        self.ids = itertools.count(1)
        threading.Thread(target=self._read, daemon=True).start()
        capabilities = {
            "textDocument": {"diagnostic": {}, "publishDiagnostics": {"versionSupport": True}},
            "workspace": {"workspaceFolders": True},
        }
        folder = {"uri": project.as_uri(), "name": project.name}
        params = {
            "processId": None,
            "rootUri": project.as_uri(),
            "workspaceFolders": [folder],
            "capabilities": capabilities,
        }
        answer = self.request("initialize", params)["result"]["capabilities"]
        self.pulls = bool(answer.get("diagnosticProvider"))
        self.notify("initialized", {})

    def _read(self) -> None:
        stream = self.process.stdout
        while line := stream.readline():
            length = 0
            while line.strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
                line = stream.readline()
            message = json.loads(stream.read(length))
            with self.news:
                if "method" in message and "id" in message:
                    many = message["params"].get("items", [0]) if isinstance(message.get("params"), dict) else [0]
                    result = [None for _ in many] if message["method"] == "workspace/configuration" else None
                    self._send({"jsonrpc": "2.0", "id": message["id"], "result": result})
                elif message.get("method") == "textDocument/publishDiagnostics":
                    self.pushed[message["params"]["uri"]] = message["params"]["diagnostics"]
                elif "id" in message:
                    self.answers[message["id"]] = message
                self.news.notify_all()

    def _send(self, message: dict) -> None:
        data = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.process.stdin.flush()

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, params: object) -> dict:
        """Send a request and wait for its answer."""
        number = next(self.ids)
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        with self.news:
            self.news.wait_for(lambda: number in self.answers, PATIENCE * 10)
        return self.answers.pop(number)

    def change(self, uri: str, version: int, text: str) -> None:
        """Send the whole text anew."""
        document = {"uri": uri, "version": version}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    def lines(self, uri: str) -> set[int]:
        """The lines that have a diagnostic now."""
        if self.pulls:
            result = self.request("textDocument/diagnostic", {"textDocument": {"uri": uri}}).get("result") or {}
            items = result.get("items", [])
        else:
            items = self.pushed.get(uri, [])
        return {item["range"]["start"]["line"] for item in items}

    def first_answer(self, uri: str) -> None:
        """Wait for the first diagnostics of a text, be there some or none."""
        if self.pulls:
            self.lines(uri)
            return
        with self.news:
            self.news.wait_for(lambda: uri in self.pushed, PATIENCE * 10)

    def until(self, uri: str, line: int) -> bool:
        """Wait for a diagnostic on a line; whether it came."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if line in self.lines(uri):
                return True
            with self.news:
                self.news.wait(0.002 if not self.pulls else 0)
        return False

    def settle(self) -> None:
        """Wait until nothing moves any more."""
        used = precise(self.process.pid)
        while True:
            time.sleep(QUIET)
            now = precise(self.process.pid)
            if now - used < 0.002:
                return
            used = now
