"""A program that does one of everything in a session, and goes on where it was when it is started again."""

import contextlib
import os
import threading
import time
from pathlib import Path

KEY = "a key that is only used in tests"


def program(folder):
    os.environ["XDG_STATE_HOME"] = str(Path(folder) / "state")
    from troth.runtime.agents.tool_calling import ToolCallingAgent
    from troth.runtime.sagas.saga import Saga
    from troth.runtime.sessions import (
        Action,
        Anchor,
        Hypervisor,
        Member,
        PolicyTable,
        RefusedError,
        Rule,
        SessionConfig,
        SessionState,
    )
    from troth.testing.scripted import ScriptedModel, call

    effects = Path(folder) / "effects"

    def note(text):
        with effects.open("a") as out:
            out.write(f"{text}\n")

    begun = threading.Event()

    async def wait():
        import asyncio

        begun.set()
        await asyncio.sleep(20)

    saga = (
        Saga("trip")
        .step("one", do=lambda: note("one"), undo=lambda: note("undo one"))
        .step("two", do=wait, undo=lambda: note("undo two"))
    )
    action = Action("deploy", lambda: note("deploy"), undo=lambda: note("undo deploy"))
    risky = Action("risky", lambda: note("risky"), undo=lambda: note("undo risky"))
    config = SessionConfig(policy=PolicyTable([Rule("ask", action="risky")], otherwise="allow"))
    file = Anchor.file(Path(folder) / "anchor")
    failed = []

    def put(number, mac):
        if not failed:
            failed.append(number)
            raise OSError("the first one fails")
        file.put(number, mac)

    def look() -> str:
        """Look."""
        return "seen"

    options = {"audit_key": KEY, "anchor": Anchor(put, file.get), "actions": [action, risky], "runs": [saga]}
    with Hypervisor(Path(folder) / "troth.db", **options) as hypervisor:
        session = hypervisor.get("s") or hypervisor.create("ops", config, session_id="s")
        states = {member.agent: member.state for member in hypervisor.get("s").members}
        if session.state is not SessionState.ARCHIVED:
            for agent in ("a", "b"):
                if agent not in states:
                    hypervisor.join("s", agent, score=0.9)
                    states[agent] = "present"
            if hypervisor.get("s").state is SessionState.HANDSHAKING:
                hypervisor.activate("s")
            if states["a"] == "present":
                with contextlib.suppress(RefusedError):  # elevated already, before the crash
                    hypervisor.elevate("s", "b", 1, attestation="ann")
                with contextlib.suppress(RefusedError):
                    Member(hypervisor, "s", "nobody").run(saga, run_id="nobody's")
                talk = hypervisor.member("s", "b").converse(
                    ToolCallingAgent(ScriptedModel(call("look"), "done"), [look])
                )
                talk.send("look")
                talk.run()
                answer_all(hypervisor, lambda: hypervisor.member("s", "b").act("risky"))
                member = hypervisor.member("s", "a")
                member.record("a note")
                member.workspace.write("a.txt", "text")
                member.act("deploy")
                thread = threading.Thread(target=run_quietly, args=(member, saga))
                thread.start()
                begun.wait(10)
                hypervisor.kill("s", "a", reason="a test")
                thread.join(10)
            else:
                hypervisor.kill("s", "a", reason="a test")
            hypervisor.terminate("s", timeout=10)
        deadline = time.monotonic() + 10
        while hypervisor.get("s").state is not SessionState.ARCHIVED and time.monotonic() < deadline:
            time.sleep(0.02)
        kill = hypervisor.store.read_sessions(lambda rows: rows.kill_of("s", "a"))
        return {
            "state": hypervisor.get("s").state.value,
            "verdict": str(hypervisor.verify_audit().word),
            "kill": kill.answer is not None and not __import__("json").loads(kill.answer)["left"],
            "agents": {member.agent: member.state for member in hypervisor.get("s").members},
        }


def answer_all(hypervisor, act):
    """Have an act done that waits for a person, and those that wait from before a crash."""
    from troth.errors import TrothError

    thread = threading.Thread(target=act)
    thread.start()
    deadline = time.monotonic() + 20
    while thread.is_alive() and time.monotonic() < deadline:
        for ask in hypervisor.asks("s"):
            with contextlib.suppress(TrothError):
                hypervisor.answer(ask, by="ann", yes=True)
        thread.join(0.01)


async def aprogram_inside(folder):
    from troth import bridge

    return await bridge.call(program, folder)


def aprogram(folder):
    """The same, asked for from a loop."""
    import asyncio

    return asyncio.run(aprogram_inside(folder))


def run_quietly(member, saga):
    from troth.errors import TrothError

    try:
        member.run(saga, run_id="trip")
    except TrothError:
        return
