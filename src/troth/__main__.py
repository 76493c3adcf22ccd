"""The `troth` command, also as `python -m troth`."""

import sys

from troth import __version__


def main() -> int:
    """Run the command line in `sys.argv` and return its exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):  # asked often, so nothing else is imported
        print(f"troth {__version__}")
        return 0
    from troth.cli.app import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
