"""Ask git about the past of a project, without touching its work tree."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from troth.errors import MisuseError, RunError

__all__ = ["GitChange", "blobs_at", "changes_since", "commit_of", "files_at"]

# A repository's own settings can name programs that git would start; none of them is needed to read it.
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.quotepath=false", "--no-optional-locks")


@dataclass(frozen=True, slots=True)
class GitChange:
    """A file that differs from the past: its path then and now, None where it was not there."""

    then: str | None
    now: str | None


def commit_of(root: Path, revision: str) -> str:
    """The commit that `revision` names; what is not a repository, or not a revision, is refused."""
    try:
        inside = _git(root, "rev-parse", "--git-dir")
    except FileNotFoundError as problem:
        raise MisuseError(
            "`--since` needs git, and there is no `git` command here.\n"
            "Nothing was checked.\nInstall git, or check without `--since`."
        ) from problem
    if inside.returncode != 0:
        raise MisuseError(
            f"`--since {revision}`: `{root}` is not in a git repository.\n"
            "Nothing was checked, since there is no history to compare with.\n"
            "Run it in a repository, or use `--baseline` to compare with a file of known findings."
        )
    parsed = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if parsed.returncode != 0:
        raise MisuseError(
            f"`--since {revision}`: this repository has no commit of that name.\n"
            "Nothing was checked, since there is nothing to compare with.\n"
            "Name a branch, a tag or a commit; in a shallow clone, fetch it first (`git fetch --depth=1 origin NAME`)."
        )
    return parsed.stdout.decode().strip()


def files_at(root: Path, commit: str) -> list[str]:
    """All files below `root` in `commit`, relative to `root`."""
    return _names(_output_of(root, "ls-tree", "-r", "-z", "--name-only", commit))


def changes_since(root: Path, commit: str) -> list[GitChange]:
    """What is different in the work tree below `root`; files that git does not know yet are not among it."""
    fields = _names(
        _output_of(root, "diff", "--no-ext-diff", "--name-status", "-z", "--find-renames", "--relative", commit, "--")
    )
    changes = []
    remaining = iter(fields)
    for status in remaining:
        path = next(remaining)
        if status.startswith(("R", "C")):
            changes.append(GitChange(path if status.startswith("R") else None, next(remaining)))
        else:
            changes.append(GitChange(None if status == "A" else path, None if status == "D" else path))
    return changes


def blobs_at(root: Path, commit: str, paths: Sequence[str]) -> dict[str, bytes]:
    """The contents of `paths`, relative to `root`, as `commit` has them; all through one process."""
    prefix = os.fsdecode(_output_of(root, "rev-parse", "--show-prefix").rstrip(b"\n"))
    query = "".join(f"{commit}:{prefix}{path}\n" for path in paths if "\n" not in path)
    process = _git(root, "cat-file", "--batch", stdin=os.fsencode(query))
    if process.returncode != 0:
        raise _failed("cat-file", process.stderr)
    blobs = {}
    at = 0
    for path in paths:
        if "\n" in path:
            continue
        end = process.stdout.index(b"\n", at)
        head = process.stdout[at:end].split(b" ")
        at = end + 1
        if len(head) == 3 and head[1] == b"blob":
            size = int(head[2])
            blobs[path] = process.stdout[at : at + size]
            at += size + 1
        elif head[-1] != b"missing" and len(head) == 3:
            at += int(head[2]) + 1
    return blobs


def _output_of(root: Path, *arguments: str) -> bytes:
    process = _git(root, *arguments)
    if process.returncode != 0:
        raise _failed(arguments[0], process.stderr)
    return process.stdout


def _failed(command: str, stderr: bytes) -> RunError:
    output = stderr.decode(errors="replace").strip()
    return RunError(
        f"`git {command}` failed: {output}\nThe history could not be read, so nothing was compared; no file was "
        "changed.\n"
        "Repair the repository (`git fsck` shows what is wrong), or check without `--since`."
    )


def _git(root: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*_GIT, *arguments], cwd=root, input=stdin, capture_output=True, check=False)


def _names(output: bytes) -> list[str]:
    return [os.fsdecode(name) for name in output.split(b"\0") if name]
