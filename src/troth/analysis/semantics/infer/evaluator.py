"""What an expression stands for in its scope.

`Evaluator` looks at one expression with what is known about names; it makes no promises' sites and judges no use of
them. `Flow`, which walks through a whole function, derives from it and overrides the places where a value is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from troth.analysis.facts.fields import (
    AT,
    ATTR_BASE,
    ATTR_NAME,
    BINOP_IS_BITOR,
    BINOP_LEFT,
    BINOP_RIGHT,
    BODY,
    CALL_ARGS,
    CALL_FUNC,
    CALL_KEYWORDS,
    COMP_GENERATORS,
    COMP_KIND,
    COMP_PARTS,
    COMPARE_LEFT,
    COMPARE_OPS,
    COMPARE_OTHERS,
    CONST_TYPE,
    CONST_VALUE,
    DICT_KEYS,
    DICT_VALUES,
    INDEX_BASE,
    INDEX_KEY,
    ITEMS,
    KIND,
    LAMBDA_BODY,
    LAMBDA_PARAMS,
    NAME_ID,
    ORELSE,
    TEST,
    VALUE,
    WALRUS_VALUE,
)
from troth.analysis.facts.nodes import walk
from troth.analysis.findings import Reason
from troth.analysis.semantics.incident import Taker
from troth.analysis.semantics.infer.awaitables_in_value import as_one
from troth.analysis.semantics.infer.identity_functions import may_give_itself
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.color_checks import asks_for_color, asks_for_function, asks_if_async
from troth.analysis.semantics.resolve.library import LibraryClass, LibraryFunction
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import (
    NONE,
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
    ModuleValue,
    Nothing,
    SuperOf,
    Table,
    TupleOf,
    Union,
    Value,
    members_of,
    union,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from troth.analysis.facts.model import At, Node
    from troth.analysis.semantics.incident import AwaitableKind, MisuseKind, Site
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Module

__all__ = ["BUILTIN_FUNCTIONS", "OF_FUTURES", "WITH_A_CONSTANT", "Evaluator", "is_mock"]

_WITH_AWAIT = Reason("a generator with `await` or `async for` in it is an async generator")
_OPERATORS = ("__truediv__", "__add__", "__sub__", "__mul__", "__floordiv__", "__mod__", "__rshift__", "__lshift__")
# How an awaitable is compared by whoever takes it for its result.
WITH_A_CONSTANT = Taker("", "compares it with a constant")

# Builtin functions and what they give; none of them awaits anything.
BUILTIN_FUNCTIONS = {
    **{
        name: name
        for name in [
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
        ]
    },
    **dict.fromkeys(["repr", "ascii", "format", "input", "chr", "hex", "oct", "bin"], "str"),
    **dict.fromkeys(["len", "ord", "hash", "id", "abs", "round"], "int"),
    **dict.fromkeys(["isinstance", "issubclass", "callable", "hasattr", "any", "all"], "bool"),
    **dict.fromkeys(["sorted"], "list"),
    **dict.fromkeys(["print", "setattr", "delattr"], "None"),
    **dict.fromkeys(
        [
            "sum",
            "min",
            "max",
            "enumerate",
            "zip",
            "map",
            "filter",
            "reversed",
            "iter",
            "next",
            "getattr",
            "open",
        ],
        "",
    ),
    **dict.fromkeys(
        [
            "type",
            "vars",
            "dir",
            "globals",
            "locals",
            "eval",
            "exec",
            "super",
            "object",
            "property",
            "divmod",
            "pow",
            "slice",
        ],
        "",
    ),
    **dict.fromkeys(["memoryview", "classmethod", "staticmethod", "aiter", "anext", "breakpoint", "compile"], ""),
}


_COLLECTIONS = frozenset({"list", "set", "frozenset"})
_MOCKS = frozenset(f"unittest.mock.{name}" for name in ("Mock", "MagicMock", "NonCallableMock", "NonCallableMagicMock"))


def is_mock(value: Value | None) -> bool:
    """Whether it is a mock that gives no coroutine unless it is told to."""
    return isinstance(value, Instance) and isinstance(value.cls, LibraryClass) and value.cls.qualified in _MOCKS


class Evaluator:
    """Evaluates expressions in the scope of a function, a class body or a module."""

    handlers: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        cls.handlers = {tag: getattr(cls, f"on_{tag}") for tag in _TAGS}

    def __init__(
        self, program: Inference, module: Module, function: Function | None = None, owner: Class | None = None
    ) -> None:
        self.program = program
        self.module = module
        self.function = function
        self.owner = owner
        self.env: dict[str, Value | None] = {}
        self.plainly_entered: set[str] = set()  # variables that a plain `with … as` has bound
        self.unmet: tuple[At, Instance] | None = None  # where an attribute was last asked for that its class lacks

    def value(self, node: Node) -> Value | None:
        """What `node` stands for."""
        handler = self.handlers.get(node[0])
        return None if handler is None else handler(self, node)

    # -- what Flow does differently ----------------------------------------------------------------------------

    def site(
        self, target: Any, at: At, callee: str, awaitable: AwaitableKind, reasons: Any, *, sure: bool
    ) -> Site | None:
        """The record of an awaitable made here; an evaluator alone keeps none."""
        return None

    def judged(self, node: Node, external: str = "", decorated: Function | None = None) -> Value | None:
        """What calling an unknown callee is believed to give; inference by itself believes nothing.

        `external` is where the callee comes from, as far as that is known; `decorated` is a function of the project
        whose decorator nobody can follow.
        """
        return None

    def judged_receiver(self, node: Node, wanted: str) -> Value | None:
        """What an object is believed to be of which nothing is known but its name."""
        return None

    def doubt_about(self, called: Function, node: Node, *, is_guess: bool) -> str:
        """Why the call of a known `async def` may give something else: "unknown", "started", or no doubt."""
        return ""

    def awaitable_object(self, instance: Instance, node: Node, target: Function | None) -> Value:
        """What a call gives that makes an object with `__await__`."""
        return instance

    def keep(self, value: Value | None) -> None:
        """The value goes somewhere that may await it."""

    def known(self, value: Value | None) -> None:
        """The value is handled as the awaitable that it is."""

    def misuse(
        self, value: Value | None, kind: MisuseKind, at: At | None = None, text: str = "", taker: Taker | None = None
    ) -> None:
        """The value is used as if it were a result."""

    def arguments(self, func: Value | None, node: Node, values: list[tuple[str | None, Value | None]]) -> None:
        """The values are given to `func`."""

    def is_patched(self, callee: Node) -> bool:
        """Whether an attribute of the receiver of `callee` was set here."""
        return False

    def hands_over_patched(self, call: Node, used: Iterable[str]) -> bool:
        """Whether an argument of the call had one of these methods set here."""
        return False

    def settle(self, value: Value | None, at: At) -> None:
        """The value is awaited."""

    def lacks(self, base: Instance, name: str, at: At, base_node: Node | None) -> None:
        """An attribute is used that the class, as far as it is known, does not have."""

    def unlisted(self, base: Instance, name: str, at: At) -> None:
        """An attribute of a library's class is used that its table, which lists what matters to color, leaves out."""

    # -- names ---------------------------------------------------------------------------------------------------

    def on_name(self, node: Node) -> Value | None:
        name = node[NAME_ID]
        if name in self.env:
            return self.env[name]
        return self.outer(name)

    def outer(self, name: str) -> Value | None:
        """What `name` means here when no assignment on the way bound it."""
        if self.owner is not None and name in self.owner.values and self.function is None:
            nested = self.owner.values[name]
            if nested[KIND] == "classref":
                return ClassObject(self.module.cls(nested[1]))
            if nested[KIND] == "imported":
                return self.program.names.imported(self.module, nested[1], nested[2], nested[3])
        function = self.function
        inside = -1  # the function that the one looked at is around
        while function is not None:
            if name in function.local_names:
                return self._local(function, name, inside)
            if inside != -1:
                outer_value = self.program.closure(function, name)
                if outer_value is not None:
                    return outer_value
            inside = function.index
            function = function.parent
        if name in self.module.bindings:
            return self.program.names.at_module(self.module, name)
        if name in BUILTIN_FUNCTIONS:
            return FunctionValue(_builtin(name))
        return self.program.names.at_module(self.module, name)

    def _local(self, function: Function, name: str, inside: int) -> Value | None:
        """What a parameter, a definition or an import of `function` is: the one we are in, or one around `inside`."""
        is_around = inside != -1
        param = function.params.get(name)
        if param is not None:
            if is_around and any(map(asks_for_function, function.facts.calls)):
                narrowed = self.program.summary(function).narrowed.get(inside, {}).get(name)
                if narrowed is not None:
                    return narrowed
                if self._is_async_twin(function, inside, name):
                    how = f"`{function.qualname}` asks for its color, and has another wrapper for sync ones"
                    return CallableType(Awaitable(None), how)
            value = self.program.parameters.of(function, param)
            if not is_around or self.function is None or not self.function.is_async or not _says_little(value):
                return value
            if name in self.module.function(inside).facts.awaited and asks_if_async(self.program, function, name):
                return value  # the wrapper awaits it in one branch and calls it in the other, by its color
            return self.program.passed.wrapped(function, name) or value
        inner = self.module.inner(function.index).get(name)
        if inner:
            return self._defined(inner)
        imported = next(
            imported_name for imported_name in self.module.imports_in(function.index) if imported_name.local == name
        )
        return self.program.names.imported(self.module, imported.module, imported.name, imported.level)

    def _is_async_twin(self, around: Function, inside: int, name: str) -> bool:
        """Whether a wrapper is the async one of two, between which a decorator chooses by the color of `name`.

        One that awaits it here and does not there knows both colors.
        """
        wrapper = self.module.function(inside)
        if wrapper.is_generator or any("asyncgen" in callee for callee in around.facts.calls):
            return False
        if not wrapper.is_async or name in wrapper.facts.awaited or any(map(asks_for_color, wrapper.facts.calls)):
            return False
        beside = [f for _, f in self.module.functions_in(around.index)]
        is_chosen = any(not f.flags & 1 and name in f.calls for f in beside)
        return is_chosen and asks_if_async(self.program, around, name)

    @staticmethod
    def _defined(found: list[Function | Class]) -> Value | None:
        functions = [f for f in found if isinstance(f, Function)]
        if len({f.is_async for f in functions}) > 1:
            return union([FunctionValue(f) for f in functions])
        last = found[-1]
        return ClassObject(last) if isinstance(last, Class) else FunctionValue(last)

    def on_attr(self, node: Node) -> Value | None:
        base = self.value(node[ATTR_BASE])
        if base is None:
            inner = node[ATTR_BASE]
            name = inner[NAME_ID] if inner[KIND] == "name" else inner[ATTR_NAME] if inner[KIND] == "attr" else ""
            base = self.program.parameters.by_convention(name) if name else None
            if base is None and name:
                base = self.program.passed.behind(inner, self.function, node[ATTR_NAME])
            if base is None and name and self.function is not None:
                base = self.judged_receiver(inner, node[ATTR_NAME])
        return self.attribute(base, node[ATTR_NAME], node[AT], node[ATTR_BASE])

    def attribute(
        self, base: Value | None, name: str, at: At, base_node: Node | None = None, *, is_alone: bool = True
    ) -> Value | None:
        """What `base.name` is; of one among several nothing that its class only makes up."""
        if base is None:
            return None
        if isinstance(base, Union):
            whole = as_one(base)
            if whole is not None and whole.name in _COLLECTIONS:  # empty on one path, filled on another
                return FunctionValue(_builtin_method(whole, name), whole)
            members = [m for m in base.members if not isinstance(m, Nothing)]
            having = [m for m in members if not self._certainly_lacks(m, name)] or members
            is_alone = len(having) == 1 or self.program.made_up.is_only(having, name)
            member = union([self._of_one(m, name, at, base_node, is_alone=is_alone) for m in having])
            if len(having) > 1:
                self.unmet = None  # another of them may have it
            return member
        if isinstance(base, Instance):
            member = self.program.classes.member(base.cls, name, base)
            if member is None and is_alone:
                member = self.program.made_up.attribute(base, name)
            if member is None:
                self.unmet = (at, base)
                if isinstance(base.cls, LibraryClass):
                    if is_mock(base):
                        return External(f"{base.cls.qualified}.{name}")  # namesakes in the project say nothing of it
                    self.unlisted(base, name, at)
                else:
                    self.lacks(base, name, at, base_node)
                return None
            if base.guess:  # what is read from a guess is one
                member = union([_guessed(m) for m in members_of(member)])
            return self._property_site(member, name, at, base)
        if isinstance(base, ModuleValue):
            return self.program.names.attribute(base, name)
        if isinstance(base, ClassObject):
            return self._class_attribute(base, name)
        if isinstance(base, External):
            return External(f"{base.path}.{name}")
        if isinstance(base, SuperOf):
            classes, cls = self.program.classes, _class_of(base.receiver) or base.cls
            above = classes.member(cls, name, base.receiver, after=base.cls)
            return classes.beside_mixin(base.cls, name) if above is None and cls is base.cls else above
        if isinstance(base, Builtin | TupleOf | Table):
            return FunctionValue(_builtin_method(base, name), base)
        if isinstance(base, AwaitableObject) and not self._is_asked_of_result(base.instance, name):
            self.keep(base)
            return self.attribute(base.instance, name, at, base_node)
        if isinstance(base, Coroutine | AsyncGenerator | AsyncContext):
            if name in _ONLY_OF_COROUTINES and not (name in _OF_ITERATORS and _is_surely_one(base)):
                self.known(base)
            elif _is_its_own(base, name) or _is_looked_into(base, name):
                self.keep(base)  # whoever looks inside knows what it is
            else:
                self.misuse(base, "attribute", at, name)
            return None
        return self._awaitable_attribute(base, name, at) if isinstance(base, Awaitable) else None

    def _awaitable_attribute(self, base: Awaitable, name: str, at: At) -> Value | None:
        # What is only annotated as awaitable may be anything that has `__await__`, with attributes of its own.
        if (
            base.site is not None
            and name not in OF_FUTURES
            and name[0] != "_"
            and (base.kind or self._is_of_result(base.result, name))
        ):
            self.misuse(base, "attribute", at, name)
        if base.site is not None and base.site.awaitable == "future" and name in OF_FUTURES:
            self.keep(base)  # asked as the future it is, now and then: nobody has to wait for it
        if base.kind == "task" and name in _PLAIN_OF_TASKS and _is_of_asyncio(base):
            task = library.library_class("asyncio.tasks.Task")
            return FunctionValue(LibraryFunction(f"{task.qualified}.{name}", ("", "", {}), task), base)
        return None

    def _is_of_result(self, result: Value | None, name: str) -> bool:
        """Whether it is the result of an awaitable that has such an attribute, by its class."""
        cls = result.cls if isinstance(result, Instance) else None
        if isinstance(cls, LibraryClass):
            return library.member(cls.qualified, name) is not None
        return cls is not None and (
            self.program.classes.is_method(cls, name) or self.program.classes.may_be_given(cls, name)
        )

    def _is_asked_of_result(self, instance: Instance, name: str) -> bool:
        """Whether an object that can be awaited is asked for an attribute that it lacks.

        Of a library's the table may leave it out, or it is made up: there the result has to have it.
        """
        if not self._certainly_lacks(instance, name):
            return False
        if isinstance(instance.cls, Class):
            return True
        return any(self._is_of_result(member, name) for member in members_of(self._awaited_object(instance)))

    def _of_one(self, base: Value | None, name: str, at: At, base_node: Node | None, *, is_alone: bool) -> Value | None:
        """The attribute of one of several; of a class with nothing async in it a sync method, listed or not."""
        attribute = self.attribute(base, name, at, base_node, is_alone=is_alone)
        if attribute is not None or not isinstance(base, Instance) or not isinstance(base.cls, LibraryClass):
            return attribute
        full = base.cls.qualified
        return (
            FunctionValue(LibraryFunction(f"{full}.{name}", ("", "", {}), base.cls), base)
            if library.is_plain(full)
            else None
        )

    def _certainly_lacks(self, value: Value | None, name: str) -> bool:
        """Whether an alternative cannot be meant, because its class, known as a whole, has no such attribute."""
        if isinstance(value, Builtin) and value.name in _BUILTIN_TYPES:
            return not hasattr(_BUILTIN_TYPES[value.name], name)
        if isinstance(value, TupleOf):
            return not hasattr(tuple, name)
        if isinstance(value, Table):
            return not hasattr(dict, name)
        if not isinstance(value, Instance):
            return False
        if isinstance(value.cls, LibraryClass):
            return library.member(value.cls.qualified, name) is None and library.has_members(value.cls.qualified)
        classes = self.program.classes
        return (
            classes.is_complete(value.cls)
            and classes.member(value.cls, name, value) is None
            and not classes.mentions(value.cls, name)
        )

    def _property_site(self, found: Value | None, name: str, at: At, base: Instance) -> Value | None:
        if isinstance(found, Coroutine) and found.site is None and self.program.classes.is_method(base.cls, name):
            site = self.site(
                found, at, f".{name}", "coroutine", lambda: self.program.reasons.of_property(base, name), sure=True
            )
            return Coroutine(site, found.evaluate)
        return found

    def _class_attribute(self, base: ClassObject, name: str) -> Value | None:
        member = self.program.classes.member(base.cls, name, base)
        if isinstance(member, FunctionValue) and isinstance(member.function, Function):
            if member.function.decorated_with("classmethod"):
                return member
            return FunctionValue(member.function)  # `Store.save(store)`: not bound to an object
        return member

    # -- calls and awaits --------------------------------------------------------------------------------------------

    def on_call(self, node: Node) -> Value | None:
        func_node = node[CALL_FUNC]
        if func_node == ("name", "super") and "super" not in self.env:
            return self._super()
        func = self.value(func_node)
        if func is None and func_node[KIND] == "name" and self.function is not None and self.function.is_async:
            func = self.program.passed.called(func_node[NAME_ID], self.function)
        unmet = self.unmet
        values: list[tuple[str | None, Value | None]] = [
            ("*", self.value(arg[VALUE])) if arg[KIND] == "star" else (None, self.value(arg)) for arg in node[CALL_ARGS]
        ]
        values += [("**" if name is None else name, self.value(arg)) for name, arg in node[CALL_KEYWORDS]]
        self.unmet = unmet  # what the arguments lack says nothing of the callee
        self.arguments(func, node, values)
        return self.program.calls.call(func, node, values, self)

    def _super(self) -> Value | None:
        function = self.function
        while function is not None and function.owner is None:
            function = function.parent
        if function is None or function.owner is None:
            return None
        params = function.facts.params
        receiver = self.program.parameters.of(function, params[0]) if params else None
        return SuperOf(function.owner, receiver or Instance(function.owner))

    def on_await(self, node: Node) -> Value | None:
        value = self.value(node[VALUE])
        self.settle(value, node[2])
        return self.outcome(node[VALUE], value)

    def outcome(self, node: Node, value: Value | None) -> Value | None:
        """What `await` of that node gives, whose value this is.

        `await stack.enter_async_context(client)`, whatever the stack is: there is one method of that name.
        """
        result = self.awaited(value)
        if result is None and node[KIND] == "call" and len(node[CALL_ARGS]) == 1 and not node[CALL_KEYWORDS]:
            callee = node[CALL_FUNC]
            if callee[KIND] == "attr" and callee[ATTR_NAME] == "enter_async_context":
                static = self.program.static(self.module, self.function)
                return static.entered(static.value(node[CALL_ARGS][0]), is_async=True)
        return result

    def awaited(self, value: Value | None) -> Value | None:
        """What awaiting `value` gives."""
        if isinstance(value, Coroutine):
            result = value.evaluate()
            # A coroutine that comes out of a coroutine is told of where it is returned.
            return None if isinstance(result, Coroutine) else result
        if isinstance(value, Awaitable):
            return value.result
        if isinstance(value, AwaitableContext):
            return value.evaluate()
        if isinstance(value, External):
            return value
        if isinstance(value, Instance):
            return self._awaited_object(value)
        if isinstance(value, Union):
            return union([self.awaited(m) for m in value.members if not isinstance(m, Nothing)])
        return None

    def _awaited_object(self, value: Instance) -> Value | None:
        """An object with `__await__` mostly gives what it is made of, or itself: `pool = await Pool()`."""
        if not self.program.classes.has(value.cls, "__await__"):
            return None
        member = library.member(value.cls.qualified, "__await__") if isinstance(value.cls, LibraryClass) else None
        if member is not None and member.sig is not None and member.sig[1] == "typing.Self":
            return value
        if value.args and value.args[0] is not None:
            return value.args[0]
        if isinstance(value.cls, LibraryClass):  # its table says what awaiting it gives
            return self.program.types.written(library.member(value.cls.qualified, "__await__").sig[1])
        return Instance(value.cls, (), value.why, guess=True)

    # -- displays, operators -----------------------------------------------------------------------------------------

    def on_const(self, node: Node) -> Value | None:
        if node[CONST_TYPE] == "None":
            return NONE
        return _CONSTANTS.get(node[CONST_TYPE])

    def on_list(self, node: Node) -> Value | None:
        return Builtin(node[KIND], (union([self._item(n) for n in node[ITEMS]]),))

    def on_set(self, node: Node) -> Value | None:
        return self.on_list(node)

    def _item(self, node: Node) -> Value | None:
        if node[KIND] == "star":
            return self.iterated(self.value(node[VALUE]))
        return self.value(node)

    def on_tuple(self, node: Node) -> Value | None:
        if any(n[KIND] == "star" for n in node[ITEMS]):
            return Builtin("tuple", (union([self._item(n) for n in node[ITEMS]]),))
        return TupleOf(tuple([self.value(n) for n in node[ITEMS]]))

    def on_dict(self, node: Node) -> Value | None:
        values = tuple([self.value(n) for n in node[DICT_VALUES]])
        if None in node[DICT_KEYS]:  # `{**made}`
            values = tuple(
                [
                    self._spread(value) if key is None else value
                    for key, value in zip(node[DICT_KEYS], values, strict=True)
                ]
            )
        by_key = {
            key[CONST_VALUE]: value
            for key, value in zip(node[DICT_KEYS], values, strict=True)
            if key is not None and key[KIND] == "const" and len(key) == 3
        }
        for key in node[DICT_KEYS]:
            if key is not None and key[KIND] != "const":
                self.keep(self.value(key))
        return Table(by_key, values)

    def _spread(self, value: Value | None) -> Value | None:
        """What `**` puts into a dict; a coroutine has nothing to put in."""
        if type(value) is not Coroutine:
            return value
        self.misuse(value, "unpacking")
        return None

    def on_ifexp(self, node: Node) -> Value | None:
        self.test(node[TEST])
        return union([self.value(node[BODY]), self.value(node[ORELSE])])

    def on_or(self, node: Node) -> Value | None:
        values = []
        for part in node[ITEMS][:-1]:
            value = self.value(part)
            self.misuse(value, "condition", _at_of(part))
            values += [m for m in members_of(value) if not isinstance(m, Nothing)]
        last = self.value(node[ITEMS][-1])
        if None in values and isinstance(last, Instance) and all(v is None for v in values):
            return Instance(last.cls, last.args, last.why, guess=True)  # `store or Store()`: the default tells the type
        if None in values and type(last) is ClassObject and all(v is None for v in values):
            return CallableType(Instance(last.cls, (), None, guess=True))  # `factory or Store`: so does it here
        return union([*values, last])

    def on_and(self, node: Node) -> Value | None:
        for part in node[ITEMS][:-1]:
            self.test(part)
        return self.value(node[ITEMS][-1])

    def on_not(self, node: Node) -> Value | None:
        self.test(node[VALUE])
        return _CONSTANTS["bool"]

    def test(self, node: Node) -> None:
        """The truth of `node` is asked for."""
        self.misuse(self.value(node), "condition", _at_of(node))

    def on_compare(self, node: Node) -> Value | None:
        operands = [node[COMPARE_LEFT], *node[COMPARE_OTHERS]]
        about_none = node[COMPARE_OPS][0] in {"is", "is not"} and node[COMPARE_OTHERS][0] == ("const", "None")
        constants = [operand for operand in operands if operand[KIND] == "const"]
        is_with_other = any(constant != ("const", "None") for constant in constants)
        for index, operand in enumerate(operands):
            value = self.value(operand)
            if about_none and index == 0 and operand[KIND] == "name":
                continue  # `if task is None` asks whether there is one
            op = node[COMPARE_OPS][min(index, len(node[COMPARE_OPS])) - 1 if index else 0]
            if op in {"is", "is not"} and not about_none and not (operand[KIND] == "call" and constants):
                continue  # whether two things are the same awaitable may be asked
            is_plain = is_with_other or (operand[KIND] == "call" and constants)
            self.misuse(value, "comparison", _at_of(operand), taker=WITH_A_CONSTANT if is_plain else None)
        return _CONSTANTS["bool"]

    def on_binop(self, node: Node) -> Value | None:
        left_value, right = self.value(node[BINOP_LEFT]), self.value(node[BINOP_RIGHT])
        self.misuse(left_value, "arithmetic", _at_of(node[BINOP_LEFT]))
        self.misuse(right, "arithmetic", _at_of(node[BINOP_RIGHT]))
        if isinstance(left_value, Builtin) and left_value.name in {"str", "int", "float", "list"}:
            if left_value.name == "list":
                right_items = right.args[:1] if isinstance(right, Builtin) and right.args else (None,)
                return Builtin("list", (union([*left_value.args[:1], *right_items]),))
            return left_value
        if type(left_value) is Instance and left_value.cls.name == "Path" and isinstance(left_value.cls, LibraryClass):
            return left_value  # `folder / "name"`
        return self._operated(left_value, is_or=node[BINOP_IS_BITOR]) if type(left_value) is Instance else None

    def _operated(self, left: Instance, *, is_or: bool) -> Value | None:
        """What the operators of a class of the project give, where all that it has give objects of one class."""
        if not isinstance(left.cls, Class):
            return None
        values: list[Value | None] = []
        for name in ("__or__",) if is_or else _OPERATORS:
            method = self.program.classes.member(left.cls, name, left)
            if isinstance(method, FunctionValue) and isinstance(method.function, Function):
                values.append(self.program.calls.result(method))
        first = values[0] if values else None
        is_one = isinstance(first, Instance) and all(isinstance(g, Instance) and g.cls is first.cls for g in values)
        return first if is_one else None

    def on_fstr(self, node: Node) -> Value | None:
        for part in node[ITEMS]:
            self.misuse(self.value(part), "text", _at_of(part), "an f-string")
        return _CONSTANTS["str"]

    def on_parts(self, node: Node) -> Value | None:
        for part in node[ITEMS]:
            self.misuse(self.value(part), "arithmetic", _at_of(part))
        return None

    def on_slice(self, node: Node) -> Value | None:
        for part in node[ITEMS]:
            self.misuse(self.value(part), "arithmetic", _at_of(part))
        return None

    def on_index(self, node: Node) -> Value | None:
        base = self.value(node[INDEX_BASE])
        index = self.value(node[INDEX_KEY])
        self.misuse(index, "subscript", _at_of(node[INDEX_KEY]))
        return self.item(base, node[INDEX_KEY], _at_of(node[INDEX_BASE]))

    def item(self, base: Value | None, index: Node, at: At | None = None) -> Value | None:
        """What `base[index]` is."""
        if isinstance(base, Union):
            return union([self.item(m, index, at) for m in base.members if not isinstance(m, Nothing)])
        if isinstance(base, AwaitableObject) and not self._certainly_lacks(base.instance, "__getitem__"):
            self.keep(base)
            return self._dunder(base.instance, "__getitem__")
        if isinstance(base, Coroutine | AsyncGenerator | AsyncContext | Awaitable):
            self.misuse(base, "subscript", at)
            return None
        if index[KIND] == "slice" and isinstance(base, Builtin | TupleOf):
            return base if isinstance(base, Builtin) else Builtin("tuple", (union(base.items),) if base.items else ())
        if isinstance(base, Table):
            if index[:2] == ("const", "str") and len(index) == 3:
                return base.by_key.get(index[CONST_VALUE])
            return union(base.values) if base.values else None
        if isinstance(base, TupleOf):
            if index[:2] == ("const", "int") and len(index) == 3 and index[CONST_VALUE] < len(base.items):
                return base.items[index[CONST_VALUE]]
            return union(base.items) if base.items else None
        if isinstance(base, Builtin):
            if base.name == "str":
                return base
            return base.args[-1] if base.args else None
        if isinstance(base, ClassObject | External):
            return base  # `Generic[T]`
        if isinstance(base, Instance):
            return self._dunder(base, "__getitem__")
        return None

    def _dunder(self, base: Instance, name: str) -> Value | None:
        member = self.program.classes.member(base.cls, name, base)
        if isinstance(member, FunctionValue):
            return self.program.calls.result(member)
        return None

    def iterated(self, value: Value | None, at: At | None = None) -> Value | None:
        """What one turn of a plain `for` over `value` gives."""
        if isinstance(value, Union):
            return union([self.iterated(m, at) for m in value.members if not isinstance(m, Nothing)])
        if isinstance(value, Builtin):
            if value.name == "str":
                return value
            if value.name == "dict":
                return value.args[0] if value.args else None
            return value.args[0] if value.args else None
        if isinstance(value, TupleOf):
            return union(value.items) if value.items else None
        if isinstance(value, AwaitableObject) and not self._certainly_lacks(value.instance, "__iter__"):
            self.keep(value)
            return self.iterated(value.instance, at)
        if isinstance(value, Coroutine | AsyncGenerator | AsyncContext | Awaitable):
            self.misuse(value, "iteration", at)
            return None
        if isinstance(value, External):
            return value
        if isinstance(value, Instance):
            method = self._dunder(value, "__iter__")
            return self.iterated(method) if isinstance(method, Builtin) else None
        return None

    def note_operand(self, how: str, node: Node, value: Value | None, at: At, place: int = 0) -> None:
        """`await`, `async for` or `async with` is given that; `place` tells several of one statement apart."""

    def looped_over(self, value: Instance, node: Node, at: At) -> None:
        """A plain loop at `at` goes over an object."""

    def iterated_async(self, value: Value | None, at: At | None = None) -> Value | None:
        """What one turn of an `async for` over `value` gives."""
        if isinstance(value, Union):
            return union([self.iterated_async(m, at) for m in value.members if not isinstance(m, Nothing)])
        if isinstance(value, AsyncGenerator):
            self.keep(value)
            return value.evaluate()
        if isinstance(value, AwaitableObject):
            self.keep(value)
            return self.iterated_async(value.instance, at)
        if isinstance(value, Coroutine):
            self.misuse(value, "async iteration", at)
            return None
        if isinstance(value, Builtin) and value.name == "async iterator":
            return value.args[0] if value.args else None
        if isinstance(value, External):
            return value
        if isinstance(value, Instance):
            member = self.program.classes.member(value.cls, "__anext__", value)
            if isinstance(member, FunctionValue):
                return self.program.calls.result(member)
        return None

    def entered(self, value: Value | None, *, is_async: bool) -> Value | None:
        """What `with value as x` binds to `x`."""
        if isinstance(value, Union):
            return union([self.entered(m, is_async=is_async) for m in value.members if not isinstance(m, Nothing)])
        if isinstance(value, AsyncContext):
            return value.evaluate()
        if isinstance(value, AwaitableObject):
            return self.entered(value.instance, is_async=is_async)
        if isinstance(value, External):
            return value
        if isinstance(value, Builtin) and value.name in {"context", "async context"}:
            return value.args[0] if value.args else None
        if isinstance(value, Instance):
            name = "__aenter__" if is_async else "__enter__"
            member = self.program.classes.member(value.cls, name, value)
            if isinstance(member, FunctionValue):
                result = _by_type_argument(self.program.calls.result(member), value)
                if result is None and isinstance(value.cls, LibraryClass):
                    return value.args[0] if value.args else self._awaited_object(value)  # mostly the same
                if result is not None:
                    return result
                function = member.function
                is_unsaid = isinstance(function, Function) and not function.facts.returns and may_give_itself(function)
                return value if is_unsaid else None
            if member is None and not is_async and isinstance(value.cls, LibraryClass):
                return value  # what the table leaves out has no color of its own: it mostly gives itself
        return None

    def on_entered(self, node: Node) -> Value | None:
        return self.entered(self.value(node[2]), is_async=node[1])

    def on_lambda(self, node: Node) -> Value | None:
        saved = dict(self.env)
        names = {p[0] for p in node[LAMBDA_PARAMS]}

        busy = False

        def evaluate() -> Value | None:
            nonlocal busy
            if busy:  # a lambda that calls itself
                return None
            busy = True
            try:
                inner = Plain(self.program, self.module, self.function, self.owner)
                inner.env = {**saved, **dict.fromkeys(names)}
                return inner.value(node[LAMBDA_BODY])
            finally:
                busy = False

        return Lambda(node[LAMBDA_BODY], evaluate)

    def on_comp(self, node: Node) -> Value | None:
        saved = self.env
        self.env = dict(saved)
        for place, (is_async, target, iterable, conditions) in enumerate(node[COMP_GENERATORS]):
            source = self.value(iterable)
            if is_async:
                self.note_operand("async for", iterable, source, node[AT], place)
            item = self.iterated_async(source) if is_async else self.iterated(source, _at_of(iterable))
            if not is_async and type(source) is Instance:
                self.looped_over(source, iterable, node[AT])
            self.bind(target, item)
            for condition in conditions:
                self.test(condition)
        parts = [self.value(part) for part in node[COMP_PARTS]]
        self.env = saved
        if node[COMP_KIND] == "dict":
            return Builtin("dict", tuple(parts))
        if node[COMP_KIND] == "generator" and _is_async_generator(node):
            site = self.site(None, node[AT], "(…)", "generator", lambda: (_WITH_AWAIT,), sure=True)
            return AsyncGenerator(site, lambda: parts[0])
        return Builtin("iterator" if node[COMP_KIND] == "generator" else node[COMP_KIND], tuple(parts))

    def bind(self, target: Node, value: Value | None) -> None:
        """Bind the names of `target` to `value`."""
        kind = target[0]
        if kind == "name":
            self.env[target[1]] = value
        elif kind in {"tuple", "list"}:
            self.unpack(target, value)
        elif kind == "star":
            self.bind(target[VALUE], Builtin("list", (value,)))

    def unpack(self, target: Node, value: Value | None) -> None:
        """Bind the names of a tuple target to the parts of `value`."""
        parts = self.parts(value, len(target[1]))
        item = None if parts is not None else self.iterated(value)
        for index, part in enumerate(target[1]):
            self.bind(part, item if parts is None else parts[index])

    @staticmethod
    def parts(value: Value | None, count: int) -> list[Value | None] | None:
        """What stands in each place of a tuple of that length, or of one of several; None for anything else."""
        resolved = [m for m in members_of(value) if m is not None]  # of what is not known, nothing is in any place
        tuples = [m for m in resolved if isinstance(m, TupleOf) and len(m.items) == count]
        if not tuples or len(tuples) < len(resolved):
            return None
        return [union([m.items[index] for m in tuples]) for index in range(count)]

    def on_walrus(self, node: Node) -> Value | None:
        value = self.value(node[WALRUS_VALUE])
        self.env[node[1]] = value
        return value

    def on_yield(self, node: Node) -> Value | None:
        if node[VALUE] is not None:
            self.keep(self.value(node[VALUE]))
        return None

    def on_yieldfrom(self, node: Node) -> Value | None:
        self.keep(self.value(node[VALUE]))
        return None

    def on_star(self, node: Node) -> Value | None:
        return Builtin("list", (self.iterated(self.value(node[VALUE])),))

    def on_classref(self, node: Node) -> Value | None:
        return ClassObject(self.module.cls(node[1]))

    def on_imported(self, node: Node) -> Value | None:
        return self.program.names.imported(self.module, node[1], node[2], node[3])


