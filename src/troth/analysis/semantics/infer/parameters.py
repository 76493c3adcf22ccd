"""What a parameter stands for inside its function, by its annotation, its default, its neighbours or its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.fields import ATTR_NAME, CALL_ARGS, CALL_FUNC, KIND, NAME_ID
from troth.analysis.semantics.infer.framework_parameters import given_by_framework
from troth.analysis.semantics.infer.pytest_fixtures import takes_fixtures
from troth.analysis.semantics.values import (
    NONE,
    OF_CLASS,
    Builtin,
    ClassObject,
    External,
    FunctionValue,
    Instance,
    Value,
    members_of,
)

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

    from troth.analysis.facts.model import Node, Param
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.resolve.library import LibraryClass
    from troth.analysis.semantics.symbols import Class, Function, Module

__all__ = ["Parameters"]

_INJECTORS = frozenset({"Depends", "Security", "Inject", "Provide"})


class Parameters:
    """The values of parameters, each found out once."""

    def __init__(self, program: Inference) -> None:
        self._program = program
        self._known: MutableMapping[tuple[Function, str], Value | None] = program.answers()
        self._elsewhere: MutableMapping[tuple[Class, str], Value | None] = program.answers()

    def of(self, function: Function, param: Param) -> Value | None:
        """What a parameter stands for inside its function."""
        key = (function, param[0])
        if key not in self._known:
            self._known[key] = None  # while it is being found out
            self._known[key] = self._found(function, param)
        return self._known[key]

    def _found(self, function: Function, param: Param) -> Value | None:
        name, annotation, default, kind = param
        module = function.module
        owner = function.owner
        value: Value | None = None
        if annotation is not None:
            why = (f"`{name}` is {OF_CLASS} (annotated in `{function.qualname}`)", module.path, function.facts.at[0])
            value = self._program.types.annotated(annotation, module, function.parent, owner, why)
        elif owner is not None and function.facts.params[0][0] == name and not function.decorated_with("staticmethod"):
            is_class = function.decorated_with("classmethod") or function.name in {"__new__", "__init_subclass__"}
            return ClassObject(owner) if is_class else Instance(owner)
        if isinstance(value, External) and value.path.startswith(("typing.", "collections.abc.")):
            value = None  # `Callable`, and nothing more
        if kind == "*":
            return Builtin("tuple", (value,))
        if kind == "**":
            return Builtin("dict", (Builtin("str"), value))
        if default is not None and default[KIND] == "call":
            value = self._given(value, self.injected((default,), module, function.parent), function, name)
        if value is None and annotation is None and takes_fixtures(function):
            value = self._program.fixtures.value(function, name)
        if value is None and (annotation is None or annotation == ("name", "Any")):
            value = (
                (self._as_elsewhere(owner, name) if owner is not None else None)
                or self.by_convention(name)
                or given_by_framework(self._program, function, name)
            )
        elif name == "call_next" and (value is None or isinstance(value, External)):
            value = given_by_framework(self._program, function, name)
        return value

    def _given(self, declared: Value | None, injected: Value | None, function: Function, name: str) -> Value | None:
        """What a parameter is given: the async twin of the class that it is annotated with, where its default says so.

        `db: Session = Depends(get_db)` was left as it was when `get_db` came to give an `AsyncSession`; nothing holds
        annotations against it.
        """
        if declared is None:
            return injected
        if not isinstance(declared, Instance) or not isinstance(injected, Instance):
            return declared
        if injected.cls.name != f"Async{declared.cls.name}":
            return declared
        why = (f"`{name}` is {OF_CLASS} (given by its `Depends`)", function.module.path, function.facts.at[0])
        return Instance(injected.cls, injected.args, why)

    def _as_elsewhere(self, owner: Class, name: str) -> Value | None:
        """The class that every annotated parameter of that name has in the methods of a class, where they agree."""
        key, module = (owner, name), owner.module
        if key not in self._elsewhere:
            self._elsewhere[key] = None
            classes: set[Class | LibraryClass] = set()
            for function in (module.function(index) for indexes in owner.methods.values() for index in indexes):
                for param in function.facts.params:
                    if param[0] == name and param[1] is not None and param[1] != ("name", "Any"):
                        resolved = [m for m in members_of(self.of(function, param)) if m is not NONE]
                        if len(resolved) != 1 or not isinstance(resolved[0], Instance):
                            return None
                        classes.add(resolved[0].cls)
            if len(classes) == 1:
                why = (f"`{name}` is {OF_CLASS} (annotated in other methods of `{owner.name}`)", *owner.place)
                self._elsewhere[key] = Instance(classes.pop(), (), why, guess=True)
        return self._elsewhere[key]

    def injected(self, nodes: Sequence[Node], module: Module, function: Function | None) -> Value | None:
        """What `Depends(get_store)` puts into a parameter."""
        for node in nodes:
            if node[KIND] != "call" or not node[CALL_ARGS]:
                continue
            callee = node[CALL_FUNC]
            if (
                callee[NAME_ID] if callee[KIND] == "name" else callee[ATTR_NAME] if callee[KIND] == "attr" else ""
            ) in _INJECTORS:
                value = self._program.static(module, function).value(node[CALL_ARGS][0])
                if isinstance(value, FunctionValue):
                    return self._program.calls.result(value)
                if isinstance(value, ClassObject):
                    return self._program.types.instance(value.cls, (), None)
        return None

    def by_convention(self, name: str) -> Value | None:
        """The class that an untyped `order_store` is named after, if the project has exactly one `OrderStore`."""
        words = name.strip("_")
        if "_" not in words:
            return None
        classes_like = self._program.index.classes_like(words.replace("_", "").lower())
        if len(classes_like) != 1:
            return None
        cls = classes_like[0]
        return Instance(cls, (), (f"`{name}` is named after it", *cls.place), guess=True)
