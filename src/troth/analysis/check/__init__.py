"""Checking what a user named: from a request to a report."""

from troth.analysis.check.check import check
from troth.analysis.check.prepare import Prepared, prepare
from troth.analysis.check.request import Request

__all__ = ["Prepared", "Request", "check", "prepare"]
