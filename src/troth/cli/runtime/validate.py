"""Say whether workflows can run, without running them."""

import argparse
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.pipe import kept_for_json, say, say_json
from troth.cli.stores import add_app, app_of, needs_yaml
from troth.errors import MisuseError

if TYPE_CHECKING:
    from troth.runtime.conversations import Conversations
    from troth.runtime.workflows.spec import WorkflowSpec

__all__ = ["COMMAND"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `troth validate`."""
    parser.add_argument("workflow", nargs="+", metavar="FILE", help="a workflow in YAML")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--no-import", action="store_true", help="check the document alone: do not import the functions it names"
    )
    add_app(parser)
    parser.set_defaults(store=None)


def run(args: argparse.Namespace) -> int:
    """Check each file; every problem of every file is told."""
    needs_yaml()
    if args.no_import and args.app:
        raise MisuseError("`--no-import` and `--app` cannot be combined: the runtime has to be imported.")
    from troth.runtime.workflows.document.problems import InvalidWorkflowError
    from troth.runtime.workflows.link.load import WorkflowNotFoundError

    problems: list[dict[str, object]] = []
    lines: list[str] = []
    verdict = "valid; the functions it names were not checked" if args.no_import else "ready to run"
    with kept_for_json(args.json), _reader(args) as read:
        for name in args.workflow:
            try:
                spec = read(name)
                count = sum(1 for _ in spec.all_steps())
                lines.append(f"{name}: {spec.name}, {count} step{'s' if count > 1 else ''}, {verdict}")
            except InvalidWorkflowError as invalid:
                problems += [problem.as_json() for problem in invalid.problems]
                lines += [str(problem) for problem in invalid.problems]
            except WorkflowNotFoundError as missing:
                problems.append(
                    {"file": name, "line": 0, "column": 0, "what": str(missing).splitlines()[0], "advice": ""}
                )
                lines.append(str(missing))
    if args.json:
        say_json({"valid": not problems, "problems": problems})
    else:
        say(["\n".join(lines)])
        if problems:
            say([f"{len(problems)} problem{'s' if len(problems) > 1 else ''}. Nothing was run."])
    return Exit.MISUSE if problems else Exit.CLEAN


@contextlib.contextmanager
def _reader(args: argparse.Namespace) -> Iterator["Callable[[str], WorkflowSpec]"]:
    """How each file is read: alone, with what it names, or with what a runtime has."""
    from troth.runtime.workflows.link.linker import Registry
    from troth.runtime.workflows.link.load import load_workflow, read_spec

    if args.no_import:
        yield lambda name: read_spec(Path(name))
    elif args.app:
        with app_of(args) as runtime:
            yield lambda name: runtime.check(name).spec
    else:
        registry = Registry(conversations=_no_talks)
        yield lambda name: load_workflow(name, registry).spec


def _no_talks() -> "Conversations":
    raise AssertionError("this agent is only validated and never runs")


COMMAND = Command(
    summary="check workflows without running them",
    description=(
        "Reads workflows and reports everything that is wrong with them: unknown keys, paths that lead nowhere,\n"
        "functions that are missing or do not fit, steps that can never run, cycles."
    ),
    examples=(
        Example("troth validate examples/workflow/order.yaml", "check one workflow and the functions it names"),
        Example("troth validate --json flows/*.yaml", "several at once, as JSON"),
        Example("troth validate triage.yaml --app shop:runtime", "with the agents and tools of a runtime in Python"),
    ),
    add_arguments=add_arguments,
    run=run,
)
