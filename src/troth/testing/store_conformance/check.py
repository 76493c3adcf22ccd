"""What a check of a store is, and what the checks share."""

import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from troth.runtime.store import (
    Store,
    Transaction,
    commit_point,
)
from troth.runtime.store.identity import Owner, new_owner, retire
from troth.runtime.store.records import Place
from troth.runtime.store.sqlite.transaction import run_topic

__all__ = [
    "PATIENCE",
    "POINT",
    "STEP",
    "Part",
    "StoreCheck",
    "StoreGround",
    "append",
    "begin",
    "check",
    "claimed",
    "enrolled",
    "found",
    "in_threads",
    "said",
    "started",
    "until",
]

Part = Literal[
    "commits",
    "streams",
    "runs",
    "history",
    "signals",
    "leases",
    "promises",
    "sessions",
    "server",
    "news",
    "lists",
]

POINT = commit_point("test.conformance", "whatever a check of a store writes")
STEP = commit_point("test.conformance.step", "a step of a run", is_step=True)
PATIENCE = 60.0  # seconds until something that has to come has not come


class StoreGround(Protocol):
    """Where a store under test lives: each `open` is the same store, empty at first."""

    def open(self) -> AbstractContextManager[Store]:
        """The store."""

    def program(self) -> str:
        """Python that defines `open_store()`, meaning the same in another process."""


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """One thing a store has to do."""

    part: Part
    body: Callable[[StoreGround], None]

    @property
    def name(self) -> str:
        """What it is called."""
        return self.body.__name__

    def run(self, ground: StoreGround) -> None:
        """Raise if the store does not do it. Leaves nothing running."""
        self.body(ground)


_checks: list[StoreCheck] = []


def found() -> list[StoreCheck]:
    """Every check of the modules that are imported."""
    return list(_checks)


def check(part: Part) -> Callable[[Callable[[StoreGround], None]], Callable[[StoreGround], None]]:
    """Make a function a check of that part."""

    def add(body: Callable[[StoreGround], None]) -> Callable[[StoreGround], None]:
        _checks.append(StoreCheck(part, body))
        return body

    return add


def append(text: object, stream: str = "s") -> Callable[[Transaction], int]:
    """Work that appends to a stream."""
    return lambda tx: tx.append_event(stream, "said", text, 1.5)


def said(store: Store, stream: str = "s") -> list[Any]:
    """What was appended to it."""
    return [event.payload for event in store.events(stream)]


def in_threads(works: Sequence[Callable[[], object]]) -> list[object]:
    """Do all of them at once; what one of them raises is raised here."""
    answers: list[object] = [None] * len(works)
    problems: list[BaseException] = []

    def do(index: int) -> None:
        try:
            answers[index] = works[index]()
        except BaseException as problem:  # noqa: BLE001  raised below, in the thread that asked
            problems.append(problem)

    threads = [threading.Thread(target=do, args=(index,)) for index in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    if problems:
        raise problems[0]
    assert not any(thread.is_alive() for thread in threads), "a commit did not return"
    return answers


@contextmanager
def started(ground: StoreGround, body: str, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that has `open_store()` and does what `body` says; killed with the block."""
    text = f"import sys\n{ground.program()}\n{textwrap.dedent(body)}"
    with subprocess.Popen(
        [sys.executable, "-c", text, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait for a fact."""
    deadline = time.monotonic() + PATIENCE
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"{what} did not come true"
        time.sleep(0.01)
    return answer


@contextmanager
def enrolled(store: Store) -> Iterator[Owner]:
    """An owner of this process, retired with the block."""
    owner = new_owner(store.clock())
    store.commit(POINT, lambda tx: tx.enroll(owner))
    try:
        yield owner
    finally:
        retire(owner)


def claimed(store: Store, owner: Owner, token: str, run_id: str = "r") -> Callable[[Transaction], Owner | None]:
    """Work that claims a run, and writes it down first if it is new."""

    def work(tx: Transaction) -> Owner | None:
        now = store.clock()
        tx.add_run(run_id, "d", "[]", now)
        return tx.claim(run_topic(run_id), owner.id, token, now)

    return work


def begin(tx: Transaction, place: Place, name: str, now: float, **more: Any) -> None:
    """Write down that a step begins."""
    tx.begin_step(place, kind="step", name=name, key=f"k{place}", args="[]", now=now, **more)
