"""Supervise runs that nobody waits for: those that were started, and those whose owner died or let go.

Four times a second the supervisor does what one engine does by itself: it beats for its owner, passes cancellations
that other processes wrote down to the runs that are driven here, and looks for orphans.

An orphan is a run that is not over and whose lease nobody holds who lives; the store knows who lives. Every engine
sees the same orphans, and nothing is agreed between them: each that knows the decision tries to take the lease in a
commit, one of them gets it, and the others find that out from the answer. Such a run is driven on the engine's own
loop, in the background.

Not every orphan is taken up.

- A run that failed here in a way that would repeat (a decision that is not registered, a damaged record, an error of
  the engine) is refused until somebody asks for it, and whoever waits for its result is told why. After an error of
  the store it is refused for half a minute only, because a disk may recover.
- A run whose foreground driver ended with an error or was cancelled is left alone until somebody asks for it or
  cancels it: to cancel the task that awaits `arun` would mean little if the run went on by itself a moment later.
- A lease that is lost while the run is driven means that another process took the run for dead. The commit that found
  out has written nothing, so there is nothing to clean up.

A claim is made before the task that drives it begins. A task that is cancelled before its first step never runs, not
even its `finally`, so the loop is told how to give such a claim back.
"""

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from troth.errors import InternalError, MisuseError, RunError
from troth.runtime.engine.background_loop import BackgroundLoop
from troth.runtime.engine.commit_points import RUN_CLAIM
from troth.runtime.engine.decisions import DecisionRegistry
from troth.runtime.engine.embedded.claims import Claim, Claimed, Claims
from troth.runtime.engine.embedded.lease_driver import LeaseDriver
from troth.runtime.engine.embedded.ownership import Ownership
from troth.runtime.engine.errors import EngineClosedError, UnknownDecisionError
from troth.runtime.store import DamagedStoreError, LeaseLostError, RunRecord, RunState, Store, StoreError

__all__ = ["Supervisor"]

log = logging.getLogger("troth.engine")

_BREATHER = 30.0  # seconds before a run is taken up again that could not be written down
_TICK = 0.25  # seconds between looks for runs whose owner died, and for cancellations from other processes
_REPEATED = 5.0  # seconds for which a store of many machines need not read all runs again to say that it has none


