"""Find the function of a step on any worker.

A function that can be imported travels as `module:qualname`. Everything else (a lambda, a bound method, what a workflow
puts around a function) is found by replaying the decision up to that step: from the run in this process if it is here,
else from the record in the store.
"""

import importlib
import random
from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType
from typing import Any

from troth.runtime.engine.commands import Step
from troth.runtime.engine.decisions import DecisionRegistry
from troth.runtime.engine.errors import UnknownDecisionError
from troth.runtime.engine.interpreter.branch import RunInProgress
from troth.runtime.engine.interpreter.effects import Commit, Effects, Encode, Fan, Invoke, Pause
from troth.runtime.engine.interpreter.interpreter import interpret
from troth.runtime.store import Store
from troth.runtime.store.json_codec import read
from troth.runtime.store.large_values import keep_well
from troth.runtime.store.records import Place

__all__ = ["StepLookup", "reference_of"]

_REMEMBERED = 10_000
_references: dict[FunctionType, str | None] = {}


def reference_of(call: Callable[..., object]) -> str | None:
    """`module:qualname` of a function that another process can import; nothing for all else."""
    if type(call) is not FunctionType:
        return None
    if call not in _references:
        if len(_references) >= _REMEMBERED:
            _references.clear()
        _references[call] = _reference(call)
    return _references[call]


def _reference(call: FunctionType) -> str | None:
    if call.__module__ == "__main__" or "<" in call.__qualname__:
        return None
    reference = f"{call.__module__}:{call.__qualname__}"
    try:
        return reference if imported(reference) is call else None
    except (ImportError, AttributeError):
        return None


def imported(reference: str) -> Any:
    """What `module:qualname` means here."""
    module, _, qualname = reference.partition(":")
    value: Any = importlib.import_module(module)
    for name in qualname.split("."):
        value = getattr(value, name)
    return value


class StepLookup:
    """The steps that are asked for by runs in this process, and how to find those of other runs."""

    def __init__(self, store: Store, decisions: DecisionRegistry) -> None:
        self._store = store
        self._decisions = decisions
        self._asked: OrderedDict[tuple[str, str, int], Step] = OrderedDict()

    def remember(self, run_id: str, place: Place, attempt: int, step: Step) -> None:
        """A run in this process asks for this attempt."""
        self._asked[run_id, str(place), attempt] = step
        while len(self._asked) > _REMEMBERED:
            self._asked.popitem(last=False)

    def forget(self, run_id: str, place: Place, attempt: int) -> None:
        """It was made."""
        self._asked.pop((run_id, str(place), attempt), None)

    def find(self, run_id: str, place: Place, attempt: int, asked: dict[str, Any]) -> Step:
        """The step that is to be called. Blocks, if the record has to be read."""
        if asked["call"] is not None:
            call = imported(asked["call"])
            arguments = read(asked["args"], f"the arguments of step {asked['name']!r}")
            args, kwargs = arguments if asked["has_names"] else (arguments, None)
            return Step(asked["name"], call, *args, kwargs=kwargs, timeout=asked["timeout"])
        step = self._asked.get((run_id, str(place), attempt))
        return self._replayed(run_id, place) if step is None else step

    def _replayed(self, run_id: str, place: Place) -> Step:
        record = self._store.run(run_id)
        if record is None:
            raise UnknownDecisionError(f"There is no run {run_id!r} in the store of this worker.")
        run = RunInProgress(
            run_id,
            "",
            clock=self._store.clock,
            chance=random.Random(0),  # noqa: S311  nothing is tried again here
            name_of=self._decisions.name_of,
        )
        recorded = self._store.recorded(run_id)
        run.recorded = {(step.place.branch, step.place.seq): step for step in recorded.steps}
        run.not_called = (place.branch, place.seq)
        effects = interpret(run, self._decisions.begin(record.decision, record.args))
        step = _search(effects, place)
        if step is None:
            raise UnknownDecisionError(
                f"This worker cannot find step {place} of run {run_id!r}: replayed from the record, its decision "
                f"`{record.decision}` does not ask for it. Check that this worker runs the same code as the "
                "worker that started the run."
            )
        return step


def _search(effects: Effects, place: Place) -> Step | None:
    """Replay until the step at `place` is to be called; nothing is written, called or waited for."""
    answer: Any = None
    try:
        while True:
            effect = effects.send(answer)
            answer = None
            if type(effect) is Invoke:
                return effect.step if effect.info.place == place else None
            if type(effect) is Fan:
                steps = (_search(branch, place) for branch in effect.branches)
                return next((step for step in steps if step is not None), None)
            if type(effect) is Pause:
                return None
            if type(effect) is Encode:
                answer = keep_well(effect.value, effect.what)
            elif type(effect) is Commit:
                answer = False
    except StopIteration:
        return None
    finally:
        effects.close()
