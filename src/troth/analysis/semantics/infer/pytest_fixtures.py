"""Find which fixture a test is given under a name, as pytest looks for it, and what that fixture gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.facts.names import callee_text
from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.symbols import Class, Function, Module
from troth.analysis.semantics.values import OF_CLASS, FunctionValue, Instance, Value

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from troth.analysis.semantics.resolve.names import Names
    from troth.analysis.semantics.resolve.project_files import ProjectFiles

__all__ = ["Fixtures", "takes_fixtures"]

_DEEPEST = 8  # fixtures that fixtures are given


def takes_fixtures(function: Function) -> bool:
    """Whether pytest fills the parameters of a function."""
    return function.name.startswith("test") or function.decorated_with("fixture")


class Fixtures:
    """The fixtures that files can see, each looked for once."""

    def __init__(self, files: ProjectFiles, names: Names, result: Callable[[FunctionValue], Value | None]) -> None:
        self._files = files
        self._names = names
        self._result = result  # what a call of a function gives
        self._known: MutableMapping[tuple[str, str], Function | None] = files.answers()

    def value(self, function: Function, name: str) -> Value | None:
        """What the fixture of that name gives to a test or to another fixture."""
        fixture = self._named(function.module, name, function.owner)
        if fixture is None and name == "tmp_path":
            why = (f"`tmp_path` of pytest is {OF_CLASS}", *function.place)
            return Instance(library.library_class("pathlib.Path"), (), why)
        if fixture is None or fixture is function or self._is_fed_otherwise(fixture, function.module, 0):
            return None
        return self._result(FunctionValue(fixture, Instance(fixture.owner) if fixture.owner else None))

    def may_be_coroutine(self, function: Function, name: str) -> bool:
        """Whether the fixture is `async def` and made by pytest's own decorator, which awaits nothing.

        A plugin may await it, by the settings or by the mark of the test; some projects await it in the test.
        """
        fixture = self._named(function.module, name, function.owner) if takes_fixtures(function) else None
        if fixture is None or not fixture.is_async:
            return False
        return not any(callee_text(decorator).startswith("pytest_asyncio.") for decorator in fixture.facts.decorators)

    def _is_fed_otherwise(self, fixture: Function, module: Module, depth: int) -> bool:
        """Whether a fixture from elsewhere is given, in that module, another one of the same name than at its home."""
        if fixture.module is module or depth > _DEEPEST:
            return False
        for name in fixture.params:
            original = self._named(fixture.module, name, None)
            if original is None or original is fixture:
                continue
            if self._named(module, name, None) is not original or self._is_fed_otherwise(original, module, depth + 1):
                return True
        return False

    def _named(self, module: Module, name: str, owner: Class | None) -> Function | None:
        if owner is not None and name in owner.methods:
            method = module.function(owner.methods[name][-1])
            if method.decorated_with("fixture"):
                return method
        key = (module.path, name)
        if key not in self._known:
            self._known[key] = self._find(module, name)
        return self._known[key]

    def _find(self, module: Module, name: str) -> Function | None:
        fixture = self._in(module, name)
        if fixture is not None:
            return fixture
        folder = module.path.rpartition("/")[0]
        places = self._files.places
        while True:
            path = f"{folder}/conftest.py" if folder else "conftest.py"
            if path in places and path != module.path:
                fixture = self._in(self._files.module(path), name)
                if fixture is not None:
                    return fixture
            if not folder:
                return None
            folder = folder.rpartition("/")[0]

    def _in(self, module: Module, name: str) -> Function | None:
        value = self._names.at_module(module, name) if self._names.binds(module, name) else None
        if (
            isinstance(value, FunctionValue)
            and isinstance(value.function, Function)
            and value.function.decorated_with("fixture")
        ):
            return value.function
        return None