class Supervisor:
    """What one engine does by itself. `recover=False` leaves runs alone that nobody asks for here."""

    def __init__(
        self,
        store: Store,
        ownership: Ownership,
        decisions: DecisionRegistry,
        claims: Claims,
        driving: Callable[[], LeaseDriver],
        *,
        recover: bool,
    ) -> None:
        self._store = store
        self._ownership = ownership
        self._decisions = decisions
        self._claims = claims
        self._driver = driving
        self._recover = recover
        self._home = BackgroundLoop()
        self._refused: dict[str, tuple[Exception, float]] = {}  # why, and until when on the monotonic clock
        self._pursued: set[str] = set()  # from the first step of the driving to the word on how it went
        self._left_alone: set[str] = set()
        self._stop_ticking: Callable[[], None] | None = None
        self._is_closed = False

    # Opening

    def open(self) -> None:
        """Begin to beat and to look after orphans; does nothing the second time."""
        if self._stop_ticking is None:
            if self._is_closed:
                raise EngineClosedError("The engine is closed. Nothing was started; open a new one.")
            self._ownership.owner()
            self._stop_ticking = self._store.chore(_TICK, self._tick)
            self._look_after_orphans()

    @property
    def is_open(self) -> bool:
        """Whether there is nothing left to do for `open`."""
        return self._stop_ticking is not None

    def _tick(self) -> None:
        if self._is_closed:
            return
        self._ownership.beat()
        runs = self._driver().runs
        if runs:
            for run_id in self._store.cancelling():
                driven = runs.get(run_id)
                if driven is not None:
                    driven.run.cancellation.ask()
        self._look_after_orphans()

    def _look_after_orphans(self) -> None:
        names = self._decisions.names if self._recover else []
        if names:
            for run_id, _ in self._store.orphans(names, patience=_REPEATED):
                if run_id not in self._left_alone:
                    self._launch(run_id)

    # Runs of others, and our own in the background

    @contextmanager
    def in_foreground(self, run_id: str) -> Iterator[None]:
        """Somebody drives the run and waits for it. If that ends with an error, the run is left until it is asked for.

        To cancel the task that awaits `arun` would mean little if the run went on by itself a moment later.
        """
        self._refused.pop(run_id, None)
        self._left_alone.add(run_id)
        yield
        self._left_alone.discard(run_id)

    def launch(self, run_id: str) -> None:
        """Go on with a run in the background, unless somebody does already. From any thread, without waiting."""
        self._left_alone.discard(run_id)
        self._launch(run_id)

    def _launch(self, run_id: str) -> None:
        is_driven = run_id in self._driver().runs or run_id in self._pursued
        if not is_driven and self._refusal(run_id) is None and not self._is_closed:
            self._home.settle(lambda: self._take_over(run_id), f"run {run_id!r}")

    def pursue(self, claim: Claim, claimed: Claimed) -> None:
        """Drive a run of ours on the engine's own loop. From any thread, without waiting."""
        self._refused.pop(claim.run_id, None)
        self._home.settle(
            lambda: self._pursue(claim, claimed), f"run {claim.run_id!r}", lambda: self._give_back_unbegun(claim)
        )

    def pursue_here(self, claim: Claim, claimed: Claimed) -> None:
        """Drive a run of ours on the loop that runs here."""
        self._refused.pop(claim.run_id, None)
        self._home.settle_here(
            lambda: self._pursue(claim, claimed), f"run {claim.run_id!r}", lambda: self._give_back_unbegun(claim)
        )

    def _give_back_unbegun(self, claim: Claim) -> None:
        """A task that is cancelled before its first step never runs at all, not even its `finally` blocks."""
        if not claim.is_taken_up:
            self._ownership.give_back_soon(claim)

    async def _take_over(self, run_id: str) -> None:
        claim = self._claims.to_go_on(run_id)
        try:
            claimed = await self._driver().atake(RUN_CLAIM, claim)
        except (UnknownDecisionError, DamagedStoreError) as error:
            self._refuse(run_id, error)
            return
        if claimed is not None:
            await self._pursue(claim, claimed)

    async def _pursue(self, claim: Claim, claimed: Claimed) -> None:
        """Drive a run that nobody awaits: what goes wrong with the driving itself is kept for those who ask."""
        self._pursued.add(claim.run_id)
        try:
            await self._driver().adrive(claim, claimed, is_awaited=False)
        except LeaseLostError as error:
            log.warning("Run %r went to another owner: %s", claim.run_id, error)
        except MisuseError as error:
            self._refuse(claim.run_id, error)
        except EngineClosedError:
            log.debug("Run %r is interrupted: the engine was closed.", claim.run_id)
        except StoreError as error:
            # What it did and could not write down is done again when it goes on: not at once, and not in silence.
            self._refuse(claim.run_id, error, _BREATHER)
        except RunError:
            raise
        except Exception as bug:  # going on by itself would do the same step again, and fail again, forever
            log.exception("Run %r failed with an internal error of the engine.", claim.run_id)
            self._refuse(claim.run_id, _own_mistake(claim.run_id, bug))
        finally:
            self._pursued.discard(claim.run_id)

    def _refuse(self, run_id: str, error: Exception, seconds: float = math.inf) -> None:
        self._refused[run_id] = error, time.monotonic() + seconds
        log.error("Run %r cannot be resumed here: %s", run_id, error)

    def _refusal(self, run_id: str) -> Exception | None:
        error, until = self._refused.get(run_id, (None, 0.0))
        if error is not None and time.monotonic() >= until:
            del self._refused[run_id]
            return None
        return error

    def look_after(self, run: RunRecord) -> None:
        """Make sure that a run which somebody waits for goes on; raises why it does not."""
        refusal = self._refusal(run.id)
        if refusal is not None:
            raise refusal
        self.refuse_if_closed(run.id)
        holder = None if run.state is RunState.INTERRUPTED else self._store.holder(f"run:{run.id}")
        # A run that waits is written down as waiting, whether its owner lives or not.
        is_orphan = holder is None or not self._store.is_alive(holder)
        if is_orphan and run.decision in self._decisions.names:
            self.open()
            self.launch(run.id)

    def refuse_if_closed(self, run_id: str) -> None:
        """Tell somebody who waits for a run that the engine was closed meanwhile."""
        if self._is_closed:
            raise EngineClosedError(
                f"The engine was closed while the result of run {run_id!r} was awaited. The run is kept."
            )

    def reach(self, run_id: str) -> None:
        """Let a cancellation that was written down reach the run: in flight here, or left alone here."""
        driven = self._driver().runs.get(run_id)
        if driven is not None:
            driven.run.cancellation.ask()
        elif self._recover and run_id in self._left_alone:
            self.launch(run_id)

    # The end

    def begin_close(self) -> bool:
        """Stop looking around; answers no if that was done before."""
        if self._is_closed:
            return False
        self._is_closed = True
        if self._stop_ticking is not None:
            self._stop_ticking()
        return True

    def close(self) -> None:
        """End every run in the background."""
        self._home.close()

    async def end_here(self) -> None:
        """End every run in the background on this loop, and wait until it has let go."""
        await self._home.end_here()

    def after_fork(self) -> None:
        """In the child: nothing is being done here."""
        self._home.after_fork()
        self._pursued = set()
        self._left_alone = set()
        self._stop_ticking = None


def _own_mistake(run_id: str, bug: Exception) -> InternalError:
    mistake = InternalError(
        f"Run {run_id!r} was not finished: internal error in the engine ({type(bug).__name__}: {bug}).\n"
        f"Please report it. What is recorded is safe; `engine.resume({run_id!r})` tries again."
    )
    mistake.__cause__ = bug
    return mistake
