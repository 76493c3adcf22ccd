"""Find who takes an awaitable and certainly never awaits it.

Everybody else may keep it: an unknown callee is always given the benefit of the doubt.
"""

from __future__ import annotations

import builtins
import re
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import ATTR_BASE, ATTR_NAME, BINOP_LEFT, BINOP_RIGHT, INDEX_BASE, KIND, NAME_ID, VALUE
from troth.analysis.facts.model import PARAM_ANNOTATION, PARAM_NAME, WAITS
from troth.analysis.facts.names import callee_text, decorator_name, last_name
from troth.analysis.facts.nodes import walk
from troth.analysis.semantics.incident import Taker
from troth.analysis.semantics.infer.never_awaitable import AWAITABLE_NAME, mentions_awaitable, never_awaitable
from troth.analysis.semantics.infer.virtual_dispatch import overridden_at_all
from troth.analysis.semantics.resolve.library import LibraryClass, LibraryFunction
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import (
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
from troth.analysis.semantics.walk.awaited_storage import is_awaited_from

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.facts.model import Node, Param
    from troth.analysis.semantics.walk.walking import Walking

__all__ = [
    "Consumers",
    "awaits_a_value",
    "looks_like_keeper",
    "looks_like_runner",
]

_MOST_NAMESAKES = 8  # methods of one name that are asked what they do with an argument

_A_LOG_CALL = Taker("a log call", "shows it")
# What models and adapters of pydantic make an object of; no other library has methods of these names.
_VALIDATING = frozenset({"model_validate", "model_validate_json", "validate_python", "validate_json", "parse_obj"})
_OPENING = frozenset({"json.dumps", "json.dump"})
_TEXT_BUILTINS = frozenset(["print", "str", "repr", "ascii", "format"])
_PLAIN_BUILTINS = frozenset(
    [
        "len",
        "bool",
        "int",
        "float",
        "bytes",
        "list",
        "tuple",
        "set",
        "frozenset",
        "sorted",
        "sum",
        "min",
        "max",
        "any",
        "all",
        "enumerate",
        "zip",
        "reversed",
        "abs",
        "round",
        "dict",
    ]
)
_KEEPING_METHODS = frozenset(
    [
        "append",
        "add",
        "insert",
        "extend",
        "appendleft",
        "extendleft",
        "update",
        "setdefault",
        "put",
        "put_nowait",
        "push",
        "copy",
        "get",
        "pop",
    ]
)
_LOG_METHODS = frozenset(
    ["debug", "info", "warning", "warn", "error", "exception", "critical", "fatal", "log", "trace", "success"]
)
_LOGGERS = frozenset(["logger", "log", "logging", "_logger", "_log", "LOGGER", "LOG", "_LOGGER"])
_PLAIN_MODULES = frozenset(
    [
        "json",
        "math",
        "re",
        "os",
        "pathlib",
        "datetime",
        "base64",
        "hashlib",
        "uuid",
        "struct",
        "html",
        "urllib",
        "textwrap",
        "string",
        "decimal",
        "statistics",
        "shutil",
        "pprint",
        "csv",
        "binascii",
        "zlib",
        "gzip",
        "pickle",
    ]
)


class Consumers:
    """Judges callees; the fate of a parameter is found out by walking through its function once."""

    def __init__(self, program: Walking) -> None:
        self._program = program
        self._fates: MutableMapping[tuple[Function, str], str] = program.answers()
        self._awaiting: MutableMapping[Class, bool] = program.answers()

    def drops(self, func: Value | None, node: Node, position: int, name: str | None) -> Taker | None:
        """Who it is that never awaits the argument; None for anybody who may."""
        if name in {"*", "**"}:
            return None
        func = self._called(func)
        callee = node[1]
        if callee[KIND] == "attr" and callee[ATTR_NAME] in _LOG_METHODS:
            base = callee[ATTR_BASE]
            last = base[NAME_ID] if base[KIND] == "name" else base[ATTR_NAME] if base[KIND] == "attr" else ""
            if last in _LOGGERS:
                return _A_LOG_CALL
        if isinstance(func, FunctionValue):
            if isinstance(func.function, LibraryFunction):
                return self._library(func.function, position)
            return self._own(func, func.function, position, name)
        if isinstance(func, ClassObject):
            return self._constructed(func, position, name)
        if func is None and callee[KIND] == "name" and _is_exception(callee[NAME_ID]):
            return _dropper(callee[NAME_ID])
        if _is_message(func, callee):
            return _refuser(callee_text(callee), name or "fields")
        if callee[KIND] == "attr" and callee[ATTR_NAME] in _VALIDATING and name is None and not position:
            return _refuser(callee_text(callee), "data")
        return None

    def wants_results(self, func: Value | None, position: int, name: str | None) -> bool:
        """Whether a parameter of the project is declared as a collection of things that are no awaitables."""
        declared = self._declared(func, position, name)
        real = [m for m in members_of(declared) if not isinstance(m, Nothing)]
        return bool(real) and all(
            isinstance(m, Builtin) and bool(m.args) and self._has_no_room(m.args[-1]) for m in real
        )

    def _declared(self, func: Value | None, position: int, name: str | None) -> Value | None:
        """What a parameter of the project, or a field of a class whose objects are made, is annotated to be."""
        if isinstance(func, FunctionValue) and isinstance(func.function, Function):
            param = self._param_of(func, func.function, position, name)
            return (
                None
                if param is None or param[PARAM_ANNOTATION] is None
                else self._program.parameters.of(func.function, param)
            )
        if not isinstance(func, ClassObject) or not isinstance(func.cls, Class):
            return None
        name = name or _field_at(func.cls, position)
        if name is None:
            return None
        for ancestor in self._program.classes.order(func.cls):
            if not isinstance(ancestor, Class) or "__init__" in ancestor.methods:
                return None
            if name in ancestor.annotations:
                return self._program.types.annotated(ancestor.annotations[name], ancestor.module, None, ancestor)
        return None

    def _has_no_room(self, item: Value | None) -> bool:
        """Whether what a collection is declared to hold is no awaitable and cannot hold one, as `tuple[Any]` can."""
        if not never_awaitable(item, self._program):
            return False
        if isinstance(item, TupleOf):
            return all(self._has_no_room(entry) for entry in item.items)
        if isinstance(item, Builtin) and item.name in _COLLECTIONS:
            return bool(item.args) and self._has_no_room(item.args[-1])
        return not isinstance(item, Table)

    def may_await(
        self, func: Value | None, node: Node, position: int, keyword: str | None, *, by_keyword: bool
    ) -> bool:
        """Whether somebody who is not known to drop its argument looks like one that runs or keeps it.

        With `by_keyword` the name of an argument says what it is for, rather than the name of who takes it.
        """
        func = self._called(func)
        if keyword is not None:
            if keyword in {"*", "**"} or _KEEPING_KEYWORD.search(keyword):
                return True
            if by_keyword and (not isinstance(func, FunctionValue) or isinstance(func.function, LibraryFunction)):
                constructed = func if isinstance(func, ClassObject) and isinstance(func.cls, Class) else None
                if constructed is None:
                    return _KEEPER_OF_ANY.search(callee_text(node[1])) is not None
        if isinstance(func, FunctionValue):
            function = func.function
            if isinstance(function, LibraryFunction):
                if function.roles or "o" in function.flags:
                    return True
                return looks_like_keeper(function.qualname) and not _OF_DATABASES.search(function.name)
            if function.is_abstract or (
                function.facts.decorators and not function.decorated_with("staticmethod", "classmethod")
            ):
                return True
            param = self._param_of(func, function, position, keyword)
            if param is None:  # one of `*args` or `**kwargs`
                return keyword is None or looks_like_keeper(function.name) or _takes_awaitables_by_name(function)
            if self._is_class_of_others(param, function):
                return False
            fate = self._fate(function, param[PARAM_NAME])
            sounds = _RUNNER.search(function.name) is not None and not _DATA.search(param[PARAM_NAME])
            return fate == "kept" or (fate == "handed over" and sounds)
        if isinstance(func, ClassObject) and isinstance(func.cls, Class):
            if self._keeps(func.cls, position, keyword):
                return True
            field = keyword or _field_at(func.cls, position)
            if field is not None and self._is_mere_field(func.cls, field):
                return looks_like_keeper(field) or is_awaited_from(self._program, ("attr", ("name", ""), field))
        if isinstance(func, CallableType) and func.result is not None and not self._is_result(func.result):
            return True  # what gives an awaitable may well take one
        if isinstance(func, External) and (func.path.startswith(_OURS) or looks_like_keeper(func.path)):
            return True  # also under another name: `from troth.bridge import run as cross`
        return looks_like_keeper(callee_text(node[1]))

    def _is_mere_field(self, cls: Class, name: str) -> bool:
        """Whether all that a class does with an argument is to keep it as the attribute of that name."""
        order = self._program.classes.order(cls)
        own = [ancestor for ancestor in order if isinstance(ancestor, Class)]
        return any(name in ancestor.annotations for ancestor in own) and not any(
            _MAKING & set(ancestor.methods) for ancestor in own
        )

    def is_kept_by_namesake(self, node: Node, position: int, keyword: str | None) -> bool:
        """Whether an unknown callee may be a method of the project that wants an awaitable at that place."""
        name = last_name(node[1])
        if node[1][KIND] != "attr" or name.startswith("__"):
            return False
        for function in self._program.index.functions_named(name)[:_MOST_NAMESAKES]:
            if function.owner is None or function.is_abstract:
                continue
            params = list(function.facts.params)
            param = _param(params if function.decorated_with("staticmethod") else params[1:], position, keyword)
            if param is not None and _is_for_awaitables(param) and self._fate(function, param[PARAM_NAME]) == "kept":
                return True
        return False

    def _called(self, func: Value | None) -> Value | None:
        """An object that is called is its `__call__`."""
        if isinstance(func, Instance) and isinstance(func.cls, Class):
            return self._program.classes.member(func.cls, "__call__", func) or func
        return func

    def _is_result(self, value: Value) -> bool:
        return isinstance(value, Nothing) or never_awaitable(value, self._program)

    def _keeps(self, cls: Class, position: int, keyword: str | None) -> bool:
        """Whether objects of a class keep what their constructor is given in order to await it."""
        param: Param | None = None
        for ancestor in self._program.classes.order(cls):
            if not isinstance(ancestor, Class):
                return looks_like_keeper(cls.name) or keyword is None
            if "__await__" in ancestor.methods or self._awaits_values(ancestor):
                return True
            if param is None and "__init__" in ancestor.methods:
                function = ancestor.module.function(ancestor.methods["__init__"][-1])
                param = _param(list(function.facts.params)[1:], position, keyword)
                if keyword is None if param is None else looks_like_keeper(param[PARAM_NAME]):
                    return True
                if (
                    param is not None
                    and param[PARAM_ANNOTATION] is not None
                    and mentions_awaitable(param[PARAM_ANNOTATION], _AWAITABLES)
                ):
                    return True
        return False

    def _awaits_values(self, cls: Class) -> bool:
        """Whether a method of the class itself awaits something that is no call: `await self._pending`."""
        answer = self._awaiting.get(cls)
        if answer is None:
            methods = [cls.module.function(indexes[-1]) for indexes in cls.methods.values()]
            answer = any(awaits_a_value(method.body()) for method in methods if method.facts.flags & WAITS)
            self._awaiting[cls] = answer
        return answer

    @staticmethod
    def _param_of(func: FunctionValue, function: Function, position: int, name: str | None) -> Param | None:
        params = list(function.facts.params)
        if func.receiver is not None and function.owner is not None and not function.decorated_with("staticmethod"):
            params = params[1:]
        return _param(params, position, name)

    @staticmethod
    def _library(function: LibraryFunction, position: int) -> Taker | None:
        qualname = function.qualname
        module, _, name = qualname.rpartition(".")
        if module == "builtins":
            if name in _TEXT_BUILTINS:
                return Taker(f"`{name}`", "shows it", name)
            if name in {"map", "filter"} and position:
                return _dropper(name)
            return _dropper(name) if name in _PLAIN_BUILTINS else None
        if module == "builtins.str":
            return Taker(f"`str.{name}`", "opens it" if name == "join" else "shows it", f"str.{name}")
        if module.startswith("builtins.") and name not in _KEEPING_METHODS:
            return _dropper(f"{module.removeprefix('builtins.')}.{name}")
        if function.flags or function.roles:
            return None
        top = qualname.partition(".")[0]
        if top == "logging":
            return _A_LOG_CALL if name in _LOG_METHODS else None
        if top in _PLAIN_MODULES:
            short = f"{top}.{name}"
            if top not in {"json", "pprint"}:
                return _dropper(short)
            return Taker(f"`{short}`", "opens it" if short in _OPENING else "shows it", short)
        return None

    def _own(self, func: FunctionValue, function: Function, position: int, name: str | None) -> Taker | None:
        is_decorated = bool(function.facts.decorators) and not function.decorated_with("staticmethod", "classmethod")
        if is_decorated and self._program.effects.is_doubtful(function):
            return None
        param = self._param_of(func, function, position, name)
        if param is None or overridden_at_all(self._program, function, func.receiver):
            return None
        if is_decorated and param[PARAM_ANNOTATION] is None:
            return None  # what it does with it, the decorator may have done before
        return self._by_param(function, param)

    def gives_back(self, func: Value | None, position: int, name: str | None) -> bool:
        """Whether a function of the project asks for a result, and gives back whatever else it gets."""
        if not isinstance(func, FunctionValue) or not isinstance(func.function, Function):
            return False
        param = self._param_of(func, func.function, position, name)
        return param is not None and self._fate(func.function, param[PARAM_NAME]) == "asked"

    def refuses(self, func: FunctionValue, position: int, name: str | None) -> Taker | None:
        """Whether a function of the project declares that argument to be no awaitable."""
        function = func.function
        if not isinstance(function, Function) or function.facts.decorators:
            return None
        param = self._param_of(func, function, position, name)
        if param is None or param[1] is None:
            return None
        is_result = never_awaitable(self._program.parameters.of(function, param), self._program)
        return _refuser(function.qualname, param[0]) if is_result else None

    def _by_param(self, function: Function, param: Param) -> Taker | None:
        if param[PARAM_ANNOTATION] is not None:
            declared = self._program.parameters.of(function, param)
            if never_awaitable(declared, self._program):
                return _refuser(function.qualname, param[PARAM_NAME])
            if declared is not None or mentions_awaitable(param[PARAM_ANNOTATION]):
                return None
        if function.is_abstract:
            return None
        return _dropper(function.qualname) if self._fate(function, param[PARAM_NAME]) == "lost" else None

    def _is_class_of_others(self, param: Param, function: Function) -> bool:
        """Whether a parameter is annotated with a class of an unknown library, and neither is called as if awaited."""
        node = param[PARAM_ANNOTATION]
        if node is None:
            return False
        if node[KIND] == "binop" and ("const", "None") in node[1:3]:
            node = node[BINOP_RIGHT] if node[BINOP_LEFT] == ("const", "None") else node[BINOP_LEFT]
        name = last_name(node)
        if not name[1:2].islower() or any(AWAITABLE_NAME.search(word) for word in (name, param[PARAM_NAME])):
            return False
        value = self._program.static(function.module, function.parent).value(node)
        return isinstance(value, External) and _OF_CLASS.match(value.path.rpartition(".")[2]) is not None

    def _fate(self, function: Function, param: str) -> str:
        key = (function, param)
        if key not in self._fates:
            self._fates[key] = "kept"  # while it is being found out
            self._fates[key] = self._program.fate(function, param)
        return self._fates[key]

    def _constructed(self, func: ClassObject, position: int, name: str | None) -> Taker | None:
        cls = func.cls
        if isinstance(cls, LibraryClass):
            return None
        name = name or _field_at(cls, position)
        lowest = cls
        for ancestor in self._program.classes.order(cls):
            if not isinstance(ancestor, Class):
                bases = [last_name(base) for base in lowest.facts.bases]
                return _dropper(cls.name) if bases and all(map(_is_exception, bases)) else None
            lowest = ancestor
            if "__init__" in ancestor.methods:
                function = ancestor.module.function(ancestor.methods["__init__"][-1])
                param = _param(list(function.facts.params)[1:], position, name)
                return None if param is None else self._by_param(function, param)
            if name is not None and name in ancestor.annotations:
                declared = self._program.types.annotated(ancestor.annotations[name], ancestor.module, None, ancestor)
                if never_awaitable(declared, self._program):
                    return _refuser(cls.name, name)
                return None
        return None


def _is_message(func: Value | None, callee: Node) -> bool:
    """Whether a class that protobuf has generated is called: `orders_pb2.Order(…)`."""
    if func is not None and not isinstance(func, External):
        return False
    text = func.path if isinstance(func, External) else callee_text(callee)
    module, _, name = text.rpartition(".")
    return module.endswith("_pb2") and name[:1].isupper()


def _is_exception(name: str) -> bool:
    """Whether it is a builtin exception: what it is made of is shown, and awaited by nobody."""
    kind = getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, BaseException) and not issubclass(kind, StopIteration)


