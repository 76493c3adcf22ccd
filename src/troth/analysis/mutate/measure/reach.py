"""Find out which mutants the tests reach: by coverage data, or by one run with probes in their places."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from troth.analysis.findings import Edit
from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.source.project import MutatedProject
from troth.analysis.mutate.source.splice import by_path, splice
from troth.analysis.mutate.source.text import SourceText, UnreadableError

__all__ = ["probed", "reached_by_probes"]


def probed(mutants: Sequence[Mutant], project: MutatedProject, directory: Path) -> list[SourceText]:
    """The files with a statement before each mutant that leaves an empty file of the mutant's name in `directory`.

    Files and not a list in memory, because tests start processes and end them as they like. A probe that would break
    its file is left out, and with it those of the same file.
    """
    edits = by_path(_probe(mutant, directory) for mutant in mutants)
    changed: list[SourceText] = []
    for path, own in edits.items():
        after = splice(project.sources[path], own).after
        try:
            after.parse()
        except UnreadableError:
            continue
        changed.append(after)
    return changed


def _probe(mutant: Mutant, directory: Path) -> Edit:
    offset, following = mutant.probe
    # In ASCII, because a file in another encoding may not be able to hold the letters of the path.
    call = f"__import__('pathlib').Path({str(directory / mutant.key)!a}).touch()"
    return Edit(mutant.path, offset, offset, call + following)


def reached_by_probes(mutants: Sequence[Mutant], changed: Sequence[SourceText], directory: Path) -> Mapping[str, bool]:
    """What the probes say after the run; a mutant whose file had none is not in it."""
    paths = {source.path for source in changed}
    return {mutant.key: (directory / mutant.key).exists() for mutant in mutants if mutant.path in paths}
