"""Definition name: every function of that name in the project is `async def`, and a class has it.

The name must not be one that objects of libraries commonly have, and the receiver must be one that may be meant.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import ATTR_BASE, ATTR_NAME, CALL_ARGS, CALL_FUNC, FOR_TARGET, KIND, NAME_ID
from troth.analysis.facts.model import PARAM_DEFAULT
from troth.analysis.facts.names import callee_text, last_name
from troth.analysis.facts.nodes import walk
from troth.analysis.findings import Reason
from troth.analysis.project.test_files import is_test
from troth.analysis.semantics.evidence.call_site_evidence import is_queued
from troth.analysis.semantics.evidence.common_method_names import GENERIC
from troth.analysis.semantics.evidence.question import EvidenceCase, Testimony
from troth.analysis.semantics.evidence.receiver_names import MANY_DEFINITIONS, is_called_like_owner
from troth.analysis.semantics.evidence.words import threshold
from troth.analysis.semantics.infer.identity_functions import returned
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.symbols import Class

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.evidence.question import Question
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Function

_TWO_WORDS = threshold("call_sites", "two_words")

__all__ = ["CASES", "is_in_family", "is_plain_elsewhere", "testify"]

CASES = [
    EvidenceCase(
        "the only definition",
        "class OrderStore:\n    async def persist_order(self): ...\n\n\n"
        "async def main(store):\n    store.persist_order()  # lost\n",
    ),
    EvidenceCase(
        "asked for by name",
        "class Hook:\n    async def close_connections(self): ...\n\n\n"
        "async def main(hook):\n"
        '    close_connections = getattr(hook, "close_connections", None)\n'
        "    if close_connections is not None:\n        close_connections()  # lost\n",
    ),
]


def testify(question: Question) -> Testimony | None:
    """By the definitions of that name, where the receiver may have one of them."""
    callee, function = question.callee, question.function
    if callee[KIND] == "name":
        # `close_all = getattr(hook, "close_all", None)`: a variable that is called as it is there.
        if not function.is_async or function.origins.get(callee[NAME_ID]) != "getattr()":
            return None
        reason = _by_name(question.program, callee[NAME_ID], question.path)
    else:
        if question.origin or question.is_entered_plainly or is_queued(question.text):
            return None
        reason = _by_name(question.program, callee[ATTR_NAME], question.path)
        if reason is None or not _may_be_meant(question.program, callee, function):
            return None
    return None if reason is None else Testimony(reason)


def is_plain_elsewhere(program: Inference, name: str, asking: str) -> bool:
    """Whether a library that the asking file imports has a sync method of that name."""
    return any(name in library.plain_methods(top) for top in program.module(asking).packages)


def is_in_family(program: Inference, name: str, owner: Class) -> bool:
    """Whether a class, or a subclass of it, brings the method with it."""
    classes = program.classes
    family = [owner, *classes.children(owner)]
    return any(
        isinstance(ancestor, Class) and name in ancestor.methods
        for child in family
        for ancestor in classes.order(child)
    )


def _by_name(program: Inference, name: str, asking: str) -> Reason | None:
    counts = program.counts
    if (
        name in GENERIC
        or name.startswith("__")
        or name in counts.generators
        or is_plain_elsewhere(program, name, asking)
    ):
        return None
    count = counts.asynchronous[name]
    telling = counts.methods[name] if is_test(asking) else counts.methods[name] - counts.rehearsed[name]
    if not telling or counts.is_plain_somewhere(name):
        return None
    if _may_override_a_library(program, name) or _is_wrapped(program, name):
        return None
    path, line = counts.places[name]
    which = "the only definition" if count == 1 else f"all {count} definitions"
    verb = "is" if count == 1 else "are"
    return Reason(f"{which} of `{name}` in this project {verb} `async def`", path, line)


def _is_wrapped(program: Inference, name: str) -> bool:
    """Whether a decorator makes something else of an `async def` of that name: a worker, a command, a tool."""
    answers: MutableMapping[str, bool] = program.answers_to("wrapped definitions")
    answer = answers.get(name)
    if answer is None:
        answer = answers[name] = any(
            f.is_async and f.facts.decorators and program.effects.of(f) != "coroutine"
            for f in program.index.functions_named(name)
        )
    return answer


def _may_override_a_library(program: Inference, name: str) -> bool:
    """Whether the only method of that name is in a `GatewayClient(AsyncClient)` of an unknown library.

    The library may well have a sync client with the same method.
    """
    if program.counts.methods[name] != 1:
        return False
    answers: MutableMapping[str, bool] = program.answers_to("overrides of unknown libraries")
    answer = answers.get(name)
    if answer is None:
        module = program.module(program.counts.places[name][0])
        methods = program.index.functions_named(name)
        owner = next((f.owner for f in methods if f.module is module and f.owner is not None), None)
        answer = False
        if owner is not None and None in program.classes.order(owner):
            facts = owner.facts
            kind = _last_word(facts.name)
            answer = any(_last_word(callee_text(b).rpartition(".")[2]) == kind for b in facts.bases if kind)
        answers[name] = answer
    return answer


def _adds_to_a_library(program: Inference, name: str) -> bool:
    """Whether the only method of that name is in a class that derives from one of a library."""
    if program.counts.methods[name] != 1:
        return False
    answers: MutableMapping[str, bool] = program.answers_to("additions to libraries")
    answer = answers.get(name)
    if answer is None:
        module = program.module(program.counts.places[name][0])
        owner = next((f.owner for f in module.facts.functions if f.name == name and f.owner >= 0), -1)
        order = program.classes.order(module.cls(owner)) if owner >= 0 else ()
        answer = answers[name] = any(
            isinstance(ancestor, LibraryClass) and ancestor.name != "object" for ancestor in order
        )
    return answer


def _may_be_meant(program: Inference, callee: Node, function: Function) -> bool:
    """Whether the receiver may be an object of a class of the project that has the method.

    `self` has it only through a subclass. Where the receiver's name does not fit, a sync function, or a name that
    many classes have, says too little: such a name is often that of a library's method.
    """
    counts = program.counts
    base, name, owner = callee[ATTR_BASE], callee[ATTR_NAME], function.class_around
    if base in {("name", "self"), ("name", "cls")}:
        if owner is None or any(attribute == name for attribute, *_ in owner.facts.self_attributes):
            return False  # what is set on the object is no method of a class beside it
        return is_in_family(program, name, owner) or _is_mixed_in(program, owner, function)
    if name.endswith("_async") and not name.startswith("_"):
        return function.is_async  # whoever has one that is called so, and is no library's, has an async one
    if name == function.name:  # a wrapper that hands the call on, mostly to an object of a library
        around = "" if owner is None else owner.name.lower()
        is_meant = owner is None and is_called_like_owner(program, last_name(base), name, around)
        return function.is_async and (is_meant or _is_one_of_several(base, function))
    around = "" if owner is None else owner.name.lower()
    if base[KIND] == "name" and _is_injected_from_elsewhere(program, function, base[NAME_ID]):
        return False
    if counts.owners.get(name, set()) == {around} and (
        base[KIND] == "attr"
        or (base[KIND] == "name" and _is_made_elsewhere(program, function.origins.get(base[NAME_ID], "")))
    ):
        return False
    if name.startswith("_"):
        return False  # what is private is another's own
    if is_called_like_owner(program, last_name(base), name, around):
        return True
    if _adds_to_a_library(program, name):
        return False  # other objects of the library may have it too
    # A sync function may well have the sync namesake of a library: there one definition says too little.
    is_telling = function.is_async or ("_" in name and len(name) >= _TWO_WORDS and counts.methods[name] > 1)
    return is_telling and counts.methods[name] - counts.rehearsed[name] < MANY_DEFINITIONS


def _is_made_elsewhere(program: Inference, origin: str) -> bool:
    """Whether a variable holds what a method gives that nobody in the project defines: `wire.get_proxy()`."""
    return origin.endswith("()") and "." in origin and not any(program.counts.colors(origin[:-2].rpartition(".")[2]))


def _is_injected_from_elsewhere(program: Inference, function: Function, name: str) -> bool:
    """Whether a parameter is `Depends(get_profiler)`, which gives what a function makes that the project lacks."""
    param = function.params.get(name)
    default = None if param is None else param[PARAM_DEFAULT]
    if (
        default is None
        or default[KIND] != "call"
        or last_name(default[CALL_FUNC]) != "Depends"
        or not default[CALL_ARGS]
    ):
        return False
    providers = program.index.functions_named(last_name(default[CALL_ARGS][0]))
    given = [node for provider in providers for node in returned(provider.body())]
    return bool(given) and all(
        node[KIND] == "call" and not any(program.counts.colors(last_name(node[CALL_FUNC]))) for node in given
    )


def _is_mixed_in(program: Inference, owner: Class, function: Function) -> bool:
    """Whether a class can only work as a part of others: all its bases are known, and nobody is seen to derive.

    What it lacks then comes from the classes beside it, `class App(*commands)`.
    """
    classes = program.classes
    return (
        function.is_async
        and all(
            isinstance(ancestor, Class) or (ancestor is not None and ancestor.name == "object")
            for ancestor in classes.order(owner)
        )
        and not any(classes.children(owner))
        and classes.has(owner, "__getattr__") is False
    )


def _is_one_of_several(receiver: Node, function: Function) -> bool:
    """Whether a loop goes through the receivers: what hands a call on to many of a kind is of that kind itself."""
    return receiver[KIND] == "name" and any(
        node[KIND] == "for" and node[FOR_TARGET] == receiver for node in walk(function.body())
    )


def _last_word(name: str) -> str:
    """`Client` of `GatewayKernelClient`."""
    words = re.findall(r"[A-Z][a-z0-9]+", name)
    return words[-1] if len(words) > 1 else ""
