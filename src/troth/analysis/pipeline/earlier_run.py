"""Tell what of an earlier run still holds, and which files have to be looked at again."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from troth.analysis.facts import store
from troth.analysis.facts.model import FileFacts
from troth.analysis.facts.store import TOO_MANY_CHANGED
from troth.analysis.incremental.saved_tables import SavedTables
from troth.analysis.pipeline import facts_diff
from troth.analysis.pipeline.dependency_record import DependencyReaders, Trace
from troth.analysis.pipeline.facts_diff import Token
from troth.analysis.pipeline.warm_state import Memory
from troth.analysis.semantics import Program
from troth.analysis.source.problem import Problem

__all__ = ["no_piece", "outdated", "usable_tables", "usable_trace"]

_MANY_READ = 100_000  # things that files looked at again have read


def usable_trace(earlier: store.Kept | None, files: Sequence[str], changed: Collection[str]) -> Trace | None:
    """What earlier runs read, if they had the same files: one more may be what an old import means.

    Where much has changed since all files were looked at, that is done again.
    """
    if earlier is None or earlier.trace is None or len({*earlier.since, *changed}) >= TOO_MANY_CHANGED:
        return None
    if isinstance(earlier.trace, Trace):
        trace = earlier.trace
    else:
        paths, later, *rest = store.unpacked(earlier.trace)
        trace = Trace(paths, DependencyReaders(no_piece if earlier.base is None else earlier.base.get, later), *rest)
    is_too_much = len(trace.readers.later) > _MANY_READ and earlier.base is not None
    return trace if trace.paths == tuple(files) and not is_too_much else None


def no_piece(_name: str) -> None:
    """What an earlier run left of this name, where it left nothing."""
    return


def usable_tables(
    earlier: store.Kept | None,
    trace: Trace | None,
    changed: Collection[str],
    facts: Mapping[str, FileFacts],
    memory: Memory | None,
) -> SavedTables | None:
    """The tables of an earlier run, if it had the same files and left any."""
    if earlier is None or trace is None or earlier.base is None or not earlier.base.pieces:
        if memory is not None:
            memory.coined.clear()
        return None
    places = {path: number for number, path in enumerate(trace.paths)}
    then = earlier.base.facts
    since = {
        places[path]: (FileFacts.unpack(then[path]) if path in then else None, facts.get(path))
        for path in {*earlier.since, *changed}
    }
    lately = {places[path]: (facts_before(earlier, path, memory), facts.get(path)) for path in changed}

    def packed() -> Iterator[tuple[int, bytes]]:
        return ((number, then[path]) for path, number in places.items() if number not in since and path in then)

    base = earlier.base
    load = base.get if memory is None else partial(memory.piece, base)
    return SavedTables(load, since, trace.sets, lately, packed, set() if memory is None else memory.coined)


def outdated(
    earlier: store.Kept,
    trace: Trace,
    changed: set[str],
    facts: Mapping[str, FileFacts],
    program: Program,
    memory: Memory | None,
) -> tuple[set[str], set[str]]:
    """The files whose findings may have changed since the earlier run, and the questions to be asked again."""
    owed = memory.owed if memory is not None else {}
    moved = changed | owed.keys()
    if not moved:
        return set(), set()
    tokens: set[Token] = set()
    for path in moved:
        before = owed[path] if path in owed else facts_before(earlier, path, memory)
        diff = facts_diff.changed if memory is None else memory.silent.diff
        tokens |= diff(path, before, facts.get(path))
    settled = trace
    if memory is not None and owed and memory.settled_trace is not None:
        settled = memory.settled_trace  # what hurried looks found out otherwise is news to all other files
        tokens |= settled.differing(trace, owed)
    if len(tokens) > len(moved):  # more than the texts
        program.prepare()
        tokens |= settled.of_sets(program.prefilter_names)
    mask = trace.reading(tokens)
    paths = changed | trace.files(mask)
    # A finding elsewhere may point at a line that has moved.
    paths |= {finding.span.path for finding in earlier.findings if not moved.isdisjoint(finding.paths)}
    # What was looked at last, in a hurry, is up to date, unless something came since.
    hurried = memory.hurried if memory is not None and not changed else frozenset[str]()
    return paths - hurried, trace.questions(mask)


def facts_before(earlier: store.Kept, path: str, memory: Memory | None) -> FileFacts | None:
    """What a file said at the earlier run."""
    if memory is not None and path in memory.facts:
        return memory.facts[path]
    facts = earlier.facts.get(path)
    if facts is None or isinstance(facts, Problem):
        return None
    return facts if isinstance(facts, FileFacts) else FileFacts.unpack(facts)
