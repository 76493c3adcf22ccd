"""The numbers are those of the store: exact, after a restart too, and the same for Prometheus and OpenTelemetry."""

import pytest

from troth.runtime import Runtime, Workflow, step
from troth.runtime.agents import ToolCallingAgent
from troth.runtime.engine import Step
from troth.server.telemetry import METRICS, Telemetry
from troth.server.telemetry.metrics import Metrics, Sample
from troth.server.telemetry.prometheus import render
from troth.testing.scripted import ScriptedModel


def value_of(value):
    return value


def give(value):
    return (yield Step("give", value_of, value))


def explode():
    raise ValueError


def do_things(runtime, number):
    runtime.run(Workflow("good", step("s", function=value_of, inputs={"value": {"value": 1}})))
    runtime.run(Workflow("bad", step("s", function=explode)), check=False)
    runtime.promises.start(give, number).promise.wait(60)
    assert runtime.inbox.take(60) is not None
    talk = runtime.conversations.open(ToolCallingAgent(ScriptedModel("hi")), f"c{number}")
    talk.send("hello")
    talk.run()


def numbers(runtime):
    return {(sample.metric, sample.label): sample.value for sample in Metrics(runtime.store, runtime.outbox).look()}


def test_exact_after_a_restart(tmp_path):
    """What one process counted and what the next one adds make up what happened."""
    for number in (1, 2):
        with Runtime(tmp_path / "troth.db") as runtime:
            do_things(runtime, number)
            found = numbers(runtime)
            assert found == numbers(runtime), "a second look counts nothing twice"
            assert found["runs", "completed"] == number
            assert found["runs", "failed"] == number
            assert found["promised", None] == found["delivered", None] == number
            assert found["turns", "finished"] == number
            assert found["messages", "user"] == found["messages", "assistant"] == number
            assert found["input_tokens", None] == 10 * number
            assert found["owed", None] == 0


def test_a_fold_that_was_kept_is_gone_on_with(tmp_path):
    """The entries before it are not read again, and an older one does not overwrite it."""
    with Runtime(tmp_path / "troth.db") as runtime:
        do_things(runtime, 1)
        ahead, behind = (Metrics(runtime.store, runtime.outbox) for _ in range(2))
        behind.look()
        do_things(runtime, 2)
        behind._kept_at = ahead._kept_at = 0.0
        ahead.look()
        behind._store.commit(__import__("troth.server.telemetry.metrics", fromlist=["KEEP"]).KEEP, behind._keep)
        fresh = Metrics(runtime.store, runtime.outbox)
        read = []
        reading = runtime.store.events_of_all
        runtime.store.events_of_all = lambda *args, **options: read.extend(found := reading(*args, **options)) or found
        samples = {(sample.metric, sample.label): sample.value for sample in fresh.look()}
        assert samples["turns", "finished"] == 2
        assert read == []


def test_prometheus_reads_it(tmp_path):
    """Its own parser does; every metric of the table is there, and labels are escaped."""
    parser = pytest.importorskip("prometheus_client.parser")
    with Runtime(tmp_path / "troth.db") as runtime:
        do_things(runtime, 1)
        text = Telemetry(runtime).prometheus()
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    assert families.keys() == {metric.prometheus.removesuffix("_total") for metric in METRICS.values()}
    assert {sample.labels["state"]: sample.value for sample in families["troth_runs"].samples} == {
        "completed": 1.0,
        "failed": 1.0,
    }
    odd = render([Sample("runs", 12_345_678, 'a"b\\c\nd')])
    (family,) = [family for family in parser.text_string_to_metric_families(odd) if family.name == "troth_runs"]
    assert family.samples[0].labels["state"] == 'a"b\\c\nd'
    assert family.samples[0].value == 12_345_678


def test_opentelemetry_collects_the_same(tmp_path):
    """The meter's instruments look at the store when somebody collects."""
    api = pytest.importorskip("opentelemetry.metrics")
    sdk = pytest.importorskip("opentelemetry.sdk.metrics")
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    from troth.server.telemetry.telemetry import _observe

    reader = InMemoryMetricReader()
    provider = sdk.MeterProvider(metric_readers=[reader])
    with Runtime(tmp_path / "troth.db") as runtime:
        do_things(runtime, 1)
        metrics = Metrics(runtime.store, runtime.outbox)
        _observe(lambda: metrics, provider.get_meter("troth"))
        data = reader.get_metrics_data()
        found = {
            metric.name: {tuple(point.attributes.values()): point.value for point in metric.data.data_points}
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }
        provider.shutdown()
    assert api is not None
    assert found["troth.runs"] == {("completed",): 1, ("failed",): 1}
    assert found["troth.deliveries.delivered"] == {(): 1}
