"""What calling a function of the project gives, decorators included."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from troth.analysis.facts.fields import (
    ASSIGN_TARGETS,
    ASSIGN_VALUE,
    ATTR_BASE,
    ATTR_NAME,
    BODY,
    CALL_ARGS,
    CALL_FUNC,
    INDEX_KEY,
    ITEMS,
    KIND,
    NAME_ID,
    ORELSE,
    TRY_BODY,
    TRY_ORELSE,
    VALUE,
    WITH_BODY,
)
from troth.analysis.facts.names import dotted, last_name
from troth.analysis.facts.nodes import children, of_kind, words_of
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.semantics.infer.annotations import names_async_iterator
from troth.analysis.semantics.resolve.color_checks import asks_for_function
from troth.analysis.semantics.resolve.library import LibraryFunction
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import (
    Builtin,
    CallableType,
    ClassObject,
    External,
    FunctionValue,
    Instance,
    members_of,
)

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Module
    from troth.analysis.semantics.values import Value

__all__ = ["TO_COROUTINE", "Effect", "Effects"]

Effect = Literal["plain", "coroutine", "generator", "context", "iterator", "syncontext", "unknown"]

_CONTEXTS = frozenset({"asynccontextmanager"})
TO_COROUTINE = frozenset({"sync_to_async", "database_sync_to_async", "run_in_executor", "to_thread"})
_DEEPEST = 40  # decorators that hand on to one another; of those behind it nothing is known
_DEEPEST_RETURN = 2  # functions inside one another, and variables, through which a wrapper is given back
_FIRST_OF = frozenset({"update_wrapper", "partial"})  # these take the wrapper first, others last
_TO_PLAIN = frozenset({"async_to_sync", "syncify", "make_sync", "sync_compatible"})

# Decorators of libraries, at hand or not, that by their name make a sync function of an async one.
_SAYS_PLAIN = re.compile(
    r"^(?:(?:run|to|as|make|force|ensure)_sync|sync|syncify|run_async|run_in_loop|asyncio_run"
    r"|(?:\w+_)?blocking|synchroni[sz]ed?(?:_\w+)?)$"
)

# Decorators of libraries that make an object of a function, which is called by somebody else or runs it by itself.
_TO_OBJECT = frozenset(
    {"command", "group", "hybrid_command", "slash_command", "user_command", "message_command", "curry"}
)
_STARTS = re.compile(r"(?i)task|spawn|backgr|forget|sched|worker|job|thread|defer|queue|launch")
_RUNNING = frozenset(
    ["create_task", "ensure_future", "run_coroutine_threadsafe", "run_until_complete", "run", "submit", "start_soon"]
)
_KEEPING = frozenset({"pytest", "typing", "typing_extensions", "abc"})  # their decorators leave a function as it is
_ANY_FUNCTION = frozenset({"Callable", "Any", "FunctionType", "abc", "collections", "object", "t", "types", "typing"})
"""The words of annotations that fit each function: `Callable[..., Any]` says nothing of what comes back."""
_WRAPPED = {"generator": "generator", "coroutine": "async", "plain": "plain"}


class Effects:
    """What a call gives, per function; every answer is kept."""

    def __init__(self, program: Inference) -> None:
        self._program = program
        self._known: MutableMapping[Function, Effect] = program.answers()
        self._reading = 0  # decorators that are looked into, one behind another
        self._wrappers: MutableMapping[Function, str] = program.answers()
        self._properties: MutableMapping[Function, bool] = program.answers()
        self._doubtful: MutableMapping[Function, bool] = program.answers()
        self._decorators: MutableMapping[tuple[Module, str], Value | None] = program.answers()

    def of(self, function: Function) -> Effect:
        """What calling `function` gives."""
        answer = self._known.get(function)
        if answer is None:
            self._known[function] = "unknown"  # while it is being found out: a decorator that decorates itself
            answer = "unknown" if self._is_of_interface(function) else self._decorated(function, _written(function))
            self._known[function] = answer
        return answer

    def _is_of_interface(self, function: Function) -> bool:
        """Whether a method belongs to an interface of zope: whoever provides it has the color he likes."""
        if not function.is_async or function.owner is None:
            return False
        lineage = (ancestor for ancestor in self._program.classes.order(function.owner) if isinstance(ancestor, Class))
        return any(self._is_zope_interface(ancestor, base) for ancestor in lineage for base in ancestor.facts.bases)

    def _is_zope_interface(self, cls: Class, base: Node) -> bool:
        """Whether a base is `zope.interface.Interface`: classes of many projects are merely called so."""
        if last_name(base) != "Interface":
            return False
        value = self._program.static(cls.module).value(base)
        return isinstance(value, External) and value.path.startswith("zope.")

    def _decorated(self, function: Function, effect: Effect) -> Effect:
        for decorator in reversed(function.facts.decorators):
            effect = self._through(function, decorator, effect)
        return effect

    def dropped_by(self, function: Function) -> Function | None:
        """The decorator of the project that throws the coroutine of `function` away, if one does."""
        inside: list[Node] = []
        for decorator in reversed(function.facts.decorators):
            value = self.decorator(function, decorator)
            if (
                isinstance(value, FunctionValue)
                and isinstance(value.function, Function)
                and self.wrapper(value.function) == "dropped"
            ):
                effect = _written(function)
                for inner in inside:
                    effect = self._through(function, inner, effect)
                if effect == "coroutine":
                    return value.function
            inside.append(decorator)
        return None

    def decorator(self, function: Function, decorator: Node) -> Value | None:
        """What stands above `function` with an `@`, or what is called there; one name means one thing in a file."""
        node = decorator[CALL_FUNC] if decorator[KIND] == "call" else decorator
        if function.owner is not None and node[KIND] == "name" and node[NAME_ID] in function.owner.methods:
            return FunctionValue(
                function.module.function(function.owner.methods[node[NAME_ID]][0])
            )  # beside it in the class
        text = dotted(node) if function.parent is None else ""
        if not text:
            return self._program.static(function.module, function.parent).value(node)
        key = (function.module, text)
        if key not in self._decorators:
            self._decorators[key] = self._program.static(function.module).value(node)
        return self._decorators[key]

    def _through(self, function: Function, decorator: Node, effect: Effect) -> Effect:
        called = decorator[KIND] == "call"
        node = decorator[1] if called else decorator
        name = node[NAME_ID] if node[KIND] == "name" else node[ATTR_NAME] if node[KIND] == "attr" else ""
        if name in _CONTEXTS and effect == "generator":
            return "context"
        if name == "contextmanager" and effect == "iterator":
            return "syncontext"
        if name in _TO_PLAIN:
            return "unknown" if name == "sync_compatible" else "plain"
        if effect == "plain" and name in TO_COROUTINE:
            return "coroutine"
        if name == "coroutine" and effect in {"plain", "iterator"}:
            return "coroutine" if self._is_of_python(function, node) else "unknown"
        value = self.decorator(function, decorator)
        if isinstance(value, FunctionValue) and isinstance(value.function, Function):
            if value.function.module.path.endswith(".pyi"):
                return effect  # as those of libraries are that nobody knows
            return self._through_own(value.function, effect)
        if name in _TO_OBJECT or (effect == "coroutine" and _SAYS_PLAIN.search(name)):
            return "unknown"
        if isinstance(value, FunctionValue) and effect in {"plain", "coroutine"}:
            assert isinstance(value.function, LibraryFunction)
            return self._through_library(value.function, effect)
        if isinstance(value, ClassObject) and isinstance(value.cls, Class):
            return self._through_object(value.cls, effect) if called else self._through_class(value.cls, effect)
        if isinstance(value, Instance) and isinstance(value.cls, Class):
            return self._through_object(value.cls, effect)
        return effect

    def is_property(self, function: Function) -> bool:
        """Whether a decorator of the project makes a property of a method: an object whose `__get__` calls it."""
        if function.is_async or function.owner is None or len(function.facts.decorators) != 1:
            return False
        answer = self._properties.get(function)
        if answer is None:
            self._properties[function] = False  # while it is being found out
            made = self._made_by(self.decorator(function, function.facts.decorators[0]))
            answer = self._properties[function] = made is not None and self._calls_for_its_owner(made)
        return answer

    def _made_by(self, decorator: Value | None) -> Class | None:
        """The class of the object that a decorator puts in the place of a function."""
        if isinstance(decorator, ClassObject):
            return decorator.cls if isinstance(decorator.cls, Class) else None
        maker = decorator.function if isinstance(decorator, FunctionValue) else None
        if not isinstance(maker, Function):
            return None
        for inner in _within(maker):
            for node in _returned(inner.body()):
                if node[KIND] == "call":
                    made = self._program.static(inner.module, inner).value(node[CALL_FUNC])
                    if isinstance(made, ClassObject) and isinstance(made.cls, Class):
                        return made.cls
        return None

    def _calls_for_its_owner(self, cls: Class) -> bool:
        """Whether the `__get__` of a class calls what it holds with the object that is asked: `self.function(obj)`."""
        if "__get__" not in cls.methods:
            return False
        getter = cls.module.function(cls.methods["__get__"][-1])
        params = getter.facts.params
        if len(params) < 2 or getter.is_async:
            return False
        own, asked = ("name", params[0][0]), ("name", params[1][0])
        return any(
            node[CALL_FUNC][KIND] == "attr" and node[CALL_FUNC][ATTR_BASE] == own and asked in node[CALL_ARGS]
            for node in of_kind(getter.body(), "call")
        )

    def _through_object(self, cls: Class, effect: Effect) -> Effect:
        """An object of the project decorates, `@Job(…)`: what its `__call__` makes of a function it is given."""
        taking = self._call_of(cls)
        return "unknown" if taking is None else self._through_own(taking, effect)

    def _call_of(self, cls: Class) -> Function | None:
        """The `__call__` of a class or of an ancestor of the project."""
        for ancestor in self._program.classes.order(cls):
            if not isinstance(ancestor, Class):
                return None
            if "__call__" in ancestor.methods:
                return ancestor.module.function(ancestor.methods["__call__"][-1])
        return None

    def _through_library(self, decorator: LibraryFunction, effect: Effect) -> Effect:
        """What a decorator of a library makes of a function: what is known of it, else what its signature says."""
        known = semantics().decorators.get(decorator.qualname)
        if known in {"makes_sync", "makes_async"}:
            return "plain" if known == "makes_sync" else "coroutine"
        if known not in {"keeps", "async_cache"} and effect == "coroutine" and "Callable[" in decorator.returns:
            members = members_of(self._program.types.written(decorator.returns))
            if any(isinstance(m, CallableType) and isinstance(m.result, Instance | Builtin) for m in members):
                return "unknown"  # `textual.work` gives a function that gives a `Worker`
        return effect

    def is_doubtful(self, function: Function) -> bool:
        """Whether a decorator of a library of which nothing is known may have made something else of the function."""
        if not function.facts.decorators:
            return False
        answer = self._doubtful.get(function)
        if answer is None:
            values = (self.decorator(function, decorator) for decorator in function.facts.decorators)
            answer = self._doubtful[function] = any(
                isinstance(value, External)
                and value.path not in semantics().decorators
                and value.path.partition(".")[0] not in _KEEPING
                for value in values
            )
        return answer

    def may_start_it(self, function: Function) -> bool:
        """Whether a decorator is called like one after which a call starts the work: `@task`, `@background`."""
        nodes = [d[CALL_FUNC] if d[KIND] == "call" else d for d in function.facts.decorators]
        return any(_STARTS.search(last_name(node)) for node in nodes)

    def may_run_it(self, function: Function) -> bool:
        """Whether a decorator of the project starts what it wraps, or runs it to its end, wherever it is called."""
        for node in function.facts.decorators:
            value = self.decorator(function, node)
            wrapper = value.function if isinstance(value, FunctionValue) else None
            if isinstance(wrapper, Function) and any(
                callee.rpartition(".")[2] in _RUNNING for f in _within(wrapper) for callee in f.facts.calls
            ):
                return True
        return False

    def _is_of_python(self, function: Function, node: Node) -> bool:
        """Whether `coroutine` is that of `types` or, once, of `asyncio`; tornado's starts the work at once."""
        value = self._program.static(function.module, function.parent).value(node)
        if isinstance(value, FunctionValue) and isinstance(value.function, LibraryFunction):
            return value.function.qualname == "types.coroutine"
        return isinstance(value, External) and value.path == "asyncio.coroutine"

    def _through_class(self, cls: Class, effect: Effect) -> Effect:
        """An object of the class takes the function's place: calling it is calling `__call__`."""
        if "__call__" not in cls.methods:
            return "unknown"
        inner = cls.module.function(cls.methods["__call__"][-1])
        if inner.is_async:
            return "coroutine"
        return "unknown" if effect == "coroutine" else effect

    def _through_own(self, decorator: Function, effect: Effect) -> Effect:
        verdict = self.wrapper(decorator)
        if effect == "generator" and _says_awaitable(decorator.facts.returns):
            return "unknown"  # what is awaited is no generator any more
        if verdict == "same" or (verdict == "chosen" and effect == "coroutine"):
            return effect
        if verdict == "async":
            return effect if effect in {"generator", "context"} else "coroutine"
        if verdict == "generator":
            return "generator"
        if verdict in {"plain", "dropped"}:
            return "plain" if effect in {"coroutine", "plain"} else "unknown"
        # Its body is at hand and cannot be followed: only the signature may still say what it makes of the function.
        return effect if _promises_the_same(decorator) else "unknown"

    def wrapper(self, decorator: Function) -> str:
        """What a decorator of the project makes of what it is given, by its body.

        "same" (gives it back, or a wrapper that returns its result), "async" (an async wrapper), "chosen" (an async one
        for what is async, for others cannot tell), "generator", "plain" (runs it), "dropped" (calls it and throws the
        awaitable away), "" (cannot tell: an object, or a wrapper that hands the function to somebody else).
        """
        answer = self._wrappers.get(decorator)
        if answer is None:
            self._wrappers[decorator] = ""
            self._reading += 1
            try:
                answer = "" if self._reading > _DEEPEST else self._read_wrapper(decorator, 0)
            finally:
                self._reading -= 1
            self._wrappers[decorator] = answer
        return answer

    def _read_wrapper(self, decorator: Function, depth: int) -> str:
        if decorator.is_async or depth > _DEEPEST_RETURN:
            return ""
        return self._verdict(decorator, _returned(decorator.body()), depth)

    def _verdict(self, decorator: Function, nodes: list[Node], depth: int) -> str:
        """What becomes of the function, where the decorator gives back one of these."""
        verdicts = {self._read_returned(node, decorator, depth) for node in nodes}
        if len(verdicts) == 1:
            return verdicts.pop()
        if "" not in verdicts and ("async" in verdicts or "same" in verdicts):
            return "same"  # it chooses by the color of what it is given
        if "async" in verdicts and any(map(asks_for_function, decorator.facts.calls)):
            return "chosen"
        return ""

    def _read_returned(self, node: Node, decorator: Function, depth: int) -> str:
        """What the decorator gives back at one `return`."""
        inner = {f.name: decorator.module.function(i) for i, f in decorator.module.functions_in(decorator.index)}
        params = _given(decorator)
        while node[KIND] == "call":
            callee = node[CALL_FUNC]
            if (
                callee[KIND] == "name" and callee[NAME_ID] in inner
            ):  # `return decorate(function)`, from both ways to write it
                return self._read_wrapper(inner[callee[NAME_ID]], depth + 1)
            value = self._program.static(decorator.module, decorator).value(callee)
            if isinstance(value, FunctionValue) and isinstance(value.function, Function):
                return "" if value.function is decorator else self.wrapper(value.function)
            taking = self._held(callee, decorator)
            if taking is not None:
                return self.wrapper(taking)
            is_partial = isinstance(value, ClassObject) and value.cls.name in _FIRST_OF
            if not node[CALL_ARGS] or (isinstance(value, ClassObject | Instance) and not is_partial):
                return ""
            last = "partial" if is_partial else last_name(callee)
            node = node[CALL_ARGS][0] if last in _FIRST_OF else node[CALL_ARGS][-1]
        if node[KIND] != "name":
            return ""
        if node[NAME_ID] not in inner:
            if node[NAME_ID] in params:
                return "same"
            taking = self._held(node, decorator)
            if taking is not None:
                return self.wrapper(taking)
            assigned = _assigned(decorator.body(), node) if depth <= _DEEPEST_RETURN else []
            if assigned:
                return self._verdict(decorator, assigned, depth + 1)
            value = self._program.static(decorator.module, decorator).value(node)  # `return partial(decorate, name)`
            made_by = value.function if isinstance(value, FunctionValue) else None
            return self.wrapper(made_by) if isinstance(made_by, Function) and made_by is not decorator else ""
        namesakes = [f for _, f in decorator.module.functions_in(decorator.index) if f.name == node[NAME_ID]]
        if len({f.flags & 1 for f in namesakes}) > 1:
            return "same"  # one of each color under one name: it chooses by the color of what it is given
        wrapper = inner[node[NAME_ID]]
        takes = [p for p in wrapper.facts.params if p[3] in {"", "/"}]
        is_decorator = bool(decorator.module.functions_in(wrapper.index)) or (
            bool(takes) and ("name", takes[0][0]) in _returned(wrapper.body())
        )
        if is_decorator and len(takes) == 1 and not wrapper.is_async:
            return self._read_wrapper(wrapper, depth + 1)
        if wrapper.is_async:
            return _WRAPPED.get(self.of(wrapper), "")  # a wrapper may have decorators of its own
        return self._plain_wrapper(wrapper, params)

    def _held(self, node: Node, decorator: Function) -> Function | None:
        """The `__call__` of the object that a variable of the decorator holds: `log = Logging(name)`, `return log`."""
        origin = decorator.origins.get(node[NAME_ID], "") if node[KIND] == "name" else ""
        if not origin.endswith("()") or not origin[:-2].isidentifier():
            return None
        value = self._program.static(decorator.module, decorator).value(("name", origin[:-2]))
        return self._call_of(value.cls) if isinstance(value, ClassObject) and isinstance(value.cls, Class) else None

    def _plain_wrapper(self, wrapper: Function, params: set[str]) -> str:
        """Whether a sync wrapper returns what the wrapped function gives, runs it, or drops it."""
        outer: set[str] = set(params)
        parent = wrapper.parent
        while parent is not None:
            outer |= _given(parent)
            parent = parent.parent
        if wrapper.is_generator:
            return ""
        return _fate_of_wrapped(wrapper.body(), outer)


