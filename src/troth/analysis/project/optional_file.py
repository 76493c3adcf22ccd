"""Read a file of settings or requirements that may not be there, or not be readable."""

from pathlib import Path

__all__ = ["handwritten", "is_file_there"]

_LARGEST = 200_000  # bytes; what is larger is nothing that somebody wrote by hand


def handwritten(path: Path, largest: int = _LARGEST) -> str:
    """The text of the file; empty where it is not there, cannot be read, or is too large for one."""
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.stat().st_size <= largest else ""
    except OSError:
        return ""


def is_file_there(path: Path) -> bool:
    """Whether there is such a file; False in a folder that may not be read, where `Path.is_file` raises before 3.14."""
    try:
        return path.is_file()
    except OSError:
        return False
