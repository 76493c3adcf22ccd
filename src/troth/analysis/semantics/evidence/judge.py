"""Judge a call whose callee inference could not resolve.

Inference answers a value or unknown, and never guesses. Where it answers unknown, the walk asks this judge, and nobody
else does. The judge hears **witnesses** in their order: the first that testifies, and whose testimony no **doubt**
meets, is believed, and what it says is *likely*. A testimony that rests on the shape of the call alone is a proof:
about it no doubt is asked. A few doubts concern one witness only: the others are heard all the same.

Two more questions come here. Of a callee that is known, though not what its decorator or its guessed receiver make of
it, doubts may speak (`doubt_about`). Of an object with `__await__`, which may do its work by itself, other calls have
to show that it is meant to be awaited (`awaitable_object`).

Each witness and each doubt is a module with its cases, and has a name by which it can be switched off:
`python -m bench.check.worth` prints what each is worth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from troth.analysis.facts.fields import ATTR_BASE, ATTR_NAME, CALL_FUNC, INDEX_BASE, KIND
from troth.analysis.facts.names import callee_text, last_name
from troth.analysis.findings import Reason
from troth.analysis.findings.phrases import with_article
from troth.analysis.semantics.evidence.call_site_evidence import OF_NOBODY, siblings_of
from troth.analysis.semantics.evidence.doubts import (
    color_question,
    foreign_fixture,
    foreign_receiver,
    library_receiver,
    mapping_get,
    opaque_decorator,
    suffixed_twins,
    sync_call_sites,
    sync_context,
    sync_flag,
    sync_namesake,
    test_double,
    unfit_arguments,
)
from troth.analysis.semantics.evidence.judging import Judged, Judging
from troth.analysis.semantics.evidence.question import Question, is_carried, is_of_unknown_base, is_unlisted
from troth.analysis.semantics.evidence.switches import OFF
from troth.analysis.semantics.evidence.witnesses import (
    asgi,
    async_twin,
    call_sites,
    decorated,
    definition_name,
    executor_future,
    grpc_stub,
    library_function,
    library_name,
    library_type,
    overridden_base,
    protocol_method,
)
from troth.analysis.semantics.evidence.witnesses.attribute_name import KeptAs
from troth.analysis.semantics.evidence.witnesses.receiver_methods import Company
from troth.analysis.semantics.infer.idle_awaitables import is_idle
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.color_checks import asks_for_color_of
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.symbols import Class
from troth.analysis.semantics.values import Awaitable, AwaitableObject, Coroutine, External, Instance, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.evidence.question import Testimony
    from troth.analysis.semantics.incident import Site
    from troth.analysis.semantics.infer.evaluator import Evaluator
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Function

__all__ = ["DOUBTS", "WITNESSES", "Judge", "with_evidence"]

P = TypeVar("P", bound=Judged)

# The order matters: what the call itself shows is heard before what others say, and definitions before call sites.
_WITNESSES: tuple[tuple[str, Callable[[Question], Testimony | None]], ...] = (
    ("protocol-method", protocol_method.testify),
    ("executor-future", executor_future.testify),
    ("asgi", asgi.testify),
    ("grpc-stub", grpc_stub.testify),
    ("overridden-base", overridden_base.testify),
    ("definition-name", definition_name.testify),
    ("library-name", library_name.testify),
    ("async-twin", async_twin.testify),
    ("call-sites", call_sites.testify),
    ("library-type", library_type.testify),
    ("library-function", library_function.testify),
)
_DOUBTS: tuple[tuple[str, Callable[[Question], bool]], ...] = (
    ("sync-flag", sync_flag.doubts),
    ("test-double", test_double.doubts),
    ("sync-context", sync_context.doubts),
    ("mapping-get", mapping_get.doubts),
    ("color-question", color_question.doubts),
    ("suffixed-twins", suffixed_twins.doubts),
)
_DOUBTS_ABOUT_DEFINITIONS: tuple[tuple[str, Callable[[Question], bool]], ...] = (
    ("sync-call-sites", sync_call_sites.doubts),
    ("foreign-receiver", foreign_receiver.doubts),
    ("foreign-fixture", foreign_fixture.doubts),
    ("library-receiver", library_receiver.doubts),
    ("unfit-arguments", unfit_arguments.doubts),
)

WITNESSES = (*(name for name, _ in _WITNESSES), "decorated", "receiver-methods", "attribute-name")
DOUBTS = (
    *(name for name, _ in (*_DOUBTS, *_DOUBTS_ABOUT_DEFINITIONS)),
    "sync-namesake",
    "opaque-decorator",
    "started-by-decorator",
)


class Judge(Judging):
    """Hears the witnesses and the doubts of one program."""

    def __init__(self, program: Inference) -> None:
        self._program = program
        self.siblings = siblings_of(program)
        self._kept_as = KeptAs(program)
        self._company = Company(program)
        self._witnesses = [(name, testify) for name, testify in _WITNESSES if name not in OFF]
        self._doubts = [doubts for name, doubts in _DOUBTS if name not in OFF]
        self._about_definitions = [doubts for name, doubts in _DOUBTS_ABOUT_DEFINITIONS if name not in OFF]
        self._off = frozenset(OFF)

    # -- a callee that is unknown --------------------------------------------------------------------------------------

    def call(self, node: Node, scope: Evaluator, external: str = "") -> Value | None:
        """An awaitable, if calling this unknown callee is believed to give one.

        Of something that comes from a library (`external`) the definitions of the project say nothing.
        """
        if node[1][KIND] not in {"attr", "name"} or scope.function is None:
            return None
        question = Question(self._program, node, scope, scope.function, external)
        testimony = self._believed(question)
        if testimony is None:
            return None
        reason = testimony.reason
        target = "" if testimony.is_shape else None
        site = scope.site(target, node[-1], question.text, testimony.awaitable, lambda: (reason,), sure=testimony.sure)
        if site is not None:
            site.by_siblings, site.is_firm = testimony.by_sites, testimony.firm
            site.by_name = not testimony.by_sites and not testimony.is_shape
        return Awaitable(None, "future", site) if testimony.awaitable == "future" else Coroutine(site, lambda: None)

    def _believed(self, question: Question) -> Testimony | None:
        for name, testify in self._witnesses:
            testimony = testify(question)
            if testimony is None:
                continue
            if testimony.is_proof:
                return testimony
            if any(doubts(question) for doubts in self._doubts):
                return None
            if name != "definition-name" or not any(doubts(question) for doubts in self._about_definitions):
                return testimony
        return None

    def decorated(self, called: Function, node: Node, scope: Evaluator) -> Value | None:
        """An awaitable, if an `async def` is believed to give one under a decorator that nobody can follow."""
        if scope.function is None or "decorated" in self._off or sync_flag.asks_for_sync(node):
            return None
        reason = decorated.reason_for(self._program, called, scope.function)
        if reason is None:
            return None
        site = scope.site(called, node[-1], callee_text(node[1]), "coroutine", lambda: (reason,), sure=False)
        return Coroutine(site, lambda: None)

    def receiver(self, node: Node, function: Function, wanted: str) -> Value | None:
        """What a receiver is believed to be of which nothing is known but its name; `wanted` is the method."""
        return None if "attribute-name" in self._off else self._kept_as.behind(node, function, wanted)

    def unused(self, node: Node, scope: Evaluator, given: tuple[External, ...], *, is_tested: bool) -> Reason | None:
        """Why an unknown callee, whose result is thrown away or tested, is believed to give an awaitable all the same.

        Only there: what takes the result of a method of an async object may well take it from a sync one. `given` is
        what the call gives, as far as it is known to come from a library.
        """
        callee, function = node[1], scope.function
        if callee[KIND] != "attr" or function is None or not function.is_async or "receiver-methods" in self._off:
            return None
        text = callee_text(callee)
        if asks_for_color_of(self._program, function, text):
            return None
        if test_double.is_test_double(text) or callee[ATTR_BASE][1] in scope.plainly_entered:
            return None
        if is_unlisted(self._program, callee, scope) and not is_of_unknown_base(self._program, OF_NOBODY, scope):
            return None
        if any(library.knows(argument.path.partition(".")[0]) and not is_carried(argument.path) for argument in given):
            return None  # what the table of a library does not say is not so
        if definition_name.is_plain_elsewhere(self._program, callee[ATTR_NAME], scope.module.path):
            return None
        return self._company.speak_of(text, function, is_tested=is_tested)

    # -- a callee that is known ----------------------------------------------------------------------------------------

    def doubt_about(self, called: Function, node: Node, scope: Evaluator, *, is_guess: bool) -> str:
        """Why a call of an `async def` may give something else: nobody can tell, or its decorator starts it."""
        program = self._program
        is_plain = scope.function is not None and not scope.function.is_async
        if is_plain and is_guess and "sync-namesake" not in self._off and sync_namesake.doubts(program, called):
            return "unknown"
        is_named = last_name(node[CALL_FUNC]) == called.name  # what `__getattr__` makes up is called by other names
        if is_guess and is_named and "unfit-arguments" not in self._off and not unfit_arguments.takes(called, node):
            return "unknown"
        if not called.facts.decorators or not program.effects.is_doubtful(called):
            return ""
        if "opaque-decorator" not in self._off and opaque_decorator.doubts(program, called, node, is_plain=is_plain):
            return "unknown"
        is_started = "started-by-decorator" not in self._off and opaque_decorator.starts_it(program, called)
        return "started" if is_started else ""

    def awaitable_object(self, instance: Instance, node: Node, scope: Evaluator, target: Function | None) -> Value:
        """An object with `__await__`, which may do its work by itself.

        It is lost where the other sites show that it is to be awaited, or where a use shows that its result was meant.
        """
        if scope.function is None or not scope.function.is_async or node[1][KIND] not in {"attr", "name"}:
            return instance
        text = callee_text(node[1])
        is_own = isinstance(instance.cls, Class)
        siblings = self.siblings
        witness = siblings.speak_of(text, scope.function, "" if is_own else instance.cls.name)
        if witness is None and target is not None:
            witness = siblings.speak_of_method(target.name)
        if witness is not None and siblings.is_left_alone(text.rpartition(".")[2]):
            witness = None
        is_query = not is_own and _is_query(instance)
        is_alone = witness is None and (target is None or not siblings.sites_of(target.name)[0])
        # `websockets.connect(url)`: a class that is called like a function, and named like one
        idle = is_alone and (is_idle(self._program, instance, target) if is_own else instance.cls.name[:1].islower())
        if asks_for_color_of(self._program, scope.function, text) or not (
            witness or is_query or idle or _gives_something_else(instance)
        ):
            return instance
        does = "does nothing until it is awaited" if idle else "is to be awaited"
        why = Reason(f"it gives {with_article(instance.cls.name)}, which {does}")
        reason = why if witness is None else witness.reason
        site = scope.site(None if witness else target, node[-1], text, "coroutine", lambda: (reason,), sure=False)
        if site is not None:
            site.by_siblings, site.is_firm = witness is not None, witness is not None and witness.firm
            site.is_quiet = witness is None and not idle
            site.is_query = is_query
        return AwaitableObject(site, lambda: scope.awaited(instance), instance)

    # -- what a use shows ----------------------------------------------------------------------------------------------

    def is_awaited_elsewhere(self, site: Site) -> bool:
        """Whether other sites await a callee of that name."""
        return self._program.counts.is_awaited(site.callee.rpartition(".")[2])

    def sites_of(self, name: str) -> tuple[int, int]:
        """How many functions await callees of that last name, and how many call them without."""
        return self.siblings.sites_of(name)

    def is_always_awaited(self, site: Site) -> bool:
        """Whether a result rather than an awaitable is expected at `site`.

        In `async def` the callee being known is enough: whoever wants the awaitable itself names it so. In a sync
        function, which cannot await, another site has to show that the callee is awaited.
        """
        name = site.callee.rpartition(".")[2]
        if site.target is None:
            return site.function.is_async and not site.by_siblings and self._program.counts.is_awaited(name)
        return site.function.is_async or self._program.counts.is_awaited(name)


def with_evidence(program: P) -> P:
    """The program, with a judge of what inference leaves unknown."""
    program.judge = Judge(program)
    return program


def _is_query(instance: Instance) -> bool:
    return isinstance(instance.cls, LibraryClass) and instance.cls.qualified.startswith(library.QUERIES)


def _gives_something_else(instance: Instance) -> bool:
    """Whether a class of the project says of itself that it stands for a result: `class Run(Awaitable[R])`."""
    if not isinstance(instance.cls, Class):
        return False
    bases = [base[INDEX_BASE] if base[KIND] == "index" else base for base in instance.cls.facts.bases]
    return any(callee_text(base).rpartition(".")[2] in {"Awaitable", "Coroutine"} for base in bases)
