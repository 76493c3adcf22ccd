"""What a store that cannot be written, or a process without threads, does to a conversation: nothing that lasts."""

import asyncio
import contextlib
import contextvars
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from troth.errors import RunError
from troth.runtime.agents import Agent
from troth.runtime.conversations import AlreadyRunning, Conversations, Status, Stopping
from troth.runtime.store import LeaseLostError, SqliteStore, StoreBusyError

LIMIT = 20  # seconds after which a test that hangs is given up
SHORT = 0.05  # seconds that a store waits here for a lock that somebody else has


@contextlib.contextmanager
def locked(path):
    """Somebody else writes, and does not come to an end."""
    other = sqlite3.connect(path, isolation_level=None, timeout=LIMIT, check_same_thread=False)
    try:
        other.execute("BEGIN IMMEDIATE")
        yield other
    finally:
        other.close()


def until(condition):
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.001)


def ends(conversation):
    return [event.payload["outcome"] for event in conversation.events() if event.kind == "run.ended"]


def kinds(conversation):
    return [event.kind for event in conversation.events()]


class Done(Agent):
    """Has nothing to say."""

    def step(self, conversation):
        return None


class Meets(Agent):
    """Goes wrong in a step that meets a locked store."""

    def __init__(self, problem=None):
        self.began = threading.Event()
        self.go = threading.Event()
        self.problem = problem

    def step(self, conversation):
        self.began.set()
        assert self.go.wait(LIMIT)
        conversation.token("a piece")
        if self.problem is not None:
            raise self.problem
        conversation.say("too late")


class AsyncMeets(Meets):
    """The same on a loop."""

    async def astep(self, conversation):
        self.began.set()
        async with asyncio.timeout(LIMIT):
            while not self.go.is_set():
                await asyncio.sleep(0.001)
        conversation.token("a piece")
        if self.problem is not None:
            raise self.problem
        await conversation.asay("too late")


# ---- the end of a run cannot be written


