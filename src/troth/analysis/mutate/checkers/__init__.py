"""Checkers that can be scored: the presets, one file each, and any command that prints `path:line`."""

from troth.analysis.mutate.checkers.checker import Checker, CheckerError, Sightings
from troth.analysis.mutate.checkers.command import command_checker
from troth.analysis.mutate.checkers.presets import PRESETS, preset

__all__ = ["PRESETS", "Checker", "CheckerError", "Sightings", "command_checker", "preset"]
