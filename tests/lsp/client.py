"""A client of our own: it starts the server as an editor does, and talks JSON-RPC over its pipes."""

import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

__all__ = ["PROFILES", "Client", "RpcError"]

DEADLINE = 200.0  # seconds; a busy machine may be ten times slower than a quiet one

PULL = {
    "general": {"positionEncodings": ["utf-16"]},
    "textDocument": {
        "diagnostic": {"dynamicRegistration": True, "relatedDocumentSupport": True},
        "publishDiagnostics": {
            "relatedInformation": True,
            "codeDescriptionSupport": True,
            "tagSupport": {"valueSet": [1, 2]},
            "versionSupport": True,
        },
        "codeAction": {
            "codeActionLiteralSupport": {
                "codeActionKind": {"valueSet": ["quickfix", "refactor.rewrite", "source.fixAll"]}
            },
            "isPreferredSupport": True,
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit"]},
        },
    },
    "workspace": {
        "configuration": True,
        "applyEdit": True,
        "diagnostics": {"refreshSupport": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "workspaceEdit": {"documentChanges": True, "changeAnnotationSupport": {"groupsOnLabel": True}},
    },
    "window": {"workDoneProgress": True},
    "notebookDocument": {"synchronization": {"dynamicRegistration": True}},
}
PUSH = {
    "textDocument": {
        "publishDiagnostics": {"relatedInformation": True, "tagSupport": {"valueSet": [1]}},
        "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}}},
    },
    "workspace": {"applyEdit": True, "workspaceEdit": {}},
}
BARE: dict = {}
UTF8 = {**PULL, "general": {"positionEncodings": ["utf-8", "utf-16"]}}
PROFILES = {"vscode": PULL, "neovim 0.7": PUSH, "bare": BARE, "utf-8": UTF8}


class RpcError(Exception):
    def __init__(self, error):
        super().__init__(error.get("message"))
        self.code = error["code"]
        self.data = error.get("data")


class Client:
    """One server and its folder. Messages that nobody waits for are kept in `notices`."""

    def __init__(self, folder: Path, profile=PULL, *, options=None, settings=None, folders=None, env=None, args=()):
        self.folder = folder
        self.settings = settings
        self.profile = profile
        self.notices: list[dict] = []
        self.requests: list[dict] = []
        self.answers: dict[int, dict] = {}
        self.reply_to = {}
        self._ids = itertools.count(1)
        self._news = threading.Condition()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "troth", "lsp", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env={**os.environ, **(env or {})},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.stderr: list[bytes] = []
        self._complaints = threading.Thread(target=lambda: self.stderr.extend(self.process.stderr), daemon=True)
        self._complaints.start()
        self.versions: dict[str, int] = {}
        self.capabilities = self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": folder.as_uri(),
                "workspaceFolders": [{"uri": one.as_uri(), "name": one.name} for one in folders or [folder]],
                "capabilities": profile,
                "initializationOptions": options,
            },
        )["capabilities"]
        self.notify("initialized", {})

    # -- messages --

    def _read(self):
        stream = self.process.stdout
        while True:
            length = 0
            while (line := stream.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if not line:
                break
            message = json.loads(stream.read(length))
            with self._news:
                if "method" in message and "id" in message:
                    self.requests.append(message)
                    self._send({"jsonrpc": "2.0", "id": message["id"], "result": self._reply(message)})
                elif "method" in message:
                    self.notices.append(message)
                else:
                    self.answers[message["id"]] = message
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def _reply(self, message):
        method = message["method"]
        if method in self.reply_to:
            return self.reply_to[method](message["params"])
        if method == "workspace/configuration":
            return [self.settings for _ in message["params"]["items"]]
        if method == "workspace/applyEdit":
            return {"applied": True}
        return None

    def _send(self, message):
        data = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.process.stdin.flush()

    def send(self, method, params):
        number = next(self._ids)
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number

    def wait(self, number):
        self.until(lambda: number in self.answers, f"an answer to request {number}")
        message = self.answers.pop(number)
        if "error" in message:
            raise RpcError(message["error"])
        return message["result"]

    def request(self, method, params):
        return self.wait(self.send(method, params))

    def notify(self, method, params):
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def until(self, is_true, what):
        end = time.monotonic() + DEADLINE
        with self._news:
            while not is_true():
                left = end - time.monotonic()
                if left <= 0 or self.process.poll() is not None:
                    raise AssertionError(f"waited for {what}: {b''.join(self.stderr).decode()[-3000:]}")
                self._news.wait(min(left, 0.2))

    # -- texts --

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str | None = None) -> str:
        uri = self.uri(name)
        text = (self.folder / name).read_text() if text is None else text
        self.versions[uri] = 1
        item = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})
        return uri

    def change(self, name: str, *changes) -> str:
        uri = self.uri(name)
        self.versions[uri] += 1
        whole = [{"text": one} if isinstance(one, str) else one for one in changes]
        params = {"textDocument": {"uri": uri, "version": self.versions[uri]}, "contentChanges": whole}
        self.notify("textDocument/didChange", params)
        return uri

    def close_text(self, name: str) -> None:
        self.notify("textDocument/didClose", {"textDocument": {"uri": self.uri(name)}})

    # -- answers --

    def pull(self, name: str) -> list[dict]:
        return self.request("textDocument/diagnostic", {"textDocument": {"uri": self.uri(name)}})["items"]

    def pushed(self, name: str, version: int | None = None) -> list[dict]:
        uri = self.uri(name)

        def last():
            found = [one["params"] for one in self.notices if one["method"] == "textDocument/publishDiagnostics"]
            found = [one for one in found if one["uri"] == uri and version in (None, one.get("version"))]
            return found[-1] if found else None

        self.until(lambda: last() is not None, f"diagnostics of {name}")
        return last()["diagnostics"]

    def everything(self) -> dict[str, list[dict]]:
        report = self.request("workspace/diagnostic", {"previousResultIds": []})
        return {one["uri"]: one["items"] for one in report["items"] if one["items"]}

    def actions(self, name: str, start, end=None, only=None, diagnostics=()) -> list[dict]:
        context = {"diagnostics": list(diagnostics)} | ({"only": only} if only else {})
        first = {"line": start[0], "character": start[1]}
        last = {"line": (end or start)[0], "character": (end or start)[1]}
        params = {"textDocument": {"uri": self.uri(name)}, "range": {"start": first, "end": last}, "context": context}
        return self.request("textDocument/codeAction", params)

    def resolve(self, action: dict) -> dict:
        return self.request("codeAction/resolve", action)

    def at(self, method: str, name: str, line: int, character: int):
        place = {"textDocument": {"uri": self.uri(name)}, "position": {"line": line, "character": character}}
        return self.request(method, place)

    # -- the end --

    def leave(self) -> int:
        if self.process.poll() is None:
            self.request("shutdown", None)
            self.notify("exit", None)
        return self.process.wait(DEADLINE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            try:
                self.leave()
            finally:
                self.process.kill()
                self.process.wait()
        self._reader.join(10)
        self._complaints.join(10)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                pipe.close()


def codes(items: list[dict]) -> list[str]:
    """The codes of some findings, in their order."""
    return [item["code"] for item in items]


def edited(text: str, edits: list[dict]) -> str:
    """A text after the edits of a server, with positions in UTF-16."""
    lines = text.split("\n")

    def offset(place):
        line = lines[place["line"]] if place["line"] < len(lines) else ""
        column = len(line.encode("utf-16-le")[: place["character"] * 2].decode("utf-16-le"))
        return min(sum(len(one) + 1 for one in lines[: place["line"]]) + column, len(text))

    # From the end on; of what is inserted at one place, the first edit comes first in the text.
    for edit in reversed(sorted(edits, key=lambda one: offset(one["range"]["start"]))):  # noqa: C413 - stable
        start, end = offset(edit["range"]["start"]), offset(edit["range"]["end"])
        text = text[:start] + edit["newText"] + text[end:]
    return text
