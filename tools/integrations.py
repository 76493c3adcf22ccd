"""Try what needs a package index: `python -m tools.integrations`. The exit code is 1 if something does not hold.

`uvx troth check` with an empty home, pre-commit with both hooks of this repository, and the GitHub Action with the
package it installs by itself. What can be tried without an index is in `tests/packaging/test_integrations.py`. `uvx`
has to be on PATH; it brings pre-commit. Nothing is left behind.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
_LOST = "async def save(): ...\n\n\nasync def main():\n    save()\n"
_KEPT = (
    "UV_",
    "PIP_",
    "SSL_",
    "HTTP",
    "http",
    "NO_PROXY",
    "no_proxy",
    "REQUESTS_",
)  # how an index is reached from here


def main() -> int:
    """Try all of them, say what came of each, and return the exit code."""
    if shutil.which("uvx") is None:
        sys.exit("`uvx` is not on PATH: install uv first.")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="troth-integrations-") as name:
        folder = Path(name)
        attempts: dict[str, Callable[[Path], str]] = {
            "uvx with an empty home": _uvx,
            "pre-commit, troth-check": lambda folder: _hook(folder, "troth-check"),
            "pre-commit, troth-fix": lambda folder: _hook(folder, "troth-fix"),
            "the GitHub Action": _action,
        }
        (folder / "home").mkdir()
        _run(["git", "clone", "-q", ROOT, folder / "clone"], folder, folder)
        for what, attempt in attempts.items():
            problem = attempt(folder)
            failed += bool(problem)
            sys.stdout.write(f"{'FAILED' if problem else 'ok':<6}  {what}\n{problem}")
            sys.stdout.flush()
    return 1 if failed else 0


def _uvx(folder: Path) -> str:
    """A wheel of this tree, run by somebody who has uv and nothing else."""
    build: list[str | Path] = [
        "uvx",
        "--from",
        "build",
        "pyproject-build",
        "--installer",
        "uv",
        "--wheel",
        "--outdir",
        folder / "dist",
    ]
    made = _run([*build, folder / "clone"], folder, folder)
    if made.returncode:
        return made.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    done = _run(["uvx", "--from", wheel, "troth", "check"], _project(folder, "uvx"), folder)
    return _unless(done, code=1, says="TR101 unawaited-coroutine")


def _hook(folder: Path, hook: str) -> str:
    project = _project(folder, hook)
    done = _run(["uvx", "pre-commit", "try-repo", folder / "clone", hook, "--all-files"], project, folder)
    says = "TR101 unawaited-coroutine" if hook == "troth-check" else "files were modified by this hook"
    problem = _unless(done, code=1, says=says)
    if not problem and hook == "troth-fix" and "    await save()" not in (project / "app.py").read_text():
        return "app.py was not repaired\n"
    return problem


def _action(folder: Path) -> str:
    """Both steps, with the inputs that nobody gave."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    project = _project(folder, "action")
    inputs = {"${{ inputs." + name + " }}": one["default"] for name, one in action["inputs"].items()}
    runner = {"RUNNER_TEMP": str(folder / "runner"), "GITHUB_ACTION_PATH": str(folder / "clone")}
    done = None
    for step in action["runs"]["steps"]:
        environ = runner | {name: inputs[text] for name, text in step["env"].items()}
        done = _run(["bash", "-eo", "pipefail", "-c", step["run"]], project, folder, **environ)
    assert done is not None
    return _unless(done, code=1, says="::error file=app.py,line=5")


def _project(folder: Path, name: str) -> Path:
    project = folder / f"project of {name}"
    project.mkdir()
    (project / "app.py").write_text(_LOST, encoding="utf-8")
    _run(["git", "init", "-q"], project, folder)
    _run(["git", "add", "-A"], project, folder)
    return project


def _run(command: Sequence[str | Path], cwd: Path, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command in an environment with nothing in it but an empty home."""
    environ = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
    uv = str(Path(shutil.which("uvx") or "").parent)
    path = os.pathsep.join((os.defpath, "/usr/local/bin", uv))
    environ |= {"HOME": str(folder / "home"), "PATH": path, "GIT_CONFIG_GLOBAL": os.devnull, "TMPDIR": str(folder)}
    environ |= more
    return subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=540, check=False)


def _unless(done: subprocess.CompletedProcess[str], *, code: int, says: str) -> str:
    if done.returncode == code and says in done.stdout + done.stderr:
        return ""
    return f"exit code {done.returncode} instead of {code}, or nothing of `{says}` in:\n{done.stdout}{done.stderr}\n"


if __name__ == "__main__":
    sys.exit(main())
