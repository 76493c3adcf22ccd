"""Write numbers as Prometheus reads them: its text format, version 0.0.4."""

from collections.abc import Sequence

from troth.server.telemetry.metrics import Sample
from troth.server.telemetry.names import METRICS

__all__ = ["CONTENT_TYPE", "render"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def render(samples: Sequence[Sample]) -> str:
    """All metrics of the table, in its order; those that nothing has happened to yet are 0."""
    lines = []
    for name, metric in METRICS.items():
        lines += [f"# HELP {metric.prometheus} {metric.help}", f"# TYPE {metric.prometheus} {metric.kind}"]
        own = [sample for sample in samples if sample.metric == name]
        if not own and metric.label is None:
            own = [Sample(name, 0)]
        for sample in own:
            label = "" if metric.label is None else f'{{{metric.label}="{_escaped(sample.label or "")}"}}'
            lines.append(f"{metric.prometheus}{label} {sample.value}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