def _within(function: Function) -> list[Function]:
    """A function and those inside it."""
    inner = [function.module.function(index) for index, _ in function.module.functions_in(function.index)]
    return [function, *(nested for each in inner for nested in _within(each))]


def _given(decorator: Function) -> set[str]:
    """The parameters that may be the function to decorate: not the object or the class that a method belongs to."""
    names = [p[0] for p in decorator.facts.params]
    is_bound = decorator.owner is not None and not decorator.decorated_with("staticmethod")
    return set(names[1:] if is_bound else names)


def _written(function: Function) -> Effect:
    if function.is_async:
        if function.is_abstract and function.facts.returns is not None and names_async_iterator(function.facts.returns):
            return "unknown"  # `async def events(self) -> AsyncIterator: ...` is mostly meant to be a generator
        return "generator" if function.is_generator else "coroutine"
    return "iterator" if function.is_generator else "plain"


def _returned(body: tuple[Node, ...]) -> list[Node]:
    """What `return` gives back, wherever it stands."""
    nodes: list[Node] = []
    for statement in body:
        if statement[KIND] == "return" and statement[VALUE] is not None:
            nodes += statement[VALUE][2:4] if statement[VALUE][KIND] == "ifexp" else statement[1:2]
        elif statement[KIND] in {"if", "while"}:
            nodes += _returned(statement[BODY]) + _returned(statement[ORELSE])
        elif statement[KIND] == "with":
            nodes += _returned(statement[WITH_BODY])
        elif statement[KIND] == "try":
            nodes += _returned(statement[TRY_BODY]) + _returned(statement[TRY_ORELSE])
    return nodes


