"""What has to be written for a run to be ours to drive: begun, taken over, taken up again, or forked off."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from troth.runtime.engine.commands import Decision
from troth.runtime.engine.decisions import DecisionRegistry
from troth.runtime.engine.embedded.ownership import Ownership, new_token
from troth.runtime.engine.errors import RunMismatchError
from troth.runtime.engine.recorded_runs import unknown_run
from troth.runtime.engine.rewind import (
    CAN_RESUME,
    at_one_moment,
    to_ask_again,
    trunk_step,
    write_fork,
    write_reopening,
)
from troth.runtime.store import Store, Transaction
from troth.runtime.store.errors import half_letter
from troth.runtime.store.json_codec import read
from troth.runtime.store.large_values import ANY_SIZE, LARGE, is_large, keep_well
from troth.runtime.store.sqlite.transaction import run_topic

__all__ = ["Claim", "Claimed", "Claims", "can_go_on"]


@dataclass(frozen=True, slots=True)
class Claimed:
    """What is to be driven, once the claim is written: a decision and its arguments."""

    decision: str
    args: tuple[Any, ...]
    is_new: bool
    letters: int
    """Of JSON, in the arguments."""
    last_seen: float | None = None
    """When the owner before us last said that it lives; None if it let go of the run, or there was none."""


class Claim:
    """A run's lease on its way into our hands. Whoever commits `write` drives the run, or gives the claim back.

    Given up before it is written, it writes nothing: a task that is cancelled while its commit waits for its turn can
    give the lease back at once, whichever of the two comes first.
    """

    __slots__ = ("_write", "begins", "is_given_up", "is_large", "is_taken_up", "resource", "run_id", "token")

    def __init__(
        self,
        run_id: str,
        token: str,
        write: Callable[[Transaction], Claimed | None],
        begins: Claimed | None = None,
        *,
        is_large: bool = False,
    ) -> None:
        if not run_id.isascii():
            _check_whole(run_id)
        self.run_id = run_id
        self.resource = run_topic(run_id)
        self.token = token
        self.is_given_up = False
        self.is_taken_up = False
        self.is_large = is_large  # what is written with it
        self.begins = begins  # what is to be driven if the run is a new one
        self._write = write

    def write(self, tx: Transaction) -> Claimed | None:
        """Take the lease; nothing if somebody living has it, or if there is nothing left to drive."""
        return None if self.is_given_up else self._write(tx)


class Claims:
    """Makes claims for one engine."""

    def __init__(self, store: Store, ownership: Ownership, decisions: DecisionRegistry) -> None:
        self._store = store
        self._ownership = ownership
        self._decisions = decisions

    def to_open(
        self,
        decision: Decision | str,
        args: tuple[object, ...],
        run_id: str | None,
        label: str | None,
        promise: Callable[[Transaction], object] | None = None,
    ) -> Claim:
        """Begin a run, or find that there is nothing to begin.

        `promise` is written in the same commit; the run has to be new then.
        """
        name = self._decisions.name_of(decision)
        self._decisions.check_arguments(name, args)
        run_id = run_id or f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(self._store.clock()))}-{os.urandom(4).hex()}"
        text, arguments = keep_well(list(args), f"arguments of run {run_id!r}")
        owner, token = self._ownership.owner(), new_token()
        begins = Claimed(name, tuple(arguments), is_new=True, letters=len(text))

        def write(tx: Transaction) -> Claimed | None:
            now = self._store.clock()
            is_new = tx.add_run(run_id, name, text, now, label=label)
            if promise is not None:
                if not is_new:
                    raise RunMismatchError(f"There is already a run {run_id!r}. Nothing was started; use another id.")
                promise(tx)
            if not is_new and not can_go_on(tx, run_id, name, text):
                return None
            last_seen = None if is_new else _last_seen(tx, run_id)
            if tx.claim(run_topic(run_id), owner.id, token, now) is not None:
                return None
            return begins if is_new else replace(begins, is_new=False, last_seen=last_seen)

        return Claim(run_id, token, write, begins, is_large=len(text) > LARGE)

    def to_go_on(self, run_id: str) -> Claim:
        """Go on with a run that nobody living holds."""
        owner, token = self._ownership.owner(), new_token()

        def write(tx: Transaction) -> Claimed | None:
            opening = tx.asked_of(run_id)
            if opening is None:
                raise unknown_run(run_id)
            name, args, state = opening
            self._decisions.find(name)
            last_seen = _last_seen(tx, run_id)
            if state.is_over or tx.claim(run_topic(run_id), owner.id, token, self._store.clock()) is not None:
                return None
            arguments = tuple(read(args, f"run {run_id!r}"))
            return Claimed(name, arguments, is_new=False, letters=len(args), last_seen=last_seen)

        return Claim(run_id, token, write)

    def to_resume(self, run_id: str) -> Claim:
        """Go on with a run that failed or was cancelled, without the answer on which it ended. Reads all its steps."""
        snapshot = at_one_moment(self._store, run_id)
        if snapshot is None:
            raise unknown_run(run_id)
        run, steps = snapshot
        self._decisions.find(run.decision)
        again = to_ask_again(run, steps) if run.state in CAN_RESUME else []
        claim = self.to_go_on(run_id)

        def write(tx: Transaction) -> Claimed | None:
            write_reopening(tx, run, again, self._store.clock())
            return claim.write(tx)

        return Claim(run_id, claim.token, write)

    def to_fork(self, run_id: str, before: int | str, fork_id: str | None) -> Claim:
        """Begin a run with the answers of another up to a step. Reads all its steps."""
        run = self._store.run(run_id)
        if run is None:
            raise unknown_run(run_id)
        self._decisions.find(run.decision)
        seq = trunk_step(run_id, self._store.steps(run_id), before)
        fork_id = fork_id or f"{run_id}-fork-{os.urandom(3).hex()}"
        owner, token = self._ownership.owner(), new_token()

        def write(tx: Transaction) -> Claimed:
            now = self._store.clock()
            write_fork(tx, run, fork_id, run.args, seq, now)
            tx.claim(run_topic(fork_id), owner.id, token, now)
            return Claimed(run.decision, run.args, is_new=False, letters=ANY_SIZE if is_big else 0)

        is_big = is_large(run.args)
        return Claim(fork_id, token, write, is_large=is_big)


def _check_whole(run_id: str) -> None:
    """Refuse an id that no store keeps. Its lease could be neither taken nor, for ever after, given back."""
    try:
        run_id.encode()
    except UnicodeEncodeError as cause:
        raise half_letter(cause) from cause


def _last_seen(tx: Transaction, run_id: str) -> float | None:
    holder = tx.holder_of(run_topic(run_id))
    return None if holder is None else holder.beat_at


def can_go_on(tx: Transaction, run_id: str, decision: str, args: str) -> bool:
    """Whether the run of that id is the one that is meant, and not over."""
    opening = tx.asked_of(run_id)
    if opening is None:
        raise unknown_run(run_id)
    their_decision, their_args, state = opening
    is_other = their_args != args and read(their_args, f"run {run_id!r}") != json.loads(args)
    if their_decision != decision or is_other:
        theirs, ours = their_decision.partition("@")[0], decision.partition("@")[0]  # a workflow's has its version
        if theirs != ours:
            difference = f"; this one is of `{ours}`"
        elif their_decision != decision:
            difference = " in another version"
        else:
            difference = f" with other arguments: {their_args}, and here {args}"
        raise RunMismatchError(
            f"The id {run_id!r} belongs to a run of `{theirs}`{difference}.\n"
            "Nothing was started. Omit the id to get a new one, or use another."
        )
    return not state.is_over
