"""Checking what a user named: from a request to a report."""

from troth.analysis.check.check import check, is_cold, replay
from troth.analysis.check.prepare import Prepared, prepare
from troth.analysis.check.request import CheckRequest

__all__ = ["CheckRequest", "Prepared", "check", "is_cold", "prepare", "replay"]