def _says_awaitable(node: Node | None) -> bool:
    """Whether an annotation has one of the words for what is awaited."""
    return node is not None and any(word in {"Awaitable", "Coroutine"} for word in words_of(node))


def _assigned(body: tuple[Node, ...], node: Node) -> list[Node]:
    """What a variable that is returned was set to, on whichever branches."""
    nodes: list[Node] = []
    pending = list(body)
    while pending:
        part = pending.pop()
        if part[KIND] == "assign" and part[ASSIGN_TARGETS] == (node,) and part[ASSIGN_VALUE][KIND] in {"name", "call"}:
            nodes.append(part[ASSIGN_VALUE])
        elif part[KIND] in {"if", "try", "with"}:
            pending += children(part)
    return nodes


def _promises_the_same(decorator: Function) -> bool:
    """Whether the signature says that the function comes back as it is: `def register(f: F) -> F`."""
    returns = decorator.facts.returns
    if returns is None:
        return False
    first = next((p for p in decorator.facts.params if p[0] not in {"self", "cls"}), None)
    if first is not None and first[1] is not None and _words(first[1]) == _words(returns):
        return _says_which(returns)
    if (
        returns[KIND] == "index" and returns[INDEX_KEY][KIND] == "tuple" and len(returns[INDEX_KEY][ITEMS]) == 2
    ):  # `-> Callable[[F], F]`
        accepted, back = returns[INDEX_KEY][ITEMS]
        is_one = accepted[KIND] == "list" and len(accepted[ITEMS]) == 1
        return is_one and _words(accepted[1][0]) == _words(back) and _says_which(back)
    return False


