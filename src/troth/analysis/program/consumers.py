"""Knows who takes a promise and certainly never awaits it.

Everybody else may keep it: an unknown callee is always given the benefit of the doubt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.facts.model import body_of
from troth.analysis.program import library
from troth.analysis.program.calls import callee_text
from troth.analysis.program.entities import Class, Function
from troth.analysis.program.library import LibraryClass, LibraryFunction
from troth.analysis.program.values import (
    Builtin,
    CallableType,
    ClassObject,
    FunctionValue,
    Instance,
    Nothing,
    TupleOf,
    Union,
    Value,
)

if TYPE_CHECKING:
    from troth.analysis.facts.model import Node, Param
    from troth.analysis.program.link import Program

__all__ = ["Consumers", "looks_like_keeper", "mentions_awaitable", "never_awaitable"]

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

    def __init__(self, program: Program) -> None:
        self._program = program
        self._fates: dict[tuple[Function, str], str] = {}

    def drops(self, func: Value | None, node: Node, position: int, name: str | None, value: Value) -> str:
        """Who it is that never awaits the argument, as text for a message; "" for anybody who may."""
        if name in {"*", "**"}:
            return ""
        callee = node[1]
        if callee[0] == "attr" and callee[2] in _LOG_METHODS:
            base = callee[1]
            last = base[1] if base[0] == "name" else base[2] if base[0] == "attr" else ""
            if last in _LOGGERS:
                return "text:a log call"
        if isinstance(func, FunctionValue):
            if isinstance(func.function, LibraryFunction):
                return self._library(func, func.function, position)
            return self._own(func, func.function, position, name)
        if isinstance(func, ClassObject):
            return self._constructed(func, position, name)
        del value
        return ""

    def may_await(self, func: Value | None, node: Node, position: int, keyword: str | None) -> bool:
        """Whether somebody who is not known to drop its argument looks like one that runs or keeps it."""
        if keyword is not None and (keyword in {"*", "**"} or _KEEPING_KEYWORD.search(keyword)):
            return True
        if isinstance(func, FunctionValue):
            function = func.function
            if isinstance(function, LibraryFunction):
                return bool(function.roles) or "o" in function.flags or looks_like_keeper(function.qualname)
            if function.is_abstract or (
                function.facts.decorators and not function.decorated_with("staticmethod", "classmethod")
            ):
                return True
            param = self._param_of(func, function, position, keyword)
            if param is None:  # one of `*args` or `**kwargs`
                return keyword is None or looks_like_keeper(function.name) or _takes_promises_by_name(function)
            fate = self._fate(function, param[0])
            return fate == "kept" or (fate == "handed over" and _RUNNER.search(function.name) is not None)
        if isinstance(func, ClassObject) and isinstance(func.cls, Class) and self._keeps(func.cls, position, keyword):
            return True
        if isinstance(func, CallableType) and func.result is not None and not self._is_result(func.result):
            return True  # what gives an awaitable may well take one
        return looks_like_keeper(callee_text(node[1]))

    def _is_result(self, value: Value) -> bool:
        return isinstance(value, Nothing) or never_awaitable(value, self._program)

    def _keeps(self, cls: Class, position: int, keyword: str | None) -> bool:
        """Whether objects of a class keep what their constructor is given and have something async to do with it."""
        for ancestor in self._program.classes.order(cls):
            if not isinstance(ancestor, Class):
                return True
            methods = [ancestor.module.function(indexes[-1]) for indexes in ancestor.methods.values()]
            if "__await__" in ancestor.methods or any(method.is_async for method in methods):
                return True
            if "__init__" in ancestor.methods:
                function = ancestor.module.function(ancestor.methods["__init__"][-1])
                param = _param(list(function.facts.params)[1:], position, keyword)
                return param is None or looks_like_keeper(param[0])
        return False

    @staticmethod
    def _param_of(func: FunctionValue, function: Function, position: int, name: str | None) -> Param | None:
        params = list(function.facts.params)
        if func.receiver is not None and function.owner is not None and not function.decorated_with("staticmethod"):
            params = params[1:]
        return _param(params, position, name)

    def _library(self, func: FunctionValue, function: LibraryFunction, position: int) -> str:
        qualname = function.qualname
        module, _, name = qualname.rpartition(".")
        if module == "builtins":
            if name in _TEXT_BUILTINS:
                return f"text:`{name}`"
            if name in {"map", "filter"} and position:
                return f"`{name}`, which never awaits it"
            return f"`{name}`, which never awaits it" if name in _PLAIN_BUILTINS else ""
        if module == "builtins.str":
            return f"text:`str.{name}`"
        if module.startswith("builtins.") and name not in _KEEPING_METHODS:
            return f"`{module.removeprefix('builtins.')}.{name}`, which never awaits it"
        if function.flags or function.roles:
            return ""
        top = qualname.partition(".")[0]
        if top == "logging":
            return "text:a log call" if name in _LOG_METHODS else ""
        if top in _PLAIN_MODULES:
            return f"text:`{top}.{name}`" if top in {"json", "pprint"} else f"`{top}.{name}`, which never awaits it"
        del func
        return ""

    def _own(self, func: FunctionValue, function: Function, position: int, name: str | None) -> str:
        if function.facts.decorators and not function.decorated_with("staticmethod", "classmethod"):
            return ""
        param = self._param_of(func, function, position, name)
        if param is None or self._program.overridden_at_all(function, func.receiver):
            return ""
        return self._by_param(function, param)

    def _by_param(self, function: Function, param: Param) -> str:
        if param[1] is not None:
            declared = self._program.parameter(function, param)
            if declared is not None:
                return (
                    f"`{function.qualname}`, whose `{param[0]}` is no awaitable"
                    if never_awaitable(declared, self._program)
                    else ""
                )
            if mentions_awaitable(param[1]):
                return ""
        if function.is_abstract:
            return ""
        return f"`{function.qualname}`, which never awaits it" if self._fate(function, param[0]) == "lost" else ""

    def _fate(self, function: Function, param: str) -> str:
        key = (function, param)
        if key not in self._fates:
            self._fates[key] = "kept"  # while it is being found out
            self._fates[key] = self._program.fate(function, param)
        return self._fates[key]

    def _constructed(self, func: ClassObject, position: int, name: str | None) -> str:
        cls = func.cls
        if isinstance(cls, LibraryClass):
            return ""
        for ancestor in self._program.classes.order(cls):
            if not isinstance(ancestor, Class):
                break
            if "__init__" in ancestor.methods:
                function = ancestor.module.function(ancestor.methods["__init__"][-1])
                param = _param(list(function.facts.params)[1:], position, name)
                return "" if param is None else self._by_param(function, param)
            if name is not None and name in ancestor.annotations:
                declared = self._program.types.annotated(ancestor.annotations[name], ancestor.module, None, ancestor)
                if never_awaitable(declared, self._program):
                    return f"`{cls.name}`, whose `{name}` is no awaitable"
                return ""
        return ""


def _takes_promises_by_name(function: Function) -> bool:
    """Whether `**coros` is called or annotated so, or the body awaits something that is no call."""
    for name, annotation, _, kind in function.facts.params:
        if kind == "**" and (looks_like_keeper(name) or (annotation is not None and mentions_awaitable(annotation))):
            return True
    return function.is_async and _awaits_a_value(body_of(function.facts))


def _awaits_a_value(node: object) -> bool:
    if not isinstance(node, tuple) or not node:
        return False
    if node[0] == "await" and len(node) == 3 and isinstance(node[1], tuple) and node[1][0] in {"name", "index"}:
        return True
    return any(_awaits_a_value(part) for part in node)


_RUNNER = re.compile(r"(?i)task|spawn|(?<![a-z])run|worker|sched|submit|launch|backgr|fire|job")
_KEEPING_KEYWORD = re.compile(r"(?i)task|coro|await|futur|job|callback|func|handler|target|^fn$|run|background")
_KEEPER = re.compile(
    r"(?i)task|spawn|(?<![a-z])run|gather|wait|futur|sched|submit|start|coro|loop|backgr|fire|shield|timeout|ensure|call|exec"
    r"|sync|put|append|add|push|queue|regist|defer|partial|safe|retry|race|collect|with|async|job|pending|handle|wrap|launch"
    r"|thread|process|do_|invoke|then|sleep|consum|enter|track|monitor|nest|portal|block|mock|patch|raises|iscor|inspect"
    r"|isinstance|type|cast|^id$|iter|chain|map|callback|work|deliver|send$|emit|insert|extend|set_result|perform|keep|hold|defer|later|complete"
)


_KEEPING_OBJECT = re.compile(r"(?i)task|backgr|spawn|sched|executor|runner|nursery|supervis|jobs")


def looks_like_keeper(text: str) -> bool:
    """Whether a name sounds like something that runs or keeps what it is given."""
    base, _, last = text.rpartition(".")
    return _KEEPER.search(last) is not None or _KEEPING_OBJECT.search(base.rpartition(".")[2]) is not None


def never_awaitable(value: Value | None, program: Program) -> bool:
    """Whether a value of this type can certainly not be a promise."""
    if value is None:
        return False
    if isinstance(value, Union):
        real = [m for m in value.members if not isinstance(m, Nothing)]
        return all(never_awaitable(m, program) for m in real)
    if isinstance(value, Builtin):
        return value.name not in {"object", "type", "async iterator", "async context", "context", "iterator"}
    if isinstance(value, TupleOf):
        return True
    if isinstance(value, Instance):
        if isinstance(value.cls, LibraryClass):
            return library.member(value.cls.qualified, "__await__") is None
        return program.classes.has(value.cls, "__await__") is False
    return False


def _param(params: list[Param], position: int, name: str | None) -> Param | None:
    if name is not None:
        return next((p for p in params if p[0] == name and p[3] in {"", "="}), None)
    plain = [p for p in params if p[3] in {"", "/"}]
    return plain[position] if position < len(plain) else None


def mentions_awaitable(
    node: object, words: tuple[str, ...] = ("Awaitable", "Coroutine", "Future", "Task", "Any")
) -> bool:
    """Whether an annotation speaks of something that can be awaited, or of anything at all."""
    if not isinstance(node, tuple):
        return isinstance(node, str) and any(word in node for word in words)
    return any(mentions_awaitable(part, words) for part in node)
