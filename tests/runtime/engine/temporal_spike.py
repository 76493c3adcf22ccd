"""An experiment: the same decisions, conducted by the same generator, on a Temporal server.

It shows that the port has the right shape: this file is a third driver, beside the sync and the async one. Temporal's
history takes the place of the journal, so `Commit` writes to memory only; a step is an activity, a pause is a durable
timer, `engine.cancel` is Temporal's own cancellation. It claims the parts step, crash and cancel of the suite.
"""

import asyncio
import builtins
import contextlib
import datetime as dt
from typing import Any, Self

from temporalio import activity, workflow
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import RetryPolicy, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ActivityError, WorkflowAlreadyStartedError, is_cancelled_exception
from temporalio.exceptions import TimeoutError as TemporalTimeoutError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from troth import bridge
from troth.errors import MisuseError
from troth.runtime.engine.cancellation import Cancellation
from troth.runtime.engine.current_step import CurrentStep
from troth.runtime.engine.decisions import Decisions
from troth.runtime.engine.failure import describe
from troth.runtime.engine.interpreter.branch import RunInProgress
from troth.runtime.engine.interpreter.effects import Commit, Fan, Invoke, Pause
from troth.runtime.engine.interpreter.interpreter import interpret
from troth.runtime.engine.invoke import lost_coroutines
from troth.runtime.engine.invoke.invocation import acall
from troth.runtime.engine.invoke.outcome import Outcome
from troth.runtime.engine.invoke.worker_pool import WorkerPool
from troth.runtime.engine.result import failure_of
from troth.runtime.store import Attempt, RunRecord, RunState, StepRecord, StepState
from troth.runtime.store.json_codec import keep, read
from troth.runtime.store.records import Place
from troth.testing.engine_programs import DECISIONS

QUEUE = "troth"
DECIDING = Decisions(DECISIONS)
WORKERS = WorkerPool()
ASKED: dict[tuple[str, str], tuple[Any, CurrentStep]] = {}
"""What the activity is to call, filled by the workflow in this process. A full adapter gives every worker a queue of its
own for this, and lets an activity that comes to the wrong one fail at once; here there is one worker at a time."""


class Journal:
    """What the conductor writes, kept in the workflow's memory: a replay writes it again."""

    def __init__(self) -> None:
        self.is_cancelled = False
        self.steps: dict[str, dict[str, Any]] = {}
        self.ending: dict[str, Any] = {}

    def hold_run(self, *_: str) -> bool:
        return self.is_cancelled

    def begin_held_step(self, place: Place, resource: str, token: str, begun: Any) -> bool:
        name, key, args, color, code, now, _ = begun
        self.begin_step(place, kind="step", name=name, key=key, args=args, color=color, code=code, now=now)
        return self.is_cancelled

    def begin_step(self, place: Place, *, now: float, state: str = "begun", **fields: Any) -> None:
        self.steps[str(place)] = {
            "place": list(place), "state": str(state), "attempt": 1, "attempts": [], "started_at": now, **fields,
        }  # fmt: skip

    def settle_step(self, place: Place, state: str, now: float, **answer: Any) -> None:
        self.steps[str(place)].update(state=str(state), finished_at=now, **answer)

    def add_attempt(self, place: Place, **attempt: Any) -> None:
        self.steps[str(place)]["attempts"].append(attempt)

    def begin_attempt(self, place: Place, attempt: int, now: float, **_: Any) -> None:
        self.steps[str(place)].update(attempt=attempt, started_at=now)

    def finish_run(self, run_id: str, state: str, now: float, **ending: Any) -> None:
        self.ending = {"state": str(state), **ending}

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None  # resting, waiting, releasing: Temporal keeps that itself


async def beat() -> None:
    """Tell the server that this worker lives; its answer brings cancellations."""
    while True:
        activity.heartbeat()
        await asyncio.sleep(0.3)