def _says_which(annotation: Node) -> bool:
    """Whether an annotation tells one function from another: by a type variable, or by what it gives."""
    words = (word for text in words_of(annotation) for word in re.findall(r"\w+", text))  # it may stand in quotes
    return not _ANY_FUNCTION.issuperset(words)


def _words(node: object) -> object:
    """An annotation without the places it stands at."""
    if not isinstance(node, tuple) or all(isinstance(part, int) for part in node):
        return node if not isinstance(node, tuple) else ()
    return tuple(_words(part) for part in node)


def _fate_of_wrapped(body: tuple[Node, ...], wrapped: set[str]) -> str:
    fates: set[str] = set()
    bound: set[str] = set()

    def is_call(node: Node) -> bool:
        return node[KIND] == "call" and node[CALL_FUNC][KIND] == "name" and node[CALL_FUNC][NAME_ID] in wrapped

    def walk(node: Node, context: str) -> None:
        kind = node[0]
        inside = "other"
        if is_call(node):
            fates.add(context)
        elif kind == "return":
            value = node[VALUE]
            if value is not None and (is_call(value) or (value[KIND] == "name" and value[NAME_ID] in bound)):
                fates.add("same")
                return
        elif kind == "expr" and is_call(node[VALUE]):
            fates.add("dropped")
            return
        elif kind == "assign" and is_call(node[ASSIGN_VALUE]) and node[ASSIGN_TARGETS][0][KIND] == "name":
            bound.add(node[ASSIGN_TARGETS][0][NAME_ID])
            fates.add("bound")
            return
        elif kind == "call":
            inside = "plain"
        for part in children(node):
            walk(part, inside)

    for statement in body:
        walk(statement, "other")
    if {"same", "plain"} <= fates:
        return ""  # it runs the coroutine itself, or hands it on: by a mode that only the object knows
    if "same" in fates:
        return "same"
    if fates == {"dropped"}:
        return "dropped"
    if "plain" in fates:
        return "plain"
    return ""
