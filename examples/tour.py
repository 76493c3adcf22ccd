"""What `make run` shows: the example service checked, repaired and run, and a workflow on the embedded runtime.

Everything happens in a copy in a temporary folder; the repository stays as it is.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def say(text: str) -> None:
    print(f"\n\033[1m» {text}\033[0m" if sys.stdout.isatty() else f"\n» {text}", flush=True)


def do(*command: str, folder: Path, expect: tuple[int, ...] = (0,)) -> None:
    """Show a command, run it, and stop if it does not end as it should."""
    print(f"$ {' '.join(command)}", flush=True)
    words = [sys.executable, "-m", "troth", *command[1:]] if command[0] == "troth" else list(command)
    if words[0] == "python":
        words[0] = sys.executable
    done = subprocess.run(words, cwd=folder, check=False, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    if done.returncode not in expect:
        sys.exit(f"`{' '.join(command)}` ended with {done.returncode}; {' or '.join(map(str, expect))} was expected")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        service = Path(name) / "agent_service"
        shutil.copytree(HERE / "agent_service", service, ignore=shutil.ignore_patterns("__pycache__", ".troth_cache"))

        say("A small agent service. It runs, it answers, and most of what it promises never happens:")
        do("python", "-m", "concierge", folder=service)

        say("troth check finds the calls that never happen, each with its reason:")
        do("troth", "check", folder=service, expect=(1,))

        say("troth fix repairs what it is sure of; --diff shows it first:")
        do("troth", "fix", "--diff", folder=service, expect=(1,))
        do("troth", "fix", folder=service, expect=(0, 1))

        say("The same service after the repair:")
        do("python", "-m", "concierge", folder=service)

        shop = Path(name) / "workflow"
        shutil.copytree(HERE / "workflow", shop, ignore=shutil.ignore_patterns("__pycache__", ".troth"))
        say("A workflow on the embedded runtime, kept in one SQLite file:")
        do("troth", "run", "order.yaml", "-i", "order=A7", folder=shop)

        say("The same with a parcel the carrier refuses: what was done is undone, in reverse.")
        do("troth", "run", "order.yaml", "-i", "order=A8", "-i", "weight=198", folder=shop, expect=(1,))
        do("troth", "runs", "show", "last", folder=shop)

    say("What to try next:")
    print(
        "  troth check PATH            your own project; nothing of it is imported or run\n"
        "  troth check --since main    only what a branch has brought\n"
        "  troth explain TR101         what a rule finds, and why it matters\n"
        "  docs/index.md               tutorial, how-to pages and reference (`make docs` builds them)"
    )


if __name__ == "__main__":
    main()
