"""OpenTelemetry and Prometheus: what a server does, seen from outside."""

from troth.server.telemetry.names import METRICS, Attribute, SpanName
from troth.server.telemetry.telemetry import Telemetry

__all__ = ["METRICS", "Attribute", "SpanName", "Telemetry"]
