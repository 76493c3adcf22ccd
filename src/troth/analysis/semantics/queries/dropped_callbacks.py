"""Find which parameters of a project's functions are called in vain, so that they want a sync function.

A parameter counts where every use of it is a call whose result is dropped, or a question whether there is one, in the
function itself or in a function inside it; where it is kept, as an attribute of `self` or in a collection there, every
use of that attribute has to be one, and no other file may take the attribute from outside.

By the same rules a parameter that is kept wants an async function where every call of it is awaited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.facts.fields import (
    ANNASSIGN_TARGET,
    ANNASSIGN_VALUE,
    ASSIGN_TARGETS,
    ASSIGN_VALUE,
    AT,
    ATTR_BASE,
    ATTR_NAME,
    BODY,
    CALL_ARGS,
    CALL_FUNC,
    CALL_KEYWORDS,
    COMPARE_LEFT,
    COMPARE_OPS,
    COMPARE_OTHERS,
    FOR_IS_ASYNC,
    FOR_ITER,
    INDEX_BASE,
    ITEMS,
    KIND,
    NAME_ID,
    ORELSE,
    TEST,
    VALUE,
)
from troth.analysis.facts.model import PARAM_NAME, body_of, speaks_of
from troth.analysis.facts.names import last_name
from troth.analysis.facts.nodes import children, of_kind, walk
from troth.analysis.incremental.project_queries import part
from troth.analysis.semantics.evidence.awaited_parameters import AwaitedParameter, asks_for_color
from troth.analysis.semantics.infer.identity_functions import returned
from troth.analysis.semantics.symbols import Class

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, MutableMapping

    from troth.analysis.facts.model import At, FileFacts, FunctionFacts, Node
    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.symbols import Function, Module

__all__ = [
    "DroppedCallback",
    "awaited_listeners",
    "dropped_by_decorator",
    "dropped_callbacks",
    "takers_of_callbacks",
]

_PUTTING = frozenset({"append", "add", "appendleft"})
_PUTTING_CALLS = (".append", ".add", ".appendleft")
_HARMLESS = frozenset({"append", "add", "appendleft", "remove", "discard", "clear", "pop"})
_COPYING = frozenset({"list", "tuple", "set"})
_SUBSCRIPT = ("index",)
_FEWEST_OF_A_FILLING_METHOD = 2  # parameters: an object, and what it keeps under a key of its own
_ASKING = frozenset({"callable", "len", "bool", "repr", "str", "id"})


class DroppedCallback(NamedTuple):
    """A parameter, and the place where what it is given is called in vain."""

    function: Function
    name: str
    path: str
    at: At
    is_kept: bool  # in an attribute, between the two


def takers_of_callbacks(program: Program) -> frozenset[str]:
    """The names of functions and classes that may call what they are given, as far as one file can tell."""
    answers: MutableMapping[str, frozenset[str]] = program.answers_to("takers of callbacks")
    if "" not in answers:
        answers[""] = frozenset().union(*program.said("takers of callbacks").values())
    return answers[""]


@part("takers of callbacks")
def _takers(file: FileFacts) -> frozenset[str]:
    names: set[str] = set()
    storing = {
        (index, value[NAME_ID])
        for c in file.classes
        for _, index, _, value in c.self_attributes
        if value is not None and value[KIND] == "name"
    }
    setters = {index for index, _ in storing}
    with_dict = {
        index
        for index, c in enumerate(file.classes)
        if any(_may_be_dict(value) for _, _, _, value in c.self_attributes)
    }
    for index, facts in enumerate(file.functions):
        # The first parameter of a method is what it is called on: `cls(…)` makes an object of it.
        if len(facts.params) < (2 if facts.owner >= 0 else 1):
            continue
        params = {param[PARAM_NAME] for param in (facts.params[1:] if facts.owner >= 0 else facts.params)}
        takes = not params.isdisjoint(facts.calls) or (index in setters and _is_stored(storing, index, params))
        takes = takes or (facts.owner in with_dict and _fills_in(facts, params))
        if takes or _puts(facts):
            is_init = facts.name == "__init__" and facts.owner >= 0
            names.add(file.classes[facts.owner].name if is_init else facts.name)
    return frozenset(names)


def _is_stored(storing: Collection[tuple[int, str]], index: int, params: Iterable[str]) -> bool:
    return any((index, name) in storing for name in params)


def _puts(facts: FunctionFacts) -> bool:
    for callee in facts.calls:  # noqa: SIM110  asked of every function that has a parameter
        if callee.endswith(_PUTTING_CALLS):
            return True
    return False


def _may_be_dict(value: Node | None) -> bool:
    """Whether an attribute begins as a dict: `{}`, `dict()`, `defaultdict(list)`."""
    if value is None:
        return False
    return bool(
        value[KIND] == "dict" or (value[KIND] == "call" and last_name(value[CALL_FUNC]).lower().endswith("dict"))
    )


def _fills_in(facts: FunctionFacts, params: Collection[str]) -> bool:
    """Whether a method puts what it is given under a key: `self.handlers[name] = handler`."""
    if len(params) < _FEWEST_OF_A_FILLING_METHOD or not speaks_of(facts, _SUBSCRIPT):
        return False
    return any(
        node[ASSIGN_VALUE][KIND] == "name"
        and node[ASSIGN_VALUE][NAME_ID] in params
        and any(target[KIND] == "index" for target in node[ASSIGN_TARGETS])
        for node in of_kind(body_of(facts), "assign")
    )


def dropped_callbacks(program: Program, function: Function) -> dict[str, DroppedCallback]:
    """Those of `function` by their names, worked out once."""
    answers: MutableMapping[Function, dict[str, DroppedCallback]] = program.answers_to("dropped callbacks")
    answer = answers.get(function)
    if answer is None:
        answer = answers[function] = {callback.name: callback for callback in _find(program, function)}
    return answer


def awaited_listeners(program: Program, function: Function) -> dict[str, AwaitedParameter]:
    """The parameters that a method keeps for its class, which awaits what each of them gives and does nothing else."""
    if function.owner is None or not _handled_in(function, is_awaited=True):
        return {}
    answers: MutableMapping[Function, dict[str, AwaitedParameter]] = program.answers_to("awaited listeners")
    answer = answers.get(function)
    if answer is None:
        answer = answers[function] = {
            kept.name: AwaitedParameter(function, kept.name, kept.path, kept.at)
            for kept in _find(program, function, is_awaited=True)
            if kept.is_kept
        }
    return answer


class _Handling(NamedTuple):
    """What a function does with a parameter: calls it in vain at a place, or keeps it as, or in, an attribute."""

    name: str
    dropped: At | None
    attribute: str
    is_collection: bool


def _find(program: Program, function: Function, *, is_awaited: bool = False) -> Iterator[DroppedCallback]:
    for handling in _handled_in(function, is_awaited=is_awaited):
        callback = _callback(program, function, handling, function.owner, is_awaited=is_awaited)
        if callback is not None:
            yield callback


def _callback(
    program: Program, function: Function, handling: _Handling, owner: Class | None, *, is_awaited: bool
) -> DroppedCallback | None:
    """The parameter, if it, or the attribute of `owner` that keeps it, is called in vain and not used otherwise."""
    name, at, attribute, is_collection = handling
    if at is not None:
        return DroppedCallback(function, name, function.module.path, at, is_kept=False)
    if owner is None:
        return None
    at = _used_by_class(program, owner, attribute, is_collection=is_collection, is_awaited=is_awaited)
    return None if at is None else DroppedCallback(function, name, function.module.path, at, is_kept=True)


def _handled_in(function: Function, *, is_awaited: bool) -> tuple[_Handling, ...]:
    return function.module.recalled(
        ("awaited listeners" if is_awaited else "dropped callbacks", function.index),
        lambda: tuple(_handlings(function, is_awaited=is_awaited)),
    )


def _handlings(function: Function, *, is_awaited: bool) -> Iterator[_Handling]:
    """What the function does with those parameters of which nothing else is done; its file alone tells."""
    if function.facts.decorators or asks_for_color(function):
        return
    receiver = function.facts.params[0][0] if function.owner is not None and function.facts.params else ""
    names = [name for name, _, _, kind in function.facts.params if kind not in {"*", "**"} and name != receiver]
    functions = [function, *_inside(function)]
    names = [name for name in names if [f for f in functions if f.speaks_of((name,))]]
    for name in _called_or_kept(functions, names, receiver):
        uses = _Uses(("name", name), receiver, is_awaited=is_awaited)
        for each in functions:
            uses.read(each.body())
        handling = _handling(name, uses)
        if handling is not None:
            yield handling


def _called_or_kept(functions: Collection[Function], names: list[str], receiver: str) -> list[str]:
    """Those of `names` that are called, or given to an attribute of `receiver` or to a method that puts them away."""
    if not names:
        return names
    callees = {callee for f in functions for callee in (*f.facts.calls, *f.facts.awaited)}
    chosen = {name for name in names if name in callees}
    if receiver and len(chosen) < len(names):
        for function in functions:
            for node in walk(function.body()):
                kind = node[KIND]
                if kind == "assign":
                    if node[ASSIGN_VALUE][KIND] == "name":
                        chosen.add(node[ASSIGN_VALUE][NAME_ID])
                elif kind == "call":
                    callee, arguments = node[CALL_FUNC], node[CALL_ARGS]
                    if (
                        callee[KIND] == "attr"
                        and callee[ATTR_NAME] in _PUTTING
                        and len(arguments) == 1
                        and arguments[0][KIND] == "name"
                    ):
                        chosen.add(arguments[0][NAME_ID])
    return [name for name in names if name in chosen]


def _handling(name: str, uses: _Uses) -> _Handling | None:
    if uses.is_open or bool(uses.kept) == bool(uses.dropped):
        return None
    if uses.dropped:
        return _Handling(name, uses.dropped[0], "", is_collection=False)
    if len(uses.kept) != 1:
        return None
    ((attribute, is_collection),) = uses.kept.items()
    return _Handling(name, None, attribute, is_collection)


def dropped_by_decorator(program: Program, decorator: Function, *, is_called: bool) -> DroppedCallback | None:
    """The same of what a decorator of the project is put on, which it may give back: `@bus.on`, `@bus.on("start")`."""
    answers: MutableMapping[tuple[Function, bool], DroppedCallback | None] = program.answers_to("dropped by decorators")
    key = (decorator, is_called)
    if key not in answers:
        answers[key] = _by_decorator(program, decorator, is_called=is_called)
    return answers[key]


def _by_decorator(program: Program, decorator: Function, *, is_called: bool) -> DroppedCallback | None:
    taker = _given_back(decorator) if is_called else decorator
    if taker is None or decorator.facts.decorators or asks_for_color(decorator) or asks_for_color(taker):
        return None
    is_bound = decorator.owner is not None and bool(decorator.facts.params)
    receiver = decorator.facts.params[0][0] if is_bound else ""
    params = [name for name, _, _, kind in taker.facts.params if kind not in {"*", "**"} and name != receiver]
    if len(params) != 1:
        return None
    (name,) = params
    uses = _Uses(("name", name), receiver, may_be_returned=True)
    for function in (taker, *_inside(taker)):
        uses.read(function.body())
    handling = _handling(name, uses)
    if handling is None or handling.dropped is not None:
        return None  # TR120 tells of a wrapper that drops it
    return _callback(program, taker, handling, decorator.owner, is_awaited=False)


def _given_back(function: Function) -> Function | None:
    """The function inside that another one returns, and nothing else."""
    nodes = list(returned(function.body()))
    if len(nodes) != 1 or nodes[0][KIND] != "name":
        return None
    bindings = function.module.inner(function.index).get(nodes[0][NAME_ID], ())
    inner = [binding for binding in bindings if not isinstance(binding, Class)]
    return inner[0] if len(inner) == 1 and not inner[0].is_async and not inner[0].facts.decorators else None


def _inside(function: Function) -> Iterator[Function]:
    for bindings in function.module.inner(function.index).values():
        for binding in bindings:
            if not isinstance(binding, Class):
                yield binding


def _used_by_class(program: Program, cls: Class, attribute: str, *, is_collection: bool, is_awaited: bool) -> At | None:
    """Where the class calls in vain, or awaits, what it keeps; None where anybody may do something else with it."""
    if program.classes.children(cls) or any(
        isinstance(ancestor, Class) and ancestor is not cls for ancestor in program.classes.order(cls)
    ):
        return None
    if any(_reaches_in(program, path, cls, attribute) for path in program.index.files_mentioning({attribute})):
        return None
    kind = f"{'awaited' if is_awaited else 'dropped'} in {'the items of ' if is_collection else ''}{attribute}"
    return cls.module.recalled(
        (kind, cls.index),
        lambda: _used_in_file(cls, attribute, is_collection=is_collection, is_awaited=is_awaited),
    )


def _used_in_file(cls: Class, attribute: str, *, is_collection: bool, is_awaited: bool) -> At | None:
    methods = {index for indexes in cls.methods.values() for index in indexes}
    dropped: list[At] = []
    for index in range(len(cls.module.facts.functions)):
        function = cls.module.function(index)
        around: Function | None = function
        while around is not None and around.owner is None:
            around = around.parent
        is_own = around is not None and around.index in methods
        receiver = around.facts.params[0][PARAM_NAME] if around is not None and around.facts.params else ""
        if is_own and asks_for_color(function):
            return None
        if not function.speaks_of((attribute,)):
            continue
        uses = _Uses(
            ("attr", receiver, attribute),
            receiver if is_own else "",
            is_collection=is_collection,
            is_awaited=is_awaited,
            of_another="" if is_own or around is None or around.decorated_with("staticmethod") else receiver,
        )
        uses.read(function.body())
        if uses.is_open:
            return None
        if is_own:
            dropped += uses.dropped
    return dropped[0] if dropped else None


def _reaches_in(program: Program, path: str, cls: Class, attribute: str) -> bool:
    """Whether another file may take the attribute of such an object: its own classes may have one of that name."""
    if path == cls.module.path:
        return False
    module = program.module(path)
    return module.recalled((f"taken from outside: {attribute}", 0), lambda: _is_taken(module, attribute))


def _is_taken(module: Module, attribute: str) -> bool:
    return any(
        node[ATTR_NAME] == attribute and node[ATTR_BASE] != ("name", "self")
        for index, facts in enumerate(module.facts.functions)
        if speaks_of(facts, (attribute,))
        for node in of_kind(module.function(index).body(), "attr")
    )


class _Uses:
    """What is done with a variable, or with an attribute of `self`, in some statements."""

    def __init__(
        self,
        wanted: tuple[str, ...],
        receiver: str,
        *,
        is_collection: bool = False,
        is_awaited: bool = False,
        may_be_returned: bool = False,
        of_another: str = "",
    ) -> None:
        self.wanted = wanted
        self.of_another = of_another  # the `self` of another class, which has an attribute of that name for itself
        self.tag = "await" if is_awaited else "expr"  # the calls that are looked for stand in such a node
        self.receiver = receiver
        self.is_collection = is_collection
        self.may_be_returned = may_be_returned
        self.is_open = False
        self.dropped: list[At] = []
        self.kept: dict[str, bool] = {}  # attributes of the receiver, and whether it is one of several there

    def read(self, nodes: Iterable[Node]) -> None:
        """Take in some nodes with all that stands in them, until one use spoils it."""
        for node in nodes:
            if self.is_open:
                return
            self._read(node)

    def _read(self, node: Node) -> None:
        kind = node[0]
        if kind == self.tag and node[VALUE][KIND] == "call" and self._called_in_vain(node[VALUE]):
            return
        if kind == "call" and self._handled(node):
            return
        if kind == "return" and self.may_be_returned and node[VALUE] is not None and self._is_it(node[VALUE]):
            return
        if kind == "assign" and self._assigned(node):
            return
        if kind == "annassign" and self.wanted[KIND] == "attr" and self._is_it(node[ANNASSIGN_TARGET]):
            self.read(() if node[ANNASSIGN_VALUE] is None else (node[ANNASSIGN_VALUE],))
            return
        if kind == "compare" and set(node[COMPARE_OPS]) <= {"in", "not in"} and self.is_collection:
            self.read([part for part in (node[COMPARE_LEFT], *node[COMPARE_OTHERS]) if not self._is_content(part)])
            return
        if kind in {"if", "while"} and self._is_it(node[TEST]):
            self.read((*node[BODY], *node[ORELSE]))
            return
        if (kind == "not" or (kind == "compare" and ("const", "None") in node[COMPARE_OTHERS])) and self._is_it(
            node[1]
        ):
            return
        if kind in {"and", "or"} and any(map(self._is_it, node[ITEMS][:-1])):
            self.read([target for target in node[ITEMS] if not self._is_it(target)])
            self.is_open = self.is_open or self._is_it(node[ITEMS][-1])
            return
        if kind == "for" and not node[FOR_IS_ASYNC] and self.is_collection and self._is_content(node[FOR_ITER]):
            self._looped(node)
            return
        if self._is_it(node):
            self.is_open = True
            return
        self.read(children(node))

    def _is_it(self, node: Node) -> bool:
        if self.wanted[KIND] == "name":
            return bool(node == self.wanted)
        if node[KIND] != "attr" or node[ATTR_NAME] != self.wanted[2]:
            return False
        return not self.of_another or bool(node[ATTR_BASE] != ("name", self.of_another))

    def _is_content(self, node: Node) -> bool:
        """`self.handlers`, and what of it is looped over: a copy, one of its lists, its values."""
        if self._is_it(node):
            return True
        if node[KIND] == "index":
            return self._is_content(node[INDEX_BASE])
        if (
            node[KIND] == "call"
            and node[CALL_FUNC][KIND] == "attr"
            and node[CALL_FUNC][ATTR_NAME] in {"copy", "get", "values", "setdefault"}
        ):
            return self._is_content(node[CALL_FUNC][ATTR_BASE])
        return bool(
            node[KIND] == "call"
            and node[CALL_FUNC][KIND] == "name"
            and node[CALL_FUNC][NAME_ID] in _COPYING
            and len(node[CALL_ARGS]) == 1
        ) and (self._is_content(node[2][0]))

    def _called_in_vain(self, call: Node) -> bool:
        callee = call[CALL_FUNC]
        is_it = self._is_it(callee) or (
            self.is_collection and callee[KIND] == "index" and self._is_content(callee[INDEX_BASE])
        )
        if is_it:
            self.dropped.append(call[AT])
            self.read((*call[CALL_ARGS], *[value for _, value in call[CALL_KEYWORDS]]))
        return is_it

    def _handled(self, call: Node) -> bool:
        """`callable(fn)`, `self.handlers.append(fn)`, and what else is done to the collection as a whole."""
        callee, arguments = call[CALL_FUNC], call[CALL_ARGS]
        is_question = callee[KIND] == "name" and callee[NAME_ID] in _ASKING and len(arguments) == 1
        if is_question and (self._is_it(arguments[0]) or (self.is_collection and self._is_content(arguments[0]))):
            return True
        if callee[KIND] != "attr":
            return False
        if self.is_collection and callee[ATTR_NAME] in _HARMLESS and self._is_content(callee[ATTR_BASE]):
            self.read(arguments)
            return True
        attribute = self._own_attribute(callee[ATTR_BASE])
        if (
            callee[ATTR_NAME] in _PUTTING
            and attribute
            and len(arguments) == 1
            and self._is_it(arguments[0])
            and not call[CALL_KEYWORDS]
        ):
            self.kept[attribute] = True
            return True
        return False

    def _assigned(self, node: Node) -> bool:
        """`self.on_click = fn`, `self.handlers[key] = fn`; the attribute itself may be set anew."""
        if self._is_it(node[2]):
            for target in node[1]:
                attribute = self._own_attribute(target)
                if not attribute:
                    self.is_open = True
                else:
                    self.kept[attribute] = target[KIND] == "index"
            return True
        if self.wanted[KIND] == "attr" and all(
            self._is_it(target) or (target[KIND] == "index" and self._is_content(target[INDEX_BASE]))
            for target in node[1]
        ):
            self._read(node[2])
            return True
        return False

    def _own_attribute(self, node: Node) -> str:
        """`self.handlers`, `self.handlers[key]`, `self.handlers.setdefault(key, [])`: the attribute."""
        if node[KIND] == "index":
            return self._own_attribute(node[INDEX_BASE])
        if node[KIND] == "call" and node[CALL_FUNC][KIND] == "attr" and node[CALL_FUNC][ATTR_NAME] == "setdefault":
            return self._own_attribute(node[CALL_FUNC][ATTR_BASE])
        is_own = node[KIND] == "attr" and bool(self.receiver) and node[ATTR_BASE] == ("name", self.receiver)
        return str(node[2]) if is_own else ""

    def _looped(self, node: Node) -> None:
        """`for handler in self.handlers`: what becomes of each is what becomes of the collection."""
        target = node[2]
        if target[KIND] != "name":
            self.is_open = True
            return
        uses = _Uses(target, self.receiver, is_awaited=self.tag == "await")
        uses.read((*node[4], *node[5]))
        self.is_open = self.is_open or uses.is_open or bool(uses.kept)
        self.dropped += uses.dropped
        self.read(of_kind((*node[4], *node[5]), "attr"))
