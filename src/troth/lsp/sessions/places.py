"""Find where a file of the project is for the client: its URI, its text as it was looked at, its positions in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lsprotocol import types
from pygls.uris import from_fs_path

from troth.analysis.edits.apply import apply
from troth.analysis.findings import Edit, Span
from troth.analysis.source.lines import decode
from troth.analysis.source.notebook import code_cells
from troth.lsp.protocol.positions import Positions, split
from troth.lsp.protocol.workspace_edit import Group, GroupedEdit
from troth.lsp.sessions.checker import Look

__all__ = ["Addresses", "Places"]

_NOTEBOOK = ".ipynb"


class Addresses:
    """The URIs of what is open, as the client writes them, and of all else in a folder.

    A folder that the client reaches by a link is told to it by that link. A file that is open under two names, its own
    and a link's, is known by the one that was edited last; the others that say the same are its `twins`.
    """

    def __init__(
        self,
        opened: Mapping[Path, str],
        twins: Mapping[str, Sequence[str]],
        cells: Mapping[Path, list[str]],
        linked: Mapping[Path, Path],
    ) -> None:
        self._opened = opened
        self.twins = twins
        self.cells = cells
        self._linked = linked

    def uri(self, path: Path) -> str:
        """The URI of a file."""
        if path in self._opened:
            return self._opened[path]
        for real, shown in self._linked.items():
            if path.is_relative_to(real):
                path = shown / path.relative_to(real)
                break
        return from_fs_path(str(path)) or path.as_uri()


class Places:
    """The places of one look."""

    def __init__(self, look: Look, addresses: Addresses, encoding: str) -> None:
        self.look = look
        self._addresses = addresses
        self._encoding = encoding
        self._uris: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._positions: dict[tuple[str, int | None], Positions] = {}

    def uri(self, path: str) -> str:
        """The URI of a file of the project."""
        uri = self._uris.get(path)
        if uri is None:
            uri = self._uris[path] = self._addresses.uri(self.look.root / path)
        return uri

    def uris(self, path: str) -> list[str]:
        """All URIs that findings in a file are told for: those of the cells, where it is an open notebook."""
        return self._cells(path) or [self.uri(path), *self.twins(path)]

    def twins(self, path: str) -> Sequence[str]:
        """Other URIs under which the very same text is open."""
        return self._addresses.twins.get(self.uri(path), ())

    def uri_of(self, span: Span) -> tuple[str, Positions | None]:
        """Where a finding is told; without positions where a notebook is not open, so that no line of it is seen."""
        if not span.path.endswith(_NOTEBOOK):
            return self.uri(span.path), self.positions(span.path)
        cells = self._cells(span.path)
        if span.cell is None or not 0 < span.cell <= len(cells):
            return (cells[0] if cells else self.uri(span.path)), None
        return cells[span.cell - 1], self.positions(span.path, span.cell)

    def has_places(self, path: str) -> bool:
        """Whether what the program knows of a file has its place in the text of now: not while it is broken."""
        return path in self.look.stamps and path not in self.look.broken and not path.endswith(_NOTEBOOK)

    def text(self, path: str) -> str:
        """The text of a file as it was looked at."""
        if path not in self._texts:
            self._texts[path] = decode(self.look.report.lines.data(path) or b"")
        return self._texts[path]

    def positions(self, path: str, cell: int | None = None) -> Positions:
        """The positions in a file, or in a code cell, as it was looked at."""
        key = path, cell
        if key not in self._positions:
            text = self.text(path)
            if cell is not None:
                cells = code_cells(text.encode())
                text = cells[cell - 1] if 0 < cell <= len(cells) else ""
            self._positions[key] = Positions(split(text), self._encoding)
        return self._positions[key]

    def edits(self, edits: list[Edit]) -> list[tuple[str, types.TextEdit]]:
        """Edits of files as the client has to make them, each with its URI."""
        by_path: dict[str, list[Edit]] = {}
        for edit in dict.fromkeys(edits):
            by_path.setdefault(edit.path, []).append(edit)
        text_edits: list[tuple[str, types.TextEdit]] = []
        for path, file_edits in by_path.items():
            cells = self._cells(path)
            if cells:
                text_edits += self._edits_of_cells(path, file_edits, cells)
                continue
            positions, uri = self.positions(path), self.uri(path)
            text_edits += [
                (uri, types.TextEdit(positions.range(edit.start, edit.end), edit.text)) for edit in file_edits
            ]
        return text_edits

    def in_groups(self, groups: Mapping[Group | None, Sequence[Edit]]) -> tuple[GroupedEdit, ...]:
        """Edits of files as the client has to make them, each in its group."""
        return tuple(
            GroupedEdit(uri, edit, group) for group, edits in groups.items() for uri, edit in self.edits(list(edits))
        )

    def _edits_of_cells(self, path: str, edits: list[Edit], cells: list[str]) -> list[tuple[str, types.TextEdit]]:
        """The edits of an open notebook's JSON as edits of its cells: the part of a cell that comes out otherwise."""
        text = self.text(path)
        before, after = code_cells(text.encode()), code_cells(apply(text, edits).encode())
        text_edits = []
        for number, (old, new) in enumerate(zip(before, after, strict=True), 1):
            if old == new or number > len(cells):
                continue
            shorter = min(len(old), len(new))
            head = next((index for index in range(shorter) if old[index] != new[index]), shorter)
            tail = next(
                (index for index in range(shorter - head) if old[-1 - index] != new[-1 - index]), shorter - head
            )
            place = self.positions(path, number).range(head, len(old) - tail)
            text_edits.append((cells[number - 1], types.TextEdit(place, new[head : len(new) - tail])))
        return text_edits

    def _cells(self, path: str) -> list[str]:
        return self._addresses.cells.get(self.look.root / path, []) if path.endswith(_NOTEBOOK) else []
