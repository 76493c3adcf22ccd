"""Pyright, strict, with the rules muted that speak of missing annotations and stubs.

Those would drown the rest wherever dependencies are not installed, and no mutant changes what they say.
"""

import json
from collections.abc import Sequence

from troth.analysis.mutate.checkers.checker import CheckedPart, Checker, Sightings, executable, relative_to, value_of
from troth.analysis.mutate.measure.diagnostic import Sighting
from troth.analysis.mutate.measure.process import Finished

__all__ = ["pyright"]

_MUTED = (
    "reportUnknownParameterType",
    "reportUnknownArgumentType",
    "reportUnknownLambdaType",
    "reportUnknownVariableType",
    "reportUnknownMemberType",
    "reportMissingParameterType",
    "reportMissingTypeArgument",
    "reportMissingTypeStubs",
    "reportMissingImports",
    "reportMissingModuleSource",
)


def pyright() -> Checker:
    """The preset `--tool pyright`."""
    program = executable("pyright")

    def command(scope: CheckedPart) -> Sequence[str]:
        settings = {
            "include": list(scope.targets),
            "extraPaths": list(scope.import_roots),
            "typeCheckingMode": "strict",
            **dict.fromkeys(_MUTED, "none"),
        }
        # Pyright takes paths from where its settings lie, so these have to lie in the copy.
        config = scope.root / "troth-pyrightconfig.json"
        config.write_text(json.dumps(settings), encoding="utf-8")
        return [program, "-p", str(config), "--outputjson"]

    return Checker("pyright", "pyright strict, reportUnknown* and reportMissing* off", command, _read)


def _read(process: Finished, scope: CheckedPart) -> Sightings:
    report = value_of(process, fine=(0, 1))
    return [
        Sighting(
            relative_to(scope.root, row["file"]),
            row["range"]["start"]["line"] + 1,
            row.get("rule") or "",
            row["message"],
        )
        for row in report["generalDiagnostics"]
        if "range" in row
    ]
