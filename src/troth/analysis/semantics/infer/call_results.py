"""Infer what a call gives: an awaitable, an object, or what the function returns.

The callee decides. A function of the project gives what its color and its decorators make of it; a function of a
library, what its table says; a class, an object; an object, what its `__call__` gives; and so on. If the callee is
unknown, the judge of the walk is asked (`scope.judged`); inference itself never guesses.

- An `async def` gives a `Coroutine` with a `Site`, the place of this call, and a thunk for what awaiting it gives.
  Most results are never asked for, so they are worked out late, and `result` keeps them.
- A sync function gives what it returns. If that is an awaitable, this call counts as the one that makes it
  (`_fresh`): whoever calls has to await it, and the reasons name the call inside. If only some ways return one, the
  result is unknown, because only the call could say which.
- A method may be overridden. If one override is sync and another async, the result is unknown; if all implementations
  are `async def` below a base that says nothing, theirs is taken.
- One of several callees (`Union`) gives a coroutine only if all of them do. If one of them is unknown, the others are
  a guess.
- A result is read from the annotation, and else from the walk through the function (`Program.inferred`). A function
  that is asked about while it is being asked about answers unknown, which ends every recursion.

A site carries how sure it is: a receiver whose class is a guess, a decorator that may change the color, or a library
that the project pins to an older major version makes it likely. Reasons are callables, because most awaitables are
awaited on the spot and nobody asks why they are known.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import (
    ATTR_BASE,
    ATTR_NAME,
    BINOP_LEFT,
    CALL_ARGS,
    CALL_FUNC,
    CONST_VALUE,
    INDEX_BASE,
    INDEX_KEY,
    KIND,
    NAME_ID,
    VALUE,
)
from troth.analysis.facts.names import callee_text, last_name
from troth.analysis.facts.nodes import of_kind, words_of
from troth.analysis.knowledge.corrections import correction
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.semantics.infer.annotations import names_async_iterator
from troth.analysis.semantics.infer.dynamic_attributes import gives_a_stand_in
from troth.analysis.semantics.infer.identity_functions import handed_back
from troth.analysis.semantics.infer.virtual_dispatch import async_implementations, overridden_otherwise, works_otherwise
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.library import LibraryClass, LibraryFunction
from troth.analysis.semantics.resolve.library_variants import is_perhaps_plain_here, is_plain_here
from troth.analysis.semantics.resolve.overloads import meant_by_stream, meant_overloads
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import (
    NONE,
    OF_CLASS,
    AsyncContext,
    AsyncGenerator,
    Awaitable,
    AwaitableContext,
    AwaitableObject,
    Builtin,
    CallableType,
    ClassObject,
    Coroutine,
    External,
    FunctionValue,
    Instance,
    Lambda,
    Nothing,
    Table,
    TupleOf,
    Union,
    Value,
    members_of,
    union,
)

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.facts.model import Node
    from troth.analysis.findings import Reason
    from troth.analysis.semantics.incident import AwaitableKind
    from troth.analysis.semantics.infer.evaluator import Evaluator
    from troth.analysis.semantics.infer.inference import Inference

__all__ = ["Calls"]

Arguments = list[tuple[str | None, Value | None]]

# How the type of a result ends that holds objects of the receiver's class.
_OF_ITSELF = ("[typing.Self]", "[typing.Self | None]")
_NEVER_PLAIN = frozenset({"anyio", "trio"})  # what is async in them was so in every version
# Functions that give back what they are given, as far as awaitables go.
_PASSING = frozenset({"typing.cast", "copy.copy", "copy.deepcopy", "functools.wraps"})
# Functions that start what they are given; the task they return is held by nobody else.
SPAWNERS = frozenset(
    {
        "asyncio.create_task",
        "asyncio.tasks.create_task",
        "asyncio.ensure_future",
        "asyncio.tasks.ensure_future",
        "asyncio.gather",
        "asyncio.tasks.gather",
        "asyncio.events.AbstractEventLoop.create_task",
        "asyncio.base_events.BaseEventLoop.create_task",
    }
)


NAME_BY_PARTS = re.compile(r"""getattr\(\s*(?P<base>[\w.]+)\s*,\s*f(["'])(?P<prefix>\w*)\{[^}]*\}(?P<suffix>\w*)\2""")

# Functions that make a coroutine function of a sync one.
TO_COROUTINE = frozenset({"sync_to_async", "database_sync_to_async", "asyncify"})


class Calls:
    """Calls values."""

    def __init__(self, program: Inference) -> None:
        self._program = program
        self._results: MutableMapping[Function, Value | None] = program.answers()
        self._of_bound: MutableMapping[tuple[Function, object], Value | None] = program.answers()
        self._asking: set[Function] = set()
        self._giving_itself: MutableMapping[Function, bool] = program.answers()
        self._fluent: set[Function] = set()  # those that return `Self`: the answer depends on the receiver

    def call(self, func: Value | None, node: Node, values: Arguments, scope: Evaluator) -> Value | None:
        """What calling `func` at `node` gives."""
        if func is None:
            return scope.judged(node) or _asked_for(node, values, scope)
        if isinstance(func, Union):
            return self._one_of(func, node, values, scope)
        if isinstance(func, FunctionValue):
            if isinstance(func.function, Function):
                return self._own(func, func.function, node, values, scope)
            return self._library(func, func.function, node, values, scope)
        if isinstance(func, ClassObject):
            return self._construct(func, node, values, scope)
        if isinstance(func, Instance):
            called = self._program.classes.member(func.cls, "__call__", func)
            return None if called is None else self.call(called, node, values, scope)
        if isinstance(func, Lambda):
            return self._fresh(func.evaluate(), node, scope, "a lambda that returns it")
        if isinstance(func, CallableType):
            return None if _decorates(node, values, scope) else self._annotated(func, node, scope)
        if isinstance(func, External):
            if func.path.rpartition(".")[2] in TO_COROUTINE and values:
                return self._made_async(values[0][1])
            awaitable = scope.judged(node, func.path)
            return awaitable or _asked_for(node, values, scope) or External(f"{func.path}()")
        return None

    def _made_async(self, plain: Value | None) -> Value:
        """What `sync_to_async(function)` gives: a coroutine function with the result of the sync one."""
        result = Coroutine(None, lambda: self.result(plain) if isinstance(plain, FunctionValue) else None)
        return CallableType(result, "it is a sync function made async")

    def _one_of(self, func: Union, node: Node, values: Arguments, scope: Evaluator) -> Value | None:
        members = [m for m in func.members if not isinstance(m, Nothing)]
        resolved = [m for m in members if m is not None]
        if len(resolved) < len(members):
            return self._perhaps(resolved, node, values, scope)
        results = [self.call(m, node, values, scope) for m in members]
        if results and all(isinstance(r, AwaitableObject) for r in results):
            return results[0]
        if all(isinstance(r, Coroutine) for r in results) and results:
            first = results[0]
            assert isinstance(first, Coroutine)
            return Coroutine(first.site, lambda: union([r.evaluate() for r in results if isinstance(r, Coroutine)]))
        if any(isinstance(r, Coroutine | AsyncGenerator | AsyncContext) for r in results):
            return None  # one color on one path, the other on another: nobody can say at this call
        return union(results)

    def _perhaps(self, known: list[Value], node: Node, values: Arguments, scope: Evaluator) -> Value | None:
        """What calling one of several gives where one more is unknown: a guess, if the others are all async."""
        # Of a library that nobody knows, or of a loop (only loops have `run_in_executor`), the unknown one is another.
        if known and (all(isinstance(m, External) for m in known) or callee_text(node[1]).endswith(".run_in_executor")):
            first = known[0]
            return scope.judged(node, first.path if isinstance(first, External) else "")
        if not known or not all(_is_async_method(m) for m in known):
            return None
        results = [self.call(m, node, values, scope) for m in known]
        for result in results:
            if isinstance(result, Coroutine) and result.site is not None:
                result.site.sure = False
        return results[0] if all(isinstance(r, Coroutine) for r in results) else None

    def _own(
        self, func: FunctionValue, function: Function, node: Node, values: Arguments, scope: Evaluator
    ) -> Value | None:
        program = self._program
        effect = program.effects.of(function)
        receiver = func.receiver
        if effect == "unknown":
            witnessed = scope.judged(node, function.qualname, function)
            return witnessed or self._fresh(self._declared_by_decorator(function), node, scope, "", function)
        if effect in {"coroutine", "generator", "context"}:
            if _lacks_self(function, receiver, values):
                return None
            if overridden_otherwise(program, function, receiver, asking=scope.module.path, callee=node[1]):
                return None
            doubt = scope.doubt_about(function, node, is_guess=_guessed(receiver))
            if doubt == "unknown":
                return None
            at, text = node[-1], callee_text(node[1])
            awaitable: AwaitableKind = _AWAITABLES[effect]
            sure = not _guessed(receiver) and not program.effects.is_doubtful(function)
            kind = {"coroutine": Coroutine, "generator": AsyncGenerator, "context": AsyncContext}[effect]
            if doubt == "started":
                return kind(None, lambda: self.result(func))  # nobody shows that there is anything to await
            site = scope.site(function, at, text, awaitable, lambda: program.reasons.of_own(func, function), sure=sure)
            if site is not None:
                site.by_name = _guessed(receiver)
            return kind(site, lambda: self.result(func))
        result = self.result(func)
        if effect == "syncontext":
            return Builtin("context", (result,))
        if effect == "iterator":
            return Builtin("iterator", (result,))
        if type(result) is Union and any(isinstance(m, Coroutine | Awaitable) for m in result.members):
            result = self._by_overload(func, function, node) or result
        if result is None:
            result = self._by_type_argument(function, values)
        if values and (result is None or (type(result) is Union and not any(map(_is_told, result.members)))):
            returned = handed_back(program, func, node, values)
            if returned is not None:
                return returned
        if overridden_otherwise(program, function, receiver, asking=scope.module.path, callee=node[1]):
            return self._overridden(func, function, node, scope)
        if result is not None and (scope.is_patched(node[1]) or scope.hands_over_patched(node, function.facts.calls)):
            return None
        if isinstance(result, Coroutine | Awaitable) and works_otherwise(program, function, receiver):
            return None
        return self._fresh(result, node, scope, "", function)

    def _overridden(self, func: FunctionValue, function: Function, node: Node, scope: Evaluator) -> Value | None:
        """What calling a sync method gives that says nothing, where all who implement it made it `async def`."""
        if not isinstance(func.receiver, Instance):
            return None
        implementations = async_implementations(self._program, function, func.receiver.cls)
        if not implementations:
            return None
        real = (
            FunctionValue(implementations[0], Instance(implementations[0].owner))
            if implementations[0].owner is not None
            else func
        )

        def reasons() -> tuple[Reason, ...]:
            return self._program.reasons.of_own(real, implementations[0])

        site = scope.site(implementations[0], node[-1], callee_text(node[1]), "coroutine", reasons, sure=False)
        return Coroutine(site, lambda: self.result(real))

    def _declared_by_decorator(self, function: Function) -> Value | None:
        """What the outermost decorator says that the function gives: `-> Callable[P, Run[R]]`."""
        outermost = function.facts.decorators[0] if function.facts.decorators else None
        if outermost is None:
            return None
        decorator = self._program.static(function.module, function.parent).value(outermost)
        if not isinstance(decorator, FunctionValue) or not isinstance(decorator.function, Function):
            return None
        annotated = self._from_annotation(decorator.function, None)
        return (
            annotated.result if isinstance(annotated, CallableType) and isinstance(annotated.result, Instance) else None
        )

    def _by_overload(self, func: FunctionValue, function: Function, node: Node) -> Value | None:
        """What those overloads give that the call may mean: an awaitable for `stream=False`, and else an iterator."""
        is_bound = func.receiver is not None and function.owner is not None
        meant = meant_overloads(function, node, is_bound=is_bound and not function.decorated_with("staticmethod"))
        return union([self._from_annotation(function, function.owner) for function in meant]) if meant else None

    def _by_type_argument(self, function: Function, values: Arguments) -> Value | None:
        """`def get(kind: type[T]) -> T`: the class that is given is the class that comes back."""
        returns = function.facts.returns
        if returns is None or returns[KIND] != "name":
            return None
        for param, (_, value) in zip(
            [p for p in function.facts.params if p[0] not in {"self", "cls"}], values, strict=False
        ):
            annotation = param[1]
            if (
                annotation is not None
                and annotation[KIND] == "index"
                and annotation[INDEX_KEY] == returns
                and isinstance(value, ClassObject)
            ):
                return self._program.types.instance(value.cls, (), None)
        return None

    def _fresh(
        self, value: Value | None, node: Node, scope: Evaluator, how: str = "", function: Function | None = None
    ) -> Value | None:
        """An awaitable that a sync function hands on becomes one that this call makes."""
        if isinstance(value, Union):
            real = [m for m in value.members if not isinstance(m, Nothing)]
            promised = [m for m in real if isinstance(m, Coroutine | Awaitable)]
            if promised and (len(promised) < len(real) or (function is not None and len(real) < len(value.members))):
                return None  # an awaitable or a result, depending on what only the call knows
            return union([self._fresh(m, node, scope, how, function) for m in value.members])
        if isinstance(value, Coroutine | AsyncGenerator | AsyncContext):
            at, text = node[-1], callee_text(node[1])
            inner = value.site
            if isinstance(value, AwaitableContext):
                reasons = self._program.reasons
                site = scope.site(
                    function, at, text, "coroutine", lambda: reasons.of_returning(function, inner, how), sure=True
                )
                return AwaitableContext(site, value.evaluate)
            if isinstance(value, AsyncGenerator | AsyncContext):
                return type(value)(None, value.evaluate)
            target = function if function is not None else how
            sure = value.site.sure if value.site is not None else True
            return Coroutine(
                scope.site(
                    target,
                    at,
                    text,
                    "coroutine",
                    lambda: self._program.reasons.of_returning(function, inner, how),
                    sure=sure,
                ),
                value.evaluate,
            )
        if type(value) is Awaitable and function is not None:
            inner = value.site
            if value.kind == "task" or (inner is not None and inner.awaitable == "task"):
                return Awaitable(value.result, "task")  # it runs by itself
            site = scope.site(
                function,
                node[-1],
                callee_text(node[1]),
                "future",
                lambda: self._program.reasons.of_returning_future(function),
                sure=True,
            )
            return Awaitable(value.result, value.kind, site)
        if type(value) is Instance and function is not None and self._program.classes.has(value.cls, "__await__"):
            return scope.awaitable_object(value, node, function)
        return value

    def _annotated(self, func: CallableType, node: Node, scope: Evaluator) -> Value | None:
        result = func.result
        declared = isinstance(result, Coroutine)
        if not declared and not (type(result) is Awaitable and not result.kind):
            return result
        if _is_slot_of_library(node[CALL_FUNC], scope):
            return result  # `app.post_init(start)`: the library calls what is put there, and there may be nothing yet
        site = scope.site(
            "",
            node[-1],
            callee_text(node[1]),
            "coroutine",
            lambda: self._program.reasons.of_callable(func),
            sure=declared,
        )
        return Coroutine(site, result.evaluate if isinstance(result, Coroutine) else lambda: scope.awaited(result))

    def _library(
        self, func: FunctionValue, function: LibraryFunction, node: Node, values: Arguments, scope: Evaluator
    ) -> Value | None:
        flags, name = function.flags, function.qualname
        if name.startswith("builtins."):
            return self._builtin(func, function, node, values, scope)
        if function.name in TO_COROUTINE and values:
            return self._made_async(values[0][1])
        at, text = node[-1], callee_text(node[1])
        if "o" in flags:  # it may be awaited or not; what is entered is known all the same
            if function.returns.startswith(library.LAZY):
                site = scope.site(
                    function, at, text, "coroutine", lambda: self._program.reasons.of_library(func, function), sure=True
                )
                return Awaitable(None, "lazy", site)
            either = self._library_result(function, func)
            if "m" in flags or either is None:
                return either
            first, *remaining = members_of(either)  # `Insert | Update`: whichever it is, it is to be awaited
            if first is None or not all(map(_is_awaitable_object, (first, *remaining))):
                return None
            return self._awaitable(first, node, scope)

        def reasons() -> tuple[Reason, ...]:
            return self._program.reasons.of_library(func, function)

        if "a" in flags:
            return self._library_coroutine(func, function, node, values, scope)
        result = meant_by_stream(self._plain_result(function, func, values, scope), node, scope.module.path)
        spawner = semantics().spawners.get(name) if isinstance(result, Awaitable) else None
        if spawner is not None and spawner.gives == "task" and spawner.keeper == "callee":
            return Awaitable(_first_result(values, scope), "task")  # it runs by itself, whatever becomes of it here
        if "g" in flags:
            item = result.args[0] if isinstance(result, Builtin) and result.args else None
            return AsyncGenerator(scope.site(function, at, text, "generator", reasons, sure=True), lambda: item)
        if name in SPAWNERS or (
            isinstance(result, Awaitable) and result.kind and function.name in {"create_task", "ensure_future"}
        ):
            known = semantics().spawners.get(name)
            if "TaskGroup" in name or (known is not None and known.keeper != "caller"):
                return Awaitable(_first_result(values, scope), "task")
            if function.name == "gather":
                site = scope.site(function, at, text, "future", reasons, sure=True)
                return Awaitable(_gathered(values, scope), "future", site)
            return Awaitable(
                _first_result(values, scope), "task", scope.site(function, at, text, "task", reasons, sure=False)
            )
        if "w" in flags or ("m" in flags and _is_awaitable_object(result)):
            if isinstance(result, Awaitable) and function.name != "create_future":
                site = scope.site(function, at, text, "future", reasons, sure=True)
                return Awaitable(result.result or self._made_by_future(function, values, scope), result.kind, site)
            if "m" in flags:
                outcome = result
                site = scope.site(function, at, text, "coroutine", reasons, sure=not _guessed(func.receiver))
                return AwaitableContext(site, lambda: scope.entered(outcome, is_async=True))
            return self._awaitable(result, node, scope) if result is not None else Awaitable(None)
        if name in _PASSING and values:
            value = values[-1][1]
            return value if name != "typing.cast" else self._cast(node, scope, value)
        if name in {"functools.partial", "functools.partialmethod"}:
            return _partly(values)
        if result is None and not function.returns and func.receiver is None and _is_all_its_own(name, values):
            return External(f"{name}()")  # nothing of the project went in, so nothing of it comes out
        return result

    def _library_coroutine(
        self, func: FunctionValue, function: LibraryFunction, node: Node, values: Arguments, scope: Evaluator
    ) -> Value | None:
        """The coroutine of a library's coroutine function, unless it is sync in a version that the project allows."""
        top = function.qualname.partition(".")[0]
        if is_plain_here(self._program, top, function.name):
            return None
        sure = not _guessed(func.receiver)
        behind = self._program.majors_behind(top)
        if behind > 0 and top not in _NEVER_PLAIN and not library.is_called_async(function.qualname):
            if not self._program.counts.is_awaited(function.name):
                return None  # in the version that is asked for it may be plain
            sure = False
        is_either = is_perhaps_plain_here(self._program, top, function.name)
        sure = sure and behind < 2 and not is_either

        def reasons() -> tuple[Reason, ...]:
            return self._program.reasons.of_library(func, function)

        site = scope.site(function, node[-1], callee_text(node[1]), "coroutine", reasons, sure=sure)
        if site is not None:
            site.by_name = _guessed(func.receiver)
        path = scope.module.path
        return Coroutine(
            site, lambda: meant_by_stream(self._awaited_library(function, func, values, scope), node, path)
        )

    def _awaitable(self, value: Value, node: Node, scope: Evaluator) -> Value:
        """What a library gives to be awaited; where it is an object of its own, it may be more than an awaitable."""
        if not isinstance(value, Instance) or not _is_awaitable_object(value):
            return value
        return scope.awaitable_object(value, node, None)

    def _made_by_future(self, function: LibraryFunction, values: Arguments, scope: Evaluator) -> Value | None:
        """What a future of the loop gives in the end, by what it was made of."""
        if function.name == "shield":
            return _first_result(values, scope)
        if function.name == "run_in_executor" and len(values) > 1 and isinstance(values[1][1], FunctionValue):
            return self.result(values[1][1])
        return None

    def _cast(self, node: Node, scope: Evaluator, value: Value | None) -> Value | None:
        written, *_ = node[CALL_ARGS]
        is_for_loop = names_async_iterator(written)
        if any(is_lost_by_type(m) and (not is_for_loop or type(m) is AsyncGenerator) for m in members_of(value)):
            return value  # `cast` changes nothing: an awaitable stays one
        if len(node[CALL_ARGS]) == 2:
            return self._program.types.annotated(written, scope.module, scope.function)
        return value

    def _awaited_library(
        self, function: LibraryFunction, func: FunctionValue, values: Arguments, scope: Evaluator
    ) -> Value | None:
        if function.name in {"wait_for", "shield", "to_thread", "wait_for_first", "run_sync"} and values:
            first = values[0][1]
            if isinstance(first, Coroutine):
                return first.evaluate()
            if isinstance(first, Awaitable):
                return first.result
            if isinstance(first, FunctionValue):
                return self.result(first)
            if isinstance(first, Instance) and function.name in {"wait_for", "shield"}:
                return scope.awaited(first)  # `wait_for(websockets.connect(url), 5)`: an object that is awaited
        if function.name == "enter_async_context" and values and function.qualname.startswith("contextlib."):
            return scope.entered(values[0][1], is_async=True)
        return self._library_result(function, func)

    def _plain_result(
        self, function: LibraryFunction, func: FunctionValue, values: Arguments, scope: Evaluator
    ) -> Value | None:
        if function.name == "enter_context" and values and function.qualname.startswith("contextlib."):
            return scope.entered(values[0][1], is_async=False)
        return self._library_result(function, func)

    def _library_result(self, function: LibraryFunction, func: FunctionValue) -> Value | None:
        returns = function.returns or correction(function.qualname).results.get(function.qualname, "")
        if returns in {"typing.Self", "Self"}:
            return (
                func.receiver
                if isinstance(func.receiver, Instance)
                else (Instance(func.receiver.cls) if isinstance(func.receiver, ClassObject) else None)
            )
        if returns.endswith(_OF_ITSELF) and isinstance(func.receiver, Instance | ClassObject):
            instance = Instance(func.receiver.cls)
            item = union([instance, NONE]) if returns.endswith("None]") else instance
            declared = self._program.types.written(returns.partition("[typing.Self")[0])
            if isinstance(declared, Instance):
                return Instance(declared.cls, (item,))
            return Builtin(declared.name, (item,)) if isinstance(declared, Builtin) else declared
        return self._program.types.written(returns)

    def _builtin(
        self, func: FunctionValue, function: LibraryFunction, node: Node, values: Arguments, scope: Evaluator
    ) -> Value | None:
        name, base = function.name, func.receiver
        first = values[0][1] if values else None
        if base is not None:
            if isinstance(base, Builtin) and name in _OF_ASYNC_BUILTINS.get(base.name, ()):
                site = scope.site("", node[-1], callee_text(node[1]), "coroutine", lambda: (), sure=True)
                return Coroutine(site, lambda: base.args[0] if base.args else None)
            return self._method_of_builtin(base, name, values)
        if name in {"list", "set", "tuple", "frozenset", "sorted", "iter", "reversed"}:
            return Builtin(
                "list" if name in {"sorted", "iter", "reversed"} else name, (scope.iterated(first),) if values else ()
            )
        if name == "map" and len(values) > 1:
            return self._mapped(values[0], node, scope)
        if name == "enumerate":
            return Builtin("iterator", (TupleOf((Builtin("int"), scope.iterated(first))),))
        if name == "zip":
            return Builtin("iterator", (TupleOf(tuple(scope.iterated(v) for key, v in values if key in {None, "*"})),))
        if name in {"next", "min", "max"}:
            return scope.iterated(first) if len(values) == 1 or name == "next" else union([v for _, v in values])
        if name == "getattr":
            return self._getattr(node, values, scope)
        if name in {"aiter", "anext"}:
            scope.known(first)
        if name == "anext" and values:
            site = scope.site("", node[-1], "anext", "coroutine", lambda: (), sure=True)
            return Coroutine(site, lambda: scope.iterated_async(first))
        if name == "type" and len(values) == 1 and isinstance(first, Instance):
            return ClassObject(first.cls)
        if name == "dict":
            return Builtin("dict", ())
        return Builtin(function.returns) if function.returns else None

    def _mapped(self, given: tuple[str | None, Value | None], node: Node, scope: Evaluator) -> Value:
        """What `map(load, keys)` goes through. An awaitable is lost there only where it is used as a result."""
        key, func = given
        is_known = isinstance(func, FunctionValue) and isinstance(func.function, Function)
        if key is not None or not (is_known or (isinstance(func, ClassObject) and isinstance(func.cls, Class))):
            return Builtin("iterator", ())
        call = ("call", node[2][0], node[2][1:], (), node[-1])
        item = self.call(func, call, [(None, None) for _ in node[2][1:]], scope)
        if isinstance(item, Coroutine) and item.site is not None:
            item.site.is_quiet = True
        return Builtin("iterator", (item,))

    def _getattr(self, node: Node, values: Arguments, scope: Evaluator) -> Value | None:
        """`getattr(x, "name")`, and `getattr(self, f"handle_{kind}")` where every method that fits has one color."""
        if len(node[2]) < 2:
            return None
        name, base = node[2][1], values[0][1]
        if name[KIND] == "const" and len(name) == 3:
            if len(node[2]) > 2:
                attribute = scope.attribute(base, name[CONST_VALUE], node[-1])
                return None if attribute is None else union([attribute, NONE])
            return scope.attribute(base, name[CONST_VALUE], node[-1])
        parts = self._name_parts(node, scope)
        if parts is None or not isinstance(base, Instance) or not isinstance(base.cls, Class):
            return None
        prefix, suffix = parts
        family = [base.cls, *self._program.classes.children(base.cls)]
        ancestors = {ancestor for cls in family for ancestor in self._program.classes.order(cls)}
        fitting = {
            method
            for ancestor in ancestors
            if isinstance(ancestor, Class)
            for method in ancestor.methods
            if method.startswith(prefix) and method.endswith(suffix) and len(method) > len(prefix) + len(suffix)
        }
        return union([scope.attribute(base, method, node[-1]) for method in sorted(fitting)]) if fitting else None

    def _name_parts(self, node: Node, scope: Evaluator) -> tuple[str, str] | None:
        """What a name that is put together begins and ends with: `f"handle_{kind}"`, `"handle_" + kind`."""
        name = node[2][1]
        if (
            name[KIND] == "binop"
            and name[BINOP_LEFT][:2] == ("const", "str")
            and len(name[BINOP_LEFT]) == 3
            and name[BINOP_LEFT][CONST_VALUE]
        ):
            return name[BINOP_LEFT][CONST_VALUE], ""
        if name[KIND] != "fstr" or not scope.module.own:
            return None
        match = NAME_BY_PARTS.search(self._program.text(scope.module.path).cut(*node[-1]))
        return None if match is None or not (match["prefix"] or match["suffix"]) else (match["prefix"], match["suffix"])

    def _method_of_builtin(self, base: Value, name: str, values: Arguments) -> Value | None:
        if isinstance(base, Table):
            if name in {"get", "pop", "setdefault"}:
                default = values[1][1] if len(values) > 1 else NONE
                return union([*base.values, default]) if base.values else None
            if name == "values":
                return Builtin("list", (union(base.values) if base.values else None,))
            if name == "items":
                return Builtin("list", (TupleOf((Builtin("str"), union(base.values) if base.values else None)),))
            return None
        if isinstance(base, TupleOf):
            return None
        assert isinstance(base, Builtin)
        args = base.args
        if base.name == "str":
            return (
                Builtin("list", (base,))
                if name in {"split", "splitlines", "rsplit"}
                else base
                if name in _TEXT
                else None
            )
        if base.name == "dict":
            value = args[-1] if len(args) > 1 else None
            if name in {"get", "pop", "setdefault"}:
                return None if value is None else union([value, NONE]) if len(values) < 2 else value
            if name == "values":
                return Builtin("list", (value,))
            if name == "keys":
                return Builtin("list", args[:1])
            if name == "items":
                return Builtin("list", (TupleOf((args[0] if args else None, value)),))
            if name == "copy":
                return base
        if base.name in {"list", "set", "frozenset"}:
            if name in {"pop", "popleft"}:
                return args[0] if args else None
            if name in {"copy", "union", "intersection", "difference"}:
                return base
        return None

    def _construct(self, func: ClassObject, node: Node, values: Arguments, scope: Evaluator) -> Value | None:
        cls = func.cls
        module = scope.module
        why = (f"`{callee_text(node[1])}(…)` makes {OF_CLASS}", module.path, node[-1][0])
        if isinstance(cls, LibraryClass):
            if cls.qualified in {"functools.partial", "functools.partialmethod"}:
                return _partly(values)
            if cls.name == "defaultdict" and values and isinstance(values[0][1], ClassObject):
                return Builtin("dict", (None, self._program.types.instance(values[0][1].cls, (), why)))
            pair = correction(cls.qualified).pairs.get(cls.qualified)
            if pair is not None:
                return TupleOf(tuple([Instance(library.library_class(qualified), (), why) for qualified in pair]))
            session = dict(values).get("class_") if cls.name == "sessionmaker" else None
            if isinstance(session, ClassObject):  # `sessionmaker(engine, class_=AsyncSession)` makes that one
                return CallableType(self._program.types.instance(session.cls, (), why))
            made = self._program.types.instance(cls, (), why)
            return self._awaitable(made, node, scope) if cls.name[:1].islower() and made is not None else made
        instance = Instance(cls, (), why)
        if self._program.classes.has(cls, "__await__"):
            return scope.awaitable_object(instance, node, None)
        return instance

    def property(self, bound: FunctionValue) -> Value | None:
        """What reading a property gives."""
        function = bound.function
        if isinstance(function, Function):
            effect = self._program.effects.of(function)
            if effect == "coroutine":
                return Coroutine(None, lambda: self.result(bound))
            if effect != "plain":
                return None
            return self.result(bound)
        if "a" in function.flags:
            return Coroutine(None, lambda: self._library_result(function, bound))
        result = self._library_result(function, bound)
        return Awaitable(None) if "w" in function.flags and result is None else result

    def result(self, func: FunctionValue) -> Value | None:
        """What the function returns in the end: after awaiting, per item for generators, inside for contexts."""
        function = func.function
        if isinstance(function, LibraryFunction):
            return self._library_result(function, func)
        receiver_class = func.receiver.cls if isinstance(func.receiver, Instance | ClassObject) else None
        owner = receiver_class if isinstance(receiver_class, Class) else function.owner
        if function in self._fluent:
            return self._from_annotation(function, owner)
        if isinstance(func.receiver, Instance) and function.facts.returns is not None and function.owner is not None:
            arguments = self._program.classes.arguments(func.receiver, function.owner)
            if arguments:
                return self._of_generic(function, func.receiver, owner, arguments)
        variable = _variable_of_itself(function)
        if variable and isinstance(receiver_class, Class):
            types = self._program.types
            outside, types.arguments = types.arguments, {**types.arguments, variable: Instance(receiver_class)}
            try:
                return self._from_annotation(function, owner)
            finally:
                types.arguments = outside
        if function not in self._results:
            returns = function.facts.returns
            if returns is not None and owner is not None and "Self" in set(words_of(returns)):
                self._fluent.add(function)
                return self._from_annotation(function, owner)
            if function in self._asking:
                return None
            self._asking.add(function)
            try:
                value = self._from_annotation(function, function.owner)
                if isinstance(value, Instance) and gives_a_stand_in(self._program, function, value):
                    value = None
                elif value is None or (type(value) is Awaitable and not value.kind):
                    inferred = self._program.inferred(function)
                    value = inferred if value is None or isinstance(inferred, Coroutine) else value
            finally:
                self._asking.discard(function)
            self._results[function] = value
        value = self._results[function]
        if (
            isinstance(value, Instance)
            and value.cls is function.owner
            and isinstance(func.receiver, Instance)
            and func.receiver.cls is not value.cls
            and function.facts.returns is None
            and self._gives_itself(function)
        ):
            return func.receiver  # `return self` of a base gives an object of the class that was asked
        return value

    def _gives_itself(self, function: Function) -> bool:
        """Whether all that a method returns is the object that it belongs to."""
        if function not in self._giving_itself:
            params = function.facts.params
            returned = [node[VALUE] for node in of_kind(function.body(), "return")]
            own = ("name", params[0][0]) if params else None
            self._giving_itself[function] = bool(returned) and all(node == own for node in returned)
        return self._giving_itself[function]

    def _of_generic(
        self, function: Function, receiver: Instance, owner: Class | None, arguments: dict[str, Value | None]
    ) -> Value | None:
        """What a method of a generic class returns, with its type variables bound to `arguments`."""
        key = (function, receiver.cls)
        if key in self._of_bound and receiver.cls is not function.owner:  # else the object itself binds them
            return self._of_bound[key]
        types = self._program.types
        outside, types.arguments = types.arguments, arguments
        try:
            declared = self._from_annotation(function, owner)
            if declared is None:
                return self._program.inferred(function)
        finally:
            types.arguments = outside
        if receiver.cls is not function.owner:
            self._of_bound[key] = declared
        return declared

    def _from_annotation(self, function: Function, owner: Class | None) -> Value | None:
        returns = function.facts.returns
        if returns is None:
            return None
        place = (function.module.path, function.facts.at[0])
        value = self._program.types.annotated(
            returns, function.module, function.parent, owner, (f"`{function.qualname}` returns {OF_CLASS}", *place)
        )
        if function.is_generator:
            if isinstance(value, Builtin) and value.name in {"iterator", "async iterator", "list"}:
                return value.args[0] if value.args else None
            return None
        return value


def _partly(values: Arguments) -> Value | None:
    """What `partial(f, …)` gives: `f`, as far as its color goes; the places of a class's arguments have moved."""
    first = values[0][1] if values else None
    if isinstance(first, ClassObject) and len(values) > 1:
        return CallableType(Instance(first.cls))
    if isinstance(first, ClassObject):
        return first
    return first if isinstance(first, FunctionValue | Lambda) else None


def _is_all_its_own(name: str, values: Arguments) -> bool:
    """Whether what a library's function gives can only be the library's: nobody gave it an object of another kind."""
    top = name.partition(".")[0]
    return top not in sys.stdlib_module_names and all(isinstance(v, Builtin | Table | Nothing) for _, v in values)


def _lacks_self(function: Function, receiver: Value | None, values: Arguments) -> bool:
    """`State.select(1)` of a method with `self` and one parameter more: a metaclass made something else of it."""
    if receiver is not None or function.owner is None or function.decorated_with("staticmethod", "classmethod"):
        return False
    if any(name in {"*", "**"} for name, _ in values):
        return False
    needed = [p[0] for p in function.facts.params if p[3] in {"", "/"} and p[2] is None]
    return len(values) < len(needed)


def _is_told(value: Value | None) -> bool:
    return value is not None and not isinstance(value, Nothing)


def _asked_for(node: Node, values: Arguments, scope: Evaluator) -> Value | None:
    """An object of the class that a container, a screen or an injector of nobody knows what kind is asked for."""
    callee = node[1]
    if callee[KIND] != "attr" or callee[ATTR_NAME] not in _ASKING or len(values) != 1 or values[0][0] is not None:
        return None
    requested = values[0][1]
    if not isinstance(requested, ClassObject) or not isinstance(requested.cls, Class):
        return None
    why = (
        f"`{callee_text(callee)}` is asked for {OF_CLASS}",
        scope.module.path,
        node[-1][0],
    )
    return Instance(requested.cls, (), why, guess=True)


_ASKING = frozenset({"resolve", "get", "query_one", "get_instance", "get_service", "inject", "provide", "require"})


def _decorates(node: Node, values: Arguments, scope: Evaluator) -> bool:
    """Whether the call applies a decorator, as in `app.get("/")(handler)`: which gives a function back.

    What is given to it may be unknown; then it is the decorator of a library, which was told something first.
    """
    if node[1][KIND] != "call" or len(values) != 1 or values[0][0] is not None:
        return False
    decorated = values[0][1]
    if isinstance(decorated, FunctionValue | Lambda):
        return True
    maker = (
        scope.value(node[1][CALL_FUNC])
        if node[1][CALL_ARGS] and (decorated is None or isinstance(decorated, CallableType | External))
        else None
    )
    return isinstance(maker, FunctionValue) and isinstance(maker.function, LibraryFunction)


def _guessed(receiver: Value | None) -> bool:
    return isinstance(receiver, Instance) and receiver.guess


def _first_result(values: Arguments, scope: Evaluator) -> Value | None:
    return scope.awaited(values[0][1]) if len(values) >= 1 and values[0][0] is None else None


_OF_ASYNC_BUILTINS = {
    "async iterator": frozenset({"__anext__", "asend", "athrow", "aclose"}),
    "async context": frozenset({"__aenter__", "__aexit__"}),
}


def is_lost_by_type(value: Value | None) -> bool:
    """Whether `value` is an awaitable, made here, whatever type somebody says that it has."""
    if isinstance(value, Coroutine | AsyncGenerator | AsyncContext):
        return value.site is not None
    return isinstance(value, Awaitable) and value.site is not None and value.site.awaitable == "future"


def _is_slot_of_library(callee: Node, scope: Evaluator) -> bool:
    """Whether that is data of a library's object, which its user sets and the library calls."""
    if callee[KIND] != "attr":
        return False
    base = scope.value(callee[ATTR_BASE])
    return isinstance(base, Instance) and isinstance(base.cls, LibraryClass)


def _is_async_method(value: Value) -> bool:
    if not isinstance(value, FunctionValue) or value.receiver is None:
        return False
    function = value.function
    return function.is_async if isinstance(function, Function) else "a" in function.flags


def _is_awaitable_object(value: Value | None) -> bool:
    return (
        isinstance(value, Instance)
        and isinstance(value.cls, LibraryClass)
        and ("Awaitable" in value.cls.name or library.member(value.cls.qualified, "__await__") is not None)
    )


def _gathered(values: Arguments, scope: Evaluator) -> Value | None:
    """What awaiting `gather` gives: a list with the result of each."""
    if any(name == "*" for name, _ in values):
        each = [scope.awaited(scope.iterated(v) if name == "*" else v) for name, v in values if name in {"*", None}]
        return Builtin("list", (union(each),))
    return TupleOf(tuple([scope.awaited(value) for name, value in values if name is None]))


def _variable_of_itself(function: Function) -> str:
    """The type variable that a method returns and that stands for its own class: `def make(cls: type[T]) -> T`."""
    returns, params = function.facts.returns, function.facts.params
    if returns is None or returns[KIND] != "name" or function.owner is None or not params or params[0][1] is None:
        return ""
    annotation = params[0][1]
    if annotation[KIND] == "index" and last_name(annotation[INDEX_BASE]) in {"type", "Type"}:
        annotation = annotation[INDEX_KEY]
    if annotation != returns:
        return ""
    bound = function.module.bindings.get(returns[NAME_ID])
    value = bound[-1][1] if bound and type(bound[-1]) is tuple else None
    is_variable = value is not None and value[KIND] == "call" and last_name(value[CALL_FUNC]) == "TypeVar"
    return str(returns[NAME_ID]) if is_variable else ""


_AWAITABLES: dict[str, AwaitableKind] = {"coroutine": "coroutine", "generator": "generator", "context": "context"}
_TEXT = frozenset(
    [
        "strip",
        "lstrip",
        "rstrip",
        "lower",
        "upper",
        "title",
        "replace",
        "format",
        "join",
        "capitalize",
        "removeprefix",
        "removesuffix",
        "zfill",
        "ljust",
        "rjust",
        "center",
        "expandtabs",
        "swapcase",
        "casefold",
        "translate",
    ]
)
