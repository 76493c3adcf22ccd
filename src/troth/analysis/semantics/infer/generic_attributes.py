"""The attributes of libraries' classes that have the type which the class is told in brackets.

`entry: ConfigEntry[Hub]` has a `Hub` in `entry.runtime_data`. The tables tell what can be said without the brackets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.semantics.resolve import library
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.symbols import Class
from troth.analysis.semantics.values import ClassObject, Instance, Value

if TYPE_CHECKING:
    from troth.analysis.semantics.program import Program

__all__ = ["told_in_brackets"]

# Which of the types in the brackets it is.
_PLACES = {
    "homeassistant.config_entries.ConfigEntry": {"runtime_data": 0},
    "homeassistant.helpers.update_coordinator.BaseCoordinatorEntity": {"coordinator": 0},
    "homeassistant.helpers.update_coordinator.CoordinatorEntity": {"coordinator": 0},
    "homeassistant.helpers.update_coordinator.DataUpdateCoordinator": {"data": 0},
    "discord.interactions.Interaction": {"client": 0},
    "discord.ext.commands.context.Context": {"bot": 0},
    "disnake.ext.commands.context.Context": {"bot": 0},
}


def told_in_brackets(program: Program, cls: LibraryClass, name: str, receiver: Value) -> Value | None:
    """What `receiver.name` is, if `cls`, its class or a base of it, leaves that to what stands in its brackets."""
    place = _PLACES.get(cls.qualified, {}).get(name)
    if place is None or not isinstance(receiver, Instance):
        return None
    if isinstance(receiver.cls, LibraryClass):
        return receiver.args[place] if place < len(receiver.args) else None
    owners = [one for one in program.classes.order(receiver.cls) if isinstance(one, Class)]
    for owner, base in [(one, base) for one in owners for base in one.facts.bases if base[0] == "index"]:
        value = program.static(owner.module).value(base[1])
        known = value.cls if isinstance(value, ClassObject) else None
        if isinstance(known, LibraryClass) and cls.qualified in library.lineage(known.qualified):
            items = base[2][1] if base[2][0] == "tuple" else (base[2],)
            return program.types.annotated(items[place], owner.module) if place < len(items) else None
    return None
