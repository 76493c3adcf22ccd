"""The third driver: a run that is carried out as a workflow of Temporal.

It drives the same interpreter as the two drivers of the embedded engine. A commit goes to the journal, a step is an
activity, a pause is a timer that news can end. What is in the journal is recorded by the activity of the next step, or
by one of its own before the run waits, ends, or does several things at once.

The workflow is not sandboxed. Temporal's sandbox imports every module anew for each workflow, to find code that is not
deterministic; a decision of ours is a generator that only yields, is checked against its record by the interpreter, and
lives in users' modules that were never meant to be imported twice.
"""

import asyncio
import contextlib
import json
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, is_cancelled_exception

from troth.errors import TrothError
from troth.runtime.engine.clock import last_moment
from troth.runtime.engine.commands import Step
from troth.runtime.engine.interpreter.branch import RunInProgress
from troth.runtime.engine.interpreter.effects import Commit, Effect, Effects, Encode, Fan, Invoke, Listen, Pause
from troth.runtime.engine.interpreter.interpreter import interpret
from troth.runtime.engine.invoke.outcome import StepOutcome
from troth.runtime.engine.temporal.journal import Journal, JournalTransaction, QuestionError
from troth.runtime.engine.temporal.limits import (
    MAX_BATCH,
    MAX_BRANCHES,
    MAX_RECORD,
    MAX_TEXT,
    NotOnTemporalError,
    cut_message,
    keep_small,
    travelling,
)
from troth.runtime.engine.temporal.loading import StepPage, steps_of
from troth.runtime.engine.temporal.outcomes import from_message
from troth.runtime.engine.temporal.recording import PendingRecord
from troth.runtime.engine.temporal.step_lookup import reference_of
from troth.runtime.store import RunState
from troth.runtime.store.json_codec import read

if TYPE_CHECKING:
    from troth.runtime.engine.temporal.worker import Host

__all__ = ["HOST", "WORKFLOW", "RunInput", "TrothRun"]

WORKFLOW = "troth-run"
HOST = threading.local()
"""Where the threads that run workflows find the worker that they belong to: its decisions, its steps, its settings."""

LEAST_GROWTH, MOST_GROWTH = 2_000_000, 10_000_000
"""Bytes that a workflow's history grows at least, and at most, before its run goes on in a new one."""
_YEARS = timedelta(days=3650)
_UNLINKED = 5.0  # seconds after which a run is looked at again that is not on this server
_LINKED = 300.0  # the same for one that is, and that tells its end


class RunInput(TypedDict):
    """What a workflow is started with."""

    run: str
    decision: str
    args: str
    base: str | None
    """What the tokens of its lease begin with; nothing if it has to take the lease first."""
    after: int
    is_new: bool
    """Whether nothing of the run is recorded but its beginning."""
    not_called: list[Any] | None
    is_requested: bool
    joined_by: list[str]


class _LostError(Exception):
    """The run belongs to somebody else now; never seen outside."""


class _ContinueError(BaseException):
    """Ends the driving, to go on in a new workflow; never seen outside."""


