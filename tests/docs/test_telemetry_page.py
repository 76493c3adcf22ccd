"""The page of traces and numbers has every name of the table, and no other."""

import re
from pathlib import Path

from troth.server.telemetry import METRICS, Attribute, SpanName

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/telemetry.md").read_text(encoding="utf-8")


def test_every_name_is_told():
    """Spans, attributes and metrics; attributes that no span has yet are left out of both."""
    known = {str(name) for name in (*SpanName, *Attribute)}
    known |= {metric.otel for metric in METRICS.values()} | {metric.prometheus for metric in METRICS.values()}
    told = set(re.findall(r"`((?:troth|http)[._][a-z_.]+)(?:\{\w+\})?`", PAGE))
    assert known == told