_TAGS = [
    "name",
    "attr",
    "call",
    "await",
    "const",
    "list",
    "set",
    "tuple",
    "dict",
    "ifexp",
    "or",
    "and",
    "not",
    "compare",
    "binop",
    "fstr",
    "parts",
    "index",
    "slice",
    "entered",
    "lambda",
    "comp",
    "walrus",
    "yield",
    "yieldfrom",
    "star",
    "classref",
    "imported",
]


class Plain(Evaluator):
    """An evaluator that only looks."""


_BUILTIN_TYPES: dict[str, type] = {
    kind.__name__: kind
    for kind in (str, bytes, bytearray, int, float, complex, bool, dict, list, set, frozenset, tuple, memoryview)
}
_CONSTANTS: dict[str, Value] = {name: Builtin(name) for name in ("str", "bytes", "int", "float", "complex", "bool")}
_ONLY_OF_COROUTINES = frozenset(
    [
        "asend",
        "athrow",
        "cr_code",
        "cr_frame",
        "cr_await",
        "cr_running",
        "__await__",
        "__aiter__",
        "__anext__",
        "__aenter__",
        "__aexit__",
        "ag_code",
        "ag_frame",
    ]
)
# Results have these as well: files are closed, and sockets send.
_OF_ITERATORS = frozenset({"__aiter__", "__anext__"})
_OF_COROUTINES = frozenset({"send", "throw", "close", "aclose", "__name__", "__qualname__", "__class__"})
OF_FUTURES = frozenset(
    [
        "result",
        "exception",
        "done",
        "cancelled",
        "cancel",
        "cancelling",
        "uncancel",
        "add_done_callback",
        "remove_done_callback",
        "set_result",
        "set_exception",
        "get_loop",
        "get_name",
        "set_name",
        "get_coro",
        "get_stack",
        "print_stack",
        "get_context",
    ]
)
_OF_RUNNING = frozenset({"done", "cancelled", "add_done_callback"})
_PLAIN_OF_TASKS = frozenset({"cancel", "done", "cancelled", "add_done_callback", "get_name", "set_name"})
_builtins: dict[str, LibraryFunction] = {}


