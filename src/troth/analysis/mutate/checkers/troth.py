"""Troth's own `check`, run as a program of its own like every other tool, with every rule there is."""

import sys
from collections.abc import Sequence

from troth.analysis.mutate.checkers.checker import CheckedPart, Checker, Sightings, relative_to, value_of
from troth.analysis.mutate.measure.diagnostic import Sighting
from troth.analysis.mutate.measure.process import Finished

__all__ = ["troth"]


def troth() -> Checker:
    """The preset `--tool troth`."""

    def command(scope: CheckedPart) -> Sequence[str]:
        return [sys.executable, "-m", "troth", "check", "--select", "TR", "--output-format", "json", *scope.targets]

    return Checker("troth", "troth check", command, _read)


def _read(process: Finished, scope: CheckedPart) -> Sightings:
    report = value_of(process, fine=(0, 1, 4))  # 4: done but for what a bug of ours has cost, which is told as well
    return [
        Sighting(relative_to(scope.root, row["path"]), row["line"], row["code"], f"{row['rule']}: {row['message']}")
        for row in (*report["findings"], *report["errors"])
    ]
