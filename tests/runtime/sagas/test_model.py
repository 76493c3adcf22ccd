"""A saga against a model of the world: whatever goes wrong, in whatever order, no effect is left that nobody knows of."""

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from troth.runtime.engine.errors import RunCancelledError, StepFailedError
from troth.runtime.sagas.decision import decide
from troth.runtime.sagas.outcome import SagaState
from troth.runtime.sagas.saga import Saga

CLEAN = ("failed", "refused")
UNKNOWN = ("timeout", "late", "lost", "interrupted", "cancelled")


class SagaMachine(RuleBasedStateMachine):
    """The world holds effects; each ask of the saga is answered in one of the ways a world can answer."""

    def __init__(self):
        super().__init__()
        self.effects: set[str] = set()
        self.undone: list[str] = []
        self.calls_after_end = 0
        self.is_told = False
        self.outcome = None
        self.ask = None

    @initialize(has_undo=st.lists(st.booleans(), min_size=0, max_size=6))
    def begin(self, has_undo):
        saga = Saga("model")
        for number, one in enumerate(has_undo):
            saga.step(f"s{number}", do=lambda: None, undo=(lambda: None) if one else None)
        self.names = [step.name for step in saga.steps]
        self.reversible = {step.name for step in saga.steps if step.undo}
        self.decision = decide(saga)
        self._advance(lambda: next(self.decision))

    def _advance(self, go):
        try:
            self.ask = go()
        except StopIteration as done:
            self.ask, self.outcome = None, done.value

    @property
    def step(self):
        return self.ask.name.removeprefix("undo ")

    def _happen(self):
        """The effect takes place: it is made, or it is taken back."""
        if self.ask.name.startswith("undo "):
            assert self.step not in self.undone, "undone twice"
            self.effects.discard(self.step)
        else:
            assert self.step not in self.effects, "done twice"
            self.effects.add(self.step)

    @precondition(lambda self: self.ask is not None)
    @rule()
    def succeeds(self):
        self._happen()
        if self.ask.name.startswith("undo "):
            self.undone.append(self.step)
        self._advance(lambda: self.decision.send({"of": self.ask.name}))

    @precondition(lambda self: self.ask is not None)
    @rule(outcome=st.sampled_from(CLEAN))
    def fails_cleanly(self, outcome):
        self._fail(outcome)

    @precondition(lambda self: self.ask is not None)
    @rule(outcome=st.sampled_from(UNKNOWN), happened=st.booleans())
    def fails_unknown(self, outcome, happened):
        if happened:
            self._happen()
        self._fail(outcome)

    def _fail(self, outcome):
        error = StepFailedError(self.ask.name, "1", {"outcome": outcome, "type": "E", "message": "m"})
        self._advance(lambda: self.decision.throw(error))

    @precondition(lambda self: self.ask is not None and not self.is_told)
    @rule(happened=st.booleans())
    def is_cancelled(self, happened):
        """A run is told once that it is cancelled; what was in flight may or may not have happened."""
        self.is_told = True
        if happened and not (self.ask.name.startswith("undo ") and self.step in self.undone):
            self._happen()
        self._advance(lambda: self.decision.throw(RunCancelledError("asked for")))

    @precondition(lambda self: self.outcome is not None)
    @rule()
    def nothing_runs_after_the_end(self):
        assert self.ask is None

    @invariant()
    def the_end_tells_the_truth(self):
        if self.outcome is None:
            return
        left = self.effects & self.reversible
        if self.outcome.state is SagaState.COMPLETED:
            assert self.effects == set(self.names)
            assert self.outcome.done == tuple(self.names)
            assert not self.outcome.undone
        elif self.outcome.state is not SagaState.ROLLBACK_INCOMPLETE:
            assert not left, "rolled back, and an effect is still there"
            assert not self.outcome.not_undone
        else:
            assert {one.step for one in self.outcome.not_undone} >= left
        assert set(self.outcome.undone) == set(self.undone)
        assert len(self.outcome.undone) == len(set(self.outcome.undone))
        assert list(self.outcome.undone) == sorted(self.outcome.undone, reverse=True), "undone in reverse"


SagaMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=20, deadline=None)
TestSaga = SagaMachine.TestCase
