"""Try a change with the user's own command and to take all of it back if that fails."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from troth.analysis.edits.write import Change, begin
from troth.errors import RunError

__all__ = ["carried_out"]


def carried_out(root: Path, changes: Sequence[Change], command: str | None, cwd: Path) -> None:
    """Write `changes`. With a `command`, run it in `cwd` afterwards; unless it succeeds every file is put back."""
    pending = begin(root, changes)
    if command is None:
        pending.keep()
        return
    try:
        code = subprocess.run(command, shell=True, cwd=cwd, check=False).returncode  # noqa: S602  the user's own words
    except BaseException:  # Ctrl-C while the tests run is no reason to leave a change nobody has approved
        pending.undo()
        raise
    if code != 0:
        pending.undo()
        raise RunError(
            f"`{command}` failed with exit code {code} after the change.\n"
            f"{'The changed file was' if len(changes) == 1 else f'All {len(changes)} files were'} put back.\n"
            "Run it before the change too: if it fails there already, the recolor is not the cause."
        )
    pending.keep()
