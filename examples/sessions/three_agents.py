"""Three agents work in one session, and one of them misbehaves: it is killed in mid-saga, and the trail proves it.

    python examples/sessions/three_agents.py [FOLDER]

`planner` writes the plan, `builder` deploys, `cleaner` is meant to look for old releases and deletes live ones.
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
from pathlib import Path

from troth.runtime import Action, Hypervisor, Saga, SagaFailedError
from troth.runtime.sessions import PolicyTable, RefusedError, Rule, SessionConfig

POLICY = PolicyTable(
    [
        Rule("deny", action="deploy", arguments={"release": "beta"}, reason="beta is not for customers"),
        Rule("log", action="deploy", reason="every deployment is looked at"),
    ],
    otherwise="allow",
)


class Site:
    """What the agents act on: the releases that are live."""

    def __init__(self) -> None:
        self.live = {"v1", "v2"}
        self.is_deleting = threading.Event()

    def deploy(self, release: str) -> str:
        self.live.add(release)
        return f"{release} is live"

    def withdraw(self, release: str) -> None:
        self.live.discard(release)

    def delete(self, release: str) -> None:
        self.live.remove(release)

    def restore(self, release: str) -> None:
        self.live.add(release)

    async def delete_all_others(self) -> None:
        self.is_deleting.set()
        await asyncio.sleep(60)  # it takes its time; nobody waits for it in the end


def clean_up(site: Site) -> Saga:
    """What the cleaner does: one live release at a time."""
    return (
        Saga("clean-up")
        .step("delete v1", do=site.delete, undo=site.restore, arguments={"release": "v1"})
        .step("delete the others", do=site.delete_all_others, undo=None)
    )


def main(folder: Path) -> list[str]:
    """Let it happen in `folder`; the answer is what the audit trail tells."""
    site = Site()
    saga = clean_up(site)
    actions = [
        Action("deploy", site.deploy, undo=site.withdraw),
        Action("drop-database", lambda: None, is_admin=True),
    ]
    with Hypervisor(folder / "troth.db", actions=actions, runs=[saga]) as hypervisor:
        session = hypervisor.create("ann", SessionConfig(policy=POLICY))
        planner = hypervisor.join(session, "planner", score=0.8)
        builder = hypervisor.join(session, "builder", score=0.9)
        cleaner = hypervisor.join(session, "cleaner", score=0.7)
        hypervisor.activate(session)

        planner.workspace.write("plan.txt", "deploy v3, then look for old releases")
        builder.act("deploy", release="v3")
        for refused in (lambda: builder.act("deploy", release="beta"), lambda: cleaner.act("drop-database")):
            try:
                refused()
            except RefusedError as refusal:
                print(f"refused by {refusal.rule}")

        def run_quietly() -> None:
            try:
                cleaner.run(saga, run_id="clean-up")
            except SagaFailedError as failed:
                print(f"the saga is {failed.outcome.state.value}")

        thread = threading.Thread(target=run_quietly)
        thread.start()
        if not site.is_deleting.wait(30):
            raise SystemExit("the cleaner never began")
        print(f"live while it deletes: {sorted(site.live)}")
        kill = hypervisor.kill(session, "cleaner", reason="it deletes live releases")
        thread.join(30)
        print(f"terminated: {kill.terminated}, stopped: {list(kill.stopped)}, undone: {list(kill.undone)}")
        print(f"live after the kill: {sorted(site.live)}")

        hypervisor.terminate(session)
        print(f"the audit trail is {hypervisor.verify_audit().word}")
        return [told(row.kind, row.agent, json.loads(row.data)) for row in hypervisor.events(session=session)]


def told(kind: str, agent: str, data: dict[str, object]) -> str:
    """One line of the trail for people."""
    about = next((str(data[name]) for name in ("why", "reason", "step", "what", "path") if data.get(name)), "")
    return " ".join(filter(None, (kind, agent, about.partition("\n")[0])))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        lines = main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            os.environ.setdefault("XDG_STATE_HOME", name)
            lines = main(Path(name))
    print("\n".join(lines))
