"""`async_to_sync` of asgiref.

What it finds: uses of asgiref's `async_to_sync`, for a project that wants to leave it: `troth fix --select migrate`.
Why it matters: `async_to_sync` refuses to work inside a running loop and starts a thread for every call.
`troth.bridge.sync` has the same shape, works in both places, and needs no thread.
How sure the fix is: sure where the project hands nothing to threads through asgiref: no `sync_to_async`, no Django, no
Channels. Elsewhere it is likely: in a thread that asgiref has started, `async_to_sync` runs the coroutine in the loop
that started the thread, and the bridge runs it in a loop of that thread. What belongs to the first loop, such as a
client that was opened there, does not work in the second.
How to repair: where an option such as `force_new_loop` is given, decide by hand; `bridge.sync` chooses the loop itself.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from troth.analysis.findings import Fix, Reason
from troth.analysis.incremental.project_queries import part
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.migrate._library_uses import library_file, packages_of
from troth.analysis.rules.migrate._places import enclosing
from troth.analysis.rules.registry import Case, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.facts.model import FileFacts
    from troth.analysis.findings import Finding, Safety
    from troth.analysis.rules.migrate._library_uses import LibraryFile, LibraryUse
    from troth.analysis.semantics import Program

_NAME = "asgiref.sync.async_to_sync"
CASES = [
    Case(
        "called at once",
        bad="from asgiref.sync import async_to_sync\nasync def f(n): ...\ndef main():\n    return async_to_sync(f)(n=1)  # here\n",
        fixed="from troth import bridge\nasync def f(n): ...\ndef main():\n    return bridge.sync(f)(n=1)  # here\n",
    ),
    Case(
        "as a decorator",
        bad="import asgiref.sync\n@asgiref.sync.async_to_sync  # here\nasync def load(): ...\n",
        fixed="from troth import bridge\n@bridge.sync  # here\nasync def load(): ...\n",
    ),
    Case(
        "several in one file",
        bad="from asgiref.sync import async_to_sync\nasync def f(): ...\nasync def g(): ...\na = async_to_sync(f)  # here\nb = async_to_sync(g)  # here\n",
        fixed="from troth import bridge\nasync def f(): ...\nasync def g(): ...\na = bridge.sync(f)  # here\nb = bridge.sync(g)  # here\n",
    ),
    Case(
        "an option that has no counterpart",
        bad="from asgiref.sync import async_to_sync\nasync def f(): ...\nmain = async_to_sync(f, force_new_loop=True)  # here\n",
    ),
    Case("a namesake", good="def async_to_sync(f):\n    return f\nasync def f(): ...\nmain = async_to_sync(f)\n"),
]


@rule("TR902", "asgiref-async-to-sync", cases=CASES, default=False)
def check(program: Program) -> Iterator[Finding]:
    """Uses of `async_to_sync`; one fix for all of a file, so that its import goes with the last of them."""
    for path in program.asked:
        file = library_file(program, path, "asgiref")
        if file is None:
            continue
        uses = [use for use in file.uses() if use.full_name == _NAME]
        fix = _fix(program, file, [use for use in uses if not _has_options(use)])
        for use in uses:
            yield _finding(program, file, use, None if _has_options(use) else fix)


def _has_options(use: LibraryUse) -> bool:
    call = use.call
    return call is not None and (len(call.args) != 1 or bool(call.keywords) or isinstance(call.args[0], ast.Starred))


def _fix(program: Program, file: LibraryFile, uses: list[LibraryUse]) -> Fix | None:
    imports = file.bridge_instead(uses) if uses else None
    if imports is None:
        return None
    safety: Safety = "likely" if program.said("threads of asgiref") else "sure"
    return Fix("use `bridge.sync`", safety, (*imports, *(file.replaced(use.node, "bridge.sync") for use in uses)))


def _finding(program: Program, file: LibraryFile, use: LibraryUse, fix: Fix | None) -> Finding:
    if _has_options(use):
        message = "`async_to_sync` has options here, and `bridge.sync` chooses the loop itself: decide by hand"
    elif program.said("threads of asgiref"):
        message = (
            "`async_to_sync` can be `bridge.sync`, unless the coroutine needs the loop that started this thread: "
            "the bridge runs it in a loop of the thread"
        )
    else:
        message = "`async_to_sync` can be `bridge.sync`, which works inside a running loop as well"
    return tell_at(
        program, "TR902", "asgiref-async-to-sync", enclosing(program, file.path, use.at), use.at, message, sure=True,
        reasons=(Reason("it is imported here", file.path, use.statement.lineno),), fix=fix, subject="async_to_sync",
    )  # fmt: skip


@part("threads of asgiref")
def _threads(file: FileFacts) -> bool:
    """Whether a file hands work to threads of asgiref, itself or through a framework."""
    imported = any(
        imported.module == "asgiref.sync" and imported.name in {"sync_to_async", "*"} for imported in file.imports
    )
    return imported or not packages_of(file).isdisjoint({"django", "channels"})
