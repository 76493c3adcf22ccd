"""Get a workflow that can run from a file, a text or the builder: read, check, link, all or nothing."""

import errno
import os
from dataclasses import replace
from pathlib import Path

from troth.errors import MisuseError
from troth.runtime.workflows.document.document import read_checked, read_text, read_workflow_file
from troth.runtime.workflows.document.nodes import SourceMark, node_of
from troth.runtime.workflows.document.problems import InvalidWorkflowError, Problems, Unreadable, did_you_mean
from troth.runtime.workflows.link.builder import Workflow
from troth.runtime.workflows.link.linker import LinkedWorkflow, Registry, link
from troth.runtime.workflows.spec import WorkflowSpec

__all__ = [
    "WorkflowNotFoundError",
    "load_recorded",
    "load_workflow",
    "parse_workflow",
    "read_spec",
    "spec_of_document",
]


class WorkflowNotFoundError(MisuseError):
    """There is no such file."""


def load_workflow(source: str | os.PathLike[str] | Workflow, registry: Registry | None = None) -> LinkedWorkflow:
    """The workflow in a file (a path, always) or of the builder, ready to run.

    Raises `InvalidWorkflowError` with everything that is wrong, functions and arguments included.
    """
    functions = registry or Registry()
    problems = Problems()
    if isinstance(source, Workflow):
        linked = link(source.spec, functions.with_more(source.parts), Path.cwd(), problems)
    else:
        path = _as_path(source)
        spec = _read(path, problems)
        linked = replace(link(spec, functions, path.parent, problems), source=str(path.resolve()))
    problems.raise_any()
    return linked


def parse_workflow(text: str, registry: Registry | None = None, *, folder: Path | None = None) -> LinkedWorkflow:
    """The workflow in a text of YAML; modules and other workflows are looked for in `folder`."""
    problems = Problems()
    where = folder or Path.cwd()
    spec = _collect(text, str(where / "<text>"), problems, ())
    linked = link(spec, registry or Registry(), where, problems)
    problems.raise_any()
    return linked


def read_spec(path: Path) -> WorkflowSpec:
    """The workflow in a file, checked but not linked: the functions it names are not looked for."""
    problems = Problems()
    spec = _read(path, problems)
    problems.raise_any()
    return spec


def _as_path(source: object) -> Path:
    if isinstance(source, bytes) or not isinstance(source, str | os.PathLike):
        raise WorkflowNotFoundError(
            f"{source!r} of type `{type(source).__name__}` is not a workflow. Nothing was started.\n"
            "Give the path of a file in YAML, a `Workflow` built in Python, or a `Saga`."
        )
    text = os.fspath(source)
    if not isinstance(text, str) or "\n" in text or "\0" in text:
        raise WorkflowNotFoundError(
            f"{text[:40]!r}… is not the path of a file. Nothing was started.\n"
            "Give a path: write the text to a file, or build the workflow in Python with `Workflow(…)`."
        )
    return Path(text)


def _read(path: Path, problems: Problems) -> WorkflowSpec:
    try:
        text = read_text(path, str(path))
    except OSError as missing:
        raise WorkflowNotFoundError(_missing(path, missing)) from missing
    except Unreadable as unreadable:
        raise InvalidWorkflowError([unreadable.problem]) from None
    return _collect(text, str(path), problems, (str(path.resolve()),))


def _collect(text: str, file: str, problems: Problems, open_files: tuple[str, ...]) -> WorkflowSpec:
    try:
        return read_workflow_file(text, file, problems, open_files)
    except Unreadable as unreadable:
        raise InvalidWorkflowError([*problems.found, unreadable.problem]) from None


def _missing(path: Path, why: OSError) -> str:
    if why.errno == errno.ENAMETOOLONG:
        return f"{str(path)[:40]!r}… is too long for a file name. Nothing was started."
    reason = "is a folder" if path.is_dir() else "does not exist" if not path.exists() else f"cannot be read: {why}"
    folder = path.parent if path.parent.is_dir() else Path()
    names = [str(file) for pattern in ("*.yaml", "*.yml") for file in folder.glob(pattern)]
    advice = did_you_mean(str(path), names, kind="workflow") if names else "`troth init` writes one that runs."
    return f"{str(path)!r} {reason}. Nothing was started.\n{advice}"


def spec_of_document(document: object) -> WorkflowSpec:
    """The workflow in a document that was kept with a run. Of a saga, whose names are free, as much as can be read."""
    try:
        return read_checked(node_of(document, SourceMark("<the record>")), Path(), Problems())
    except Unreadable as unreadable:
        raise InvalidWorkflowError([unreadable.problem]) from None


def load_recorded(document: object, registry: Registry, folder: Path) -> LinkedWorkflow:
    """The workflow that was kept with a run, joined with the functions there are now."""
    problems = Problems()
    linked = link(spec_of_document(document), registry, folder, problems)
    problems.raise_any()
    return linked
