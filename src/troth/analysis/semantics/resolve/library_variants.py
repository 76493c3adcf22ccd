"""Tell whether a project has another edition of a library than the tables know, in which a function is plain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.knowledge.corrections import correction

if TYPE_CHECKING:
    from troth.analysis.knowledge.corrections import Edition
    from troth.analysis.semantics.resolve.project_files import ProjectFiles

__all__ = ["calls_older_edition", "is_perhaps_plain_here", "is_plain_here"]


def is_plain_here(program: ProjectFiles, top: str, name: str) -> bool:
    """Whether the project has another edition of `top` than the tables know, in which `name` may be plain."""
    edition = correction(top).edition
    if edition is None or not edition.sync & {name, "*"}:
        return False
    allowed = program.allowed
    return (
        allowed.get(edition.name, edition.since) < edition.since
        or any(fork in allowed for fork in edition.others)
        or _calls(program, edition)
    )


def is_perhaps_plain_here(program: ProjectFiles, top: str, name: str) -> bool:
    """Whether the oldest version that the project allows is an edition of `top` in which `name` is plain."""
    edition = correction(top).edition
    if edition is None or not edition.sync & {name, "*"}:
        return False
    return program.oldest_allowed.get(edition.name, edition.since) < edition.since


def calls_older_edition(program: ProjectFiles, top: str) -> bool:
    """Whether the project calls what only an older edition of the library has, whatever its requirements say."""
    edition = correction(top).edition
    return edition is not None and _calls(program, edition)


def _calls(program: ProjectFiles, edition: Edition) -> bool:
    if edition.calls and any(True for _ in program.index.functions_naming(edition.calls)):
        return True
    return bool(edition.enters) and any(
        callee.startswith("with ") and callee.removeprefix("with ").rpartition(".")[2] in edition.enters
        for function in program.index.functions_naming(edition.enters)
        for callee in function.facts.awaited
    )
