"""Whoever waits for a run up to its next question is not sent away while an answer is on its way."""

import threading

from troth.runtime import Runtime, Workflow, step
from troth.runtime.engine.errors import ResultTimeoutError
from troth.runtime.runs.run_and_wait import RunWaiter
from troth.runtime.workflows.record.report import RunWord

PATIENCE = 30  # seconds after which what should be at once is given up as hanging


class SlowReader:
    """An engine on which the answer is taken just after the steps of the run were read for the first time."""

    def __init__(self, engine, at_gate, gate):
        self.engine = engine
        self.at_gate = at_gate
        self.gate = gate
        self.carrier = threading.Thread(target=engine.result, args=("q",))

    def __getattr__(self, name):
        return getattr(self.engine, name)

    def result(self, run_id, timeout=None):
        if self.carrier.ident is None:
            raise ResultTimeoutError("nobody carries it out yet")
        return self.engine.result(run_id, timeout)

    def find(self, run_id):
        if self.carrier.ident is not None:
            self.gate.set()
        return self.engine.find(run_id)

    def steps(self, run_id):
        rows = self.engine.steps(run_id)
        if self.carrier.ident is None:
            self.carrier.start()
            assert self.at_gate.wait(PATIENCE)
        return rows


def test_an_answer_that_is_taken_between_two_reads_is_no_open_question(tmp_path):
    """The steps were read while the question was open, and the signals must not be read after its answer was taken."""
    at_gate, gate = threading.Event(), threading.Event()

    def hold():
        at_gate.set()
        assert gate.wait(PATIENCE)
        return "done"

    flow = Workflow("asks", step("ok", approval="Go on?"), step("last", function=hold))
    with Runtime(tmp_path / "runs.db") as runtime:
        assert runtime.run(flow, run_id="q", wait=False).state is RunWord.WAITING

    with Runtime(tmp_path / "runs.db", recover=False) as runtime:
        runtime.load(flow)
        runtime.prepare("q")
        runtime.approve("q")
        reader = SlowReader(runtime.engine, at_gate, gate)
        RunWaiter(reader, runtime.store).await_end("q", wait=False)
        state = runtime.show("q").state
        gate.set()
        reader.carrier.join(PATIENCE)
        assert state is RunWord.COMPLETED
