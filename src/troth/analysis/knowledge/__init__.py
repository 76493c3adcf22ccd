"""What is known of the standard library and of third-party packages that may not be installed.

`load("aiohttp")` gives the table of one top-level package, `find("aiohttp.ClientSession.get")` follows re-exports and
bases through all tables, and `troth.analysis.knowledge.semantics` tells what no signature says: what blocks, what
spawns, which slot wants which color. The tables are written by `python -m tools.knowledge build` from the packages
themselves; nothing is read before it is asked for.
"""

from troth.analysis.knowledge.library import (
    Attributes,
    ClassEntry,
    Library,
    ModuleEntry,
    Role,
    Roles,
    Sig,
    Word,
    bundled,
    load,
)
from troth.analysis.knowledge.lookup import Found, Tables, bases, class_, find, fulfilled, is_only_async, method

__all__ = [
    "Attributes",
    "ClassEntry",
    "Found",
    "Library",
    "ModuleEntry",
    "Role",
    "Roles",
    "Sig",
    "Tables",
    "Word",
    "bases",
    "bundled",
    "class_",
    "find",
    "fulfilled",
    "is_only_async",
    "load",
    "method",
]
