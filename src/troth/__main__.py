"""The `troth` command, also as `python -m troth`."""

import sys

from troth import __version__

# After these the process holds a whole project, and taking that apart object by object would be a fifth of the work.
_LEAVING_AT_ONCE = frozenset({"check"})


def main() -> int:
    """Run the command line in `sys.argv` and return its exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):  # asked often, so nothing else is imported
        print(f"troth {__version__}")
        return 0
    from troth.cli.app import run

    code = run(sys.argv[1:])
    is_called_back = "temporalio" in sys.modules
    if is_called_back:
        # Threads of Temporal's client may call back at any moment, and an interpreter that is being torn down dies of
        # that. What others have registered is called first.
        import atexit

        atexit._run_exitfuncs()
    if is_called_back or (sys.argv[1:2] and sys.argv[1] in _LEAVING_AT_ONCE):
        from troth.cli.exit import leave

        leave(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