def _builtin(name: str) -> LibraryFunction:
    builtin = _builtins.get(name)
    if builtin is None:
        builtin = _builtins[name] = LibraryFunction(f"builtins.{name}", ("", BUILTIN_FUNCTIONS[name], {}))
    return builtin


def _builtin_method(base: Value, name: str) -> LibraryFunction:
    kind = base.name if isinstance(base, Builtin) else "tuple" if isinstance(base, TupleOf) else "dict"
    key = f"{kind}.{name}"
    builtin = _builtins.get(key)
    if builtin is None:
        builtin = _builtins[key] = LibraryFunction(f"builtins.{key}", ("", "", {}))
    return builtin


def _is_async_generator(node: Node) -> bool:
    """Whether a generator expression waits, in a loop or for an item; what it loops over first is made before."""
    if any(is_async for is_async, *_ in node[3]):
        return True
    conditions = [test for _, _, _, tests in node[3] for test in tests]
    inside = (*node[2], *conditions, *(iterated for _, _, iterated, _ in node[3][1:]))
    return any(node[KIND] == "await" for node in walk(inside, skip=("lambda",)))


def _is_of_asyncio(task: Awaitable) -> bool:
    """Whether it is a task of asyncio: those of other libraries may be cancelled asynchronously."""
    target = None if task.site is None else task.site.target
    return isinstance(target, LibraryFunction) and target.qualname.startswith("asyncio.")


