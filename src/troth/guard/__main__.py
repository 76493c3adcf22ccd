"""Runs somebody else's program under the guard: `python -m troth.guard [options] script.py [arguments]`."""

import argparse
import builtins
import importlib.util
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType
from typing import NoReturn

from troth.errors import MisuseError
from troth.guard._watch import install

_EPILOG = """
exit code: the program's own; 120 if anything was lost (unless --mode report); 2 if it could not be started
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise MisuseError(f"{self.prog}: {message}\nNothing was run.\n`{self.prog} --help` shows its usage.")


def main(argv: Sequence[str]) -> None:
    """Run the program named in `argv` as if Python had been called with it, and watch it to its end."""
    try:
        options, program = _parse(argv)
        if options.module:
            code, spec = _module(options.module)
            location = code.co_filename
        else:
            location, spec = str(Path(program[0]).absolute()), None
            code = _script(location)
        install(
            mode=options.mode,
            blocked=options.blocked or None,
            log=options.log,
            depth=options.depth,
            generators=options.generators,
        )
    except MisuseError as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(2)
    sys.argv = [location, *program] if options.module else program
    if not options.module and not sys.flags.safe_path:  # `-m` has put the current folder first, a script wants its own
        sys.path[0] = str(Path(location).resolve().parent)
    _run(code, spec, location)


def _parse(argv: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = _Parser(
        prog="python -m troth.guard",
        usage="python -m troth.guard [options] (script.py | -m module) [arguments]",
        description="Run a program and report every coroutine and task it loses, and every time it blocks its loop.",
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument("--log", metavar="FILE", help="also append the incidents to FILE, as JSON lines")
    parser.add_argument(
        "--mode", choices=["raise", "report"], default="raise", help="raise: a loss changes the exit code"
    )
    parser.add_argument("--blocked", type=float, default=0.25, metavar="SECONDS", help="0.25; 0 switches this off")
    parser.add_argument("--depth", type=int, default=1, metavar="N", help="frames of origin per coroutine; 1")
    parser.add_argument("--generators", action="store_true", help="also report async generators never iterated")
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as `python -m` does")
    # Options end where the program's name begins: whatever follows belongs to the program.
    ours, program = _split(list(argv))
    options = parser.parse_args(ours)
    if not options.module and not program:
        parser.error("no program was given")
    return options, program


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    at = 0
    while at < len(argv) and argv[at].startswith("-"):
        if argv[at] == "--":
            return argv[:at], argv[at + 1 :]
        takes_value = argv[at] in ("--log", "--mode", "--blocked", "--depth", "-m")
        is_module = argv[at] == "-m"
        at += 2 if takes_value else 1
        if is_module:
            break
    return argv[:at], argv[at:]


def _script(location: str) -> CodeType:
    try:
        source = Path(location).read_bytes()
    except OSError as problem:
        raise MisuseError(
            f"{location!r} cannot be read: {problem.strerror}.\nNothing was run.\n"
            "Name a Python file, or use `-m module`."
        ) from problem
    try:
        return compile(source, location, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as problem:
        raise MisuseError(f"{location}: {problem}\nNothing was run.\nIs it a Python file?") from problem


def _module(name: str) -> tuple[CodeType, ModuleSpec]:
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
        code = spec.loader.get_code(spec.name) if spec is not None and spec.loader is not None else None  # type: ignore[attr-defined]
    except (ImportError, AttributeError, ValueError) as problem:
        raise MisuseError(f"The module {name!r} cannot be run: {problem}.\nNothing was run.") from problem
    if spec is None or code is None:
        raise MisuseError(f"There is no module {name!r} that can be run.\nNothing was run.\nIs its folder on the path?")
    return code, spec


def _run(code: CodeType, spec: ModuleSpec | None, location: str) -> None:
    """Execute `code` as `__main__`. The module stays in place: threads and exit functions still need its names."""
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=location, __builtins__=builtins, __spec__=spec, __loader__=spec and spec.loader)
    module.__package__ = spec.parent if spec is not None else None
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)  # noqa: S102 -- running it is what we were asked for
    except Exception as error:  # noqa: BLE001 -- shown as Python would show it, without our own frames
        traceback = error.__traceback__.tb_next if error.__traceback__ is not None else None
        sys.excepthook(type(error), error.with_traceback(traceback), traceback)
        error.__traceback__ = None  # its frames would hold the program's locals alive until the end
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
