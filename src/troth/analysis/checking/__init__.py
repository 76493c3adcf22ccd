"""Checking what a user named: from a request to a report."""

from troth.analysis.checking.check import check
from troth.analysis.checking.prepare import Prepared, prepare
from troth.analysis.checking.request import Request

__all__ = ["Prepared", "Request", "check", "prepare"]
