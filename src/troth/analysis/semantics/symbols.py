"""The things a project consists of: modules, classes, functions, each a thin handle on its facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from troth.analysis.facts.fields import ATTR_NAME, CALL_FUNC, KIND, NAME_ID
from troth.analysis.facts.model import ABSTRACT, ASYNC, GENERATOR, PARAM_NAME, WAITS, body_of, speaks_of
from troth.analysis.facts.names import function_keys
from troth.analysis.incremental.dependencies import Note

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping

    from troth.analysis.facts.model import ClassFacts, FileFacts, FunctionFacts, ImportFacts, Node, Param

__all__ = ["Class", "Function", "Module"]

V = TypeVar("V")

_RECENT = 12  # bodies that a module keeps: a function is looked at, walked, and asked by rules, mostly in a row


class Module:
    """A file of the project, or of an installed package.

    With a `log`, it notes there what of it is read; see `program.reads`.
    """

    __slots__ = (
        "_bindings",
        "_classes",
        "_facts",
        "_functions",
        "_functions_in",
        "_inner",
        "_keys",
        "_local_imports",
        "_notes",
        "_origins",
        "_packages",
        "_recalled",
        "_scopes",
        "_stars",
        "is_package",
        "log",
        "name",
        "own",
        "path",
        "recent",
    )

    def __init__(
        self, path: str, name: str, facts: FileFacts, *, own: bool = True, log: list[object] | None = None
    ) -> None:
        self.path = path
        self.name = name
        self.log = log
        self._facts = facts
        self.own = own  # of the project itself, so that findings may be reported in it
        self.is_package = path.endswith(("__init__.py", "__init__.pyi"))
        self._bindings: MutableMapping[str, list[object]] | None = None
        self._functions: dict[int, Function] = {}
        self.recent: dict[int, tuple[Node, ...]] = {}  # the last bodies that were asked for, by their functions
        self._classes: dict[int, Class] = {}
        self._local_imports: dict[int, list[ImportFacts]] | None = None
        self._inner: dict[int, dict[str, list[Function | Class]]] | None = None
        self._functions_in: dict[int, list[tuple[int, FunctionFacts]]] | None = None
        self._stars: tuple[ImportFacts, ...] | None = None
        self._origins: dict[str, str] | None = None
        self._keys: list[str] | None = None
        self._packages: frozenset[str] | None = None
        self._recalled: dict[tuple[str, int], tuple[Any, tuple[object, ...] | None]] = {}
        self._notes: dict[object, Note] = {}
        self._scopes = self._note("")  # what is noted of whoever looks into the functions of the file

    def _note(self, name: object) -> Note:
        """What is noted of whoever looks for a name at module level."""
        answer = self._notes.get(name)
        if answer is None:
            answer = self._notes[name] = Note((self, name))
        return answer

    def recalled(self, key: tuple[str, int], work: Callable[[], V]) -> V:
        """What `work` finds out from this file alone: once, as long as the file says the same, for all programs.

        What was read for it is noted again for whoever asks again.
        """
        log = self.log
        recalled = self._recalled.get(key)
        if recalled is not None:
            kept, read = recalled
            if log is None:
                return cast("V", kept)
            if read is not None:  # else it was found out when nobody took notes
                log.extend(read)
                return cast("V", kept)
        start = 0 if log is None else len(log)
        value = work()
        self._recalled[key] = value, None if log is None else tuple(set(log[start:]))
        return value

    @property
    def facts(self) -> FileFacts:
        """All that the file says; whoever reads this depends on all of it."""
        if self.log is not None:
            self.log.append(self)
        return self._facts

    def function(self, index: int) -> Function:
        """The function with this number."""
        own_function = self.own_function(index)
        if self.log is not None:
            self.log.append(own_function)
        return own_function

    def own_function(self, index: int) -> Function:
        """The function with this number, asked for the sake of the file itself, which needs no note."""
        function = self._functions.get(index)
        if function is None:
            function = self._functions[index] = Function(self, index)
        return function

    def cls(self, index: int) -> Class:
        """The class with this number."""
        cls = self._classes.get(index)
        if cls is None:
            cls = self._classes[index] = Class(self, index)
        if self.log is not None:
            self.log.append(cls)
        return cls

    def _forget(self, begun: int) -> None:
        """What was read to make a table is read by whoever looks into it, under the name he looks for."""
        if self.log is not None:
            del self.log[begun:]

    @property
    def stars(self) -> tuple[ImportFacts, ...]:
        """The imports of everything, at module level."""
        if self._stars is None:
            self._stars = tuple(i for i in self._facts.imports if i.name == "*" and i.scope == 0)
        if self.log is not None:
            self.log.append(self._note("*"))
        return self._stars

    @property
    def packages(self) -> frozenset[str]:
        """The first names of all that the file imports, but for what it imports from beside itself."""
        if self.log is not None:
            self.log.append(self._note("."))
        if self._packages is None:
            self._packages = frozenset(
                i.module.partition(".")[0] for i in self._facts.imports if not i.level and i.module
            )
        return self._packages

    def mentioned(self, names: Collection[str]) -> set[str]:
        """Those of `names` that stand somewhere as a value, in a file that the index gave for them and noted."""
        return {mention for mention in self._facts.mentions if mention in names}

    @property
    def exports(self) -> tuple[str, ...] | None:
        """`__all__`, where it is a plain list."""
        if self.log is not None:
            self.log.append(self._note("*"))
        return self._facts.exports

    @property
    def bindings(self) -> Mapping[str, list[object]]:
        """What each name at module level is bound to: functions, classes, imports, `(annotation, value)` pairs."""
        if self._bindings is None:
            start = 0 if self.log is None else len(self.log)
            bindings: MutableMapping[str, list[object]] = {} if self.log is None else _Bindings(self)
            self._bindings = bindings
            facts = self._facts
            for function in range(1, len(facts.functions)):
                f = facts.functions[function]
                if f.parent == 0 and f.owner == -1:
                    bindings.setdefault(f.name, []).append(self.function(function))
            for index, c in enumerate(facts.classes):
                if c.parent == 0 and c.outer == -1:
                    bindings.setdefault(c.name, []).append(self.cls(index))
            for imported in facts.imports:
                if imported.scope == 0 and imported.local and imported.name != "*":
                    bindings.setdefault(imported.local, []).append(imported)
            for name, annotation, value in facts.variables:
                bindings.setdefault(name, []).append((annotation, value))
            self._forget(start)
        return self._bindings

    def binds_anywhere(self, name: str) -> bool:
        """Whether an import, be it inside a function, or a variable of the module has that name."""
        if self.log is not None:
            self.log += (self._note(name), self._scopes)
        return any(i.local == name for i in self._facts.imports) or any(v[0] == name for v in self._facts.variables)

    def imports_somewhere(self, name: str) -> bool:
        """Whether an import, be it inside a function, has that name."""
        if self.log is not None:
            self.log += (self._note(name), self._scopes)
        return any(i.local == name for i in self._facts.imports)

    def imports_module(self, name: str) -> bool:
        """Whether an import, be it inside a function, brings in that module or something out of it."""
        if self.log is not None:
            self.log.append(self._scopes)
        package, _, last = name.rpartition(".")
        return any(i.module == name or (i.module == package and i.name == last) for i in self._facts.imports)

    def imports_of(self, name: str) -> list[ImportFacts]:
        """The imports, be they inside a function, that have that name."""
        if self.log is not None:
            self.log += (self._note(name), self._scopes)
        return [i for i in self._facts.imports if i.local == name]

    def origin(self, name: str) -> str | None:
        """The full name of what a file imports at its top under that name; from beside itself, by its folders."""
        if self.log is not None:
            self.log.append(self._note(name))
        if self._origins is None:
            folders = self.path.split("/")
            self._origins = {}
            for i in self._facts.imports:
                if i.name != "*" and i.scope == 0:
                    home = ".".join((*folders[: -i.level], i.module)) if i.level else i.module
                    self._origins[i.local] = home if i.name is None else f"{home}.{i.name}"
        return self._origins.get(name)

    def binds(self, name: str) -> bool:
        """Whether a name is bound at module level, asked for the sake of the file itself, which needs no note."""
        return dict.__contains__(self.bindings, name)

    def imports_in(self, function: int) -> list[ImportFacts]:
        """The imports that stand inside a function."""
        if self.log is not None:
            self.log.append(self._scopes)
        if self._local_imports is None:
            self._local_imports = {}
            for imported in self._facts.imports:
                if imported.scope:
                    self._local_imports.setdefault(imported.scope, []).append(imported)
        return self._local_imports.get(function, [])

    @property
    def function_keys(self) -> list[str]:
        """A name for each function that stays the same when others come and go."""
        if self._keys is None:
            self._keys = function_keys(self._facts)
        return self._keys

    def functions_in(self, function: int) -> list[tuple[int, FunctionFacts]]:
        """The functions defined inside a function, no methods, in the order of the text."""
        if self.log is not None:
            self.log.append(self._scopes)
        if self._functions_in is None:
            self._functions_in = {}
            for index, f in enumerate(self._facts.functions):
                if f.owner == -1:
                    self._functions_in.setdefault(f.parent, []).append((index, f))
        return self._functions_in.get(function, [])

    def inner(self, function: int) -> dict[str, list[Function | Class]]:
        """The functions and classes defined inside a function."""
        if self._inner is None:
            start = 0 if self.log is None else len(self.log)
            self._inner = {}
            for index, f in enumerate(self._facts.functions):
                if f.parent > 0 and f.owner == -1:
                    self._inner.setdefault(f.parent, {}).setdefault(f.name, []).append(self.function(index))
            for index, c in enumerate(self._facts.classes):
                if c.parent > 0 and c.outer == -1:
                    self._inner.setdefault(c.parent, {}).setdefault(c.name, []).append(self.cls(index))
            self._forget(start)
        if self.log is not None:
            self.log.append(self._scopes)
        return self._inner.get(function, {})


class _Bindings(dict[str, list[object]]):
    """What names at module level are bound to; notes which of them are asked for."""

    __slots__ = ("_module",)

    def __init__(self, module: Module) -> None:
        super().__init__()
        self._module = module

    def _note(self, name: object) -> None:
        module = self._module
        if module.log is not None:
            module.log.append(module._notes.get(name) or module._note(name))

    def __contains__(self, name: object) -> bool:
        self._note(name)
        return super().__contains__(name)

    def __getitem__(self, name: str) -> list[object]:
        self._note(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """What the name is bound to, with a note."""
        self._note(name)
        return super().get(name, default)

    def __iter__(self) -> Iterator[str]:
        log = self._module.log
        if log is not None:
            log.append(self._module)
        return super().__iter__()


class Function:
    """A function or method of the project."""

    __slots__ = ("_locals", "_note", "_origins", "_params", "facts", "index", "module")

    def __init__(self, module: Module, index: int) -> None:
        self.module = module
        self.index = index
        self.facts: FunctionFacts = module._facts.functions[index]
        self._params: dict[str, Param] | None = None
        self._origins: dict[str, str] | None = None
        self._locals: frozenset[str] | None = None
        self._note: Note | None = None

    @property
    def local_names(self) -> frozenset[str]:
        """The names of its parameters, and of what it defines and imports; its variables are not among them."""
        if self._locals is None:
            imported = [item.local for item in self.module.imports_in(self.index)]
            self._locals = frozenset([*self.params, *self.module.inner(self.index), *imported])
        if self.module.log is not None:
            self.module.log.append(self.module._scopes)
        return self._locals

    @property
    def origins(self) -> dict[str, str]:
        """Where those variables come from that are bound in one simple way only."""
        if self._origins is None:
            self._origins = dict(self.facts.origins)
        return self._origins

    @property
    def key(self) -> str:
        """A name of its own in the project, which stays the same when other functions come and go."""
        return f"{self.module.path} {self.module.function_keys[self.index]}"

    def speaks_of(self, names: Iterable[str]) -> bool:
        """Whether one of `names` stands somewhere in its body, which is not read for that, and noted all the same."""
        if self.module.log is not None:
            if self._note is None:
                self._note = Note(("body", self))
            self.module.log.append(self._note)
        return speaks_of(self.facts, names)

    def body(self) -> tuple[Node, ...]:
        """Its statements."""
        if self.module.log is not None:
            if self._note is None:
                self._note = Note(("body", self))
            self.module.log.append(self._note)
        recent = self.module.recent
        answer = recent.get(self.index)
        if answer is None:
            answer = body_of(self.facts)
            if len(recent) == _RECENT:
                del recent[next(iter(recent))]
            recent[self.index] = answer
        return answer

    @property
    def params(self) -> dict[str, Param]:
        """Its parameters by name."""
        if self._params is None:
            self._params = {param[PARAM_NAME]: param for param in self.facts.params}
        return self._params

    @property
    def name(self) -> str:
        """Its name alone."""
        return self.facts.name

    @property
    def qualname(self) -> str:
        """Its name with the classes and functions around it."""
        return self.facts.qualname

    @property
    def owner(self) -> Class | None:
        """The class it is a method of."""
        number = self.facts.owner
        return self.module.cls(number) if number >= 0 else None

    @property
    def parent(self) -> Function | None:
        """The function around it; None at module level."""
        return self.module.function(self.facts.parent) if self.facts.parent > 0 else None

    @property
    def class_around(self) -> Class | None:
        """The class whose method it is, or in a method of which it is defined."""
        method: Function | None = self
        while method is not None and method.owner is None:
            method = method.parent
        return None if method is None else method.owner

    @property
    def is_async(self) -> bool:
        """Written `async def`."""
        return bool(self.facts.flags & ASYNC)

    @property
    def is_generator(self) -> bool:
        """Has a `yield` of its own."""
        return bool(self.facts.flags & GENERATOR)

    @property
    def waits(self) -> bool:
        """Has an `await`, an `async for` or an `async with` of its own, not only in a function inside it."""
        return bool(self.facts.flags & WAITS)

    @property
    def is_abstract(self) -> bool:
        """Its body says nothing."""
        return bool(self.facts.flags & ABSTRACT)

    @property
    def place(self) -> tuple[str, int]:
        """Path and line of its definition."""
        return self.module.path, self.facts.at[0]

    def decorated_with(self, *names: str) -> bool:
        """Whether one of its decorators is called one of `names`, whatever it is imported from."""
        for decorator in self.facts.decorators:
            node = decorator[CALL_FUNC] if decorator[KIND] == "call" else decorator
            if node[KIND] == "name" and node[NAME_ID] in names:
                return True
            if node[KIND] == "attr" and node[ATTR_NAME] in names:
                return True
        return False


class Class:
    """A class of the project."""

    __slots__ = ("annotations", "facts", "index", "methods", "module", "values")

    def __init__(self, module: Module, index: int) -> None:
        self.module = module
        self.index = index
        self.facts: ClassFacts = module._facts.classes[index]
        self.methods = dict(self.facts.methods)
        self.annotations = dict(self.facts.annotations)
        self.values = dict(self.facts.values)

    @property
    def name(self) -> str:
        """Its name alone."""
        return self.facts.name

    @property
    def qualified(self) -> str:
        """Its name with module and outer classes."""
        return f"{self.module.name}.{self.facts.qualname}"

    @property
    def place(self) -> tuple[str, int]:
        """Path and line of its definition."""
        return self.module.path, self.facts.at[0]
