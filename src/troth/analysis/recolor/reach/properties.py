"""Find what keeps a property from becoming a method: classes that have an attribute where others have the property."""

from troth.analysis.semantics import Program
from troth.analysis.semantics.queries.color_requirements import is_protocol
from troth.analysis.semantics.symbols import Class, Function

__all__ = ["kept_property"]


def kept_property(program: Program, function: Function) -> str | None:
    """Why whoever reads the property could not call it instead; None if all could."""
    owner, name = function.owner, function.name
    if owner is None:
        return "is a property outside of a class"
    related = [cls for cls in program.classes.order(owner) if isinstance(cls, Class)]
    related += program.classes.children(owner)
    protocols = [cls for cls in _classes(program) if is_protocol(cls) and cls not in related]
    for cls in (*related, *protocols):
        fields = {*cls.annotations, *cls.values, *(attribute[0] for attribute in cls.facts.self_attributes)}
        if name in fields:
            path, line = cls.place
            return f"is a property, and `{cls.name}` ({path}:{line}) has an attribute of that name"
    return None


def _classes(program: Program) -> list[Class]:
    return [module.cls(index) for module in program.own_modules() for index in range(len(module.facts.classes))]
