"""Find which parameters of a project's functions are called in vain, so that they want a plain function.

A parameter counts where every use of it is a call whose result is dropped, or a question whether there is one, in the
function itself or in a function inside it; where it is kept, as an attribute of `self` or in a collection there, every
use of that attribute has to be one, and no other file may mention the attribute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.facts.nodes import children, of_kind
from troth.analysis.incremental.project_queries import part
from troth.analysis.semantics.evidence.awaited_parameters import asks_for_color
from troth.analysis.semantics.symbols import Class

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, MutableMapping

    from troth.analysis.facts.model import At, FileFacts, Node
    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.symbols import Function

__all__ = ["DroppedCallback", "dropped_callbacks", "takers_of_callbacks"]

_PUTTING = frozenset({"append", "add", "appendleft"})
_HARMLESS = frozenset({"append", "add", "appendleft", "remove", "discard", "clear", "pop"})
_COPYING = frozenset({"list", "tuple", "set"})
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
        (index, value[1])
        for c in file.classes
        for _, index, _, value in c.self_attributes
        if value is not None and value[0] == "name"
    }
    for index, facts in enumerate(file.functions):
        if not facts.params:
            continue
        params = {param[0] for param in facts.params}
        takes = not params.isdisjoint(facts.calls) or any((index, name) in storing for name in params)
        if takes or any(callee.rpartition(".")[2] in _PUTTING and "." in callee for callee in facts.calls):
            is_init = facts.name == "__init__" and facts.owner >= 0
            names.add(file.classes[facts.owner].name if is_init else facts.name)
    return frozenset(names)


def dropped_callbacks(program: Program, function: Function) -> dict[str, DroppedCallback]:
    """Those of `function` by their names, worked out once."""
    answers: MutableMapping[Function, dict[str, DroppedCallback]] = program.answers_to("dropped callbacks")
    answer = answers.get(function)
    if answer is None:
        answer = answers[function] = {callback.name: callback for callback in _find(program, function)}
    return answer


def _find(program: Program, function: Function) -> Iterator[DroppedCallback]:
    if function.facts.decorators or asks_for_color(function):
        return
    bodies = [function.body(), *_inside(function)]
    receiver = function.facts.params[0][0] if function.owner is not None and function.facts.params else ""
    for name, _, _, kind in function.facts.params:
        if kind in {"*", "**"} or name == receiver:
            continue
        uses = _Uses(("name", name), receiver)
        for body in bodies:
            uses.read(body)
        if uses.is_open or bool(uses.kept) == bool(uses.dropped):
            continue
        if uses.dropped:
            yield DroppedCallback(function, name, function.module.path, uses.dropped[0], is_kept=False)
        elif function.owner is not None and len(uses.kept) == 1:
            ((attribute, is_collection),) = uses.kept.items()
            at = _dropped_by_class(program, function.owner, attribute, is_collection=is_collection)
            if at is not None:
                yield DroppedCallback(function, name, function.module.path, at, is_kept=True)


def _inside(function: Function) -> Iterator[tuple[Node, ...]]:
    for bindings in function.module.inner(function.index).values():
        for binding in bindings:
            if not isinstance(binding, Class):
                yield binding.body()


def _dropped_by_class(program: Program, cls: Class, attribute: str, *, is_collection: bool) -> At | None:
    """Where the class calls in vain what it keeps there; None where anybody may do something else with it."""
    if program.classes.children(cls) or any(
        isinstance(ancestor, Class) and ancestor is not cls for ancestor in program.classes.order(cls)
    ):
        return None
    if any(path != cls.module.path for path in program.index.files_mentioning({attribute})):
        return None
    methods = {index for indexes in cls.methods.values() for index in indexes}
    dropped: list[At] = []
    for index in range(len(cls.module.facts.functions)):
        function = cls.module.function(index)
        around: Function | None = function
        while around is not None and around.owner is None:
            around = around.parent
        is_own = around is not None and around.index in methods
        receiver = around.facts.params[0][0] if is_own and around is not None and around.facts.params else ""
        if is_own and asks_for_color(function):
            return None
        uses = _Uses(("attr", receiver, attribute), receiver, is_collection=is_collection)
        uses.read(function.body())
        if uses.is_open:
            return None
        if is_own:
            dropped += uses.dropped
    return dropped[0] if dropped else None


class _Uses:
    """What is done with a variable, or with an attribute of `self`, in some statements."""

    def __init__(self, wanted: tuple[str, ...], receiver: str, *, is_collection: bool = False) -> None:
        self.wanted = wanted
        self.receiver = receiver
        self.is_collection = is_collection
        self.is_open = False
        self.dropped: list[At] = []
        self.kept: dict[str, bool] = {}  # attributes of the receiver, and whether it is one of several there

    def read(self, nodes: Iterable[Node]) -> None:
        """Take in some nodes with all that stands in them."""
        for node in nodes:
            self._read(node)

    def _read(self, node: Node) -> None:
        kind = node[0]
        if kind == "expr" and node[1][0] == "call" and self._called_in_vain(node[1]):
            return
        if kind == "call" and self._handled(node):
            return
        if kind == "assign" and self._assigned(node):
            return
        if kind in {"if", "while"} and self._is_it(node[1]):
            self.read((*node[2], *node[3]))
            return
        if (kind == "not" or (kind == "compare" and ("const", "None") in node[3])) and self._is_it(node[1]):
            return
        if kind in {"and", "or"} and any(map(self._is_it, node[1][:-1])):
            self.read([target for target in node[1] if not self._is_it(target)])
            self.is_open = self.is_open or self._is_it(node[1][-1])
            return
        if kind == "for" and not node[1] and self.is_collection and self._is_content(node[3]):
            self._looped(node)
            return
        if self._is_it(node):
            self.is_open = True
            return
        self.read(children(node))

    def _is_it(self, node: Node) -> bool:
        if self.wanted[0] == "name":
            return bool(node == self.wanted)
        return bool(node[0] == "attr" and node[2] == self.wanted[2])

    def _is_content(self, node: Node) -> bool:
        """`self.handlers`, and what of it is looped over: a copy, one of its lists, its values."""
        if self._is_it(node):
            return True
        if node[0] == "index":
            return self._is_content(node[1])
        if node[0] == "call" and node[1][0] == "attr" and node[1][2] in {"copy", "get", "values", "setdefault"}:
            return self._is_content(node[1][1])
        return bool(node[0] == "call" and node[1][0] == "name" and node[1][1] in _COPYING and len(node[2]) == 1) and (
            self._is_content(node[2][0])
        )

    def _called_in_vain(self, call: Node) -> bool:
        callee = call[1]
        is_it = self._is_it(callee) or (self.is_collection and callee[0] == "index" and self._is_content(callee[1]))
        if is_it:
            self.dropped.append(call[-1])
            self.read((*call[2], *[value for _, value in call[3]]))
        return is_it

    def _handled(self, call: Node) -> bool:
        """`callable(fn)`, `self.handlers.append(fn)`, and what else is done to the collection as a whole."""
        callee, arguments = call[1], call[2]
        if callee[0] == "name" and callee[1] in _ASKING and len(arguments) == 1 and self._is_it(arguments[0]):
            return True
        if callee[0] != "attr":
            return False
        if self.is_collection and callee[2] in _HARMLESS and self._is_content(callee[1]):
            self.read(arguments)
            return True
        attribute = self._own_attribute(callee[1])
        if callee[2] in _PUTTING and attribute and len(arguments) == 1 and self._is_it(arguments[0]) and not call[3]:
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
                    self.kept[attribute] = target[0] == "index"
            return True
        if self.wanted[0] == "attr" and all(
            self._is_it(target) or (target[0] == "index" and self._is_content(target[1])) for target in node[1]
        ):
            self._read(node[2])
            return True
        return False

    def _own_attribute(self, node: Node) -> str:
        """`self.handlers`, `self.handlers[key]`, `self.handlers.setdefault(key, [])`: the attribute."""
        if node[0] == "index":
            return self._own_attribute(node[1])
        if node[0] == "call" and node[1][0] == "attr" and node[1][2] == "setdefault":
            return self._own_attribute(node[1][1])
        is_own = node[0] == "attr" and bool(self.receiver) and node[1] == ("name", self.receiver)
        return str(node[2]) if is_own else ""

    def _looped(self, node: Node) -> None:
        """`for handler in self.handlers`: what becomes of each is what becomes of the collection."""
        target = node[2]
        if target[0] != "name":
            self.is_open = True
            return
        uses = _Uses(target, self.receiver)
        uses.read((*node[4], *node[5]))
        self.is_open = self.is_open or uses.is_open or bool(uses.kept)
        self.dropped += uses.dropped
        self.read(of_kind((*node[4], *node[5]), "attr"))