@pytest.mark.parametrize("problem", [None, ValueError("bad")], ids=["the store's own error", "an error of the step"])
@pytest.mark.parametrize("agent", [Meets, AsyncMeets])
@pytest.mark.parametrize("then", ["wait", "run", "another process"])
def test_a_lock_that_outlasts_every_patience(tmp_path, agent, problem, then):
    """The run is over at once for this process; it is for all as soon as that can be written, and nobody has to ask."""
    path = tmp_path / "troth.db"
    met = agent(problem)
    with SqliteStore(path, busy_timeout=SHORT) as store, Conversations(store) as home:
        conversation = home.open(met, "c")
        conversation.send("hello")
        raised = []

        def run():
            try:
                conversation.run()
            except (StoreBusyError, ValueError) as error:
                raised.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        assert met.began.wait(LIMIT)
        with locked(path):
            met.go.set()
            thread.join(LIMIT)
            assert [type(error) for error in raised] == [StoreBusyError if problem is None else ValueError]
            assert conversation.status is Status.FAILED
            assert conversation.interrupt() is Stopping.STOPPED
        if then == "run":
            assert home.open(Done(), "c").run().outcome is Status.FINISHED
        else:
            until(lambda: ends(conversation) == ["failed"])
        if then == "another process":
            code = f"""
                from troth.runtime.agents import Agent
                from troth.runtime.conversations import Conversations
                class Done(Agent):
                    def step(self, conversation):
                        return None
                with Conversations({str(path)!r}) as home:
                    print(home.open(Done(), "c").run().outcome.value)
            """
            done = subprocess.run(
                [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, check=True
            )
            assert done.stdout == "finished\n"
        assert ends(conversation) == (["failed"] if then == "wait" else ["failed", "finished"])
        pieces = [event.payload["text"] for event in conversation.events() if event.kind == "tokens"]
        assert pieces == ["a piece"]


ON_A_FULL_DISK = """
import asyncio, resource, sys, time
from troth.runtime.agents import Agent
from troth.runtime.conversations import Conversations, Status
from troth.runtime.store import StoreError

is_full = True

class Writes(Agent):
    def step(self, conversation):
        while is_full:
            conversation.emit("page", {"text": "x" * 50_000})

class AsyncWrites(Agent):
    async def astep(self, conversation):
        while is_full:
            await conversation.asay("x" * 50_000)

def ends(conversation):
    return [event.payload["outcome"] for event in conversation.events() if event.kind == "run.ended"]

with Conversations(sys.argv[1]) as home:
    conversation = home.open({"sync": Writes, "async": AsyncWrites}[sys.argv[2]](), "c")
    conversation.send("hello")
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
    try:
        conversation.run() if sys.argv[3] == "run" else asyncio.run(conversation.arun())
    except StoreError as told:
        print(str(told).splitlines()[0])
    assert conversation.status is Status.FAILED, conversation.status
    is_full = False
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    deadline = time.monotonic() + 20
    while ends(conversation) != ["failed"]:
        assert time.monotonic() < deadline, ends(conversation)
        time.sleep(0.005)
    assert conversation.run().outcome is Status.FINISHED
    assert ends(conversation) == ["failed", "finished"]
"""


@pytest.mark.parametrize("entry", ["run", "arun"])
@pytest.mark.parametrize("color", ["sync", "async"])
def test_a_disk_that_is_full(tmp_path, color, entry):
    """The run fails with the store's words; when there is room again its end is written, and the next one runs."""
    command = [sys.executable, "-c", ON_A_FULL_DISK, str(tmp_path / "troth.db"), color, entry]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "could not be written" in done.stdout


def test_a_message_before_the_late_end_is_not_lost(tmp_path):
    """What the agent has finished is told as finished; what was sent since is news for the next run."""
    path = tmp_path / "troth.db"

    class Locks(Agent):
        """Takes its last step, and meets the lock when the run is to end."""

        def step(self, conversation):
            return None

    with SqliteStore(path, busy_timeout=SHORT) as store, Conversations(store) as home:
        held = contextlib.ExitStack()

        def lock_now(event):
            if event.kind == "step.done":
                held.enter_context(locked(path))

        conversation = home.open(Locks(), "c", on_event=[lock_now])
        conversation.send("hello")
        with pytest.raises(StoreBusyError) as told:
            conversation.run()
        assert "written as soon as the store can be" in "".join(told.value.__notes__)
        assert conversation.status is Status.FINISHED
        held.close()
        conversation.send("one more")
        until(lambda: ends(conversation) == ["finished"])
        assert conversation.look().has_news
        assert not conversation.look().is_finished


# ---- a loop stays free


@pytest.mark.parametrize("problem", [ValueError("bad"), SystemExit(3)], ids=repr)
def test_a_step_that_fails_while_the_store_is_locked(tmp_path, problem):
    """The loop turns until it has the lock released itself, which it could not do if the end were waited for."""
    path = tmp_path / "troth.db"
    met = AsyncMeets(problem)
    with SqliteStore(path, busy_timeout=LIMIT) as store, Conversations(store) as home:
        conversation = home.open(met, "c")

        async def main():
            run = asyncio.create_task(conversation.arun())
            while not met.began.is_set():
                await asyncio.sleep(0.001)
            with locked(path):
                met.go.set()
                for _ in range(20):
                    await asyncio.sleep(0.001)
            await asyncio.wait([run])
            return run.exception()

        raised = asyncio.run(main())
        assert problem in (raised, raised.__cause__)
        assert ends(conversation) == ["failed"]


def test_a_cancelled_run_does_not_wait_for_the_store(tmp_path):
    """Whoever cancels is let go while the lock is held; the end is written later."""
    path = tmp_path / "troth.db"
    met = AsyncMeets()
    with SqliteStore(path, busy_timeout=LIMIT) as store, Conversations(store) as home:
        conversation = home.open(met, "c")

        async def main():
            run = asyncio.create_task(conversation.arun())
            while not met.began.is_set():
                await asyncio.sleep(0.001)
            with locked(path):
                run.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await run
                assert conversation.status is Status.CANCELLED

        asyncio.run(main())
        until(lambda: ends(conversation) == ["cancelled"])


@pytest.mark.parametrize("how", ["interrupt", "ainterrupt"])
def test_interrupt_stops_before_it_writes(tmp_path, how):
    """While somebody else has the lock, the step is stopped and the call returns; that it was asked is written later."""
    path = tmp_path / "troth.db"
    stopped = threading.Event()

    class Held(Agent):
        def __init__(self):
            self.began = asyncio.Event()

        async def astep(self, conversation):
            self.began.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

    with SqliteStore(path, busy_timeout=LIMIT) as store, Conversations(store) as home:

        async def main():
            agent = Held()
            conversation = home.open(agent, "c")
            run = asyncio.create_task(conversation.arun())
            await asyncio.wait_for(agent.began.wait(), LIMIT)
            with locked(path):
                answer = conversation.interrupt() if how == "interrupt" else await conversation.ainterrupt()
                assert answer is Stopping.WILL_STOP
                while not stopped.is_set():
                    await asyncio.sleep(0.001)
            assert (await run).outcome is Status.INTERRUPTED
            return conversation

        conversation = asyncio.run(main())
        assert kinds(conversation)[-2:] == ["asked", "run.ended"]


def test_tokens_do_not_block_the_loop(tmp_path):
    """However many come while somebody else writes; none is lost, and they stand before what follows."""
    path = tmp_path / "troth.db"

    class Streams(Agent):
        async def astep(self, conversation):
            with locked(path):
                for _ in range(20):
                    conversation.token("x" * 500)
                    await asyncio.sleep(0.001)
            await conversation.asay("done")

    with SqliteStore(path, busy_timeout=LIMIT) as store, Conversations(store) as home:
        conversation = home.open(Streams(), "c")
        assert asyncio.run(conversation.arun()).outcome is Status.FINISHED
        rows = [(event.kind, event.payload) for event in conversation.events()]
        pieces = [payload["text"] for kind, payload in rows if kind == "tokens"]
        assert "".join(pieces) == "x" * 10_000
        assert [kind for kind, _ in rows if kind in ("tokens", "message")][-1] == "message"


# ---- a start that comes to nothing


def test_no_thread_can_be_started(home):
    """The run is refused with words, nothing is left behind, and the next one runs."""
    conversation = home.open(Done(), "c")
    conversation.send("hello")
    before = threading.stack_size(1 << 46)  # more than any machine can give a thread
    try:
        with pytest.raises(RunError, match="No thread could be started"):
            asyncio.run(conversation.arun())
        with pytest.raises(RunError, match="No thread could be started"):
            conversation.start()
    finally:
        threading.stack_size(before)
    assert conversation.status is Status.FAILED
    assert ends(conversation) == ["failed", "failed"]
    assert asyncio.run(conversation.arun()).outcome is Status.FINISHED


def test_a_start_that_is_cancelled_while_it_is_written(tmp_path):
    """Whoever asked for the run is gone: it is not begun later, by nobody, forever."""
    path = tmp_path / "troth.db"
    with SqliteStore(path, busy_timeout=LIMIT) as store, Conversations(store) as home:
        conversation = home.open(Done(), "c")

        async def main():
            with locked(path):
                run = asyncio.create_task(conversation.astart())
                for _ in range(5):
                    await asyncio.sleep(0.001)
                run.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await run

        asyncio.run(main())
        assert conversation.run().outcome is Status.FINISHED
        starts = kinds(conversation).count("run.started")
        assert starts == len(ends(conversation))
        assert conversation.status is Status.FINISHED


# ---- a lease is proven


TAKEN_OVER = """
import sys
from troth.runtime.agents import Agent
from troth.runtime.conversations import Conversations
from troth.runtime.store import LeaseLostError

class Slow(Agent):
    def step(self, conversation):
        print("in its step", flush=True)
        sys.stdin.readline()
        for write in (lambda: conversation.say("still here"), lambda: conversation.emit("note")):
            try:
                write()
            except LeaseLostError:
                print("refused", flush=True)

with Conversations(sys.argv[1]) as home:
    conversation = home.open(Slow(), "c")
    conversation.send("hello")
    try:
        conversation.run()
    except LeaseLostError:
        print("over", flush=True)
"""


def test_an_agent_whose_run_was_taken_over_says_nothing_more(tmp_path):
    """A process that was silent for so long that another one went on: what its agent says is not written."""
    path = tmp_path / "troth.db"
    with subprocess.Popen(
        [sys.executable, "-c", TAKEN_OVER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as slow:
        try:
            assert slow.stdout.readline() == "in its step\n"
            # By this clock the other process has sent no heartbeat for a minute.
            with SqliteStore(path, clock=lambda: time.time() + 60) as store, Conversations(store) as home:
                conversation = home.open(Done(), "c")
                assert conversation.run().outcome is Status.FINISHED
                log = kinds(conversation)
                out, _ = slow.communicate("go\n", timeout=60)
                assert out.split("\n")[:3] == ["refused", "refused", "over"]
                assert kinds(conversation) == log
        finally:
            slow.kill()


HOLDS = """
import sys
from troth.runtime.agents import Agent
from troth.runtime.conversations import Conversations

class Held(Agent):
    def step(self, conversation):
        print("in its step", flush=True)
        sys.stdin.readline()

with Conversations(sys.argv[1]) as home:
    home.open(Held(), "c").run()
"""


def test_only_the_agent_of_the_run_adds_to_the_talk(tmp_path):
    """A handle in another process may send; what the agent says, only the agent says."""
    path = tmp_path / "troth.db"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        try:
            assert other.stdout.readline() == "in its step\n"
            with Conversations(path) as home:
                conversation = home.open(Done(), "c")
                for write in (
                    lambda: conversation.say("me too"),
                    lambda: asyncio.run(conversation.asay("me too")),
                    lambda: conversation.emit("note"),
                    lambda: conversation.token("piece"),
                ):
                    with pytest.raises(AlreadyRunning, match=rf"(?s)process {other.pid}.*`send`"):
                        write()
                conversation.send("hello")
                assert conversation.interrupt() is Stopping.CANNOT_STOP
                assert asyncio.run(conversation.ainterrupt()) is Stopping.CANNOT_STOP
                other.communicate("go\n", timeout=60)
                conversation.say("now nobody runs it")
        finally:
            other.kill()


def test_a_step_that_outlives_its_run_says_nothing_more(home):
    """A thread that a step left behind belongs to a run that is over."""
    over, refused = threading.Event(), []

    class Leaves(Agent):
        def step(self, conversation):
            context = contextvars.copy_context()

            def later():
                assert over.wait(LIMIT)
                try:
                    conversation.say("one more thing")
                except LeaseLostError as error:
                    refused.append(error)

            self.thread = threading.Thread(target=context.run, args=(later,))
            self.thread.start()

    agent = Leaves()
    conversation = home.open(agent, "c")
    conversation.run()
    over.set()
    agent.thread.join(LIMIT)
    assert len(refused) == 1
    assert conversation.messages() == []
