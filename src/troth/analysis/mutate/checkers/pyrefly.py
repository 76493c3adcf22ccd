"""Pyrefly with its default rules, not the few it uses where it finds no settings, and three that see conditions."""

from collections.abc import Sequence

from troth.analysis.mutate.checkers.checker import CheckedPart, Checker, Sightings, executable, relative_to, value_of
from troth.analysis.mutate.measure.diagnostic import Sighting
from troth.analysis.mutate.measure.process import Finished

__all__ = ["pyrefly"]

_RULES = ("implicit-bool", "redundant-condition", "unnecessary-comparison")


def pyrefly() -> Checker:
    """The preset `--tool pyrefly`."""
    program = executable("pyrefly")

    def command(scope: CheckedPart) -> Sequence[str]:
        empty = scope.scratch / "pyrefly.toml"
        empty.touch()
        rules = [word for rule in _RULES for word in ("--error", rule)]
        roots = [word for path in scope.import_roots for word in ("--search-path", str(scope.root / path))]
        flags = ("--preset", "default", "--output-format", "json", "--summary=none", "--config", str(empty))
        return [program, "check", *flags, *rules, *roots, *scope.targets]

    return Checker("pyrefly", f"pyrefly, default preset + {', '.join(_RULES)}", command, _read)


def _read(process: Finished, scope: CheckedPart) -> Sightings:
    report = value_of(process, fine=(0, 1))
    return [
        Sighting(relative_to(scope.root, row["path"]), row["line"], row["name"], row["description"])
        for row in report["errors"]
    ]
