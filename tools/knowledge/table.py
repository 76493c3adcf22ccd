"""Find which part of a package's surface is worth keeping, and writes it in the form of a table."""

from dataclasses import dataclass, field
from pathlib import Path

from tools.knowledge.annotations import Type
from tools.knowledge.signatures import Signature
from tools.knowledge.surface import ClassSurface, Surface
from tools.knowledge.table_text import as_text
from tools.knowledge.words import words_of
from troth.analysis.knowledge import ClassEntry, Library, ModuleEntry, Sig, Tables

__all__ = ["make_tables", "write_table"]

_KEPT_DUNDERS = {
    "__aenter__", "__aexit__", "__aiter__", "__anext__", "__await__", "__call__", "__enter__", "__exit__", "__iter__",
    "__getitem__",
}  # fmt: skip
_PROMISES = {"collections.abc.Awaitable", "collections.abc.Coroutine", "contextlib.AbstractAsyncContextManager"}
_STRONG_ROLES = {"consumes", "coroutine_function", "either"}


def make_tables(
    surface: Surface, tops: frozenset[str], *, keep_plain: bool = False
) -> dict[str, dict[str, ModuleEntry]]:
    """The modules of each table: what is async, what leads to it, and what stands beside it in the same class."""
    tables: dict[str, dict[str, ModuleEntry]] = {}
    for name, module in _Table(surface, tops, keep_plain).make().items():
        tables.setdefault(name.partition(".")[0], {})[name] = module
    return tables


def write_table(path: Path, library: Library, tables: Tables) -> int:
    """Write the table of a package that stands among `tables`; gives its size in bytes."""
    modules = {home: library.module(home) for home in library.modules}
    table = {"source": library.source, "modules": modules, "words": words_of(library, tables)}
    path.write_bytes(as_text(table).encode("ascii"))
    return path.stat().st_size


