"""Find what `await`, `async for` and `async with` are given and have no use for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.facts.fields import (
    ANNASSIGN_TARGET,
    ANNASSIGN_VALUE,
    ASSIGN_TARGETS,
    ASSIGN_VALUE,
    ATTR_NAME,
    CALL_FUNC,
    KIND,
    NAME_ID,
    VALUE,
)
from troth.analysis.facts.model import ASYNC, PARAM_ANNOTATION
from troth.analysis.facts.names import dotted, last_name
from troth.analysis.facts.nodes import of_kind, words_of
from troth.analysis.findings import Reason
from troth.analysis.findings.phrases import with_article
from troth.analysis.incremental.project_queries import part
from troth.analysis.semantics.infer.awaitables_in_value import awaitables
from troth.analysis.semantics.infer.evaluator import BUILTIN_FUNCTIONS
from troth.analysis.semantics.infer.never_awaitable import is_harmless, is_no_awaitable
from troth.analysis.semantics.infer.reasons import reasons_of_class
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.color_checks import ASKS_FOR_FUNCTION
from troth.analysis.semantics.resolve.library import LibraryClass, LibraryFunction
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import (
    AsyncContext,
    AwaitableContext,
    Builtin,
    CallableType,
    ClassObject,
    External,
    FunctionValue,
    Instance,
    Nothing,
    Table,
    TupleOf,
    Value,
    members_of,
)
from troth.analysis.semantics.walk.awaitable_states import LOCKS_OF_THREADS

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    from troth.analysis.facts.model import FileFacts, Node
    from troth.analysis.semantics.incident import Operand
    from troth.analysis.semantics.program import Program

__all__ = ["Refusal", "refused"]

_ASKING = ASKS_FOR_FUNCTION | {"isawaitable", "iscoroutine", "isasyncgen", "maybe_await"}
_BUILTIN_TYPES = frozenset(
    {
        "str",
        "bytes",
        "bytearray",
        "int",
        "float",
        "complex",
        "bool",
        "dict",
        "list",
        "set",
        "frozenset",
        "tuple",
        "range",
    }
)
_DUNDERS = {"await": "__await__", "async for": "__aiter__", "async with": "__aenter__"}
_LOOSE = frozenset({"Iterable", "Iterator", "Generator", "Collection", "Sequence", "Mapping", "Any"})
_TAKEN = {"await": "await", "for": "async for", "with": "async with"}
_RESULTS = (Builtin, TupleOf, Table, Instance, Nothing)
_MAKING = ("create_task", "ensure_future", "gather", "create_future", "Future", "run_in_executor", "shield")
_MAKING_TASKS = tuple(f"{name}()" for name in _MAKING)
_LOCKS = frozenset({"Lock", "Semaphore", "BoundedSemaphore", "Condition"})


class Refusal(NamedTuple):
    """One operand that cannot be used so: what it is, in words, why that is known, and whether it is certain."""

    function: Function
    operand: Operand
    what: str
    reasons: tuple[Reason, ...]
    sure: bool
    holds_awaitables: bool = False  # a collection whose items can be awaited
    is_context: bool = False  # made to be entered
    is_function: bool = False  # not called


def refused(program: Program, *hows: str) -> Iterator[Refusal]:
    """The operands of these kinds in the asked files that must be refused."""
    for path in program.asked:
        module = program.module(path)
        for index, facts in enumerate(module.facts.functions):
            if not (facts.taken or facts.awaited) or (index and not facts.flags & ASYNC):
                continue
            function = module.function(index)
            if _is_worth_a_look(program, function, hows):
                yield from _in_function(program, function, hows)


def _in_function(program: Program, function: Function, hows: tuple[str, ...]) -> Iterator[Refusal]:
    if any(callee.rpartition(".")[2] in _ASKING for callee in function.facts.calls):
        return  # it looks at what it has got before it waits
    for operand in program.summary(function).operands:
        if operand.how in hows and not _may_be_unawaited_fixture(program, function, operand):
            refusal = _judged(program, function, operand)
            if refusal is not None and not _is_known_to_author(program, refusal):
                yield refusal


def _may_be_unawaited_fixture(program: Program, function: Function, operand: Operand) -> bool:
    """Whether it is an async fixture that pytest hands over as it is, because no plugin has taken it on."""
    path = function.module.path
    return (
        operand.node[KIND] == "name"
        and operand.node[NAME_ID] in function.params
        and not any(not folder or path.startswith(f"{folder}/") for folder in program.self_running)
        and program.fixtures.may_be_coroutine(function, operand.node[NAME_ID])
    )


def _is_known_to_author(program: Program, refusal: Refusal) -> bool:
    """Whether the line tells a type checker, which says the same, to be silent."""
    line = refusal.operand.at[0]
    return "ignore" in program.text(refusal.function.module.path).cut(line, 0, line + 1, 0).partition("#")[2]


def _is_worth_a_look(program: Program, function: Function, hows: tuple[str, ...]) -> bool:
    """Whether a walk may show such an operand, as far as names and a glance tell."""
    if program.has_walked(function):
        return True
    facts = function.facts
    for name in facts.taken:
        how, _, callee_name = name.partition(" ")
        if callee_name and _TAKEN[how] in hows and _may_be_refused(program, function, callee_name):
            return True
    for callee in facts.awaited:
        how, _, callee_name = callee.rpartition(" ")
        if (_TAKEN[how] if how else "await") in hows and _may_refuse(program, function, callee_name):
            return True
    return False


def _may_be_refused(program: Program, function: Function, what: str) -> bool:
    """Whether what is taken, as facts write it, may be something that no async operation takes."""
    if what[-1] == ")":
        return _may_refuse(program, function, what[:-2])
    if what[0] == ".":
        return what[1:] in _plain_attributes(program)
    param = function.params.get(what)
    if param is not None:
        return param[PARAM_ANNOTATION] is not None
    return not function.origins.get(what, "").endswith(_MAKING_TASKS)


def _plain_attributes(program: Program) -> frozenset[str]:
    answers: MutableMapping[str, frozenset[str]] = program.answers_to("plain attributes")
    if "" not in answers:
        answers[""] = frozenset().union(*program.said("plain attributes").values())
    return answers[""]


@part("plain attributes")
def _hold_plain_things(file: FileFacts) -> frozenset[str]:
    """The attributes that may hold something else than an awaitable: by a value, an annotation or a sync property."""
    names = {f.name for f in file.functions if f.owner >= 0 and not f.flags & ASYNC}
    for c in file.classes:
        names.update(name for name, _, annotation, value in c.self_attributes if annotation or _is_plain_node(value))
        names.update(name for name, _ in c.annotations)
        names.update(name for name, value in c.values if _is_plain_node(value))
    return frozenset(names)


def _is_plain_node(value: Node | None) -> bool:
    """Whether a value is written out, or made by a call that may make anything but a task."""
    if value is None or value[KIND] == "const":
        return value is not None and value[1] != "None"
    if value[KIND] == "call":
        return not last_name(value[CALL_FUNC]).endswith(_MAKING)
    return value[KIND] in {"list", "dict", "set", "tuple", "comp", "fstr", "name"}


def _may_refuse(program: Program, function: Function, callee: str) -> bool:
    """Whether what a callee gives may be something that no async operation takes."""
    root, _, tail = callee.partition(".")
    if not tail and root in BUILTIN_FUNCTIONS:
        return True
    alternatives = program.glance.alternatives(function, callee) if root not in {"?", "[]", "()", ""} else None
    return alternatives is not None and all(_makes_plain(program, alternative) for alternative in alternatives)


def _makes_plain(program: Program, value: Value | None) -> bool:
    if isinstance(value, ClassObject):
        return True
    if isinstance(value, FunctionValue):
        called = value.function
        if isinstance(called, LibraryFunction):
            return called.flags in {"", "m"}
        return program.effects.of(called) in {"plain", "context", "syncontext", "iterator"}
    return False


def _judged(program: Program, function: Function, operand: Operand) -> Refusal | None:
    """Why all that the operand may be is refused; None where something is left open."""
    if operand.node[KIND] == "attr" and (_is_anew_below(program, operand) or _is_put_back(function, operand.node)):
        return None
    if any(_may_give_more(program, operand, giver) for giver in _givers(program, function, operand.node)):
        return None
    members = members_of(operand.value)
    is_declared = operand.node[KIND] == "name" and _is_only_declared(function, operand.node[NAME_ID])
    refusals: list[Refusal] = []
    for member in members:
        refusal = _one(program, function, operand, member)
        if refusal is None:
            return None
        refusals.append(refusal)
    first = refusals[0]
    if is_declared:  # the `await` says one thing of it, the annotation another: whoever calls knows
        refusals = [refusal._replace(sure=False) for refusal in refusals]
        first = refusals[0]
    if len(refusals) == 1:
        return first
    phrase = " or ".join(dict.fromkeys(refusal.what for refusal in refusals))
    reasons = tuple(dict.fromkeys(reason for refusal in refusals for reason in refusal.reasons))
    return first._replace(what=phrase, reasons=reasons, sure=all(refusal.sure for refusal in refusals))


def _is_only_declared(function: Function, name: str) -> bool:
    """Whether all that is known of a variable is that a parameter is annotated so."""
    param = function.params.get(name)
    return param is not None and param[PARAM_ANNOTATION] is not None and name not in function.origins


def _is_put_back(function: Function, node: Node) -> bool:
    """`self.inner: Response = inner`, later `self.inner = await self.inner`: the annotation is of what comes out."""
    place = dotted(node)
    pairs = [(target, value) for target, value in _assigned(function) if place and value is not None]
    results = {dotted(target) for target, value in pairs if value[KIND] == "await" and dotted(value[VALUE]) == place}
    return place in results or any(dotted(target) == place and dotted(value) in results for target, value in pairs)


def _assigned(function: Function) -> Iterator[tuple[Node, Node | None]]:
    """What is set to what in the function."""
    for statement in of_kind(function.body(), "assign"):
        for target in statement[ASSIGN_TARGETS]:
            yield target, statement[ASSIGN_VALUE]
    for statement in of_kind(function.body(), "annassign"):
        yield statement[ANNASSIGN_TARGET], statement[ANNASSIGN_VALUE]


def _is_anew_below(program: Program, operand: Operand) -> bool:
    """Whether a class below that of the object has an attribute of that name of its own."""
    name = operand.node[2]
    return any(
        name in child.methods or name in child.values or name in child.annotations
        for member in members_of(operand.base)
        if isinstance(member, Instance) and isinstance(member.cls, Class)
        for child in program.classes.children(member.cls)
    )


def _givers(program: Program, function: Function, node: Node) -> list[Value | None]:
    """The callees that give the operand, on the spot or by way of the variable that holds it."""
    nodes = [node]
    if node[KIND] == "name":
        nodes = [
            statement[ASSIGN_VALUE]
            for statement in of_kind(function.body(), "assign")
            if node in statement[ASSIGN_TARGETS]
        ]
    calls = [node[VALUE] if node[KIND] == "await" else node for node in nodes]
    places = {call[4] for call in calls if call[KIND] == "call"}
    return [call.callee for call in program.calling.of(function) if call.at in places] if places else []


def _may_give_more(program: Program, operand: Operand, giver: Value | None) -> bool:
    """Whether a function may give something else than it says.

    It may be that of an async twin, or it is annotated with what its body hands on from somebody unknown. Of a callable
    nothing but the annotation is known, which often names what an `await` of the call gives.
    """
    if isinstance(giver, CallableType):
        return operand.how == "await"
    called = giver.function if isinstance(giver, FunctionValue) else None
    if not isinstance(called, Function):
        return isinstance(giver, FunctionValue) and operand.how == "await" and operand.node[KIND] == "call"
    if operand.how == "await" and operand.node[KIND] == "call" and program.effects.of(called) != "context":
        return True  # what a sync function gives is judged with the function
    if called.owner is not None and not called.is_async and program.counts.colors(called.name)[0]:
        return True
    if called.facts.returns is None or called.is_abstract:
        return False
    return not all(type(member) in _RESULTS for member in members_of(program.inferred(called)))


def _one(program: Program, function: Function, operand: Operand, value: Value | None) -> Refusal | None:
    how, node = operand.how, operand.node
    if isinstance(value, AsyncContext):
        if how != "await" or isinstance(value, AwaitableContext) or value.site is None:
            return None
        site = value.site
        sure = operand.sure and site.sure and isinstance(site.target, Function)
        return Refusal(function, operand, "an async context manager", site.reasons, sure, is_context=True)
    if isinstance(value, Builtin | TupleOf | Table):
        name = value.name if isinstance(value, Builtin) else "tuple" if isinstance(value, TupleOf) else "dict"
        if not _refuses(how, name) or (node[KIND] == "call" and how == "await"):
            return None  # what a call gives is judged with its callee
        if how == "async for" and _is_loosely_declared(program, function, operand):
            return None
        answer = {"context": "a sync context manager", "iterator": "a sync iterator"}.get(name, with_article(name))
        holds = how == "await" and any(True for _ in awaitables(value))
        return Refusal(function, operand, answer, _because(program, function, operand, answer), operand.sure, holds)
    if isinstance(value, Instance):
        return _object(program, function, operand, value)
    if isinstance(value, External) and value.path in LOCKS_OF_THREADS:
        maker_path = value.path.removesuffix("()")
        reason = Reason(f"`{maker_path}` makes a lock of threads, which has no `{_DUNDERS[how]}`")
        return Refusal(function, operand, f"a `{maker_path}`", (reason,), operand.sure)
    if isinstance(value, FunctionValue) and how == "await" and node[KIND] != "call":
        return _uncalled(program, function, operand, value)
    return None


def _is_loosely_declared(program: Program, function: Function, operand: Operand) -> bool:
    """Whether an annotation says no more than that something is looped over: many mean an async loop by it."""
    node = operand.node
    declared: list[Node | None] = []
    if node[KIND] == "name":
        param = function.params.get(node[NAME_ID])
        declared.append(None if param is None else param[PARAM_ANNOTATION])
    elif node[KIND] == "attr":
        owners = [member.cls for member in members_of(operand.base) if isinstance(member, Instance)]
        for cls in (
            ancestor for owner in owners if isinstance(owner, Class) for ancestor in program.classes.order(owner)
        ):
            if isinstance(cls, Class):
                declared.append(cls.annotations.get(node[ATTR_NAME]))
                declared += _declared_by_methods(cls, node[ATTR_NAME])
    return any(annotation is not None and not _LOOSE.isdisjoint(words_of(annotation)) for annotation in declared)


def _declared_by_methods(cls: Class, attribute: str) -> Iterator[Node | None]:
    """The annotations of an attribute of `self`, and of the parameters that it is set to."""
    for name, index, annotation, value in cls.facts.self_attributes:
        if name == attribute:
            yield annotation
            if value is not None and value[KIND] == "name":
                param = cls.module.function(index).params.get(value[NAME_ID])
                yield None if param is None else param[PARAM_ANNOTATION]


def _refuses(how: str, name: str) -> bool:
    if name in _BUILTIN_TYPES:
        return True
    return (name == "context" and how == "async with") or (name == "iterator" and how == "async for")


def _object(program: Program, function: Function, operand: Operand, value: Instance) -> Refusal | None:
    how, cls = operand.how, value.cls
    phrase = with_article(cls.name)
    if isinstance(cls, LibraryClass):
        if value.guess or value.why is None or not _library_refuses(program, cls, how):
            return None  # what a library gives may be of a class below the one that it names
        because = Reason(f"`{cls.qualified}` has no `{_DUNDERS[how]}`")
        is_lock = how == "await" and cls.qualified.startswith("asyncio.") and cls.name in _LOCKS
        sure = operand.sure and cls.qualified.startswith(("asyncio.", "threading."))
        return Refusal(function, operand, phrase, (*reasons_of_class(value), because), sure, is_context=is_lock)
    if value.guess or cls.facts.decorators or not _lacks(program, cls, how):
        return None
    because = Reason(f"`{cls.name}` has no `{_DUNDERS[how]}`", *cls.place)
    is_context = how == "await" and program.classes.has(cls, "__aenter__") is True
    return Refusal(function, operand, phrase, (*reasons_of_class(value), because), operand.sure, is_context=is_context)


def _library_refuses(program: Program, cls: LibraryClass, how: str) -> bool:
    """Whether the tables know the class, and that it has no use for that."""
    top = cls.qualified.partition(".")[0]
    if program.majors_behind(top) > 0 or library.member(cls.qualified, _DUNDERS[how]) is not None:
        return False
    if how == "await":
        return library.find(cls.qualified) is not None and _is_known_whole(cls)
    plain = "__enter__" if how == "async with" else "__iter__"
    return library.member(cls.qualified, plain) is not None or (how == "async with" and library.is_plain(cls.qualified))


def _is_known_whole(cls: LibraryClass) -> bool:
    return library.has_members(cls.qualified) or cls.qualified.startswith("asyncio.")


def _lacks(program: Program, cls: Class, how: str) -> bool:
    """Whether no object of the class, or of one below it, can be used so; what a metaclass makes is left open."""
    family = (cls, *program.classes.children(cls))
    if any("__new__" in ancestor.methods for ancestor in program.classes.order(cls) if isinstance(ancestor, Class)):
        return False
    if how == "await":
        return is_no_awaitable(Instance(cls), program)
    return all(program.classes.has(relative, _DUNDERS[how]) is False for relative in family)


def _uncalled(program: Program, function: Function, operand: Operand, value: FunctionValue) -> Refusal | None:
    called = value.function
    if not isinstance(called, Function) or program.effects.of(called) != "plain":
        return None
    if any(not is_harmless(program, called, decorator) for decorator in called.facts.decorators):
        return None
    reason = Reason(f"`{called.qualname}` is a plain `def`", *called.place)
    return Refusal(function, operand, "a function that is not called", (reason,), operand.sure, is_function=True)


def _because(program: Program, function: Function, operand: Operand, what: str) -> tuple[Reason, ...]:
    """Where the function or the property is defined that gives the value, or what the value lacks."""
    node = operand.node[VALUE] if operand.node[KIND] == "await" else operand.node
    scope = program.static(function.module, function)
    if node[KIND] == "call":
        called = scope.value(node[CALL_FUNC])
        target = called.function if isinstance(called, FunctionValue) else None
        if isinstance(target, Function):
            return (Reason(f"`{target.qualname}` gives {what}", *target.place),)
    if node[KIND] == "attr":
        cls = operand.base.cls if isinstance(operand.base, Instance) else None
        holder = program.classes.holder(cls, node[ATTR_NAME]) if isinstance(cls, Class) else None
        if holder is not None:
            place = holder.module.function(holder.methods[node[ATTR_NAME]][-1]).place
            return (Reason(f"`{holder.name}.{node[ATTR_NAME]}` is a property that gives {what}", *place),)
    return (Reason(f"{what} has no `{_DUNDERS[operand.how]}`", function.module.path, operand.at[0]),)