def _dropper(name: str) -> Taker:
    return Taker(f"`{name}`, which never awaits it", "drops it", name)


def _refuser(name: str, param: str) -> Taker:
    return Taker(f"`{name}`, whose `{param}` is no awaitable", "wants no awaitable", name)


def _is_for_awaitables(param: Param) -> bool:
    """Whether a parameter is called, or annotated, as one that takes an awaitable."""
    return _FOR_AWAITABLES.search(param[PARAM_NAME]) is not None or (
        param[PARAM_ANNOTATION] is not None and mentions_awaitable(param[PARAM_ANNOTATION], _AWAITABLES)
    )


def _field_at(cls: Class, position: int) -> str | None:
    """The field of a dataclass or a named tuple, without bases of its own kind, that is given at that place."""
    facts = cls.facts
    bases = [last_name(base) for base in facts.bases]
    if "__init__" in cls.methods:
        return None
    if not (bases == ["NamedTuple"] or (not bases and any(decorator_name(d) == "dataclass" for d in facts.decorators))):
        return None
    fields = [
        name
        for name, node in facts.annotations
        if last_name(node[INDEX_BASE] if node[KIND] == "index" else node) not in _IN_CLASS
    ]
    return fields[position] if position < len(fields) else None


_IN_CLASS = frozenset({"ClassVar", "KW_ONLY"})
_MAKING = frozenset({"__init__", "__new__", "__post_init__", "model_post_init"})