@dataclass(slots=True)
class _Table:
    surface: Surface
    tops: frozenset[str]
    keep_plain: bool
    """Whether classes that nothing async mentions are kept by name."""
    leading: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    modules: dict[str, ModuleEntry] = field(default_factory=dict)
    _foreign: dict[str, bool] = field(default_factory=dict)

    @property
    def bundled(self) -> Tables:
        return self.surface.kinds.bundled

    def make(self) -> dict[str, ModuleEntry]:
        self._find_leading()
        self._reach()
        for name in sorted(self.kept):
            self._write(name)
        homes = set(self.modules)
        for alias, target in sorted(self.surface.exports.items()):
            self._write_export(alias, target, homes)
        return {name: self.modules[name] for name in sorted(self.modules) if any(self.modules[name].values())}

    # which classes lead to something async

    def _find_leading(self) -> None:
        waiting = dict(self.surface.classes)
        grown = True
        while grown:
            grown = False
            for name, cls in list(waiting.items()):
                if self._class_leads(cls):
                    self.leading.add(name)
                    del waiting[name]
                    grown = True

    def _class_leads(self, cls: ClassSurface) -> bool:
        if any(self._leads(base) for base in cls.bases):
            return True
        if any(self._sig_leads(sig) for sig in cls.methods.values()):
            return True
        return any(self._leads(type_) for name, type_ in cls.attributes.items() if not name.startswith("_"))

    def _sig_leads(self, sig: Signature) -> bool:
        return bool(sig.color) or any(role in _STRONG_ROLES for _, role in sig.roles) or self._leads(sig.returns)

    def _leads(self, type_: Type) -> bool:
        if type_.name in _PROMISES or type_.name in self.leading or type_.name.startswith("collections.abc.Async"):
            return True
        if "." in type_.name and type_.name not in self.surface.classes and self._foreign_leads(type_.name):
            return True
        return any(self._leads(arg) for arg in type_.args)

    def _foreign_leads(self, name: str) -> bool:
        if name not in self._foreign:
            entry = self.bundled.find(name) if not name.startswith(("typing.", "collections.")) else None
            leads = False
            if entry is not None and entry.kind == "class" and not self._is_own(name):
                leads = not self.bundled.class_(entry.name).get("s")
            self._foreign[name] = leads
        return self._foreign[name]

    def _is_own(self, name: str) -> bool:
        return name.partition(".")[0] in self.tops

    # what a user of the package can get hold of

    def _reach(self) -> None:
        waiting = [
            name for name, (home, local) in self.surface.homes.items() if _is_public(home) and _is_public_name(local)
        ]
        waiting += [target for alias, target in self.surface.exports.items() if _is_public(alias.rpartition(".")[0])]
        waiting = [
            name for name in waiting if self.keep_plain or name not in self.surface.classes or name in self.leading
        ]
        while waiting:
            name = waiting.pop()
            if name in self.kept or name not in self.surface.homes or not self._is_own(name):
                continue
            self.kept.add(name)
            waiting += self._mentioned(name)

    def _mentioned(self, name: str) -> list[str]:
        if (sig := self.surface.functions.get(name)) is not None:
            return _names_in(sig.returns)
        if (cls := self.surface.classes.get(name)) is not None:
            names = [base.name for base in cls.bases] if name in self.leading or self.keep_plain else []
            for method, sig in cls.methods.items():
                if name in self.leading and self._is_shown(method, sig):
                    names += _names_in(sig.returns)
            for attribute, type_ in cls.attributes.items():
                if name in self.leading and not attribute.startswith("_"):
                    names += _names_in(type_)
            return names
        return _names_in(self.surface.variables[name])

    def _is_shown(self, method: str, sig: Signature) -> bool:
        if method.startswith("__") and method.endswith("__"):
            return method in _KEPT_DUNDERS or bool(sig.roles)
        if method.startswith("__"):
            return False
        return not method.startswith("_") or bool(sig.color)

    # writing

    def _module(self, home: str) -> ModuleEntry:
        return self.modules.setdefault(home, {})

    def _write(self, name: str) -> None:
        home, local = self.surface.homes[name]
        if (sig := self.surface.functions.get(name)) is not None:
            if self._sig_leads(sig) or sig.roles:
                self._module(home).setdefault("f", {})[local] = self._sig(sig)
            elif _is_public_name(local):
                module = self._module(home)
                module["s"] = f"{module.get('s', '')} {local}".strip()
            else:
                return
        elif (cls := self.surface.classes.get(name)) is not None:
            self._module(home).setdefault("c", {})[local] = self._class(name, cls)
        elif self._leads(type_ := self.surface.variables[name]):
            self._module(home).setdefault("v", {})[local] = type_.written()
        else:
            return
        self.written.add(name)

    def _class(self, name: str, cls: ClassSurface) -> ClassEntry:
        if name not in self.leading and not self.keep_plain:
            return {"s": 1}
        written: ClassEntry = {}
        bases = [base.written().partition("[")[0] for base in cls.bases if base.written()]
        if bases:
            written["b"] = bases
        if name not in self.leading:
            written["s"] = 1
            return written
        methods = {method: self._sig(sig) for method, sig in cls.methods.items() if self._is_shown(method, sig)}
        if methods:
            written["m"] = methods
        attributes = {
            attribute: type_.written()
            for attribute, type_ in cls.attributes.items()
            if not attribute.startswith("_") and self._worth(type_)
        }
        if attributes:
            written["a"] = attributes
        return written

    def _sig(self, sig: Signature) -> Sig:
        keeps = bool(sig.color) or self._worth(sig.returns)
        return (
            sig.flags,
            sig.returns.written() if keeps else "",
            {key: role for key, role in sig.roles if role != "any"},
        )

    def _worth(self, type_: Type) -> bool:
        """Whether a type tells a checker something: it leads on, or is a class of this package."""
        return self._leads(type_) or any(
            name in self.surface.classes or name == "typing.Self" for name in _names_in(type_)
        )

    def _write_export(self, alias: str, target: str, homes: set[str]) -> None:
        home, _, local = alias.rpartition(".")
        if not _is_public(home) or not self._is_own(home):
            return
        is_tabled = target in self.written
        if not self._is_own(target):
            entry = self.bundled.find(target)
            is_tabled = entry is not None and (
                entry.kind == "module" or self._foreign_leads(target) or bool(entry.sig and entry.sig[0])
            )
        elif target in self.surface.names.modules:
            is_tabled = target in homes
        if is_tabled:
            self._module(home).setdefault("x", {})[local] = target


def _names_in(type_: Type) -> list[str]:
    return [type_.name, *(name for arg in type_.args for name in _names_in(arg))]


def _is_public(module: str) -> bool:
    return not any(part.startswith("_") for part in module.split(".")[1:])


def _is_public_name(local: str) -> bool:
    return not any(part.startswith("_") for part in local.split("."))