@activity.defn(name="troth-step")
async def attempt(run_id: str, place: str) -> dict[str, Any]:
    """Make one attempt of the step that the workflow in this process has asked for."""
    step, info = ASKED[run_id, place]
    beating = asyncio.create_task(beat())
    try:
        outcome = await acall(step, info, WORKERS, Cancellation())
    finally:
        beating.cancel()
    if outcome.ended == "done":
        try:
            return {"ended": "done", "value": keep(outcome.value, f"result of step {step.name!r}")[0]}
        except MisuseError as refused:
            outcome = Outcome("failed", error=refused)
    error = outcome.error
    assert error is not None
    return {"ended": outcome.ended, "error": describe(error), "misuse": isinstance(error, MisuseError)}


def revived(answer: dict[str, Any]) -> Outcome:
    """The outcome as the record has it, so that a replay decides as the first run did."""
    if answer["ended"] == "done":
        return Outcome("done", read(answer["value"]))
    name = answer["error"]["type"]
    kind = getattr(builtins, name, None) or type(name, (MisuseError if answer["misuse"] else Exception,), {})
    error = kind(answer["error"]["message"])
    error.troth_record = answer["error"]
    return Outcome(answer["ended"], error=error)


@workflow.defn(name="troth", sandboxed=False)
class TrothWorkflow:
    """One run."""

    def __init__(self) -> None:
        self.journal = Journal()

    @workflow.run
    async def run(self, decision: str, args: list[Any]) -> dict[str, Any]:
        run = RunInProgress(
            workflow.info().workflow_id,
            "",
            clock=lambda: workflow.now().timestamp(),
            chance=workflow.random(),
            name_of=DECIDING.name_of,
        )
        await self.drive(interpret(run, DECIDING.begin(decision, args)), run)
        return {**self.journal.ending, "steps": list(self.journal.steps.values())}

    @workflow.query
    def steps(self) -> list[dict[str, Any]]:
        return list(self.journal.steps.values())

    async def drive(self, acts: Any, run: RunInProgress) -> Any:
        answer: Any = None
        while True:
            try:
                act = acts.send(answer)
            except StopIteration as done:
                return done.value
            try:
                answer = await self.perform(act, run)
            except BaseException as error:
                if not is_cancelled_exception(error):
                    raise
                self.journal.is_cancelled = run.cancellation.is_asked = True
                answer = Outcome("cancelled") if isinstance(act, Invoke) else None

    async def invoke(self, run_id: str, place: str) -> dict[str, Any]:
        return await workflow.execute_activity(
            attempt,
            args=[run_id, place],
            start_to_close_timeout=dt.timedelta(hours=1),
            heartbeat_timeout=dt.timedelta(seconds=2),
            retry_policy=RetryPolicy(maximum_attempts=1),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )

    async def perform(self, act: Any, run: RunInProgress) -> Any:
        if isinstance(act, Commit):
            return act.work(self.journal)
        if isinstance(act, Invoke):
            place = f"{act.info.place}#{act.info.attempt}"
            ASKED[run.run_id, place] = act.step, act.info
            while True:
                try:
                    return revived(await self.invoke(run.run_id, place))
                except ActivityError as error:
                    if not isinstance(error.cause, TemporalTimeoutError):
                        raise
                    # Its worker died. This workflow has been replayed in another one, which knows the step again.
        if isinstance(act, Pause):
            timeout = None if act.until is None else max(0.0, act.until - run.clock())
            with contextlib.suppress(TimeoutError):
                await workflow.wait_condition(lambda: run.bell.count != act.seen, timeout=timeout)
            return None
        assert isinstance(act, Fan)
        return list(await asyncio.gather(*(self.drive(strand, run) for strand in act.branches)))


class Handle:
    def __init__(self, engine: "TemporalEngine", run_id: str) -> None:
        self.engine, self.id = engine, run_id

    def result(self, timeout: float | None = None) -> Any:
        return self.engine.result(self.id, timeout)