def _takes_awaitables_by_name(function: Function) -> bool:
    """Whether `**coros` is called or annotated so, or the body awaits something that is no call."""
    for name, annotation, _, kind in function.facts.params:
        if kind != "**":
            continue
        if looks_like_keeper(name) or (annotation is not None and mentions_awaitable(annotation, _AWAITABLES)):
            return True
    return function.is_async and awaits_a_value(function.body())


def awaits_a_value(body: tuple[Node, ...]) -> bool:
    """Whether something that is no call is awaited in `body`."""
    return any(node[KIND] == "await" and node[VALUE][KIND] in {"name", "index", "attr"} for node in walk(body))


_FOR_AWAITABLES = re.compile(r"(?i)coro|await|futur|promise|task|^aws?$")
_OF_DATABASES = re.compile(r"^(?:execute|executemany|executescript|fetch\w*)$")  # what they are given is put in a query
_DATA = re.compile(r"(?i)(?:^|_)(?:id|ids|name|url|path|key|index|count|text|title)$")  # parameters for no awaitable
_RUNNER = re.compile(r"(?i)task|spawn|(?<![a-z])run|worker|sched|submit|launch|backgr|fire|job")
_KEEPER_OF_ANY = re.compile(r"(?i)task|coro|futur|spawn|gather|partial|thread|mock|patch|sched|submit|backgr|defer")
_OURS = "troth.bridge."  # what runs coroutines for others
_KEEPING_KEYWORD = re.compile(r"(?i)task|coro|await|fut|job|callback|func|handler|target|^fn$|run|background")
# Words that stand anywhere in such a name, words that begin a part of it, and words that are all of its last part.
_KEEPER = re.compile(
    r"(?i:task|coro|futur|spawn|async|thread|callback|gather|await|resultof)"
    r"|(?:(?<![a-zA-Z])|(?<=[a-z])(?=[A-Z]))(?i:run|wait|sched|submit|start|loop|backgr|fire|shield|timeout|ensure|call|exec|sync"
    r"|put|append|push|queue|regist|defer|partial|safe|retry|race|collect|with|job|pending|handle|wrap(?!per)|launch|process|do_"
    r"|invoke|then|sleep|consum|enter|track|monitor|nest|portal|block_on|blocking|mock|patch|raises|iscor|inspect|isinstance|type"
    r"|cast|iter|chain|map|work|deliver|extend|set_result|perform|keep|hold|later|complet)"
    r"|(?:(?<![a-zA-Z])|(?<=[a-z])(?=[A-Z]))(?i:add|send|emit|insert|id)$"
)


