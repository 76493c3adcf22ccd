"""Measure what an edit costs: `python -m bench.editor PROJECT FILE [--edits N] [--only NAME]`.

Each server is started on the same project and typed at: a lost await, a changed color, a renamed method and a broken
line, in turn, each with a line of its own that a diagnostic has to name. CPU is that of the server and all its
children, until that diagnostic is there (first) and until nothing moves any more (settled).
"""

import argparse
import itertools
import json
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

PEERS = {
    "pygls floor": [sys.executable, "-m", "bench.editor.floor"],
    "troth": [sys.executable, "-m", "troth", "lsp"],
    "ruff": ["ruff", "server"],
    "ty": ["ty", "server"],
    "pyrefly": ["pyrefly", "lsp"],
    "zuban": ["zuban", "server"],
    "pyright": ["pyright-langserver", "--stdio"],
    "basedpyright": ["basedpyright-langserver", "--stdio"],
}
QUIET = 0.4  # seconds without any CPU used: it is settled
PATIENCE = 8.0
PLANTED = {
    "lost await": (
        "async def planted_{n}(): ...",
        "async def planted_by_{n}():\n    planted_{n}()\n    undefined_{n}\n",
    ),
    "changed color": (
        "def planted_{n}():\n    return 1",
        "async def planted_by_{n}():\n    await planted_{n}()\n    undefined_{n}\n",
    ),
    "renamed method": (
        "class Planted_{n}:\n    async def planted_{n}(self): ...",
        "async def planted_by_{n}(one: Planted_{n}):\n    one.planted_{n}()\n    undefined_{n}\n",
    ),
    "broken line": ("def planted_{n}(:", "    undefined_{n}\n"),
}


def precise(pid: int) -> float:
    """The same in nanoseconds, where the kernel tells them."""
    total = 0
    todo = [pid]
    while todo:
        one = todo.pop()
        try:
            for task in Path(f"/proc/{one}/task").iterdir():
                total += int((task / "schedstat").read_text().split()[0])
                todo += map(int, (task / "children").read_text().split())
        except (OSError, ValueError):
            continue
    return total / 1e9


def memory_of(pid: int) -> float:
    """The most memory a process had, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


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
        told = self.request("initialize", params)["result"]["capabilities"]
        self.pulls = bool(told.get("diagnosticProvider"))
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

    def lines(self, uri: str) -> set[int]:
        """The lines that have a diagnostic now."""
        if self.pulls:
            result = self.request("textDocument/diagnostic", {"textDocument": {"uri": uri}}).get("result") or {}
            items = result.get("items", [])
        else:
            items = self.pushed.get(uri, [])
        return {one["range"]["start"]["line"] for one in items}

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


def measure(name: str, command: list[str], project: Path, file: Path, edits: int) -> str:
    server = Server(command, project)
    text = file.read_text()
    uri = file.as_uri()
    item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
    server.notify("textDocument/didOpen", {"textDocument": item})
    server.lines(uri)
    ready = time.perf_counter() - server.begun
    server.settle()
    first, settled, seen = [], [], dict.fromkeys(PLANTED, 0)
    for number, kind in zip(range(1, edits + 1), itertools.cycle(PLANTED), strict=False):
        planted = "\n\n\n".join(PLANTED[kind]).format(n=number)
        now = f"{text}\n\n{planted}"
        mark = "undefined_" if name not in ("troth", "pygls floor") else "planted_"
        wanted = [line for line, one in enumerate(now.split("\n")) if f"{mark}{number}" in one]
        before = precise(server.process.pid)
        server.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": number + 1}, "contentChanges": [{"text": now}]},
        )
        target = wanted[-1] if kind != "broken line" else wanted[0] if mark == "planted_" else wanted[0] - 1
        seen[kind] += server.until(uri, target)
        first.append(precise(server.process.pid) - before)
        server.settle()
        settled.append(precise(server.process.pid) - before)
    memory = memory_of(server.process.pid)
    server.process.kill()
    server.process.wait()

    def told(values: list[float]) -> str:
        ordered = sorted(values)
        return f"{statistics.median(values) * 1000:6.1f} / {ordered[int(len(ordered) * 0.95) - 1] * 1000:6.1f}"

    missed = ", ".join(kind for kind, count in seen.items() if not count) or "-"
    return f"{name:14} {ready:6.2f}  {told(first)}  {told(settled)}  {memory:6.0f}  {missed}"


def main() -> None:
    """Measure the servers that are there."""
    parser = argparse.ArgumentParser(prog="python -m bench.editor")
    parser.add_argument("project", type=Path, nargs="?", default=Path(__file__).parents[2])
    parser.add_argument(
        "file", type=Path, nargs="?", default=Path(__file__).parents[2] / "src/troth/analysis/pipeline/analyse.py"
    )
    parser.add_argument("--edits", type=int, default=40)
    parser.add_argument("--only", action="append")
    args = parser.parse_args()
    print("server          ready  first ms: median / p95  settled ms: median / p95  MB  never named")
    for name, command in PEERS.items():
        there = [*command]
        beside = Path(sys.executable).parent / command[0]
        there[0] = str(beside) if beside.exists() else command[0]
        if (args.only and name not in args.only) or shutil.which(there[0]) is None:
            continue
        print(measure(name, there, args.project.resolve(), args.file.resolve(), args.edits), flush=True)


if __name__ == "__main__":
    main()
