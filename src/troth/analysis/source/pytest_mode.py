"""Knows whether a project's settings make pytest run async tests that carry no mark."""

import re
from pathlib import Path

__all__ = ["runs_unmarked_tests"]

_FILES = ("pyproject.toml", "pytest.ini", "pytest.toml", "setup.cfg", "tox.ini")
_MODE = re.compile(
    r"""^[ \t]*(?:asyncio_mode[ \t]*=[ \t]*["']?auto|(?:trio|anyio)_mode[ \t]*=[ \t]*["']?(?:true|auto))""",
    re.MULTILINE,
)


def runs_unmarked_tests(root: Path) -> bool:
    """Whether a mode of pytest-asyncio, pytest-trio or anyio is switched on that takes every async test."""
    for name in _FILES:
        try:
            text = (root / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # most projects have one or two of them
        if _MODE.search(text):
            return True
    return False
