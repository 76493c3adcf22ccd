"""Keep the texts that are open in the editor, as they are after each change of the client."""

from __future__ import annotations

import io
import json
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lsprotocol import types
from pygls.uris import to_fs_path

from troth.lsp.protocol.positions import Positions, characters, split

__all__ = ["Document", "Documents", "OpenNotebook", "file_of"]

_CODING = re.compile(r"^(?P<before>[ \t\f]*#.*?coding[:=][ \t]*)(?P<coding>[-\w.]+)", re.MULTILINE | re.ASCII)


def file_of(uri: str) -> Path | None:
    """The file that a URI names, without links on the way; None for a text that has no file."""
    try:
        if urlsplit(uri).scheme != "file":
            return None
        path = to_fs_path(uri)
        return None if path is None else Path(path).resolve()
    except (ValueError, OSError, RuntimeError):  # no URI, a null byte in it, a link to itself
        return None


def file_of_untitled(uri: str, folder: Path) -> Path | None:
    """The file in a folder that a text without a file would be, so that it is looked at as a part of the project."""
    parts = urlsplit(uri)
    if parts.scheme != "untitled":
        return None
    name = unquote(parts.path)
    path = folder / (name if name.endswith(".py") else f"{name}.py")
    while path.exists():
        path = path.with_stem(f"{path.stem}_")
    return path


@dataclass(eq=False)
class Document:
    """One open text. Lines are kept apart, so that a change costs as much as what it changes."""

    uri: str
    version: int
    lines: list[str]
    encoding: str
    path: Path | None = None
    _text: str | None = field(default=None, repr=False)
    _data: bytes | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """All of it."""
        if self._text is None:
            self._text = "".join(self.lines)
        return self._text

    @property
    def data(self) -> bytes:
        """The bytes that a file with this text would have."""
        if self._data is None:
            self._data = _encoded(self.text)
        return self._data

    @property
    def positions(self) -> Positions:
        """Its positions, in the encoding that was agreed on."""
        return Positions(self.lines, self.encoding)

    def change(self, changes: Iterable[types.TextDocumentContentChangeEvent], version: int) -> None:
        """Take over what the client changed, in its order."""
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                self._replace(change.range, change.text)
            else:
                self.lines = split(change.text)
        self.version = version
        self._text = self._data = None

    def _replace(self, place: types.Range, text: str) -> None:
        lines = self.lines
        last = len(lines) - 1
        first, after = min(place.start.line, last), min(place.end.line, last)
        head = lines[first][: self._column(first, place.start)]
        tail = lines[after][self._column(after, place.end) :]
        # A line beside the change may grow together with it: a carriage return that a line feed follows now.
        begin, end = max(first - 1, 0), min(after + 2, len(lines))
        pieces = [*lines[begin:first], head, text, tail, *lines[after + 1 : end]]
        merged = split("".join(pieces))
        if end < len(lines) and merged[-1] == "":
            merged.pop()
        lines[begin:end] = merged

    def _column(self, line: int, position: types.Position) -> int:
        text = self.lines[line]
        if position.line > line:  # beyond the last line
            return len(text)
        return characters(text.rstrip("\r\n"), position.character, self.encoding)


@dataclass(eq=False)
class OpenNotebook:
    """One open notebook: its cells are documents of their own."""

    uri: str
    version: int
    path: Path | None
    cells: list[types.NotebookCell]

    def code_cells(self) -> list[str]:
        """The URIs of its code cells, in order: a finding names a cell by its number among these."""
        return [cell.document for cell in self.cells if cell.kind == types.NotebookCellKind.Code]


