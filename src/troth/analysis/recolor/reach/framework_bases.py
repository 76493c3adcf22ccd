"""Decide what base classes of libraries call of the classes that derive from them."""

from troth.analysis.facts.names import last_name
from troth.analysis.knowledge.semantics import semantics
from troth.analysis.semantics import Program
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.symbols import Class, Function

__all__ = ["has_passive_bases", "is_hook"]

# Those of traitlets: they call nothing of what derives from them but by decorators and by names that begin with `_`.
_PASSIVE = frozenset({"HasTraits", "Configurable", "LoggingConfigurable", "SingletonConfigurable"})


def has_passive_bases(program: Program, cls: Class) -> bool:
    """Whether all bases that are not known are classes, by their names, that call no method of others."""
    written = [
        base for ancestor in program.classes.order(cls) if isinstance(ancestor, Class) for base in _bases(ancestor)
    ]
    names = {ancestor.name for ancestor in program.classes.order(cls) if ancestor is not None}
    unknown = {base for base in written if base not in names}
    return bool(unknown) and unknown <= _PASSIVE


def _bases(cls: Class) -> list[str]:
    return [last_name(base[1] if base[0] == "index" else base) or "?" for base in cls.facts.bases]


def is_hook(program: Program, function: Function) -> bool:
    """Whether a framework calls the method and takes it in either color: hardly anybody else calls it."""
    bases = program.classes.order(function.owner) if function.owner is not None else ()
    return any(
        isinstance(base, LibraryClass) and semantics().hook(base.qualified, function.name) == "either" for base in bases
    )
