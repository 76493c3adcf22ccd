"""Find which other body a call of a method may run, because of the class that its object really has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import ATTR_BASE, ATTR_NAME, CALL_FUNC, KIND
from troth.analysis.facts.names import last_name
from troth.analysis.facts.nodes import of_kind
from troth.analysis.project.test_files import is_test
from troth.analysis.semantics.infer.identity_functions import returned
from troth.analysis.semantics.symbols import Class
from troth.analysis.semantics.values import ClassObject, Instance

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.facts.model import Node
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.resolve.library import LibraryClass
    from troth.analysis.semantics.symbols import Function
    from troth.analysis.semantics.values import Value

__all__ = [
    "async_implementations",
    "hands_on_otherwise",
    "overridden_at_all",
    "overridden_otherwise",
    "works_otherwise",
]


def overridden_otherwise(
    program: Inference, function: Function, receiver: Value | None, *, asking: str = "", callee: Node | None = None
) -> bool:
    """Whether a subclass of the receiver's class gives the method another color, or makes a generator of it.

    What a stand-in of the tests does says nothing of a call outside of them; `asking` is the file of the call, `callee`
    how it stands there: `cls.load()` may mean a subclass, `Store.load()` does not.
    """
    if function.owner is None or not program.counts.has_shapes(function.name):
        return False
    cls = _class_or_below(program, function, receiver, callee)
    if cls is None:
        return False
    mine = program.effects.of(function)
    is_tested = not asking or is_test(asking)
    for child in program.classes.children(cls):
        if function.name in child.methods and (is_tested or not is_test(child.module.path)):
            override = child.module.function(child.methods[function.name][-1])
            if override is not function and program.effects.of(override) != mine:
                return True
    return False


def _class_or_below(
    program: Inference, function: Function, receiver: Value | None, callee: Node | None
) -> Class | None:
    """The class that the method is called on, where it may as well be one that derives from it."""
    if isinstance(receiver, Instance):
        return receiver.cls if isinstance(receiver.cls, Class) else None
    if isinstance(receiver, ClassObject):
        cls = receiver.cls
    elif receiver is None and function.owner is not None and function.decorated_with("staticmethod"):
        cls = function.owner
    else:
        return None
    if callee is None or callee[KIND] != "attr" or not isinstance(cls, Class):
        return None
    written = last_name(callee[ATTR_BASE])
    is_named = written == cls.name or any(written == child.name for child in program.classes.children(cls))
    return None if is_named else cls


def overridden_at_all(program: Inference, function: Function, receiver: Value | None) -> bool:
    """Whether the call might run another body than this one."""
    if not isinstance(receiver, Instance) or not isinstance(receiver.cls, Class) or function.owner is None:
        return False
    if sum(program.counts.colors(function.name)) == 1:
        return False
    return any(function.name in child.methods for child in program.classes.children(receiver.cls))


def works_otherwise(program: Inference, function: Function, receiver: Value | None) -> bool:
    """Whether the receiver's class gives another color to a method that the plain `function` of a base hands on to.

    `Redis.get` returns what `self.execute` gives, an awaitable; that of a `Pipeline` only notes the command down.
    """
    cls = _below(function, receiver)
    if cls is None:
        return False
    for callee in function.facts.calls:
        name = callee.removeprefix("self.")
        if name != callee and program.counts.has_shapes(name):
            meant, defining = _made_anew(program, function, cls, name)
            if meant is not None and defining is not None and meant.is_async != defining.is_async:
                return True
    return False


def hands_on_otherwise(program: Inference, function: Function, receiver: Value | None) -> bool:
    """Whether an inherited method gives what another one gives that the receiver's class has anew.

    `send_json` of a sync socket returns what `self.send` gives: with an async socket that is something to await.
    """
    cls = _below(function, receiver)
    if cls is None or not function.facts.params:
        return False
    own = ("name", function.facts.params[0][0])
    for node in returned(function.body()):
        if node[KIND] == "call" and node[CALL_FUNC][KIND] == "attr" and node[CALL_FUNC][ATTR_BASE] == own:
            meant, defining = _made_anew(program, function, cls, node[CALL_FUNC][ATTR_NAME])
            if meant is not defining:
                return True
    return False


def _below(function: Function, receiver: Value | None) -> Class | None:
    """The class of the receiver, if it has inherited the method."""
    cls = receiver.cls if isinstance(receiver, Instance) else None
    return cls if isinstance(cls, Class) and function.owner is not None and cls is not function.owner else None


def _made_anew(
    program: Inference, function: Function, cls: Class, name: str
) -> tuple[Function | None, Function | None]:
    """The method of that name that objects of `cls` have, and the one that those of the method's own class have."""
    assert function.owner is not None
    meant, defining = (program.classes.holder(holder_of, name) for holder_of in (cls, function.owner))
    if meant is defining:
        return None, None
    return (
        None if meant is None else meant.module.function(meant.methods[name][-1]),
        None if defining is None else defining.module.function(defining.methods[name][-1]),
    )


def _implementations(program: Inference, function: Function, cls: Class | LibraryClass) -> list[Function]:
    """The methods of that name in the classes that derive from `cls`, without those that say nothing either."""
    if not isinstance(cls, Class):
        return []
    methods = [
        child.module.function(child.methods[function.name][-1])
        for child in program.classes.children(cls)
        if function.name in child.methods
    ]
    return [method for method in methods if not method.is_abstract]


def async_implementations(program: Inference, function: Function, cls: Class | LibraryClass) -> list[Function]:
    """Those of a method without a body, where all of them are async: it is async in all but name.

    One alone may as well be the one that breaks the contract, unless somebody awaits it.
    """
    implementations = (
        _implementations(program, function, cls) if function.is_abstract and not _is_made(program, cls) else []
    )
    if any(program.effects.of(method) != "coroutine" for method in implementations):
        return []
    if _is_left_empty(program, function, cls):
        return []
    return implementations if len(implementations) > 1 or program.counts.is_awaited(function.name) else []


def _is_left_empty(program: Inference, function: Function, cls: Class | LibraryClass) -> bool:
    """Whether objects of a class below have a sync method that does nothing: nothing is to await there."""
    classes = program.classes
    for child in classes.children(cls) if isinstance(cls, Class) else ():
        holder = None if classes.children(child) or is_test(child.module.path) else classes.holder(child, function.name)
        if holder is not None:
            method = holder.module.function(holder.methods[function.name][-1])
            refuses = method.decorated_with("abstractmethod") or any(of_kind(method.body(), "raise"))
            if not refuses and program.effects.of(method) != "coroutine":
                return True
    return False


def _is_made(program: Inference, cls: Class | LibraryClass) -> bool:
    """Whether somebody makes objects of the class itself: then what says nothing does nothing."""
    answers: MutableMapping[str, bool] = program.answers_to("classes that are made")
    if cls.name not in answers:
        users = program.index.functions_naming({cls.name})
        answers[cls.name] = any(call.rpartition(".")[2] == cls.name for user in users for call in user.facts.calls)
    return answers[cls.name]
