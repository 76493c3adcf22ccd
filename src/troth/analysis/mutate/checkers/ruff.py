"""Ruff, with every rule it has about async code.

The project's own settings are left out (`--isolated`), so that the figure is the tool's; to score your own settings,
give your own command with `--checker`.
"""

from collections.abc import Sequence

from troth.analysis.mutate.checkers.checker import CheckedPart, Checker, Sightings, executable, relative_to, rows_of
from troth.analysis.mutate.measure.diagnostic import Sighting
from troth.analysis.mutate.measure.process import Finished

__all__ = ["ruff"]

_RULES = "ASYNC,RUF006,RUF029,PLE1142,PLE1700,B018"


def ruff() -> Checker:
    """The preset `--tool ruff`."""
    program = executable("ruff")

    def command(scope: CheckedPart) -> Sequence[str]:
        flags = ("--isolated", "--preview", "--no-cache", "--select", _RULES, "--output-format", "json")
        return [program, "check", *flags, *scope.targets]

    return Checker("ruff", f"ruff --preview --select {_RULES}", command, _read)


def _read(process: Finished, scope: CheckedPart) -> Sightings:
    return [
        Sighting(
            relative_to(scope.root, row["filename"]), row["location"]["row"], row.get("code") or "", row["message"]
        )
        for row in rows_of(process, fine=(0, 1))
    ]
