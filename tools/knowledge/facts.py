"""How the seed lists are read: names that stand for several, fields, and which package each belongs to."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tools.knowledge.seeds.blocking import BLOCKING, RUNS_A_LOOP
from tools.knowledge.seeds.decorating import DECORATORS
from tools.knowledge.seeds.hooking import HOOKS, MODULE_HOOKS
from tools.knowledge.seeds.spawning import SLOTS, SPAWNERS

__all__ = ["Fact", "read_facts"]

_TEXTS = {
    "blocking": BLOCKING,
    "runs_a_loop": RUNS_A_LOOP,
    "spawners": SPAWNERS,
    "slots": SLOTS,
    "decorators": DECORATORS,
    "hooks": HOOKS,
    "module_hooks": MODULE_HOOKS,
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of a seed list, for one name."""

    section: str
    name: str
    fields: tuple[str, ...]

    @property
    def top(self) -> str:
        """The top-level package that has to bear it out."""
        return self.name.partition(".")[0]

    @property
    def parameters(self) -> list[str]:
        """The parameters that the named thing must have."""
        if self.section in {"spawners", "slots"}:
            return self.fields[0].split()
        if self.section == "blocking" and len(self.fields) > 2:
            return self.fields[2].split()
        return []

    @property
    def words(self) -> list[str]:
        """Names of hooks: on the class, or at least somewhere in the source of the framework that calls them."""
        if self.section == "hooks":
            return self.fields[0].split()
        return self.fields[1].split() if self.section == "module_hooks" else []


def read_facts() -> list[Fact]:
    """All facts of all lists, in order."""
    return list(_read())


def _read() -> Iterator[Fact]:
    for section, text in _TEXTS.items():
        whole = re.sub(r",\n +", ",", text)
        whole = re.sub(r"\n +", " ", whole)
        for line in whole.splitlines():
            if not line or line.startswith("#"):
                continue
            names, *fields = (part.strip() for part in line.split("|"))
            for name in names.split():
                for each in _expand(name):
                    yield Fact(section, each, tuple(fields))


def _expand(name: str) -> Iterator[str]:
    braces = re.fullmatch(r"(.*)\{(.*)\}(.*)", name)
    if braces is None:
        yield name
        return
    before, choices, after = braces.groups()
    for choice in choices.split(","):
        yield f"{before}{choice}{after}"