_KEEPING_OBJECT = re.compile(r"(?i)task|backgr|spawn|sched|executor|runner|nursery|supervis|jobs")


def looks_like_keeper(text: str) -> bool:
    """Whether a name sounds like something that runs or keeps what it is given."""
    base, _, last = text.rpartition(".")
    return _KEEPER.search(last) is not None or _KEEPING_OBJECT.search(base.rpartition(".")[2]) is not None


_RUNS_IT = re.compile(
    r"(?i)(create|ensure|start|spawn|add)_?(\w+_)?(task|future|soon)|^(gather|wait_for|run_until_complete)$"
)


def looks_like_runner(text: str) -> bool:
    """Whether a name sounds like something that runs the very awaitable that it is given."""
    return _RUNS_IT.search(text.rpartition(".")[2]) is not None


_AWAITABLES = ("Awaitable", "Coroutine", "Future", "Task")
_COLLECTIONS = frozenset({"list", "set", "frozenset", "dict", "tuple", "deque", "iterator"})
_OF_CLASS = re.compile(r"[A-Z](?!\w*(?:T|Type|Types|Like|Arg|Args|Callable|Func|Function|Factory|Any|Input|Value)$)")


def _param(params: list[Param], position: int, name: str | None) -> Param | None:
    if name is not None:
        return next((p for p in params if p[0] == name and p[3] in {"", "="}), None)
    plain = [p for p in params if p[3] in {"", "/"}]
    return plain[position] if position < len(plain) else None
