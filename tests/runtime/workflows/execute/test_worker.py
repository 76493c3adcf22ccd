"""What a worker tells of the runs that it has taken up."""

from troth.runtime import Runtime
from troth.runtime.engine import Wait


def agreed(order):
    yield Wait("agreed")
    return order


def test_a_worker_is_not_idle_before_it_has_told_of_an_end(tmp_path):
    """Whoever stops it when it is idle (`troth worker --once`) hears how every run ended that was resumed."""
    with Runtime(tmp_path / "runs.db") as first:
        first.register(agreed)
        first.engine.start(agreed, "A-7", run_id="order")
    with Runtime(tmp_path / "runs.db", recover=False) as runtime:
        runtime.register(agreed)
        worker = runtime.worker()
        assert [(news.run_id, news.what) for news in worker.look()] == [("order", "resumed")]
        runtime.engine.signal("order", "agreed", True)
        assert runtime.engine.result("order", timeout=60) == "A-7"
        assert not worker.is_idle
        while not (news := worker.look(take=False)):
            pass
        assert [(news.run_id, news.what) for news in news] == [("order", "over")]
        assert worker.is_idle


def test_a_run_that_goes_on_while_it_is_looked_at_is_not_at_rest(tmp_path, monkeypatch):
    """It waits when its state is read, and has taken its answer when that is looked for."""
    with Runtime(tmp_path / "runs.db", recover=False) as runtime:
        runtime.register(agreed)
        runtime.engine.start(agreed, "A-7", run_id="order")
        while not any(row.name == "agreed" for row in runtime.engine.steps("order")):
            pass
        worker = runtime.worker()
        worker._taken_up.add("order")
        assert worker.is_idle
        signals = runtime.store.signals

        def answered(run_id):
            """The signal comes, and is taken, right before it is looked for."""
            runtime.engine.signal(run_id, "agreed", True)
            assert runtime.engine.result(run_id, timeout=60) == "A-7"
            return signals(run_id)

        monkeypatch.setattr(runtime.store, "signals", answered)
        assert not worker.is_idle
