"""Read a file of settings or requirements that may not be there."""

from pathlib import Path

__all__ = ["handwritten"]

_LARGEST = 200_000  # bytes; what is larger is nothing that somebody wrote by hand


def handwritten(path: Path, largest: int = _LARGEST) -> str:
    """The text of the file; empty where it is not there, cannot be read, or is too large for one."""
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.stat().st_size <= largest else ""
    except OSError:
        return ""
