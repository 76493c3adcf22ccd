"""How a server ends: with time for turns, or at once; nothing is lost either way."""

import asyncio
import signal
import threading

import httpx
from tests.server.service import PATIENCE, frames, wait_until
from tests.server.test_conversations import finished, say, talk
from tests.server.test_runs import begin

from troth.runtime import Runtime
from troth.runtime.agents import Agent
from troth.server import Server


def test_turns_get_their_time(serve):
    """SIGTERM: no new work, streams are told, a turn that ends in time ends; then the process does."""
    server = serve("app:server")
    with server.client() as client:
        talk_id = talk(client, "patient")
        say(client, talk_id, "x", run=True)
        wait_until((server.folder / "steps.txt").exists)
        told, reading = [], threading.Event()

        def read():
            with server.client() as mine, mine.stream("GET", f"/conversations/{talk_id}/events") as stream:
                reading.set()
                told.append(frames("".join(stream.iter_text())))

        reader = threading.Thread(target=read)
        reader.start()
        reading.wait(PATIENCE)
        server.process.send_signal(signal.SIGTERM)
        health = wait_until(lambda: (now := client.get("/health")).status_code == 503 and now)
        assert health.json()["status"] == "closing"
        refused = client.post("/runs", json={"workflow": "gated"})
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert client.get(f"/conversations/{talk_id}/events").status_code == 503
        reader.join(PATIENCE)
        assert told[0][-1][1] == "closing"
        (server.folder / "go").touch()
    assert server.process.wait(PATIENCE) == 0
    again = serve("app:server")
    with again.client() as client:
        assert [one["text"] for one in finished(client, talk_id)["messages"]] == ["x", "done"]
    assert (server.folder / "steps.txt").read_text().splitlines() == [talk_id]  # it ended before the first server did


def test_what_does_not_end_in_time_goes_on_later(serve):
    """The time is up: turns and runs are let go of, and go on with the next server."""
    server = serve("app:hasty")
    with server.client() as client:
        run_id = begin(client, "agated")
        talk_id = talk(client, "patient")
        say(client, talk_id, "x", run=True)
        wait_until((server.folder / "gates.txt").exists)
        wait_until((server.folder / "steps.txt").exists)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == 0
    assert "LeftoverTaskWarning" not in server.stderr()  # no run is left behind on a loop that stands still
    (server.folder / "go").touch()
    again = serve("app:server")
    with again.client() as client:
        wait_until(lambda: client.get(f"/runs/{run_id}").json()["state"] == "completed", "the run")
        assert [one["text"] for one in finished(client, talk_id)["messages"]] == ["x", "done"]


def test_the_last_turn_is_written_down_as_over(tmp_path):
    """It ended right before the server: nobody is left behind who would write into a store that is closed."""

    class Null(Agent):
        async def astep(self, conversation):
            await conversation.asay("ok")

    async def main():
        async with Runtime(tmp_path / "x.db", in_process=False) as runtime:
            server = Server(runtime, agents={"null": Null()}, keys=False)
            await server.context.start()
            transport = httpx.ASGITransport(server.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                body = {"model": "null", "messages": [{"role": "user", "content": "x"}]}
                assert (await client.post("/v1/chat/completions", json=body)).status_code == 200
            await server.context.stop()
            assert not [task for task in asyncio.all_tasks() if task.get_name() == "troth-turns-over"]
            return runtime.store.read_server(lambda rows: rows.open_turns())

    assert asyncio.run(main()) == []


def test_the_time_is_an_option(serve):
    """`--drain 0`: a step in a thread cannot be stopped; what it was at goes on with the next server."""
    server = serve("--workflows", ".", "--no-key", "--drain", "0")
    with server.client() as client:
        run_id = begin(client, "gated")
        wait_until((server.folder / "gates.txt").exists)
        server.process.send_signal(signal.SIGTERM)
    (server.folder / "go").touch()
    assert server.process.wait(PATIENCE) == 0
    again = serve("--workflows", ".", "--no-key")
    with again.client() as client:
        wait_until(lambda: client.get(f"/runs/{run_id}").json()["state"] == "completed")


def test_a_second_signal_ends_at_once(serve):
    """Nothing is lost: the turn goes on with the next server."""
    server = serve("app:server")
    with server.client() as client:
        talk_id = talk(client, "patient")
        say(client, talk_id, "x", run=True)
        wait_until((server.folder / "steps.txt").exists)
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: client.get("/health").status_code == 503)
        server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(PATIENCE) == 128 + signal.SIGTERM
    (server.folder / "go").touch()
    again = serve("app:server")
    with again.client() as client:
        assert finished(client, talk_id)["messages"][-1]["text"] == "done"