class TemporalEngine:
    """As much of the port as the three parts of the suite need."""

    def __init__(self, address: str) -> None:
        self.portal = bridge.Portal(name="temporal-spike")
        self.address = address

    def __enter__(self) -> Self:
        lost_coroutines.start_watching()
        self.client, self.worker = self.portal.run(self._connect)
        return self

    async def _connect(self) -> tuple[Client, Any]:
        client = await Client.connect(self.address)
        worker = Worker(
            client,
            task_queue=QUEUE,
            workflows=[TrothWorkflow],
            activities=[attempt],
            workflow_runner=UnsandboxedWorkflowRunner(),
            graceful_shutdown_timeout=dt.timedelta(seconds=1),
            max_heartbeat_throttle_interval=dt.timedelta(seconds=0.5),
            default_heartbeat_throttle_interval=dt.timedelta(seconds=0.5),
        )
        self.running = asyncio.create_task(worker.run())
        return client, worker

    def __exit__(self, *_: object) -> None:
        self.portal.run(self.worker.shutdown)
        self.portal.close()
        lost_coroutines.stop_watching()

    async def _start(self, decision: Any, args: tuple[object, ...], run_id: str) -> None:
        with contextlib.suppress(WorkflowAlreadyStartedError):
            await self.client.start_workflow(
                "troth",
                args=[DECIDING.name_of(decision), list(args)],
                id=run_id,
                task_queue=QUEUE,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                task_timeout=dt.timedelta(seconds=2),
            )

    def start(self, decision: Any, *args: object, run_id: str | None = None) -> Handle:
        run_id = run_id or f"run-{id(object())}-{len(ASKED)}-{dt.datetime.now(dt.UTC).timestamp()}"
        self.portal.run(self._start(decision, args, run_id))
        return Handle(self, run_id)

    def run(self, decision: Any, *args: object, run_id: str | None = None) -> Any:
        return self.start(decision, *args, run_id=run_id).result(60)

    async def arun(self, decision: Any, *args: object, run_id: str | None = None) -> Any:
        return await asyncio.to_thread(self.run, decision, *args, run_id=run_id)

    def result(self, run_id: str, timeout: float | None = None) -> Any:
        ending = self.portal.run(self.client.get_workflow_handle(run_id).result(), timeout=timeout)
        run = self._record(run_id, ending)
        if run.state is RunState.COMPLETED:
            return run.result
        raise failure_of(run, _steps(ending["steps"]))

    def cancel(self, run_id: str) -> bool:
        return self.portal.run(self._cancel(run_id))

    async def _cancel(self, run_id: str) -> bool:
        handle = self.client.get_workflow_handle(run_id)
        if (await handle.describe()).status is not WorkflowExecutionStatus.RUNNING:
            return False
        await handle.cancel()
        return True

    def find(self, run_id: str) -> RunRecord:
        return self.portal.run(self._find(run_id))

    async def _find(self, run_id: str) -> RunRecord:
        handle = self.client.get_workflow_handle(run_id)
        if (await handle.describe()).status is WorkflowExecutionStatus.RUNNING:
            return self._record(run_id, {"state": "running"})
        return self._record(run_id, await handle.result())

    def _record(self, run_id: str, ending: dict[str, Any]) -> RunRecord:
        return RunRecord(
            run_id, "", None, RunState(ending["state"]), (), read(ending.get("result")), read(ending.get("error")),
            None, None, None, False, None, None, 0.0, 0.0, None,
        )  # fmt: skip

    def steps(self, run_id: str) -> list[StepRecord]:
        return _steps(self.portal.run(self.client.get_workflow_handle(run_id).query("steps")))


def _steps(recorded: list[dict[str, Any]]) -> list[StepRecord]:
    return [
        StepRecord(
            Place(*step["place"]), step["kind"], step["name"], StepState(step["state"]), step["key"], step["attempt"],
            step["args"], step.get("code"), step.get("color"), read(step.get("result")), read(step.get("error")),
            step["started_at"], step.get("finished_at"), None,
            tuple(
                Attempt(a["number"], a["outcome"], read(a["error"]), a["started_at"], a["now"], a["next_at"])
                for a in step["attempts"]
            ),
        )
        for step in recorded
    ]  # fmt: skip


__all__ = ["ActivityError", "TemporalEngine"]
