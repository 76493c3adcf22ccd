"""Mypy, strict, with the optional codes that see coroutines in odd places.

The project's own settings are left out: they may silence files or need plugins. The cache is kept
from run to run, so only changed files and what depends on them are checked anew.
"""

from collections.abc import Sequence
from pathlib import Path

from troth.analysis.mutate.checkers.checker import CheckedPart, Checker, Sightings, executable, relative_to, rows_of
from troth.analysis.mutate.measure.diagnostic import Sighting
from troth.analysis.mutate.measure.process import Finished

__all__ = ["mypy"]

_CODES = ("unused-awaitable", "truthy-bool", "truthy-iterable", "possibly-undefined", "redundant-expr")


def mypy() -> Checker:
    """The preset `--tool mypy`."""
    program = executable("mypy")

    def command(scope: CheckedPart) -> Sequence[str]:
        listing = scope.scratch / "mypy-files.txt"  # one argument per file is too long a line for some systems
        listing.write_text("\n".join(scope.files), encoding="utf-8")
        codes = [word for code in _CODES for word in ("--enable-error-code", code)]
        places = (f"--config-file={_settings(scope)}", f"--cache-dir={scope.scratch / 'mypy-cache'}")
        return [program, "--strict", *codes, *places, "--no-error-summary", "--output", "json", f"@{listing}"]

    return Checker("mypy", f"mypy --strict + {', '.join(_CODES)}", command, _read)


def _settings(scope: CheckedPart) -> Path:
    """A file that says where imports start, which has no option on the command line."""
    settings = scope.scratch / "mypy.ini"
    roots = ",".join(str(scope.root / path) for path in scope.import_roots)
    bases = "explicit_package_bases = True\n" if scope.has_namespaces else ""
    settings.write_text(f"[mypy]\nmypy_path = {roots}\n{bases}", encoding="utf-8")
    return settings


def _read(process: Finished, scope: CheckedPart) -> Sightings:
    # 2 is a file that cannot be checked at all, and then mypy has checked no other file either.
    return [
        Sighting(
            relative_to(scope.root, row["file"]),
            row["line"],
            row.get("code") or "",
            " ".join(filter(None, (row["message"], row.get("hint")))),
        )
        for row in rows_of(process, fine=(0, 1), by_line=True)
    ]
