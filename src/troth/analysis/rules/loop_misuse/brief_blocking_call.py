"""Brief blocking call.

What it finds: in an `async def`, a whole file that is read or written at once, or a program that is started by `Popen`.
Why it matters: the loop is blocked for as long as the disk or the system takes: usually a few milliseconds, but seconds
where the file is large, lies on the network, or the machine is busy. Off by default, because most programs can tolerate it.
How to repair: run the call in a thread: `await asyncio.to_thread(…)`, or use `asyncio.create_subprocess_exec`.
How sure the fix is: likely, because code bound to its thread must not move.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.findings import Finding
from troth.analysis.rules.loop_misuse._blocking import told_in_place
from troth.analysis.rules.registry import Case, rule

if TYPE_CHECKING:
    from troth.analysis.semantics import Program

CASES = [
    Case(
        "a whole file",
        bad="from pathlib import Path\nasync def main(folder):\n    return (Path(folder) / 'a').read_text()  # here\n",
    ),
    Case(
        "a program started", bad="import subprocess\nasync def main():\n    return subprocess.Popen(['ls'])  # here\n"
    ),
    Case(
        "a whole file, in a script",
        good="import asyncio\nfrom pathlib import Path\nasync def main():\n    return Path('a').read_text()\nif __name__ == '__main__':\n    asyncio.run(main())\n",
    ),
    Case(
        "a path, where something else reads asynchronously",
        bad="from pathlib import Path\nclass Store:\n    async def read_text(self): ...\nasync def main(folder: Path):\n    return (folder / 'a').read_text()  # here\n",
    ),
    Case("an async path", good="import anyio\nasync def main(path: anyio.Path):\n    return await path.read_text()\n"),
]


@rule("TR606", "brief-blocking-call", cases=CASES, default=False)
def check(program: Program) -> Iterator[Finding]:
    """Files and starting programs, in async functions."""
    yield from told_in_place(program, "TR606", "brief-blocking-call", brief=True)
