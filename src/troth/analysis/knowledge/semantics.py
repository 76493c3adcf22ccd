"""What no signature says: what blocks, what spawns, which slot wants which color, what frameworks await.

Each name stands under every spelling it has in its package: as users write it (`requests.Session.get`) and as it is
defined (`requests.sessions.Session.get`). For a method of an object, ask for each class in its lineage. The file is
written by `python -m tools.knowledge build semantics`, which verifies every name against the real package.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

__all__ = [
    "Blocking",
    "Effect",
    "ModuleHook",
    "Semantics",
    "Slot",
    "Spawner",
    "Verb",
    "Wanted",
    "known_tops",
    "semantics",
]

Wanted = Literal["plain", "async", "either"]
"""The color of function that a slot takes. `plain`: what it returns is never awaited."""

Effect = Literal[
    "keeps",
    "caches",
    "async_cache",
    "manager",
    "async_manager",
    "wants_plain",
    "wants_async",
    "either",
    "makes_async",
    "makes_sync",
]
"""What a decorator does.

keeps          gives back a function of the same color
caches         keeps the first result; of an async function that is a coroutine, which can be awaited only once
async_cache    keeps awaited results; the function must be async
manager        makes a context manager of a sync generator
async_manager  makes an async context manager of an async generator
wants_plain    what it makes is called and never awaited: an async function would not run
wants_async    what it makes is awaited: a sync function fails
either         the framework calls the function, and awaits what comes back if it has to
makes_async    gives an async function whatever it gets
makes_sync     gives a sync function whatever it gets
"""

Verb = Literal["awaits", "either", "calls"]
"""What a framework does with a hook: awaits it, calls it and awaits if it has to, or calls it and never awaits."""

_Positions: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Blocking:
    """A call that holds up its thread."""

    waits_for: Literal["sleep", "network", "subprocess", "lock", "queue", "future", "database", "file", "person"]
    twin: str
    """What an async program says instead: a fully qualified name, or words."""
    unless: tuple[str, ...] = ()
    """Parameters (names and positions) that turn the waiting off when they are given as `False`."""


@dataclass(frozen=True, slots=True)
class Spawner:
    """A call that takes an awaitable, or a function that makes one, and sees to it."""

    parameter: _Positions
    """Where it takes it: a position and a name, or `*`."""
    takes: Literal["coroutine", "function", "either", "plain", "any"]
    """`coroutine`: the awaitable itself; `any`: that or a function; else a function: async, of either color, sync."""
    gives: Literal["task", "future", "thread_future", "awaitable", "iterator", "value", "nothing", "function"]
    keeper: Literal["caller", "callee", "loop"]
    """Who must hold what comes back for the work to be done: nobody but the `caller` means it must not be dropped."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Parameters that take a function, by position and by name."""

    wants: Mapping[str, Wanted]


@dataclass(frozen=True, slots=True)
class ModuleHook:
    """Functions that a framework finds by name in modules of certain files."""

    package: str
    files: tuple[str, ...]
    names: tuple[str, ...]
    verb: Verb


@dataclass(frozen=True, slots=True)
class Semantics:
    """All of it, by fully qualified name."""

    blocking: Mapping[str, Blocking]
    runs_a_loop: Mapping[str, Literal["runs", "crosses"]]
    """`runs`: starts a loop on this thread, which fails where one runs; `crosses`: waits for a loop of another one."""
    spawners: Mapping[str, Spawner]
    slots: Mapping[str, Slot]
    decorators: Mapping[str, Effect]
    hooks: Mapping[str, Mapping[str, Verb]]
    """Base class → pattern of a method's name → what is done with it."""
    module_hooks: tuple[ModuleHook, ...]

    def hook(self, base: str, method: str) -> Verb | None:
        """What the framework does with `method` of a class derived from `base`; exact names before patterns."""
        patterns = self.hooks.get(base, {})
        if method in patterns:
            return patterns[method]
        return next((verb for pattern, verb in patterns.items() if fnmatchcase(method, pattern)), None)


@cache
def semantics() -> Semantics:
    """The bundled semantics; read when first asked for."""
    read = json.loads(Path(__file__).with_name("semantics.json").read_text(encoding="utf-8"))
    return Semantics(
        {name: Blocking(kind, twin, tuple(unless)) for name, (kind, twin, unless) in read["blocking"].items()},
        read["runs_a_loop"],
        {name: Spawner(tuple(where), *options) for name, (where, *options) in read["spawners"].items()},
        {name: Slot(wants) for name, wants in read["slots"].items()},
        read["decorators"],
        read["hooks"],
        tuple(ModuleHook(pkg, tuple(files), tuple(names), verb) for pkg, files, names, verb in read["module_hooks"]),
    )


@cache
def known_tops() -> frozenset[str]:
    """The packages of which something is known here, be there a table of their functions or not."""
    bundled = semantics()
    names = (
        *bundled.blocking,
        *bundled.runs_a_loop,
        *bundled.spawners,
        *bundled.slots,
        *bundled.decorators,
        *bundled.hooks,
    )
    return frozenset(name.partition(".")[0] for name in names)
