"""The lines of a file as findings count them: per code cell in a notebook, through the file elsewhere."""

from collections.abc import Mapping
from pathlib import Path

__all__ = ["BOM", "Lines", "decode", "split"]

BOM = "\ufeff"


class Lines:
    """The lines of a project's files, each file read once and only if somebody asks."""

    def __init__(self, root: Path, overlay: Mapping[str, bytes] | None = None) -> None:
        self._root = f"{root}/"
        self._overlay = overlay or {}
        self._by_path: dict[str, dict[int | None, list[str]]] = {}

    def data(self, path: str) -> bytes | None:
        """The bytes of a file, or None if it is not there."""
        if path in self._overlay:
            return self._overlay[path]
        try:
            # Every file of a run is asked for, to look for comments: `Path` would cost as much as the reading.
            with open(self._root + path, "rb", buffering=0) as file:  # noqa: PTH123
                return file.read()
        except OSError:
            return None

    def of(self, path: str, cell: int | None = None) -> list[str]:
        """All lines of a file or of one cell; none if it is not there."""
        if path not in self._by_path:
            self._by_path[path] = self._read(path)
        return self._by_path[path].get(cell, [])

    def at(self, path: str, line: int, cell: int | None = None) -> str:
        """One line, counted from 1; empty if there is no such line."""
        lines = self.of(path, cell)
        return lines[line - 1] if 0 < line <= len(lines) else ""

    def _read(self, path: str) -> dict[int | None, list[str]]:
        data = self.data(path)
        if data is None:
            return {}
        if path.endswith(".ipynb"):
            from troth.analysis.source.notebook import code_cells

            return {number: split(text) for number, text in enumerate(code_cells(data), 1)}
        return {None: split(decode(data).removeprefix(BOM))}


def decode(data: bytes) -> str:
    """Source text as Python would decode it; what does not decode is shown as such rather than refused.

    A byte order mark stays: offsets into this text are offsets into the file.
    """
    if b"coding" not in data[:400]:
        return data.decode(errors="replace")
    from io import BytesIO
    from tokenize import detect_encoding

    try:
        encoding, _ = detect_encoding(BytesIO(data).readline)
        return data.decode("utf-8" if encoding == "utf-8-sig" else encoding)
    except (SyntaxError, LookupError, ValueError):
        return data.decode(errors="replace")


def split(text: str) -> list[str]:
    r"""Lines as Python's own tokenizer ends them: a form feed or `\u2028` does not."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