@workflow.defn(name=WORKFLOW, sandboxed=False)
class TrothRun:
    """One run."""

    def __init__(self) -> None:
        self.host: Host = HOST.host
        self.run_in_progress: RunInProgress | None = None
        self.journal: Journal | None = None
        self.pending: list[dict[str, Any]] = []
        self.batches: list[list[dict[str, Any]]] = []
        self.after = 0
        self.base = ""
        self.recording = asyncio.Lock()
        # In their order: a replay has to cancel them in the same one.
        self.in_flight: dict[workflow.ActivityHandle[Any], None] = {}
        self.joined_by: list[str] = []
        self.linked: set[str] = set()
        self.is_cancel_requested = False
        self.is_asked_again = False
        self.not_called: list[Any] | None = None
        self.loaded = 0
        """Bytes of the workflow's history once the record of the run was read."""

    # ---- what it is told

    @workflow.signal
    def news(self) -> None:
        """Something was sent to the run, or happened to one that it waits for."""
        if self.run_in_progress is not None:
            self.run_in_progress.bell.ring()

    @workflow.signal
    def cancel(self) -> None:
        """The run is to be cancelled."""
        self.is_cancel_requested = True
        run, journal = self.run_in_progress, self.journal
        if run is None or journal is None or journal.is_cancel_requested:
            return
        journal.is_cancel_requested = run.cancellation.is_asked = True
        for handle in list(self.in_flight):
            handle.cancel()
        run.bell.ring()

    @workflow.signal
    def joined(self, workflow_id: str) -> None:
        """Another run waits for the end of this one."""
        if workflow_id not in self.joined_by:
            self.joined_by.append(workflow_id)

    @workflow.signal
    def again(self) -> None:
        """Somebody wants the run to go on, and may have reopened it just when it ended."""
        self.is_asked_again = True

    # ---- its life

    @workflow.run
    async def run(self, begun: RunInput) -> str:
        """Carry the run out; the answer is the state in which it ended."""
        self.is_asked_again = False
        self.joined_by.extend(name for name in begun["joined_by"] if name not in self.joined_by)
        task = asyncio.create_task(self._live(begun))
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                if not task.done():
                    self.cancel()  # asked for on the server itself
        state = task.result()
        if state is None:
            self._continue(begun, not_called=self.not_called)
        for workflow_id in self.joined_by:
            with contextlib.suppress(ApplicationError):  # it is over itself
                await workflow.get_external_workflow_handle(workflow_id).signal("news")
        if self.is_asked_again:  # by whoever reopened it: the store says how it stands now
            self.base, self.after, self.joined_by, self.is_cancel_requested = "", 0, [], False
            self._continue(begun, not_called=None)
        return str(state)

    def _continue(self, begun: RunInput, *, not_called: list[Any] | None) -> None:
        following: RunInput = {
            "run": begun["run"],
            "decision": begun["decision"],
            "args": begun["args"],
            "base": self.base or None,
            "after": self.after,
            "is_new": False,
            "not_called": not_called,
            "is_requested": self.is_cancel_requested,
            "joined_by": self.joined_by,
        }
        workflow.continue_as_new(following)

    async def _live(self, begun: RunInput) -> str | None:
        """Drive the run to its end, or to a point where it goes on in a new workflow (None)."""
        run_id = begun["run"]
        self.journal = journal = Journal(run_id)
        run = RunInProgress(
            run_id,
            "",
            clock=lambda: workflow.now().timestamp(),
            chance=workflow.random(),
            name_of=self.host.decisions.name_of,
        )
        run.max_result = MAX_TEXT
        run.look_again = _UNLINKED
        try:
            if not await self._take(begun, run, journal):
                return "elsewhere"
        except TrothError as refused:
            raise await self._refusal(refused) from refused
        self.run_in_progress = run
        if self.is_cancel_requested:
            journal.is_cancel_requested = run.cancellation.is_asked = True
        args = read(begun["args"], f"run {run_id!r}")
        effects = interpret(run, self.host.decisions.begin(begun["decision"], args))
        try:
            state: RunState = await self._drive(effects, run)
            await self._record()
        except _LostError:
            return "elsewhere"
        except _ContinueError:
            return None
        except TrothError as refused:
            raise await self._refusal(refused) from refused
        except (AttributeError, TypeError, ValueError, LookupError, AssertionError) as bug:
            # Temporal would try the same again forever, and whoever waits would not be told.
            await self._let_go()
            message = cut_message(f"{type(bug).__name__}: {bug}")
            raise ApplicationError(message, type="InternalError", non_retryable=True) from bug
        finally:
            effects.close()
        return state.value

    async def _refusal(self, refused: TrothError) -> ApplicationError:
        """Let go of the run; the answer is what its workflow ends with, which whoever waits is told."""
        await self._let_go()
        return ApplicationError(cut_message(str(refused)), type=type(refused).__name__, non_retryable=True)

    async def _let_go(self) -> None:
        """Give the lease back: the run is interrupted, and can go on elsewhere."""
        self.pending.append({"do": "release"})
        with contextlib.suppress(_LostError):
            await self._record()

    async def _take(self, begun: RunInput, run: RunInProgress, journal: Journal) -> bool:
        """Take the run, and learn what is recorded of it; False if there is nothing to do here."""
        run_id = begun["run"]
        self.is_cancel_requested = self.is_cancel_requested or begun["is_requested"]
        self.base, self.after = begun["base"] or str(workflow.uuid4()), begun["after"]
        if begun["base"] is None:
            claimed = await self._activity("troth-claim", {"run": run_id, "base": self.base})
            if not claimed["goes_on"]:
                return False
            self.is_cancel_requested = self.is_cancel_requested or claimed["is_requested"]
            run.last_seen = claimed["last_seen"]
        if begun["is_new"]:
            return True
        first: int | None = 0
        steps, taken_back, letters = [], [], 0
        while first is not None:
            page: StepPage = await self._activity("troth-page", {"run": run_id, "first": first})
            steps += steps_of(run_id, page["steps"])
            taken_back += steps_of(run_id, page["taken_back"])
            first = page["next"]
            letters += page["letters"]
            if letters > MAX_RECORD:
                raise NotOnTemporalError(
                    f"The record of the run {run_id!r} has more than {MAX_RECORD:,} characters of "
                    "JSON. To continue, all of them would have to travel through Temporal, which ends a workflow of "
                    "fifty megabytes. Keep large values in files or tables, and pass their names; an engine without "
                    "Temporal can continue this run: `Runtime(store)`."
                )
        self.loaded = workflow.info().get_current_history_size()
        journal.load(steps)
        latest = last_moment([*steps, *taken_back])
        run.clock = lambda: max(latest, workflow.now().timestamp())
        run.recorded = {(step.place.branch, step.place.seq): step for step in steps}
        run.earlier = {(step.place.branch, step.place.seq): step for step in taken_back}
        if begun["not_called"] is not None:
            branch, seq = begun["not_called"]
            run.not_called = (branch, seq)
        return True

    # ---- driving

    async def _drive(self, effects: Effects, run: RunInProgress) -> Any:
        answer: Any = None
        error: BaseException | None = None
        while True:
            try:
                effect = effects.send(answer) if error is None else effects.throw(error)
            except StopIteration as end:
                return end.value
            answer = error = None
            try:
                answer = await self._perform(effect, run)
            except TrothError as raised:
                error = raised

    async def _perform(self, effect: Effect, run: RunInProgress) -> Any:
        if run.governor is not None:
            raise NotOnTemporalError(
                f"The run {run.run_id!r} is governed by a session, which cannot be kept on Temporal: the session "
                "decides in the commit that begins a step, and here that commit is another machine's. Run it on an "
                "engine without Temporal: `Runtime(store)`."
            )
        match effect:
            case Commit():
                return await self._commit(effect)
            case Encode():
                return keep_small(effect.value, effect.what)
            case Invoke():
                return await self._invoke(effect, run)
            case Pause():
                return await self._pause(effect, run)
            case Fan():
                return await self._fan(effect, run)
            case Listen():
                await self._listen(effect.topic.removeprefix("run:"), run)
        return None  # what a run starts is started by whoever records that

    async def _commit(self, effect: Commit) -> Any:
        assert self.journal is not None
        answers: list[Any] = []
        sent = 0
        while True:
            tx = JournalTransaction(self.journal, answers, sent)
            try:
                answer = effect.work(tx)  # type: ignore[arg-type]  # the part of a transaction that a run needs
            except QuestionError as question:
                self.pending += tx.operations
                sent += len(tx.operations)
                answers.append((await self._record(question.question))[0])
            else:
                self.pending += tx.operations
                return answer

    async def _invoke(self, effect: Invoke, run: RunInProgress) -> StepOutcome:
        step, info = effect.step, effect.info
        await self._continue_if_long(run, [info.place.branch, info.place.seq])
        if run.branches > 1:
            await self._record()  # what several branches have written is recorded once, by whoever comes first
        self._split()
        reference = reference_of(step.call)
        beside = 0 if reference is None else travelling(step.recorded or "")
        if self._fitting(self.batches, beside) < len(self.batches):
            await self._record()
        self.host.lookup.remember(run.run_id, info.place, info.attempt, step)
        record = self._message([]) if run.branches == 1 else None
        asked = {
            "record": record,
            "run": run.run_id,
            "place": [info.place.branch, info.place.seq],
            "name": info.name,
            "key": info.key,
            "attempt": info.attempt,
            "started_at": info.started_at,
            "timeout": step.timeout,
            "call": reference,
            "args": None if reference is None else step.recorded,
            "has_names": bool(step.kwargs),
        }
        is_deaf = effect.cancellation is not run.cancellation
        try:
            message = await self._attempt(asked, step, is_deaf=is_deaf, is_begun=run.cancellation.is_asked)
        except ActivityError as failure:
            if is_cancelled_exception(failure) or isinstance(failure.cause, CancelledError):
                return StepOutcome("cancelled")
            if isinstance(failure.cause, ApplicationError) and failure.cause.non_retryable:
                raise
            return StepOutcome("interrupted")  # its worker is gone, or was shut down
        finally:
            self.host.lookup.forget(run.run_id, info.place, info.attempt)
        if message.get("is_elsewhere"):
            raise _LostError
        if record is not None:
            self._recorded(record, is_requested=message["is_requested"])
        info.appended = tuple((stream, kind, payload) for stream, kind, payload in message.get("appended", ()))
        return from_message(message)

    async def _attempt(self, asked: dict[str, Any], step: Step, *, is_deaf: bool, is_begun: bool) -> dict[str, Any]:
        address = self.host.address
        handle = workflow.start_activity(
            "troth-step",
            asked,
            result_type=dict,
            start_to_close_timeout=_YEARS,
            heartbeat_timeout=timedelta(seconds=address.heartbeat),
            retry_policy=RetryPolicy(maximum_attempts=1),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            summary=step.name[:200],
        )
        if not is_deaf:
            self.in_flight[handle] = None
            if is_begun:
                handle.cancel()
        try:
            message: dict[str, Any] = await handle
            return message
        finally:
            self.in_flight.pop(handle, None)

    async def _pause(self, effect: Pause, run: RunInProgress) -> bool:
        await self._record()
        await self._continue_if_long(run, None)
        timeout = None if effect.until is None else max(0.0, effect.until - run.clock())
        try:
            await workflow.wait_condition(lambda: run.bell.count != effect.seen, timeout=timeout)
        except TimeoutError:
            return False
        return True

    async def _fan(self, effect: Fan, run: RunInProgress) -> list[Any]:
        limit = min(effect.limit or MAX_BRANCHES, MAX_BRANCHES)
        gate = asyncio.Semaphore(limit)

        async def one(branch: Effects) -> Any:
            async with gate:
                return await self._drive(branch, run)

        tasks = [asyncio.create_task(one(branch)) for branch in effect.branches]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            for branch in effect.branches:
                with contextlib.suppress(ValueError):  # it is running: its task closes it
                    branch.close()

    async def _listen(self, run_id: str, run: RunInProgress) -> None:
        """Have the other run tell its end, if it is on this server."""
        if run_id in self.linked or run_id == run.run_id:
            return
        other = workflow.get_external_workflow_handle(self.host.address.workflow_id(run_id))
        try:
            await other.signal("joined", workflow.info().workflow_id)
        except ApplicationError:
            run.look_again = _UNLINKED  # it is over, or somebody else's
        else:
            self.linked.add(run_id)
            run.look_again = _LINKED

    async def _continue_if_long(self, run: RunInProgress, not_called: list[Any] | None) -> None:
        """Go on in a new workflow, with the settled answers, before the history of this one is too long.

        The new one reads these answers first, which may be long themselves: so it has to do as much as that before it
        goes on in yet another one.
        """
        info = workflow.info()
        grown = info.get_current_history_size() - self.loaded
        is_long = info.get_current_history_length() > self.host.most_events or (
            info.is_continue_as_new_suggested() and grown > min(max(self.loaded, LEAST_GROWTH), MOST_GROWTH)
        )
        if is_long and run.branches == 1 and not self.in_flight:
            await self._record()
            self.not_called = not_called
            raise _ContinueError

    # ---- recording

    def _split(self) -> None:
        """Make batches of what is pending, none too large to travel."""
        batch: list[dict[str, Any]] = []
        letters = 0
        for operation in self.pending:
            size = _size(operation)
            if batch and letters + size > MAX_BATCH:
                self.batches.append(batch)
                batch, letters = [], 0
            batch.append(operation)
            letters += size
        if batch:
            self.batches.append(batch)
        self.pending = []

    def _message(self, questions: list[dict[str, Any]]) -> PendingRecord:
        assert self.journal is not None
        return {
            "run": self.journal.run_id,
            "base": self.base,
            "after": self.after,
            "batches": list(self.batches),
            "questions": questions,
        }

    def _recorded(self, message: PendingRecord, *, is_requested: bool) -> None:
        done = message["after"] + len(message["batches"]) - self.after
        self.batches = self.batches[done:]
        self.after += done
        if is_requested and not self.is_cancel_requested:
            self.cancel()

    async def _record(self, question: dict[str, Any] | None = None) -> list[Any]:
        """Have everything recorded that was written so far; the answer to the question, if there is one."""
        async with self.recording:
            self._split()
            if question is not None and question["ask"] == "take_signal":
                self.batches.append([])  # a message that is taken moves the token on: nobody takes it twice
            answers: list[Any] = []
            while self.batches or question is not None:
                whole = self._message([])
                count = self._fitting(whole["batches"])
                is_last = count == len(whole["batches"])
                questions = [question] if is_last and question is not None else []
                message: PendingRecord = {**whole, "batches": whole["batches"][:count], "questions": questions}
                recorded = await self._activity("troth-record", message)
                if recorded is None:
                    raise _LostError
                self._recorded(message, is_requested=recorded["is_requested"])
                if questions:
                    answers, question = recorded["answers"], None
            return answers

    def _fitting(self, batches: list[list[dict[str, Any]]], beside: int = 0) -> int:
        """How many of the batches can travel together, with so many letters beside them."""
        letters = beside
        for number, batch in enumerate(batches):
            letters += sum(_size(operation) for operation in batch)
            if letters > MAX_BATCH and (number or beside):
                return number
        return len(batches)

    async def _activity(self, name: str, message: Any) -> Any:
        """Ask the store, for as long as it takes."""
        return await workflow.execute_activity(
            name,
            message,
            start_to_close_timeout=_YEARS,
            heartbeat_timeout=timedelta(seconds=self.host.address.heartbeat),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(seconds=0.2), maximum_interval=timedelta(seconds=5), maximum_attempts=0
            ),
            cancellation_type=workflow.ActivityCancellationType.ABANDON,
        )


def _size(operation: dict[str, Any]) -> int:
    return len(json.dumps(operation))
