"""Join the facts of all files into one program that can be asked questions."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from itertools import groupby
from typing import TYPE_CHECKING, Any

from troth.analysis.crash import Crash, contained
from troth.analysis.facts.checksum import DamagedError
from troth.analysis.facts.fields import ASSIGN_TARGETS, ASSIGN_VALUE, KIND
from troth.analysis.facts.model import FileFacts
from troth.analysis.facts.nodes import of_kind
from troth.analysis.findings import Span
from troth.analysis.incremental.counters import noted, plain, recounted
from troth.analysis.incremental.dependencies import EVERYTHING, Answers, Reads, Words
from troth.analysis.incremental.project_queries import PARTS, QUESTIONS
from troth.analysis.project.python_versions import ANY_PYTHON
from troth.analysis.project.version_pins import normalized
from troth.analysis.semantics.evidence.judging import Judging
from troth.analysis.semantics.incident import AWAITED, KEPT, PENDING, LossIncident, Misuse, Site
from troth.analysis.semantics.infer.annotations import Types
from troth.analysis.semantics.infer.argument_inference import Passed
from troth.analysis.semantics.infer.awaitables_in_value import holds_awaitable
from troth.analysis.semantics.infer.call_graph import Calling
from troth.analysis.semantics.infer.call_results import Calls
from troth.analysis.semantics.infer.classes import Classes
from troth.analysis.semantics.infer.dynamic_attributes import MadeUp
from troth.analysis.semantics.infer.evaluator import OF_FUTURES, Evaluator, Plain
from troth.analysis.semantics.infer.function_results import Effects
from troth.analysis.semantics.infer.parameters import Parameters
from troth.analysis.semantics.infer.pytest_fixtures import Fixtures
from troth.analysis.semantics.infer.quick_resolve import Glance
from troth.analysis.semantics.infer.reasons import Reasons
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.imports import module_finder
from troth.analysis.semantics.resolve.library_variants import calls_older_edition
from troth.analysis.semantics.resolve.name_counts import NameCounts, counted
from troth.analysis.semantics.resolve.name_index import Index
from troth.analysis.semantics.resolve.names import Names
from troth.analysis.semantics.summary import Summary
from troth.analysis.semantics.symbols import Class, Function, Module
from troth.analysis.semantics.values import (
    Coroutine,
    Value,
    members_of,
)
from troth.analysis.semantics.walk.coroutine_sinks import (
    Consumers,
)
from troth.analysis.semantics.walk.function_walk import Flow
from troth.analysis.semantics.walk.prefilter import Prefilter
from troth.analysis.semantics.walk.prefilter_names import collected, restored
from troth.analysis.semantics.walk.walking import Walking

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractContextManager

    from troth.analysis.facts.model import At, Node
    from troth.analysis.incremental.counters import Holders
    from troth.analysis.incremental.saved_tables import SavedTables
    from troth.analysis.semantics.resolve.installed_packages import Installed
    from troth.analysis.source.text import DecodedText

__all__ = ["Program"]

_EMPTY = FileFacts((), (), (), (), None)
_DEEPEST_FLOW = 30  # functions whose results are found out inside one another; beyond it they stay unknown
_ASKING = frozenset({"iscoroutine", "isawaitable", "isfuture", "iscoroutinefunction", "isasyncgen", "callable"})


class Program(Walking):
    """All facts of a project, linked on demand: nothing is looked at before a question needs it."""

    def __init__(
        self,
        paths: Sequence[str],
        source_roots: Sequence[str],
        facts_of: Callable[[str], FileFacts | None],
        text_of: Callable[[str], DecodedText],
        cell_of: Callable[[str, int], tuple[int | None, int]] = lambda _path, _line: (None, 0),
        installed: Installed | None = None,
        reads: Reads | None = None,
        tables: SavedTables | None = None,
    ) -> None:
        self._installed = installed
        self.reads = reads
        self.tables = tables
        self._answers: dict[str, MutableMapping[Any, Any]] = {}
        self.places = {path: number for number, path in enumerate(paths)}
        self.index = Index(self)
        self._text_of = text_of
        self._cell_of = cell_of
        self.paths = tuple(paths)
        self.finder = module_finder(self.paths, tuple(source_roots))
        self.nowhere = Module("", "", _EMPTY, own=False)
        self._facts_of = facts_of
        self._modules: dict[str, Module] = {}
        self._crashes: dict[Function, Crash] = {}
        self._unsaid: dict[str, Crash] = {}
        self.oldest_python = ANY_PYTHON  # the minor version of Python 3 that the project has to run on
        self.allowed = {}  # the newest major versions of libraries that the project allows itself
        self.oldest_allowed = {}
        self.self_running: tuple[str, ...] = ()  # folders whose pytest takes on every async test by itself
        self._older: MutableMapping[str, bool] = self.answers()
        self.names = Names(self)
        self.types = Types(self)
        self.classes = Classes(self)
        self.effects = Effects(self)
        self.calls = Calls(self)
        self.reasons = Reasons(self.effects.of)
        self.consumers = Consumers(self)
        self.counts = NameCounts(self)
        self.call_sites = None  # the counter that evidence keeps here
        self.judge = Judging()  # whoever links a program with evidence sets another
        self.calling = Calling(self)
        self.fixtures = Fixtures(self, self.names, self.calls.result)
        self.parameters = Parameters(self)
        self.passed = Passed(self)
        self.made_up = MadeUp(self)
        self.glance = Glance(self)
        self._summaries: MutableMapping[Function, Summary] = self.answers()
        self.picking: Mapping[str, list[str]] | None = None
        self.picked: dict[str, frozenset[str]] = {}
        """What the dispatchers of files pick; of those that stayed as they were it is known from an earlier run."""
        self.chains: dict[str, Any] = {}  # what `queries/call_chains.py` makes once for all rules
        self.shared: dict[str, frozenset[str]] = {}
        self._noting: dict[str, Words[str]] = {}
        self.returning: dict[str, set[str]] = {}
        """The sync functions of files that were seen to return awaitables."""
        self._said: dict[str, dict[str, Any]] = {}
        self._walking: set[Function] = set()
        self._early: set[Function] = set()  # those that asked too early what their callers give
        self._again: set[Function] = set()
        self._incidents: tuple[LossIncident, ...] = ()
        self.walked = set()
        self._closing_over: set[Function] = set()  # they asked for a variable of a function that is being walked
        self._half_seen: dict[Function, int] = {}
        self.walked_files = ()
        self._by_file: (
            tuple[
                tuple[LossIncident, ...],
                tuple[str, ...],
                set[Function],
                dict[str, list[LossIncident]],
                dict[str, set[Function]],
            ]
            | None
        ) = None
        self.asked = tuple(paths)  # the files that the last walk was about
        self._prefilter: Prefilter | None = None
        self.apart: Collection[str] = ()  # the files of which it is noted for each function what its walk has read
        self.read_apart: Mapping[tuple[str, int], set[tuple[Any, ...]]] = {}
        self.uneventful: dict[str, set[int]] = {}
        """Of these files, the functions that were walked without an incident, and that no other finding rests on."""
        self.spared: Mapping[str, Collection[int]] = {}  # functions of which that is known, so that no walk is needed
        self.pause: Callable[[], None] = _go_on  # called between files; it may raise, to end what nobody waits for
        self.unread: frozenset[str] = frozenset()  # files whose syntax is newer than this interpreter

    # -- modules -------------------------------------------------------------------------------------------------------

    def module(self, path: str) -> Module:
        """The module in that file."""
        module = self._modules.get(path)
        if module is None:
            facts = self._facts_of(path)
            module = self._modules[path] = Module(
                path, self.finder.name_of(path), facts or _EMPTY, log=None if self.reads is None else self.reads.log
            )
        return module

    def take_over(self, earlier: Program | None) -> None:
        """Go on with the modules of an earlier program, those whose facts are the same: they know nothing of others."""
        for path, module in earlier._modules.items() if earlier is not None else ():
            if module._facts is self._facts_of(path) and module.name == self.finder.name_of(path):
                module.log = None if self.reads is None else self.reads.log
                self._modules[path] = module

    def own_modules(self) -> Iterator[Module]:
        """The modules of the project; whoever goes through them depends on all that any file says."""
        if self.reads is not None:
            self.reads.log.append(EVERYTHING)
        for path in self.paths:
            yield self.module(path)

    def all_facts(self) -> Iterator[tuple[int, FileFacts]]:
        """The facts of the project's files with their numbers, for tables of what all say under a name."""
        for number, path in enumerate(self.paths):
            facts = self._facts_of(path)
            if facts is not None:
                yield number, facts

    def answers(self) -> MutableMapping[Any, Any]:
        """A place to keep answers in, which knows what they were read from."""
        return {} if self.reads is None else Answers(self.reads)

    def answers_to(self, question: str) -> MutableMapping[Any, Any]:
        """The place where the answers to one question are kept."""
        answer = self._answers.get(question)
        if answer is None:
            answer = self._answers[question] = self.answers()
        return answer

    def aside(self) -> AbstractContextManager[None]:
        """Inside, what all files together say is put together; who reads it is noted under the name he asks for."""
        return nullcontext() if self.reads is None else self.reads.aside()

    def said(self, kind: str) -> Mapping[str, Any]:
        """What files say of one kind (`program.parts`), by their paths, without those that say nothing of it."""
        if self.reads is not None:
            self.reads.log.append((kind,))
        by_path = self._said.get(kind)
        if by_path is None:
            part = PARTS[kind]
            then = None if self.tables is None else self.tables.get(f"part {kind}")
            if self.tables is not None and then is not None:
                now = {self.paths[number]: facts for number, (_, facts) in self.tables.since.items()}
                every = {path: spoken for path, spoken in then.items() if path not in now}
                every |= {path: self._part(part, path, facts) for path, facts in now.items() if facts is not None}
            else:
                places = ((self.paths[number], facts) for number, facts in self.all_facts())
                every = {path: self._part(part, path, facts) for path, facts in places}
            by_path = self._said[kind] = {path: every[path] for path in self.paths if every.get(path)}
        return by_path

    def _part(self, part: Callable[[FileFacts], Any], path: str, facts: FileFacts) -> Any:
        try:
            return part(facts)
        except Exception as error:  # noqa: BLE001  a file that we fail on must not cost the others
            if path not in self._unsaid:
                self._unsaid[path] = contained(error, path, "what the file says to others is not complete")
            return None

    def tables_made(self) -> Iterator[tuple[str, Any]]:
        """The tables over all files as they are now, for the next run: those that were needed."""
        for kind, table in self.index.tables().items():
            yield f"index {kind}", table
        for kind, parts in self._said.items():
            yield f"part {kind}", parts
        if self._prefilter is not None:
            yield "name counts", plain(self.counts.holders())

    def installed(self, dotted: str) -> Module | None:
        """The module of an installed package, read from its source."""
        return None if self._installed is None else self._installed.module(dotted)

    def installed_async(self, top: str) -> frozenset[str]:
        """The names that are async in an installed package which is read from its source."""
        return frozenset() if self._installed is None else self._installed.async_names(top)

    # -- scopes --------------------------------------------------------------------------------------------------------

    def static(self, module: Module, function: Function | None = None, owner: Class | None = None) -> Evaluator:
        """An evaluator that looks at expressions in that scope."""
        return Plain(self, module, function, owner)

    def value_of(
        self, node: Node, module: Module, function: Function | None = None, owner: Class | None = None
    ) -> Value | None:
        """What an expression stands for in that scope, without a walk."""
        return Plain(self, module, function, owner).value(node)

    def annotated(self, node: Node, module: Module) -> Value | None:
        """The value that something annotated with `node` has."""
        return self.types.annotated(node, module)

    def written(self, text: str) -> Value | None:
        """The value of a type of the library tables."""
        return self.types.written(text)

    def alternatives(self, function: Function, callee: str) -> tuple[Value | None, ...] | None:
        """What a callee, as written, may stand for in the function; None where only a walk can tell."""
        return self.glance.alternatives(function, callee)

    def imports(self, top_level: str) -> bool:
        """Whether some file of the project imports that library."""
        return any(top_level in packages for packages in self.said("imported packages").values())

    # -- functions -----------------------------------------------------------------------------------------------------

    def summary(self, function: Function) -> Summary:
        """What a walk through `function` told; nothing while that walk is going on."""
        summary = self._summaries.get(function)
        if summary is not None:
            return summary
        if function in self._walking or len(self._walking) > _DEEPEST_FLOW:
            return Summary()
        if self._half_seen.get(function, 0) >= _MOST_HALF_SEEN and _is_inside(function, self._walking):
            return Summary()
        self._walking.add(function)
        # Who asks may be in the middle of `Method[Callable[…]]`: what is kept of a body is to hold for every receiver.
        outside, self.types.arguments = self.types.arguments, {}
        try:
            summary = Flow(self, function).run().summary()
        except RecursionError:  # an expression nested deeper than Python can follow: nothing is known of the function
            summary = Summary()
        except DamagedError:
            raise
        except Exception as error:  # noqa: BLE001  what we fail to follow must not cost the rest
            self._note_crash(function, error)
            summary = Summary()
        finally:
            self._walking.discard(function)
            self.types.arguments = outside
        if function in self._closing_over:
            self._closing_over.discard(function)  # the function around is still being walked: asked again after that
        elif function in self._early and function not in self._again:
            self._again.add(function)  # something it asked for was not known yet: it is walked once more
        else:
            self._summaries[function] = summary
        self._early.discard(function)
        return summary

    def has_walked(self, function: Function) -> bool:
        """Whether the summary of `function` is at hand: whoever would look before he asks for it need not."""
        return dict.__contains__(self._summaries, function)

    def is_walking(self, function: Function) -> bool:
        """Whether a walk through `function` is going on; who asked it now is asked again when that is over."""
        if function not in self._walking:
            return False
        self.too_early()
        return True

    def too_early(self) -> None:
        """What somebody asked for is just being found out: the walks that are going on have seen too little."""
        self._early |= self._walking

    @property
    def async_names(self) -> AbstractSet[str]:
        """The names of which something async is known, in the project or in what it imports."""
        return set() if self._prefilter is None else self._prefilter.names

    def majors_behind(self, top: str) -> int:
        """By how many major versions what the project asks of a library is older than what the tables know."""
        if calls_older_edition(self, top):
            return 1
        allowed = self.allowed
        if not allowed:
            return 0
        return max(
            (version - allowed.get(normalized(name), version) for name, version in library.sources(top)), default=0
        )

    def is_older(self, top: str) -> bool:
        """Whether the project asks for an older version of a library than the tables know, and never awaits near it.

        A library that has become async since is not that library.
        """
        answer = self._older.get(top)
        if answer is None:
            answer = self._older[top] = self.majors_behind(top) > 0 and not any(
                f.awaited
                for module in self.own_modules()
                if any(
                    imported.module.partition(".")[0] == top for imported in module.facts.imports if not imported.level
                )
                for f in module.facts.functions
            )
        return answer

    @property
    def prefilter_names(self) -> Mapping[str, frozenset[str]]:
        """The sets of names that the prefilter rests on, by what they are, before any walk."""
        return {} if self._prefilter is None else self._prefilter.sets

    def inferred(self, function: Function) -> Value | None:
        """What a function returns (or yields), by its body."""
        if function.is_abstract:
            return None
        summary = self.summary(function)
        return summary.yields if function.is_generator else summary.returns

    def closure(self, function: Function, name: str) -> Value | None:
        """What a variable of an enclosing function stands for."""
        if function in self._walking:
            for inner in self._walking:
                if inner is not function and _is_inside(inner, {function}):
                    self._closing_over.add(inner)
                    self._half_seen[inner] = self._half_seen.get(inner, 0) + 1
            return None
        bound = self.summary(function).bound.get(name)
        # Of several values, of which one is unknown, that one may be what the function inside was made with.
        return None if None in members_of(bound) else bound

    def assigned_in(self, function: Function, name: str, value: Node) -> Value | None:
        """What `self.name = value` in a method assigns."""
        assigned = self.static(function.module, function).value(value)
        if assigned is None and value[KIND] == "name" and function in self._walking:
            # The walk that would tell is the one that asks: `new = Client()`, and later `self.client = new`.
            bound = [node[ASSIGN_VALUE] for node in of_kind(function.body(), "assign") if value in node[ASSIGN_TARGETS]]
            if len(bound) == 1 and bound[0][KIND] == "call":
                assigned = self.static(function.module, function).value(bound[0])
        return assigned if assigned is not None else self.summary(function).attributes.get(name)

    def fate(self, function: Function, param: str) -> str:
        """What becomes of an awaitable given to that parameter.

        "lost", "handed over" to somebody unknown, "kept", or "asked" whether it is a result, and given back if not.
        """
        if function in self._walking or len(self._walking) > _DEEPEST_FLOW:
            return "kept"
        if any(callee.rpartition(".")[2] in _ASKING for callee in function.facts.calls):
            return "kept"  # it looks at what it is given, so it knows what to do with an awaitable
        self._walking.add(function)
        try:
            flow = Flow(self, function)
            flow.is_asking = True
            site = Site(function, (0, 0, 0, 0), param, None, "coroutine", True, lambda: ())
            flow.env[param] = Coroutine(site, lambda: None)
            flow.pending[site] = PENDING
            flow.variables[site] = param
            flow.run()
        except RecursionError:
            return "kept"
        finally:
            self._walking.discard(function)
        if any(m.kind in {"async with", "async iteration"} for m in flow.misuses.get(site, ())):
            return "kept"  # it wants something to enter or to loop over
        incident = flow.incidents.get(((0, 0, 0, 0), "never awaited"))
        is_checked = any(
            m.kind == "subscript" or (m.kind == "attribute" and m.text not in OF_FUTURES)
            for m in flow.misuses.get(site, ())
        )
        if is_checked and incident is not None and not _looks_before(function):
            return "lost"  # no awaitable has what it asks for, whatever it does with it afterwards
        exits = flow.exits.get(site, 0)
        if exits & KEPT and not exits & AWAITED and _asks_for_result(flow.misuses.get(site, ())):
            return "asked"  # `if not isinstance(x, dict): return x`: it gives back what it has no use for
        if incident is None or exits & (KEPT | AWAITED):
            return "kept"
        return "handed over" if incident.is_handed_over else "lost"

    # -- the whole -----------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Take in what all files say about names, so that walks can begin."""
        if self._prefilter is None:
            with self.aside():
                then = None if self.tables is None else self.tables.get("name counts")
                sets = None
                if self.tables is not None and then is not None and self._recounted(then, self.tables):
                    sets = restored(self, self.tables)
                else:
                    for number, facts in self.all_facts():
                        self.counts.count(self.paths[number], facts.functions)
                    for path in sorted(self.unread):
                        self.counts.count_unread(self.text(path).value)
                if sets is None and self.tables is not None:
                    self.tables.coined.clear()
                self._prefilter = Prefilter(self, sets or collected(self, list(self.own_modules())))
            if self.reads is not None:
                noted(self.counts.holders(), self.reads)

    def make_tables(self) -> None:
        """Make the tables that nearly every walk and rule asks for, so that processes forked from here share them."""
        with self.aside():
            self.index.make_ready()
            self.said("takers of callbacks")

    def _recounted(self, then: Mapping[str, Any], tables: SavedTables) -> bool:
        changed = {
            self.paths[number]: tuple(
                counted(self.paths[number], () if facts is None else facts.functions).holders() for facts in versions
            )
            for number, versions in tables.since.items()
        }

        def saying(word: str) -> dict[str, Holders] | None:
            numbers = tables.saying(word)
            if numbers is None:
                return None
            facts = {self.paths[number]: self._facts_of(self.paths[number]) for number in numbers}
            return {path: counted(path, file.functions).holders() for path, file in facts.items() if file is not None}

        return recounted(self.counts.holders(), then, changed, self.places, saying)  # type: ignore[arg-type]

    def names_found(self, question: str) -> Collection[str]:
        """Names that are worked out for the whole project (`program.parts`), and may be known from an earlier run."""
        names = self.shared.get(question)
        if names is None:
            with nullcontext() if self.reads is None else self.reads.for_file(question):
                names = frozenset(QUESTIONS[question](self))
            self.shared[question] = names
        if self.reads is None:
            return names
        noting = self._noting.get(question)
        if noting is None:
            noting = self._noting[question] = Words(self.reads, question, names)
        return noting

    def is_chosen(self, function: Function) -> bool:
        """Whether a walk goes through that function."""
        self.prepare()
        if self.reads is not None:
            self.reads.log.append(function.module)
        assert self._prefilter is not None
        return self._prefilter.chooses(function)

    def walk(
        self, paths: Sequence[str], beyond: Mapping[str, Sequence[int]] | None = None, calling: Collection[str] = ()
    ) -> tuple[set[str], dict[str, list[int]]]:
        """Walk through those functions of `paths` that are worth it; `incidents` then tells what was met.

        With `beyond`, the functions that were walked before, only others are that call one of the names in `calling`,
        which were learned since. Returned are the names of the sync functions that were found to return awaitables, and
        the functions walked.
        """
        self.prepare()
        self.asked = (
            tuple(paths) if beyond is None else ()
        )  # else all but the awaitables was told of these files before
        assert self._prefilter is not None
        prefilter = self._prefilter
        met: list[LossIncident] = []
        walked: dict[str, list[int]] = {}
        returning: set[str] = set()
        skipped = {path: set(indices) for path, indices in (beyond or {}).items()}
        pending = dict.fromkeys(
            module.own_function(index)
            for module in map(self.module, paths)
            for index in range(len(module._facts.functions))
            if index not in skipped.get(module.path, ())
        )
        waiting = list(pending)
        if beyond is not None:
            waiting = [function for function in self.calling.functions_naming(calling) if function in pending]
        while True:
            names: set[str] = set()  # in this round alone: a chain has as many rounds as it has links
            for module, functions in groupby(waiting, key=lambda one: one.module):
                self.pause()
                with nullcontext() if self.reads is None else self.reads.for_file(module.path):
                    for function in functions:
                        if not prefilter.chooses(function):
                            continue
                        del pending[function]
                        if function.index in self.spared.get(module.path, ()):
                            continue
                        walked.setdefault(module.path, []).append(function.index)
                        summary = self._summary_apart(function) if module.path in self.apart else self.summary(function)
                        if not function.is_async and holds_awaitable(summary.returns):
                            names.add(function.name)
                            self.returning.setdefault(module.path, set()).add(function.name)
                        met += summary.incidents
            returning |= names
            new = names - prefilter.returners
            if not prefilter.grow(new):
                break
            waiting = [function for function in self.calling.functions_naming(new) if function in pending]
        self._incidents = tuple(met)
        self.walked_files = () if beyond is not None else tuple(paths)
        self.walked = {self.module(path).function(i) for path, indices in walked.items() for i in indices}
        return returning, walked

    def _summary_apart(self, function: Function) -> Summary:
        """The summary of a function, with a note of what was read for it alone."""
        if self.reads is None:
            return self.summary(function)
        path = function.module.path
        with self.reads.for_file((path, function.index)):
            summary = self.summary(function)
        is_plain = function.is_async or not holds_awaitable(summary.returns)
        if is_plain and self.has_walked(function) and not summary.incidents and not summary.stored:
            self.uneventful.setdefault(path, set()).add(function.index)
        return summary

    def _note_crash(self, function: Function, error: Exception) -> None:
        if function not in self._crashes:
            path, line = function.place
            cost = f"`{function.qualname}` was not followed" if function.qualname else "the module was not followed"
            self._crashes[function] = contained(error, path, cost, line=line)

    @property
    def crashes(self) -> tuple[Crash, ...]:
        """The exceptions of our own that were met so far, but for those of rules."""
        of_libraries = () if self._installed is None else self._installed.crashes
        return (*self._crashes.values(), *self._unsaid.values(), *of_libraries)

    def ask_about(self, path: str) -> AbstractContextManager[None]:
        """Inside, the questions of rules are about that one of the files walked."""
        # Two walks without an incident have the same empty tuple, and yet went through other functions.
        if self._by_file is None or self._by_file[2] is not self.walked:
            incidents: dict[str, list[LossIncident]] = {}
            functions: dict[str, set[Function]] = {}
            for incident in self._incidents:
                incidents.setdefault(incident.site.function.module.path, []).append(incident)
            for function in self.walked:
                functions.setdefault(function.module.path, set()).add(function)
            self._by_file = self._incidents, self.walked_files, self.walked, incidents, functions
        return self._asking_about(path)

    @contextmanager
    def _asking_about(self, path: str) -> Iterator[None]:
        assert self._by_file is not None
        whole, paths, walked, incidents, functions = self._by_file
        self.asked = (path,)
        self.walked_files = (path,) if paths else ()
        self._incidents, self.walked = tuple(incidents.get(path, ())), functions.get(path, set())
        try:
            with nullcontext() if self.reads is None else self.reads.for_file(path):
                yield
        finally:
            self._incidents, self.walked_files, self.walked = whole, paths, walked

    def learn(self, returning: set[str]) -> None:
        """Take in that these sync functions return awaitables."""
        self.prepare()
        assert self._prefilter is not None
        self._prefilter.grow(returning)

    def incidents(self) -> tuple[LossIncident, ...]:
        """Everything that went wrong with awaitables on the last walk."""
        return self._incidents

    # -- texts and places ----------------------------------------------------------------------------------------------

    def text(self, path: str) -> DecodedText:
        """The text of a file."""
        if self.reads is not None:
            self.reads.log.append(("text", path))
        return self._text_of(path)

    def own_texts(self) -> Iterator[tuple[Module, str | None]]:
        """The text of each file of the project, be it Python or not; None for one that cannot be opened."""
        for module in self.own_modules():
            try:
                yield module, self.text(module.path).value
            except OSError:
                yield module, None

    def span(self, path: str, at: At) -> Span:
        """A place as people count it; in a notebook within its cell."""
        text = self._text_of(path)
        line, column, end_line, end_column = at
        cell, shift = self._cell_of(path, line)
        return Span(
            path,
            line - shift,
            text.column(line, column) + 1,
            end_line - shift,
            text.column(end_line, end_column) + 1,
            cell,
        )


_MOST_HALF_SEEN = 12  # questions about an unfinished function around; then nothing is known until it is finished


def _go_on() -> None:
    """Nobody has to be asked."""


def _is_inside(function: Function, others: Collection[Function]) -> bool:
    """Whether a function stands in one of the others."""
    around = function.parent
    while around is not None:
        if around in others:
            return True
        around = around.parent
    return False


def _asks_for_result(misuses: Iterable[Misuse]) -> bool:
    """Whether `isinstance` asks of an awaitable that it be something which is no awaitable."""
    return any(misuse.taker is not None and misuse.taker.name == "isinstance" for misuse in misuses)


def _looks_before(function: Function) -> bool:
    """Whether a function finds out what it was given before it uses it."""
    return not {"hasattr", "getattr", "callable", "isinstance", "type"}.isdisjoint(function.facts.calls)
