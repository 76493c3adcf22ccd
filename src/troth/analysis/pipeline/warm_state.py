"""What a process that looks at the same project again and again keeps from one look to the next."""

import marshal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from troth.analysis.facts.checksum import sealed
from troth.analysis.facts.directives import Comments
from troth.analysis.facts.model import AllFacts, FileFacts
from troth.analysis.facts.store import Base, Kept
from troth.analysis.incremental.context import Surroundings
from troth.analysis.pipeline.dependency_record import Trace
from troth.analysis.pipeline.silent_functions import SilentFunctions
from troth.analysis.semantics import Program
from troth.analysis.semantics.resolve.installed_packages import Installed
from troth.analysis.source.problem import Problem

__all__ = ["Memory"]


class _Packed(Mapping[str, bytes]):
    """The facts of files as they were at one look; they are packed when somebody asks for them."""

    def __init__(self, facts: AllFacts) -> None:
        self._facts = facts
        self._packed: dict[str, bytes] = {}

    def __getitem__(self, path: str) -> bytes:
        if path not in self._packed:
            facts = self._facts.raw(path)
            self._packed[path] = facts.pack() if isinstance(facts, FileFacts) else facts
        return self._packed[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __contains__(self, path: object) -> bool:
        return path in self._facts


@dataclass(slots=True)
class Memory:
    """Facts, findings and comments of the last look.

    A file that cannot be parsed for the moment, because somebody is typing in it, is known by what it said before:
    its callers keep their findings, and it has none of its own but that it cannot be read, unless `judges_broken`.
    """

    context: str = ""
    around: tuple[object, Surroundings] | None = None
    kept: Kept | None = None
    facts: AllFacts = field(default_factory=lambda: AllFacts({}))
    whole: dict[str, bytes] = field(default_factory=dict)  # the last text of each file that could be parsed
    owed: dict[str, FileFacts | None] = field(default_factory=dict)
    """What those files said before that were looked at in a hurry: others may have findings to win or to lose by it."""
    settled_trace: Trace | None = None
    """What was found out on the way by the last look that owed nothing; `kept` has what hurried looks found since."""
    hurried: frozenset[str] = frozenset()
    """The files of the last hurried look, which are up to date. Those of one before may depend on these."""
    judges_broken: bool = False
    """Whether such a file keeps the findings it had outside of the part that was typed in."""
    program: Program | None = None
    is_spoiled: bool = False
    """Whether a look that was abandoned has gone on with the modules of `program`: what it reads is not noted now."""
    untraced: tuple[Program, list[str]] | None = None
    """A program of a hurried look, and the files looked at, where it is still to be noted what was read for them."""
    comments: Comments = field(default_factory=Comments)
    silent: SilentFunctions = field(default_factory=SilentFunctions)
    coined: set[str] = field(default_factory=set)
    """Names of async functions and of what is awaited that came with edits of one file, and stand in no other."""
    _pieces: tuple[object, dict[str, Any]] | None = None
    _installed: tuple[object, Installed] | None = None

    def last_look(self, context: str) -> Kept | None:
        """What the last look found out, if it asked the same questions."""
        return self.kept if context == self.context else None

    def keep(
        self, context: str, outcome: Kept, facts: AllFacts, program: Program, read: Mapping[str, bytes | Path]
    ) -> None:
        """Keep what a look found out; `read` are the files that it read anew, or their texts, by path."""
        self.context, self.kept, self.program, self.is_spoiled = context, outcome, program, False
        self.facts = facts
        for path, file in read.items():
            if path in outcome.facts and not isinstance(outcome.facts[path], Problem):
                try:
                    self.whole[path] = file if isinstance(file, bytes) else file.read_bytes()
                except OSError:
                    self.whole.pop(path, None)  # gone since: the next look will see it

    def piece(self, base: Base, name: str) -> Any:
        """A table of `base`, unpacked once: nobody changes it."""
        if self._pieces is None or self._pieces[0] is not base.pieces:
            self._pieces = base.pieces, {}
        unpacked = self._pieces[1]
        if name not in unpacked:
            unpacked[name] = base.get(name)
        return unpacked[name]

    @staticmethod
    def base_of(facts: AllFacts, program: Program) -> Base:
        """What a look at everything leaves for the next ones: its tables over all files, as they are now."""
        pieces = {name: sealed(marshal.dumps(table)) for name, table in program.tables_made()}
        return Base(b"", _Packed(facts), pieces)

    def installed(self, packages: tuple[str, ...]) -> Installed:
        """The installed packages, with what was read of them already."""
        if self._installed is None or self._installed[0] != packages:
            self._installed = packages, Installed(packages)
        return self._installed[1]
