"""Run a project's test command in a copy of the project."""

import os
import shlex
import subprocess
import sys
import threading
from dataclasses import dataclass

from troth.analysis.mutate.measure.process import Finished, run_command
from troth.analysis.mutate.measure.workspace import ProjectCopy

__all__ = ["Suite"]


@dataclass(frozen=True, slots=True)
class Suite:
    """A command, and the directories of the project that its imports start from.

    `{tests}` in the command stands for the tests that are asked for; all of them where none are.
    """

    command: str
    import_roots: tuple[str, ...]

    def run(
        self, space: ProjectCopy, limit: float, *, tests: tuple[str, ...] = (), stop: threading.Event | None = None
    ) -> Finished:
        """Run in the copy, whose own modules come first on the path, before any installed copy of the project."""
        quoted = subprocess.list2cmdline(tests) if sys.platform == "win32" else shlex.join(tests)
        roots = [str(space.root / root) for root in self.import_roots]
        python_path = [*roots, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        return run_command(
            self.command.replace("{tests}", quoted),
            cwd=space.root,
            limit=limit,
            environ={"PYTHONPATH": os.pathsep.join(python_path)},
            stop=stop,
        )
