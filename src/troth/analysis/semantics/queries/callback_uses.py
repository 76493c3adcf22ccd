"""Find who is handed a function instead of calling it, and which color he needs it to have.

plain    calls it and never awaits: `Thread(target=work)`
both     asks for its color first: a function of the project that says `iscoroutinefunction`
awaits   a parameter of a function of the project that is called and awaited: it could take both as well
unknown  a table, an attribute, a library: whoever gets it there may need the color it has
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from troth.analysis.facts.fields import (
    ANNASSIGN_VALUE,
    ASSIGN_TARGETS,
    ATTR_BASE,
    ATTR_NAME,
    AUGASSIGN_TARGET,
    BODY,
    CALL_ARGS,
    CALL_FUNC,
    CALL_KEYWORDS,
    COMP_GENERATORS,
    COMP_PARTS,
    DICT_VALUES,
    FOR_BODY,
    FOR_ITER,
    FOR_ORELSE,
    ITEMS,
    KIND,
    MATCH_CASES,
    MATCH_SUBJECT,
    NAME_ID,
    ORELSE,
    TEST,
    TRY_BODY,
    TRY_FINAL,
    TRY_HANDLERS,
    TRY_ORELSE,
    VALUE,
    WITH_BODY,
    WITH_ITEMS,
)
from troth.analysis.facts.model import body_of, speaks_of
from troth.analysis.facts.nodes import children
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.semantics.evidence.awaited_parameters import asks_for_color, awaited_parameters
from troth.analysis.semantics.evidence.common_method_names import GENERIC
from troth.analysis.semantics.infer.call_graph import names_of
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import ClassObject, FunctionValue, members_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, MutableMapping

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.evidence.awaited_parameters import AwaitedParameter
    from troth.analysis.semantics.infer.call_graph import Call
    from troth.analysis.semantics.program import Program
    from troth.analysis.semantics.symbols import Module
    from troth.analysis.semantics.values import Value

__all__ = ["Handed", "handed"]

Need = Literal["plain", "both", "awaits", "unknown"]


class Handed(NamedTuple):
    """What a taker needs of a function he is handed; `slot` is the parameter that awaits."""

    need: Need
    slot: AwaitedParameter | None = None


class _Mention(NamedTuple):
    """A name that stands where a value goes on to somebody: as the argument `slot` of `call`, or elsewhere."""

    node: Node
    call: Node | None
    slot: str


def handed(program: Program, functions: Collection[Function]) -> dict[Function, list[Handed]]:
    """Where each of `functions` is handed over; those that never are have no entry."""
    by_name: dict[str, list[Function]] = {}
    for function in functions:
        by_name.setdefault(function.name, []).append(function)
    by_function: dict[Function, list[Handed]] = {}
    if not by_name:
        return by_function
    for module in map(program.module, program.index.files_mentioning(by_name)):
        mentioned = frozenset(module.mentioned(by_name))
        for scope, mention in _mentions(module, mentioned) if mentioned else ():
            for function in _meant(program, module, scope, mention, by_name):
                by_function.setdefault(function, []).append(_taken(program, scope, mention, function))
    return by_function


def _mentions(module: Module, wanted: frozenset[str]) -> Iterator[tuple[Function | None, _Mention]]:
    for index, facts in enumerate(module.facts.functions):
        function = module.function(index)
        if speaks_of(facts, wanted):
            inside: list[_Mention] = []
            _in_statements(body_of(facts), wanted, inside)
            for mention in inside:
                yield function, mention
        above: list[_Mention] = []
        for node in facts.decorators:
            _passed(node[CALL_FUNC] if node[KIND] == "call" else node, wanted, None, "", above)
        for _, _, default, _ in facts.params:
            if default is not None:
                _passed(default, wanted, None, "", above)
        for mention in above:
            yield function.parent, mention
    for index, cls in enumerate(module.facts.classes):
        owner = module.cls(index)
        for _, value in cls.values:
            held: list[_Mention] = []
            _passed(value, wanted, None, "", held)
            for mention in held:
                if mention.node[KIND] == "name" and mention.node[NAME_ID] in owner.methods:
                    node = ("attr", ("classref", index), mention.node[NAME_ID], ())
                    yield None, mention._replace(node=node)
                else:
                    yield None, mention


def _in_statements(body: Any, wanted: frozenset[str], out: list[_Mention]) -> None:
    for statement in body:
        tag = statement[0]
        if tag in {"assign", "augassign"}:
            _passed(statement[-1], wanted, None, "", out)
            targets = statement[ASSIGN_TARGETS] if tag == "assign" else (statement[AUGASSIGN_TARGET],)
            for target in targets:  # what is stored to is no mention; what it is stored under may be
                _looked_at(target, wanted, out)
        elif tag in {"annassign", "return"}:
            value = statement[ANNASSIGN_VALUE if tag == "annassign" else VALUE]
            if value is not None:
                _passed(value, wanted, None, "", out)
        elif tag == "expr":
            _looked_at(statement[VALUE], wanted, out)
        elif tag in {"if", "while"}:
            _looked_at(statement[TEST], wanted, out)
            _in_statements(statement[BODY], wanted, out)
            _in_statements(statement[ORELSE], wanted, out)
        elif tag == "for":
            _passed(statement[FOR_ITER], wanted, None, "", out)
            _in_statements(statement[FOR_BODY], wanted, out)
            _in_statements(statement[FOR_ORELSE], wanted, out)
        elif tag == "with":
            for part in (part for item in statement[WITH_ITEMS] for part in item if part is not None):
                _looked_at(part, wanted, out)
            _in_statements(statement[WITH_BODY], wanted, out)
        elif tag == "try":
            _in_statements(statement[TRY_BODY], wanted, out)
            for handler in statement[TRY_HANDLERS]:
                _in_statements(handler[2], wanted, out)
            _in_statements(statement[TRY_ORELSE], wanted, out)
            _in_statements(statement[TRY_FINAL], wanted, out)
        elif tag == "match":
            _looked_at(statement[MATCH_SUBJECT], wanted, out)
            for _, _, _, guard, inner in statement[MATCH_CASES]:
                if guard is not None:
                    _looked_at(guard, wanted, out)
                _in_statements(inner, wanted, out)
        elif tag == "class":
            _in_statements(statement[2], wanted, out)
        elif tag != "del":
            for part in children(statement):
                _looked_at(part, wanted, out)


def _passed(node: Node, wanted: frozenset[str], call: Node | None, slot: str, out: list[_Mention]) -> None:
    """The mentions in an expression whose value goes on to somebody."""
    tag = node[0]
    if tag == "name":
        if node[NAME_ID] in wanted:
            out.append(_Mention(node, call, slot))
    elif tag == "attr":
        if node[ATTR_NAME] in wanted:
            out.append(_Mention(node, call, slot))
        _looked_at(node[ATTR_BASE], wanted, out)
    elif tag in {"list", "tuple", "set"}:
        for part in node[ITEMS]:
            _passed(part, wanted, None, "", out)
    elif tag == "dict":
        for part in node[DICT_VALUES]:
            _passed(part, wanted, None, "", out)
    elif tag == "ifexp":
        _looked_at(node[TEST], wanted, out)
        _passed(node[BODY], wanted, call, slot, out)
        _passed(node[ORELSE], wanted, call, slot, out)
    elif tag in {"and", "or"}:
        for part in node[ITEMS]:
            _passed(part, wanted, call, slot, out)
    elif tag in {"lambda", "walrus"}:
        _passed(node[2], wanted, None, "", out)
    elif tag == "comp":
        for part in node[COMP_PARTS]:
            _passed(part, wanted, None, "", out)
        for _, target, iterated, conditions in node[COMP_GENERATORS]:
            for part in (target, iterated, *conditions):
                _looked_at(part, wanted, out)
    elif tag in {"star", "yield", "yieldfrom"}:
        if node[VALUE] is not None:
            _passed(node[VALUE], wanted, None, "", out)
    else:
        _looked_at(node, wanted, out)


def _looked_at(node: Node, wanted: frozenset[str], out: list[_Mention]) -> None:
    """The mentions in an expression that is tested, compared, called or looked into: itself it goes to nobody."""
    tag = node[0]
    if tag == "call":
        callee = node[CALL_FUNC]
        _looked_at(callee[ATTR_BASE] if callee[KIND] == "attr" else callee, wanted, out)
        for position, part in enumerate(node[CALL_ARGS]):
            _passed(part, wanted, node, str(position), out)
        for keyword, part in node[CALL_KEYWORDS]:
            _passed(part, wanted, node, keyword or "", out)
    elif tag == "attr":
        _looked_at(node[ATTR_BASE], wanted, out)
    elif tag in {"list", "tuple", "set", "dict", "lambda", "walrus", "comp", "yield", "yieldfrom", "star", "ifexp"}:
        _passed(node, wanted, None, "", out)
    else:
        for part in children(node):
            _looked_at(part, wanted, out)


def _meant(
    program: Program,
    module: Module,
    scope: Function | None,
    mention: _Mention,
    by_name: dict[str, list[Function]],
) -> list[Function]:
    """Which of the functions the mention may stand for."""
    node = mention.node
    name = node[NAME_ID] if node[KIND] == "name" else node[2]
    candidates = by_name[name]
    if node[KIND] == "attr" and node[ATTR_BASE][KIND] == "classref":
        owner = module.cls(node[ATTR_BASE][1])
        return [candidate for candidate in candidates if candidate.owner is owner]
    value = _value(program, module, scope, mention)
    functions = [member.function for member in members_of(value) if isinstance(member, FunctionValue)]
    if functions and len(functions) == len(members_of(value)):
        return [
            candidate
            for candidate in candidates
            if any(_is_of_family(program, candidate, value) for value in functions)
        ]
    if value is not None and not functions:
        return []
    if node[KIND] == "name":
        return [
            candidate for candidate in candidates if candidate.owner is None and _is_visible(candidate, module, scope)
        ]
    if name in GENERIC or program.index.is_data(name):
        return []  # on an object of unknown kind it hardly means ours, nor what classes keep data under
    return [candidate for candidate in candidates if candidate.owner is not None]


def _value(program: Program, module: Module, scope: Function | None, mention: _Mention) -> Value | None:
    value = program.static(module, scope).value(mention.node)
    if value is None and mention.call is not None and scope is not None:
        call = _call_at(program, scope, mention.call)
        for slot, node, argument in _arguments(call) if call is not None else ():
            if slot == mention.slot and node == mention.node:
                return argument
    return value


def _is_visible(function: Function, module: Module, scope: Function | None) -> bool:
    """Whether a bare name in a scope can be that function: at module level here, or inside a function around."""
    if function.module is not module:
        return False
    if function.parent is None:
        return True
    while scope is not None:
        if scope is function.parent:
            return True
        scope = scope.parent
    return False


def _is_of_family(program: Program, one: Function, other: object) -> bool:
    if one is other:
        return True
    if not isinstance(other, Function) or one.owner is None or other.owner is None or one.name != other.name:
        return False
    return other.owner in program.classes.order(one.owner) or one.owner in program.classes.order(other.owner)


def _taken(program: Program, scope: Function | None, mention: _Mention, function: Function) -> Handed:
    if mention.call is None or scope is None:
        return Handed("unknown")
    call = _call_at(program, scope, mention.call)
    if call is None:
        return Handed("unknown")
    for name in names_of(call.callee):
        slot = semantics().slots.get(name)
        if slot is not None:
            return Handed("plain" if slot.wants.get(mention.slot) == "plain" else "unknown")
    taker = _own_taker(program, call)
    if taker is None:
        return Handed("both" if _all_ask(program, call) else "unknown")
    target, shift = taker
    places = target.facts.positional
    position = int(mention.slot) + shift if mention.slot.isdigit() else -1
    parameter = places[position] if 0 <= position < len(places) else mention.slot
    awaited = awaited_parameters(program, target).get(parameter)
    if awaited is not None:
        is_idle = not _is_double(function) and _never_waits(program, target, parameter)
        return Handed("awaits", awaited) if is_idle else Handed("unknown")
    return Handed("both" if asks_for_color(target) else "unknown")


def _is_double(function: Function) -> bool:
    """Whether the function stands in a test for another one, whose color it has to have."""
    parent = function.parent
    return parent is not None and (parent.name.startswith("test") or _is_double(parent))


def _never_waits(program: Program, target: Function, parameter: str) -> bool:
    """Whether all that the parameter is given in the project are functions that never wait."""
    answers: MutableMapping[tuple[Function, str], bool] = program.answers_to("idle slots")
    key = (target, parameter)
    if key not in answers:
        name = target.owner.name if target.name == "__init__" and target.owner is not None else target.name
        answers[key] = all(
            isinstance(value, FunctionValue)
            and isinstance(value.function, Function)
            and value.function.is_async
            and not value.function.waits
            for caller in program.calling.functions_naming({name})
            for call in program.calling.of(caller)
            for value in _given_to(program, call, target, parameter)
        )
    return answers[key]


def _given_to(program: Program, call: Call, target: Function, parameter: str) -> Iterator[Value | None]:
    taker = _own_taker(program, call)
    if taker is None or taker[0] is not target:
        return
    places = target.facts.positional
    for slot, node, value in _arguments(call):
        position = int(slot) + taker[1] if slot.isdigit() else -1
        is_meant = (places[position] if 0 <= position < len(places) else slot) == parameter
        if is_meant and node != ("const", "None") and not _stands_in_test(call.caller):
            yield value


def _stands_in_test(function: Function) -> bool:
    return function.name.startswith("test") or _is_double(function)


def _own_taker(program: Program, call: Call) -> tuple[Function, int] | None:
    """The function of the project that takes the arguments, and how many of its parameters are taken already."""
    members = members_of(call.callee)
    value = members[0] if len(members) == 1 else None
    if isinstance(value, ClassObject) and isinstance(value.cls, Class):
        for ancestor in program.classes.order(value.cls):
            if isinstance(ancestor, Class) and "__init__" in ancestor.methods:
                return ancestor.module.function(ancestor.methods["__init__"][-1]), 1
        return None
    if isinstance(value, FunctionValue) and isinstance(value.function, Function):
        target = value.function
        is_bound = value.receiver is not None and target.owner is not None
        return target, 1 if is_bound and not target.decorated_with("staticmethod") else 0
    return None


def _all_ask(program: Program, call: Call) -> bool:
    """Whether every function of the project that the callee can be, by its name, asks for the color it is given."""
    if call.callee is not None:
        return False
    name = call.text.rpartition(".")[2]
    namesakes = program.calling.functions_named(name)
    return bool(namesakes) and all(map(asks_for_color, namesakes))


def _call_at(program: Program, scope: Function, node: Node) -> Call | None:
    return next((call for call in program.calling.of(scope) if call.at == node[-1]), None)


def _arguments(call: Call) -> Iterator[tuple[str, Node, Value | None]]:
    values = iter(call.given)
    for position, node in enumerate(call.node[2]):
        yield str(position), node, next(values, (None, None))[1]
    for keyword, node in call.node[3]:
        yield keyword or "", node, next(values, (None, None))[1]
