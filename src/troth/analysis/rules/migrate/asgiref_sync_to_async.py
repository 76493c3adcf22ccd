"""`sync_to_async` of asgiref.

What it finds: uses of asgiref's `sync_to_async`, for a project that wants to leave it: `troth fix --select migrate`.
Why it matters: by default `sync_to_async` does all work of the process in one thread, one call after the other.
`troth.bridge.aio` has the same shape and works in up to forty threads.
How sure the fix is: sure where `thread_sensitive=False` says that any thread will do. Elsewhere it is likely: calls that
came one after the other in one thread then come at the same time in several, which is wrong for what belongs to one
thread, such as a connection of SQLite.
How to repair: beside Django and Channels no fix is offered: their database connections belong to the thread of
`sync_to_async`. Keep it there, or use the async queries of Django's ORM. Decide by hand where an `executor` is given, too.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from troth.analysis.findings import Fix, Reason
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules.migrate._library_uses import library_file, packages_of
from troth.analysis.rules.migrate._places import enclosing
from troth.analysis.rules.registry import Case, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.findings import Edit, Finding, Safety
    from troth.analysis.rules.migrate._library_uses import LibraryFile, LibraryUse
    from troth.analysis.semantics import Program

_NAME = "asgiref.sync.sync_to_async"
_BOUND_TO_A_THREAD = frozenset({"django", "channels"})
CASES = [
    Case(
        "in any thread",
        bad="from asgiref.sync import sync_to_async\ndef work(n): ...\nasync def main():\n    return await sync_to_async(work, thread_sensitive=False)(1)  # here\n",
        fixed="from troth import bridge\ndef work(n): ...\nasync def main():\n    return await bridge.aio(work)(1)  # here\n",
    ),
    Case(
        "in the one thread",
        bad="from asgiref.sync import sync_to_async as aio\ndef work(n): ...\nasync def main():\n    return await aio(work)(1)  # here\n",
        fixed="from troth import bridge\ndef work(n): ...\nasync def main():\n    return await bridge.aio(work)(1)  # here\n",
    ),
    Case(
        "as a decorator",
        bad="from asgiref.sync import sync_to_async\n@sync_to_async(thread_sensitive=False)  # here\ndef load(): ...\n",
        fixed="from troth import bridge\n@bridge.aio  # here\ndef load(): ...\n",
    ),
    Case(
        "beside Django",
        bad="from asgiref.sync import sync_to_async\nfrom django.db import models\ndef work(): ...\nload = sync_to_async(work)  # here\n",
    ),
    Case(
        "with an executor",
        bad="from asgiref.sync import sync_to_async\ndef work(): ...\ndef make(pool):\n    return sync_to_async(work, executor=pool)  # here\n",
    ),
    Case("a namesake", good="def sync_to_async(f):\n    return f\ndef work(): ...\nload = sync_to_async(work)\n"),
]


@rule("TR903", "asgiref-sync-to-async", cases=CASES, default=False)
def check(program: Program) -> Iterator[Finding]:
    """Uses of `sync_to_async`; one fix for all of a file that are alike, so that its import goes with the last one."""
    for path in program.asked:
        file = library_file(program, path, "asgiref")
        if file is None:
            continue
        beside_django = not packages_of(program.module(path).facts).isdisjoint(_BOUND_TO_A_THREAD)
        uses = [use for use in file.uses() if use.full_name == _NAME]
        safeties = {use.at: _safety(use, beside_django=beside_django) for use in uses}
        fixes = {
            safety: _fix(file, [use for use in uses if safeties[use.at] == safety], safety)
            for safety in ("sure", "likely")
        }
        for use in uses:
            safety = safeties[use.at]
            fix = None if safety is None else fixes[safety]
            yield tell_at(
                program, "TR903", "asgiref-sync-to-async", enclosing(program, path, use.at), use.at,
                _message(use, safety), sure=True, reasons=(Reason("it is imported here", path, use.statement.lineno),),
                fix=fix, subject="sync_to_async",
            )  # fmt: skip


def _safety(use: LibraryUse, *, beside_django: bool) -> Safety | None:
    """How sure it is that any thread will do; None where the bridge cannot take its place."""
    if not _has_counterpart(use):
        return None
    keywords = [] if use.call is None else use.call.keywords
    if any(isinstance(keyword.value, ast.Constant) and keyword.value.value is False for keyword in keywords):
        return "sure"
    return None if beside_django else "likely"


def _has_counterpart(use: LibraryUse) -> bool:
    """Whether nothing is given but a function and, in so many words, whether it belongs to one thread."""
    if use.call is None:
        return True
    if len(use.call.args) > 1 or any(isinstance(arg, ast.Starred) for arg in use.call.args):
        return False
    return all(
        keyword.arg == "thread_sensitive" and isinstance(keyword.value, ast.Constant) for keyword in use.call.keywords
    )


def _message(use: LibraryUse, safety: Safety | None) -> str:
    if safety == "sure":
        return "`sync_to_async` can be `bridge.aio`"
    if safety == "likely":
        return (
            "`sync_to_async` can be `bridge.aio`, unless the work belongs to one thread: the bridge works in several "
            "at the same time"
        )
    if not _has_counterpart(use):
        return "`sync_to_async` has options here that the bridge does not have: decide by hand"
    return (
        "`sync_to_async` keeps this work in one thread, to which Django's database connections belong; `bridge.aio` "
        "would use several"
    )


def _fix(file: LibraryFile, uses: list[LibraryUse], safety: Safety) -> Fix | None:
    imports = file.bridge_instead(uses) if uses else None
    return None if imports is None else Fix("use `bridge.aio`", safety, (*imports, *(_edit(file, use) for use in uses)))


def _edit(file: LibraryFile, use: LibraryUse) -> Edit:
    """`bridge.aio` in its place, without `thread_sensitive`."""
    call = use.call
    if call is None or not call.keywords:
        return file.replaced(use.node, "bridge.aio")
    if not call.args:
        return file.replaced(call, "bridge.aio")  # a decorator with options
    return file.replaced(call, f"bridge.aio({file.written(call.args[0])})")
