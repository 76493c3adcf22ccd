"""Measure the server: `python -m bench.server`.

turn     the CPU of a turn of a null agent over HTTP, beside a bare FastAPI echo on the same uvicorn and the same turn
         without HTTP
chat     the same as a chat completion, each in a conversation of its own
first    the time until the first byte of a streamed chat completion, beside those of the bare echo and of a bare stream
         on the same uvicorn, turn by turn: as a client sees it, and the CPU of the server's loop from the request's
         first byte to the answer's, which tells the same where the machine is busy
start    the CPU of `troth serve` until its first answer
readers  many readers of one run: when an event reaches them and what CPU that takes, and what an idle one costs

CPU, not wall time: the machine may be busy. Nothing here asserts.
"""

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

TROTH = Path(sys.executable).with_name("troth")

APP = """
import os
import time
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from troth.runtime import Runtime
from troth.runtime.agents import Agent
from troth.server import Server

HERE = Path(__file__).parent


class Null(Agent):
    async def astep(self, conversation):
        await conversation.asay("ok")


def ticks():
    (HERE / "begun").touch()
    while not (HERE / "go").exists():
        time.sleep(0.01)
    return time.time()


runtime = Runtime(HERE / "bench.db", in_process=False)
server = Server(runtime, agents={"null": Null()}, workflows=[str(HERE / "ticks.yaml")], keys=False)
echo = FastAPI()


class Text(BaseModel):
    text: str
    run: bool = False


@echo.post("/echo", status_code=202)
async def answer(text: Text) -> Text:
    return text


async def chunks(text):
    yield "data: " + text + "\\n\\n"
    yield "data: [DONE]\\n\\n"


@echo.post("/stream")
async def stream(text: Text) -> StreamingResponse:
    return StreamingResponse(chunks(text.text), media_type="text/event-stream")
"""
CPU_UNTIL_FIRST_BYTE = """

received, sent = H11Protocol.data_received, RequestResponseCycle.send


def data_received(self, data):
    if getattr(self, "began", None) is None:
        self.began = time.thread_time()
    received(self, data)


async def send(self, message):
    await sent(self, message)
    protocol = self.transport.get_protocol()
    if message["type"] == "http.response.body" and protocol.began is not None:
        passed, protocol.began = time.thread_time() - protocol.began, None
        with (HERE / f"{os.getpid()}.cpu").open("a") as file:
            file.write(f"{self.scope['path']} {passed}\\n")


H11Protocol.data_received, RequestResponseCycle.send = data_received, send
"""
TICKS = "troth: 1\nname: ticks\nsteps:\n" + "".join(f"  - {{id: t{n}, function: 'app:ticks'}}\n" for n in range(3))


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> int:
    """Bytes that a process has in memory."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def served(folder: Path) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [TROTH, "serve", "app:server", "--port", "0"],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().split()[-1]


def echoing(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """The bare echo, with the parser and the loop that `troth serve` has, whatever else is installed here."""
    options = ["--port", "0", "--http", "h11", "--loop", "asyncio", "--no-access-log"]
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "app:echo", *options],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    line = next(line for line in process.stderr if "running on" in line)
    return process, line.split("running on ")[1].split()[0]


def end(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGTERM)
    process.wait()


def turn(folder: Path, count: int) -> None:
    process, url = echoing(folder)
    with httpx.Client(base_url=url) as client:
        client.post("/echo", json={"text": "x"})
        begun = cpu(process.pid)
        for _ in range(count):
            client.post("/echo", json={"text": "x", "run": True}).raise_for_status()
        bare = (cpu(process.pid) - begun) / count
    end(process)
    process, url = served(folder)
    with httpx.Client(base_url=f"{url}/v1", timeout=60) as client:
        talks = [client.post("/conversations", json={"agent": "null"}).json()["id"] for _ in range(20)]
        begun = cpu(process.pid)
        for number in range(count):
            body = {"text": "x", "run": True}
            path = f"/conversations/{talks[number % 20]}/messages"
            client.post(path, json=body, headers={"Prefer": "wait=30"}).raise_for_status()
        over_http = (cpu(process.pid) - begun) / count
    end(process)
    direct = asyncio.run(_direct(folder, count))
    print(
        f"turn: {over_http * 1e3:.2f} ms of CPU over HTTP; echo {bare * 1e3:.2f} ms, without HTTP {direct * 1e3:.2f} ms"
    )
    print(f"      {over_http / (bare + direct):.2f} times both together")


def chat(folder: Path, count: int) -> None:
    process, url = echoing(folder)
    with httpx.Client(base_url=url) as client:
        client.post("/echo", json={"text": "x"})
        begun = cpu(process.pid)
        for _ in range(count):
            client.post("/echo", json={"text": "x", "run": True}).raise_for_status()
        bare = (cpu(process.pid) - begun) / count
    end(process)
    process, url = served(folder)
    with httpx.Client(base_url=f"{url}/v1", timeout=60) as client:
        body = {"model": "null", "messages": [{"role": "user", "content": "x"}]}
        client.post("/chat/completions", json=body).raise_for_status()
        begun = cpu(process.pid)
        for _ in range(count):
            client.post("/chat/completions", json=body).raise_for_status()
        over_http = (cpu(process.pid) - begun) / count
    end(process)
    direct = asyncio.run(_direct(folder, count, is_new=True))
    print(
        f"chat: {over_http * 1e3:.2f} ms of CPU over HTTP; echo {bare * 1e3:.2f} ms, without HTTP {direct * 1e3:.2f} ms"
    )
    print(f"      {over_http / (bare + direct):.2f} times both together")


def first(folder: Path, count: int) -> None:
    with (folder / "app.py").open("a") as file:
        file.write(CPU_UNTIL_FIRST_BYTE)
    body = {"model": "null", "messages": [{"role": "user", "content": "x"}], "stream": True}
    echo, echo_url = echoing(folder)
    process, url = served(folder)
    asked = {
        "chat": (f"{url}/v1/chat/completions", body),
        "echo": (f"{echo_url}/echo", {"text": "x"}),
        "stream": (f"{echo_url}/stream", {"text": "x"}),
    }
    seconds: dict[str, list[float]] = {name: [] for name in asked}
    try:
        with httpx.Client(timeout=60) as client:
            for number in range(count // 20 + 2):
                for name, question in asked.items():
                    times = [_first_byte(client, *question) for _ in range(20)]
                    seconds[name] += times if number > 1 else []
    finally:
        end(echo)
        end(process)
    cpu_of: dict[str, list[float]] = {name: [] for name in asked}
    for line in "".join(file.read_text() for file in folder.glob("*.cpu")).splitlines():
        path, passed = line.split()
        cpu_of[next(name for name in asked if name in path)].append(float(passed))
    print(f"first: until the first byte of a streamed completion, load {os.getloadavg()[0]:.1f}")
    for what, times in (("time", seconds), ("CPU", {name: cpu_of[name][40:] for name in cpu_of})):
        for name, pick in (("median", statistics.median), ("best tenth", lambda row: sorted(row)[len(row) // 10])):
            chat, bare, stream = (pick(times[part]) * 1e3 for part in ("chat", "echo", "stream"))
            print(
                f"       {what}, {name}: {chat:.2f} ms; echo {bare:.2f} ms: {chat / bare:.2f} times; "
                f"bare stream {stream:.2f} ms: {chat / stream:.2f} times"
            )


def _first_byte(client: httpx.Client, url: str, body: object) -> float:
    """Seconds until the first byte of the body; the rest is read, too."""
    begun = time.perf_counter()
    with client.stream("POST", url, json=body) as answer:
        answer.raise_for_status()
        chunks = answer.iter_raw()
        next(chunks)
        passed = time.perf_counter() - begun
        for _ in chunks:
            pass
    return passed


async def _direct(folder: Path, count: int, *, is_new: bool = False) -> float:
    from troth.runtime import Runtime
    from troth.runtime.agents import Agent

    class Null(Agent):
        async def astep(self, conversation):
            await conversation.asay("ok")

    async with Runtime(folder / "direct.db", in_process=False) as runtime:
        talks = [await runtime.conversations.aopen(Null()) for _ in range(20)]
        begun = time.process_time()
        for number in range(count):
            talk = await runtime.conversations.aopen(Null()) if is_new else talks[number % 20]
            await talk.asend("x")
            await talk.arun()
        return (time.process_time() - begun) / count


def start(folder: Path) -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")  # as an installer leaves it, wherever this runs
    used = []
    for _ in range(6):
        process, url = served(folder)
        httpx.get(f"{url}/v1/health").raise_for_status()
        used.append(cpu(process.pid))
        end(process)
    print(
        f"start: {statistics.median(used[1:]):.2f} s of CPU until the first answer, load {os.getloadavg()[0]:.1f}; "
        f"{used[0]:.2f} s the very first time, when the sources are compiled"
    )


def readers(folder: Path, count: int) -> None:
    asyncio.run(_readers(folder, count))


async def _readers(folder: Path, count: int) -> None:
    process, url = served(folder)
    host, port = url.removeprefix("http://").split(":")
    async with httpx.AsyncClient(base_url=f"{url}/v1", timeout=60) as client:
        run = (await client.post("/runs", json={"workflow": "ticks"})).json()["id"]
        while not (folder / "begun").exists():
            await asyncio.sleep(0.01)
        before = memory(process.pid)
        came: list[float] = []
        lines = []
        for _ in range(count):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(f"GET /v1/runs/{run}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            while b"step.begun" not in await reader.readline():
                pass
            lines.append((reader, writer))
        idle = cpu(process.pid)
        await asyncio.sleep(5)
        print(
            f"readers: {count} idle ones cost {(memory(process.pid) - before) / count / 1000:.0f} kB each, "
            f"and {(cpu(process.pid) - idle) / 5 * 100:.0f} % of a core"
        )

        async def follow(reader: asyncio.StreamReader) -> None:
            while line := await reader.readline():
                if b"run.ended" in line:
                    came.append(time.time())
                    if len(came) == count * 95 // 100:
                        used.append(cpu(process.pid) - idle)
                    return

        used: list[float] = []
        idle = cpu(process.pid)
        tasks = [asyncio.create_task(follow(reader)) for reader, _ in lines]
        (folder / "go").touch()
        await asyncio.gather(*tasks)
        ended = (await client.get(f"/runs/{run}")).json()["ended_at"]
        late = sorted(moment - ended for moment in came)
        print(
            f"         the end of the run reached them within {late[len(late) * 95 // 100] * 1e3:.0f} ms at p95, "
            f"{late[-1] * 1e3:.0f} ms at most, load {os.getloadavg()[0]:.1f}"
        )
        print(
            f"         the server used {used[0] * 1e3:.0f} ms of CPU for the last events until 95 % of them had the end"
        )
        for _, writer in lines:
            writer.close()
    await asyncio.to_thread(end, process)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=("turn", "chat", "first", "start", "readers"))
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--readers", type=int, default=1000)
    args = parser.parse_args()
    parts = {
        "turn": lambda folder: turn(folder, args.turns),
        "chat": lambda folder: chat(folder, args.turns),
        "first": lambda folder: first(folder, args.turns // 2),
        "start": start,
        "readers": lambda folder: readers(folder, args.readers),
    }
    for name, measure in parts.items():
        if args.part in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "app.py").write_text(APP)
                (Path(folder) / "ticks.yaml").write_text(TICKS)
                measure(Path(folder))


if __name__ == "__main__":
    main()
