"""Ty with every rule on; the project's own settings are left out."""

from collections.abc import Sequence

from troth.analysis.mutate.checkers.checker import CheckedPart, Checker, Sightings, executable, relative_to, rows_of
from troth.analysis.mutate.measure.diagnostic import Sighting
from troth.analysis.mutate.measure.process import Finished

__all__ = ["ty"]


def ty() -> Checker:
    """The preset `--tool ty`."""
    program = executable("ty")

    def command(scope: CheckedPart) -> Sequence[str]:
        empty = scope.scratch / "ty.toml"
        empty.touch()
        flags = ("--error", "all", "--exit-zero", "--output-format", "gitlab", "--config-file", str(empty))
        roots = [word for path in scope.import_roots for word in ("--extra-search-path", path)]
        return [program, "check", *flags, *roots, *scope.targets]

    return Checker("ty", "ty --error all", command, _read)


def _read(process: Finished, scope: CheckedPart) -> Sightings:
    return [
        Sighting(
            relative_to(scope.root, row["location"]["path"]),
            row["location"]["positions"]["begin"]["line"],
            row["check_name"],
            row["description"].removeprefix(f"{row['check_name']}: "),
        )
        for row in rows_of(process, fine=(0,))
    ]
