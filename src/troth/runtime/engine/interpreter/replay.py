"""Decide whether a replayed decision asks for what it asked for before, and says what differs."""

import json
from collections.abc import Callable
from typing import Any

from troth.runtime.engine.commands import (
    Append,
    Command,
    Conclude,
    Finish,
    Govern,
    Join,
    Sleep,
    Start,
    Step,
    Together,
    Wait,
)
from troth.runtime.engine.errors import NondeterministicError
from troth.runtime.store import StepRecord
from troth.runtime.store.json_codec import keep

__all__ = ["check_same", "what_is_asked"]


def what_is_asked(ask: Command, name_of: Callable[[Any], str]) -> tuple[str, str, str]:
    """An ask as it is written down: kind, name and arguments. Equal asks are written down equally."""
    match ask:
        case Step():
            return "step", ask.name, ask.recorded
        case Sleep():
            return "sleep", ask.name, json.dumps([ask.seconds])
        case Wait():
            return "wait", ask.signal, json.dumps([ask.timeout])
        case Start():
            arguments = [list(ask.args), ask.run_id]
            return "start", name_of(ask.decision), keep(arguments, "arguments of the run to start")[0]
        case Join():
            return "join", ask.run_id, "[]"
        case Together():
            return "together", ask.name, json.dumps([len(ask.branches)])
        case Append():
            return "append", ask.stream, keep([ask.kind, ask.payload], f"event {ask.kind!r}")[0]
        case Govern() | Conclude() | Finish():
            return "", "", "[]"  # never written down as a step


def check_same(ask: Command, record: StepRecord, name_of: Callable[[Any], str]) -> None:
    """Refuse to go on where the record answers another question than the one that is asked."""
    kind, name, args = what_is_asked(ask, name_of)
    # A step that has no answer yet may have been changed: that is what a fix looks like, and it is told as such.
    code = ask.code if isinstance(ask, Step) and record.state.is_settled else None
    differs = [
        f"  {aspect:<9}  then {then}\n{'':<11}  now  {now}"
        for aspect, then, now in (
            ("kind", record.kind, kind),
            ("name", record.name, name),
            ("arguments", record.args, args),
            ("code", record.code, code if code is not None else record.code),
        )
        if then != now
    ]
    if differs:
        raise NondeterministicError(
            f"Run {record.place.run_id!r} cannot continue: replayed, its decision asked at step {record.place} for "
            "something else than before.\n"
            + "\n".join(differs)
            + "\nNothing was done, and the record is as it was. A decision has to ask for the same things when it is "
            "sent the same answers: take time, chance and the outside world from a `Step`. If its code was changed on "
            "purpose, fork the run before this step."
        )
