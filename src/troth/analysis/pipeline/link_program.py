"""Link the facts of all files into a program that answers questions."""

from collections.abc import Mapping

from troth.analysis.facts.extract_many import source_of
from troth.analysis.incremental.context import Surroundings
from troth.analysis.incremental.dependencies import Reads
from troth.analysis.incremental.saved_tables import SavedTables
from troth.analysis.pipeline.read_files import FilesRead
from troth.analysis.project.project import Project
from troth.analysis.semantics import Program
from troth.analysis.semantics.evidence.judge import with_evidence
from troth.analysis.semantics.resolve.installed_packages import Installed
from troth.analysis.source import lines
from troth.analysis.source.notebook import read_notebook
from troth.analysis.source.text import DecodedText, decode

__all__ = ["link_program"]


def link_program(
    project: Project,
    files: FilesRead,
    around: Surroundings,
    installed: Installed,
    reads: Reads | None,
    tables: SavedTables | None,
) -> Program:
    """The program of a project. `reads` notes what is read for each answer; `tables` are those of an earlier run."""
    text = _Texts(project, files.texts, installed)
    program = Program(
        project.files, project.source_roots, files.linked.get, text.of, text.cell_of, installed, reads, tables
    )
    program.unread = files.unread
    program.allowed = around.allowed
    program.oldest_allowed = around.oldest_allowed
    program.self_running = around.self_running
    program.oldest_python = around.oldest_python
    return with_evidence(program)


class _Texts:
    """The texts of a project and of what is installed, read when they are asked for."""

    def __init__(self, project: Project, overlay: Mapping[str, bytes], installed: Installed) -> None:
        self._root = project.root
        self._own = frozenset(project.files)
        self._overlay = overlay
        self._installed = installed
        self._texts: dict[str, DecodedText] = {}

    def of(self, path: str) -> DecodedText:
        if path not in self._texts:
            self._texts[path] = DecodedText(_decoded(path, self._data(path)))
        return self._texts[path]

    def cell_of(self, path: str, line: int) -> tuple[int | None, int]:
        return read_notebook(self._data(path)).cell_of(line) if path.endswith(".ipynb") else (None, 0)

    def _data(self, path: str) -> bytes:
        if path in self._overlay:
            return self._overlay[path]
        return (self._root / path).read_bytes() if path in self._own else self._installed.data(path)


def _decoded(path: str, data: bytes) -> str:
    """The text of a file; of one that cannot be read as Python what is there: words can still be looked for in it."""
    try:
        return decode(source_of(path, data))
    except (SyntaxError, LookupError, ValueError, RecursionError):  # in another coding than it says, or no notebook
        return lines.decode(data)
