"""Find which folder a file belongs to, and tell its session what has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pygls.uris import to_fs_path

from troth.analysis.check import CheckRequest
from troth.lsp.protocol.settings import EditorSettings
from troth.lsp.sessions.checker import FolderChecker
from troth.lsp.sessions.cold_check import ColdCheck
from troth.lsp.sessions.documents import Documents
from troth.lsp.sessions.places import Addresses
from troth.lsp.sessions.progress import FirstCheck
from troth.lsp.sessions.session import FolderSession
from troth.lsp.sessions.worker import WorkerThread

__all__ = ["ClientWorkspace"]


class ClientWorkspace:
    """The sessions of a client: one for each folder, and one for each open file outside of all folders."""

    def __init__(
        self,
        documents: Documents,
        tell: Callable[[FolderSession], None],
        progress: Callable[[FolderSession], FirstCheck],
    ) -> None:
        self.settings = EditorSettings()
        self._documents = documents
        self._tell = tell
        self._progress = progress
        self._worker = WorkerThread()
        self._cold_check = ColdCheck()
        self._folders: dict[str, FolderSession] = {}
        self._loose: dict[Path, FolderSession] = {}
        self._linked: dict[Path, Path] = {}
        self._running: set[FolderSession] = set()

    def sessions(self) -> list[FolderSession]:
        """All of them."""
        return [*self._folders.values(), *self._loose.values()]

    @property
    def folder(self) -> Path | None:
        """The folder that was opened first."""
        return next((session.folder for session in self._folders.values()), None)

    def add(self, uri: str) -> None:
        """A folder is opened."""
        shown = to_fs_path(uri)
        if shown is None or uri in self._folders:
            return
        folder = Path(shown).resolve()
        if folder != Path(shown):
            self._linked[folder] = Path(shown)
        self._folders[uri] = self._session(folder, CheckRequest(cwd=folder))

    def remove(self, uri: str) -> FolderSession | None:
        """A folder is closed."""
        session = self._folders.pop(uri, None)
        if session is not None:
            self._linked.pop(session.folder, None)
            session.stop()
        return session

    def start(self) -> None:
        """Let those sessions begin that have not yet."""
        for session in self.sessions():
            if session not in self._running:
                self._running.add(session)
                session.start()

    def stop(self) -> None:
        """Let all sessions end."""
        for session in self.sessions():
            session.stop()

    def session_of(self, path: Path) -> FolderSession | None:
        """The session of the innermost folder that a file lies in, or its own."""
        around = [session for session in self._folders.values() if path.is_relative_to(session.folder)]
        return max(around, key=lambda session: len(session.folder.parts), default=self._loose.get(path))

    def is_told_by(self, session: FolderSession, path: Path) -> bool:
        """Whether what is found in a file is told by this session: a folder may lie in another one."""
        return self.session_of(path) is session

    def opened(self, path: Path | None) -> None:
        """A file is opened."""
        if path is not None and self.session_of(path) is None and path.parent.is_dir():
            request = CheckRequest(cwd=path.parent)
            if path.exists():
                request = request._replace(paths=(str(path),))
            else:  # a new one, which is not saved yet: its text is all there is of it
                request = request._replace(stdin=b"", stdin_name=path.name)
            self._loose[path] = self._session(path.parent, request)
            self.start()
        self.changed(path)

    def changed(self, path: Path | None) -> None:
        """The text of a file has changed."""
        for session in self._concerned(path):
            session.changed()

    def closed(self, path: Path | None) -> None:
        """A file is closed: what is on the disk counts again."""
        if path is not None and path in self._loose:
            session = self._loose.pop(path)
            session.stop()
            self._tell(session)
        self.changed(path)

    def listed_anew(self, path: Path | None) -> None:
        """Files may have come or gone around a path, or its settings changed."""
        for session in self._concerned(path):
            session.checker.list_again()
            session.changed()

    def set_up(self, settings: EditorSettings) -> None:
        """The editor's settings are others now."""
        self.settings = settings
        for session in self.sessions():
            session.checker.list_again(settings.applied(session.checker.request))
            session.changed()

    def addresses(self) -> Addresses:
        """The URIs of what is open now."""
        opened = {path: uri for path, uri, _ in self._documents.files()}
        twins = {uri: self._documents.twins(uri) for uri in opened.values()}
        cells = {
            notebook.path: notebook.code_cells()
            for notebook in self._documents.notebooks.values()
            if notebook.path is not None
        }
        return Addresses(opened, twins, cells, dict(self._linked))

    def _session(self, folder: Path, request: CheckRequest) -> FolderSession:
        checker = FolderChecker(self.settings.applied(request))
        session = FolderSession(folder, checker, self._worker, self._cold_check, self._buffers, self._tell)
        session.progress = self._progress(session)
        return session

    def _buffers(self) -> Mapping[Path, bytes]:
        return {path: data for path, _, data in self._documents.files()}

    def _concerned(self, path: Path | None) -> Iterator[FolderSession]:
        """The sessions that read a file: its project may reach beyond the folder that is open."""
        for session in self.sessions():
            if path is not None and (path.is_relative_to(session.root) or path.is_relative_to(session.folder)):
                yield session
