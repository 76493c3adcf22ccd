"""Tell the code of a development install from the code that wrote the cache.

A release has a version, by which its cache is named. Where somebody edits the rules themselves, the version stays, and
what the code before the edit found would be told again.
"""

import os
from functools import cache
from pathlib import Path

__all__ = ["own_code"]

_PACKAGE = Path(__file__).parents[1]


@cache
def own_code(package: Path = _PACKAGE) -> str:
    """The number of files of the analysis and the last change to one; nothing where it is installed.

    Hundreds of files take four milliseconds, which a warm run would feel: an installed analysis is not looked at, and
    what this process has loaded stays as it is.
    """
    if not (package.parents[2] / "pyproject.toml").is_file():
        return ""
    stamps = [
        entry.stat().st_mtime_ns
        for folder, _, _ in os.walk(package)
        if not folder.endswith("__pycache__")
        for entry in os.scandir(folder)
        if entry.name.endswith((".py", ".toml", ".json"))
    ]
    return f"{len(stamps)} {max(stamps, default=0)}"