class Documents:
    """All open texts and notebooks by URI, in the encoding of positions that was agreed on."""

    def __init__(self, encoding: str = "utf-16") -> None:
        self.encoding = encoding
        self.folder: Path | None = None  # where a text is looked at that was never saved
        self.texts: dict[str, Document] = {}
        self.notebooks: dict[str, OpenNotebook] = {}

    def open(self, item: types.TextDocumentItem) -> Document:
        """A text is opened."""
        path = file_of(item.uri)
        if path is None and self.folder is not None and item.language_id == "python":
            path = file_of_untitled(item.uri, self.folder)
        document = Document(item.uri, item.version, split(item.text), self.encoding, path)
        self.texts[item.uri] = document
        return document

    def file_of(self, uri: str) -> Path | None:
        """The file that a text is, or would be if it were saved."""
        document = self.texts.get(uri)
        return file_of(uri) if document is None else document.path

    def open_notebook(self, notebook: types.NotebookDocument, cells: Sequence[types.TextDocumentItem]) -> None:
        """A notebook is opened."""
        path = file_of(notebook.uri)
        self.notebooks[notebook.uri] = OpenNotebook(notebook.uri, notebook.version, path, list(notebook.cells))
        for cell in cells:
            self.open(cell)

    def change_notebook(self, uri: str, version: int, change: types.NotebookDocumentCellChanges | None) -> None:
        """Cells are changed, come or go."""
        notebook = self.notebooks[uri]
        notebook.version = version
        if change is None:
            return
        if change.structure is not None:
            array = change.structure.array
            notebook.cells[array.start : array.start + array.delete_count] = array.cells or []
            for item in change.structure.did_open or ():
                self.open(item)
            for closed in change.structure.did_close or ():
                self.texts.pop(closed.uri, None)
        for cell in change.data or ():
            notebook.cells = [cell if old_cell.document == cell.document else old_cell for old_cell in notebook.cells]
        for edited in change.text_content or ():
            document = self.texts.get(edited.document.uri)
            if document is not None:
                document.change(edited.changes, edited.document.version)

    def close_notebook(self, uri: str, cells: Iterable[str]) -> None:
        """A notebook is closed, and its cells with it."""
        self.notebooks.pop(uri, None)
        for cell in cells:
            self.texts.pop(cell, None)

    def change(
        self, identifier: types.VersionedTextDocumentIdentifier, changes: Iterable[types.TextDocumentContentChangeEvent]
    ) -> Document | None:
        """A text is edited; None for one that is not open."""
        document = self.texts.pop(identifier.uri, None)
        if document is not None:
            document.change(changes, identifier.version)
            self.texts[identifier.uri] = document  # the last one of its file now, where that is open under two names
        return document

    def twins(self, uri: str) -> list[str]:
        """The URIs of other texts that are the same file, by a link, and say the same."""
        document = self.texts.get(uri)
        if document is None or document.path is None:
            return []
        return [
            twin.uri
            for twin in self.texts.values()
            if twin is not document and twin.path == document.path and twin.text == document.text
        ]

    def is_outdated(self, uri: str) -> bool:
        """Whether the same file is open under another name too, and says something else there since."""
        document = self.texts.get(uri)
        if document is None or document.path is None:
            return False
        latest = next(text for text in reversed(self.texts.values()) if text.path == document.path)
        return latest is not document and latest.text != document.text

    def files(self) -> Iterator[tuple[Path, str, bytes]]:
        """What is open and belongs to a file: its path, its URI, and the bytes it would have if it were saved.

        A file that is open under two names comes twice, and what was edited last comes last.
        """
        for document in self.texts.values():
            if document.path is not None:
                yield document.path, document.uri, document.data
        for notebook in self.notebooks.values():
            if notebook.path is not None:
                yield notebook.path, notebook.uri, self._as_file(notebook)

    def notebook_of(self, cell: str) -> OpenNotebook | None:
        """The notebook that a cell belongs to."""
        return next(
            (notebook for notebook in self.notebooks.values() if any(c.document == cell for c in notebook.cells)), None
        )

    def notebook_at(self, path: Path) -> OpenNotebook | None:
        """The open notebook of a file."""
        return next((notebook for notebook in self.notebooks.values() if notebook.path == path), None)

    def _as_file(self, notebook: OpenNotebook) -> bytes:
        cells = []
        for cell in notebook.cells:
            document = self.texts.get(cell.document)
            kind = "code" if cell.kind == types.NotebookCellKind.Code else "markdown"
            cells.append({"cell_type": kind, "source": "" if document is None else document.text, "metadata": {}})
        document_of_all = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        return json.dumps(document_of_all, indent=1).encode("utf-8", "replace")


def _encoded(text: str) -> bytes:
    """The bytes of a text, in the coding that its first lines name.

    A text with letters that this coding does not have cannot be saved as it is. It is looked at all the same, as UTF-8:
    the name of the coding is written over with one of the same length, so that every letter stays at its place.
    """
    if "coding" in text[:400]:
        head = text[:400].encode("utf-8", "replace")
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(head).readline)
            return text.encode(encoding)
        except UnicodeEncodeError:
            text = _CODING.sub(lambda match: match["before"] + "U8".ljust(len(match["coding"])), text, count=1)
        except (SyntaxError, LookupError, ValueError):
            pass
    return text.encode("utf-8", "replace")