def _says_little(value: Value | None) -> bool:
    """Whether nothing is known of a callable but that it is one."""
    if isinstance(value, CallableType):
        return value.result is None
    return value is None or (isinstance(value, Instance) and value.cls.name == "FunctionType")


def _is_surely_one(value: Value) -> bool:
    """Whether a value is a coroutine, by the `async def` that makes it, and nothing else."""
    return type(value) is Coroutine and value.site is not None and value.site.sure and value.site.target is not None


def _is_its_own(value: Value, name: str) -> bool:
    """Whether an awaitable itself has that attribute; an object with `__await__` is no coroutine."""
    return name in _OF_COROUTINES and (name[0] == "_" or not isinstance(value, AwaitableObject))


def _is_looked_into(value: Value, name: str) -> bool:
    """Whether its author knows better what it is, where only its siblings say that it is an awaitable.

    A private attribute of it is read, it is asked whether it is done, as tasks and statuses that run by themselves are,
    or what its method gives is awaited: `await User.get(1).prefetch("posts")`. A context that can be awaited is an
    object of the library, with private attributes of its own: `await session.ws_connect(url)._coro`.
    """
    if isinstance(value, AwaitableContext):
        return name[0] == "_"
    site = value.site if isinstance(value, Coroutine) else None
    if site is None or not site.by_siblings:
        return False
    if name[0] == "_" or name in _OF_RUNNING:
        return True
    return any(callee.startswith(f"?.{name}") for callee in site.function.facts.awaited)


def _by_type_argument(result: Value | None, of: Instance) -> Value | None:
    """Of several results that a generic class may give, the one that its type argument names."""
    if isinstance(result, Union) and of.args and isinstance(of.args[0], Instance):
        cls = of.args[0].cls
        if any(isinstance(m, Instance) and m.cls is cls for m in result.members):
            return of.args[0]
    return result


def _guessed(value: Value | None) -> Value | None:
    if type(value) is Instance and not value.guess:
        return Instance(value.cls, value.args, value.why, guess=True)
    return value


def _class_of(value: Value) -> Class | None:
    if isinstance(value, Instance | ClassObject) and isinstance(value.cls, Class):
        return value.cls
    return None


def _at_of(node: Node) -> At | None:
    last = node[-1]
    if node[KIND] in {"call", "attr", "await", "lambda", "comp"}:
        return last  # type: ignore[no-any-return]
    return None
