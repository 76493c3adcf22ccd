"""Read the files of a project into facts, as far as an earlier run has not done so."""

from collections.abc import Collection, Container, Mapping
from pathlib import Path
from typing import NamedTuple

from troth.analysis.facts import store
from troth.analysis.facts.extract_many import Gathered, gather
from troth.analysis.facts.model import AllFacts, FileFacts
from troth.analysis.pipeline.request import AnalysisRequest
from troth.analysis.pipeline.warm_state import Memory
from troth.analysis.semantics.resolve import library
from troth.analysis.source import lines
from troth.analysis.source.problem import Problem, is_unopened

__all__ = ["FilesRead", "read_files"]


class FilesRead(NamedTuple):
    """What all files of a project say.

    Somebody may be typing in a file that cannot be parsed for the moment. Such a file is `broken`: others are judged by
    what it said while it was whole.
    """

    stamps: Mapping[str, store.Stamp]
    facts: AllFacts  # of the files that can be read now
    linked: AllFacts  # and of broken files what they said before
    judged: AllFacts  # the files that rules look at
    problems: Mapping[str, Problem]
    broken: Collection[str]
    texts: Mapping[str, bytes]  # those that differ from the disk
    read_now: Collection[str]
    changed: set[str]  # since the earlier run, files that are gone included

    @property
    def unread(self) -> frozenset[str]:
        """Files in syntax that no interpreter at hand can read."""
        return frozenset(path for path, problem in self.problems.items() if problem.newer_syntax)


def read_files(request: AnalysisRequest, earlier: store.Kept | None, memory: Memory | None) -> FilesRead:
    """Read what is new or changed since an earlier run, which left `earlier`."""
    project, overlay = request.project, request.overlay
    stamps = _stamps(request, earlier, tells_texts_apart=memory is not None)
    unchanged = _unchanged(project.files, earlier, stamps)
    read = gather(
        project.root,
        [path for path in project.files if path not in unchanged],
        overlay=overlay,
        jobs=request.jobs,
        progress=request.progress,
        meanwhile=_look_up,
    )
    _read_newer(read, project.root, overlay, request.python, memory.whole if memory is not None else ())
    before = memory.facts if memory is not None else AllFacts({})
    readable: dict[str, FileFacts | bytes] = {}
    problems: dict[str, Problem] = {}
    for path in project.files:
        stored = unchanged[path] if path in unchanged else read[path]
        if isinstance(stored, Problem):
            problems[path] = stored
        else:
            readable[path] = before.known(path) if path in unchanged and path in before else stored
    whole = memory.whole if memory is not None else {}
    broken = {path: before.known(path) for path in problems if path in before and path in whole}
    facts = AllFacts(readable)
    linked = AllFacts({**readable, **broken}) if broken else facts
    return FilesRead(
        stamps=stamps,
        facts=facts,
        linked=linked,
        judged=linked if memory is not None and memory.judges_broken else facts,
        problems=problems,
        broken=broken,
        texts={**overlay, **{path: whole[path] for path in broken}} if broken else overlay,
        read_now=read,
        changed=set(read) | ((set(earlier.facts) if earlier is not None else set()) - set(project.files)),
    )


def _stamps(request: AnalysisRequest, earlier: store.Kept | None, *, tells_texts_apart: bool) -> dict[str, store.Stamp]:
    """The stamp of each file. Only who looks again has to tell one unsaved text from the next.

    In a hurry the disk is not asked: the next look will see what has changed there.
    """
    overlay, root = request.overlay, request.project.root
    before = earlier.stamps if request.hurry and earlier is not None else {}
    on_disk = {path: stamp for path, stamp in before.items() if stamp[0] >= 0}  # others were those of unsaved texts
    of_text = store.stamp_of if tells_texts_apart else _no_stamp
    return {
        path: of_text(overlay[path]) if path in overlay else on_disk.get(path) or store.stamp(f"{root}/{path}")
        for path in request.project.files
    }


def _no_stamp(_data: bytes) -> store.Stamp:
    return (0, 0)


def _unchanged(
    files: Collection[str], earlier: store.Kept | None, stamps: Mapping[str, store.Stamp]
) -> dict[str, FileFacts | bytes | Problem]:
    """What an earlier run read of files that are as they were."""
    if earlier is None:
        return {}
    facts = earlier.facts
    return {
        path: facts[path]
        for path in files
        if path in facts and earlier.stamps[path] == stamps[path] and not is_unopened(facts[path])
    }


def _look_up(read: Gathered) -> None:
    """Read what is known of the packages that files import: it will be asked for, and kept, in any case."""
    imports = {imported.module for facts in read.values() if isinstance(facts, FileFacts) for imported in facts.imports}
    for top in {module.partition(".")[0] for module in imports}:
        library.async_names(top)
        library.only_async_names(top)


def _read_newer(
    read: Gathered, root: Path, overlay: Mapping[str, bytes], python: Path | None, whole: Container[str]
) -> None:
    """Let a newer interpreter read what this one refused; what that one refuses too is a mistake of the file.

    A file that was `whole` a moment ago is being typed in, unless it looks like newer syntax: nobody is started for it.
    """
    refused = [
        path
        for path, problem in read.items()
        if isinstance(problem, Problem) and problem.is_syntax and (problem.newer_syntax or path not in whole)
    ]
    if not refused:
        return
    from troth.analysis.facts.other_interpreter import newest_python, read_with

    newest = newest_python(python)
    if newest is not None:
        disk = lines.Lines(root, overlay)
        texts = {path: data for path in refused if (data := disk.data(path)) is not None}
        read.update(read_with(newest, texts))
