"""What analysis has to say: findings, their reasons and their fixes."""

from troth.analysis.findings.finding import Confidence, Edit, Finding, Fix, Reason, Safety, Span

__all__ = ["Confidence", "Edit", "Finding", "Fix", "Reason", "Safety", "Span"]
