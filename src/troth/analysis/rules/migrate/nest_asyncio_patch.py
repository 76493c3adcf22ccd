"""asyncio patched by nest_asyncio.

What it finds: `nest_asyncio.apply()`, and the calls that need it because they start a loop where one is running; for a
project that wants to leave it: `troth fix --select migrate`.
Why it matters: the patch changes asyncio for the whole process. Callbacks of the loop run in the middle of sync
functions, it does not work with uvloop, and nest_asyncio itself is not maintained any more.
How sure the fix is: `await` in place of `asyncio.run(…)` in an async function is sure, and so is `bridge.run(…)` in place
of it in a sync function that an async one calls: both promise a loop of its own. `run_until_complete` says in which loop
the coroutine runs; the bridge runs it in another one, so that is likely. `apply()` itself goes when no function of the
project is left that needs it: sure where no function starts a loop at all, likely where some still do, in places where
perhaps none is running. A library that relies on the patch is not seen.
How to repair: in a notebook, `await` the coroutine in the cell.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from troth.analysis.findings import Fix, Reason
from troth.analysis.incremental.project_queries import part
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules._syntax_position import standing
from troth.analysis.rules.loop_misuse.loop_in_running_loop import (
    NESTING,
    await_instead,
    nested_starts,
    ways_to_nested_starts,
    why_a_loop_runs,
)
from troth.analysis.rules.migrate._library_uses import library_file
from troth.analysis.rules.migrate._places import enclosing
from troth.analysis.rules.registry import Case, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from troth.analysis.facts.model import FileFacts
    from troth.analysis.findings import Finding, Safety
    from troth.analysis.rules.migrate._library_uses import LibraryFile, LibraryUse
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.infer.call_graph import Call

_PATCH = "import nest_asyncio\nnest_asyncio.apply()  # here\n"
_ELSEWHERE = {"patch.py": "import nest_asyncio\n"}
CASES = [
    Case(
        "that nothing needs",
        bad=f"import asyncio\n{_PATCH}async def main(): ...\nasyncio.run(main())\n",
        fixed="import asyncio\nasync def main(): ...\nasyncio.run(main())\n",
    ),
    Case(
        "in an async function",
        bad={**_ELSEWHERE, "app.py": "import asyncio\nasync def f(): ...\nasync def main():\n    asyncio.run(f())  # here\n"},
        fixed={**_ELSEWHERE, "app.py": "import asyncio\nasync def f(): ...\nasync def main():\n    await f()  # here\n"},
    ),
    Case(
        "in a sync function that an async one calls",
        bad={**_ELSEWHERE, "app.py": "import asyncio\nasync def f(): ...\ndef load():\n    return asyncio.run(f())\nasync def main():\n    return load()  # here\n"},
        fixed={**_ELSEWHERE, "app.py": "import asyncio\nfrom troth import bridge\nasync def f(): ...\ndef load():\n    return bridge.run(f())\nasync def main():\n    return load()  # here\n"},
    ),
    Case(
        "where no loop runs",
        good={**_ELSEWHERE, "app.py": "import asyncio\nasync def f(): ...\ndef main():\n    asyncio.run(f())\n"},
    ),
]  # fmt: skip
_STARTING = ("asyncio.run", "run_until_complete")


@rule("TR901", "nest-asyncio-patch", cases=CASES, default=False)
def check(program: Program) -> Iterator[Finding]:
    """Patches of asyncio, the calls that need them, and imports that are not needed any more."""
    if not program.said("nested loops"):
        return
    needing = bool(program.said("loops that may be nested"))
    for path in program.asked:
        for library in sorted(NESTING):
            file = library_file(program, path, library)
            if file is not None:
                yield from _patches(program, file, library, needing=needing)
    for call in nested_starts(program):
        message = f"`{call.text}(…)` starts a loop inside a running one, which only the patch of nest_asyncio allows"
        yield tell_at(
            program, "TR901", "nest-asyncio-patch", call.caller, call.at, message, sure=True,
            reasons=(why_a_loop_runs(call.caller, call),), fix=await_instead(program, call), subject=call.text,
        )  # fmt: skip
    for link in ways_to_nested_starts(program):
        caller = link.call.caller
        message = (
            f"`{link.call.text}(…)` leads to `{link.end.text}(…)` inside a running loop, which only the patch of "
            "nest_asyncio allows"
        )
        yield tell_at(
            program, "TR901", "nest-asyncio-patch", caller, link.call.at, message, sure=False,
            reasons=(why_a_loop_runs(caller, link.call), *(link.rest or link).reasons()),
            fix=_bridge_instead(program, link.end), subject=link.call.text,
        )  # fmt: skip


def _patches(program: Program, file: LibraryFile, library: str, *, needing: bool) -> Iterator[Finding]:
    uses = list(file.uses())
    for use in uses:
        if use.full_name == f"{library}.apply":
            yield _patch(program, file, use, needing=needing, is_last=len(uses) == 1)


def _patch(program: Program, file: LibraryFile, use: LibraryUse, *, needing: bool, is_last: bool) -> Finding:
    statement = None if use.call is None else file.parent(use.call)
    removal = file.removed(statement) if isinstance(statement, ast.Expr) else None
    imported = file.removed(use.statement) if is_last and len(use.statement.names) == 1 else None
    safety: Safety = "likely" if needing else "sure"
    message = "nest_asyncio patches asyncio for the whole process"
    if needing:
        places = program.said("loops that may be nested")
        message += f"; functions in {', '.join(sorted(places)[:3])} start loops, and need it where one is running"
    else:
        message += ", and no function of the project needs that"
    edits = tuple(edit for edit in (imported, removal) if edit is not None)
    return tell_at(
        program, "TR901", "nest-asyncio-patch", enclosing(program, file.path, use.at), use.at, message, sure=True,
        reasons=(Reason("it is imported here", file.path, use.statement.lineno),),
        fix=None if removal is None else Fix("take the patch away", safety, edits), subject="nest_asyncio",
    )  # fmt: skip


def _bridge_instead(program: Program, call: Call) -> Fix | None:
    """`bridge.run(f())` for `asyncio.run(f())`, in a file that imports asyncio at its top."""
    path = call.caller.module.path
    position = standing(program, path, call.at)
    if (
        position is None
        or not isinstance(position.node, ast.Call)
        or len(position.node.args) != 1
        or position.node.keywords
    ):
        return None
    if call.text != "asyncio.run" and not call.text.endswith(".run_until_complete"):
        return None
    if not isinstance(position.node.args[0], ast.Call):
        return None  # a task or a future belongs to its loop
    file = library_file(program, path, "asyncio")
    top = None if file is None else next((statement for statement in file.tree.body if statement in file.imports), None)
    if file is None or not isinstance(top, ast.Import | ast.ImportFrom):
        return None
    imports = file.with_bridge_below(top)
    if imports is None or not isinstance(position.node.func, ast.Attribute):
        return None
    safety: Safety = "sure" if call.text == "asyncio.run" else "likely"
    return Fix("use `bridge.run`", safety, (*imports, file.replaced(position.node.func, "bridge.run")))


@part("loops that may be nested")
def _starts(file: FileFacts) -> bool:
    """Whether a function of a file starts a loop; what stands at the top of a file runs where there is none."""
    return any(callee.endswith(_STARTING) for function in file.functions[1:] for callee in function.calls)
