"""Knows how to say whether workflows can run, without running them."""

import argparse
from pathlib import Path

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.pipe import kept_for_json, say, say_json
from troth.cli.stores import needs_yaml

__all__ = ["COMMAND"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `troth validate`."""
    parser.add_argument("workflow", nargs="+", metavar="FILE", help="a workflow in YAML")
    parser.add_argument("--json", action="store_true", help="print JSON, for machines")
    parser.add_argument(
        "--no-import", action="store_true", help="check the document alone: do not import the functions it names"
    )


def run(args: argparse.Namespace) -> int:
    """Check each file; every problem of every file is told."""
    needs_yaml()
    from troth.runtime.workflows.load import WorkflowNotFoundError, load_workflow, read_spec
    from troth.runtime.workflows.problems import InvalidWorkflowError

    found: list[dict[str, object]] = []
    lines: list[str] = []
    for name in args.workflow:
        try:
            with kept_for_json(args.json):
                spec = read_spec(Path(name)) if args.no_import else load_workflow(name).spec
            count = sum(1 for _ in spec.all_steps())
            lines.append(f"{name}: {spec.name}, {count} step{'s' if count > 1 else ''}, ready to run")
        except InvalidWorkflowError as invalid:
            found += [problem.as_json() for problem in invalid.problems]
            lines += [str(problem) for problem in invalid.problems]
        except WorkflowNotFoundError as missing:
            found.append({"file": name, "line": 0, "column": 0, "what": str(missing).splitlines()[0], "advice": ""})
            lines.append(str(missing))
    if args.json:
        say_json({"valid": not found, "problems": found})
    else:
        say(["\n".join(lines)])
        if found:
            say([f"{len(found)} problem{'s' if len(found) > 1 else ''}. Nothing was run."])
    return Exit.MISUSE if found else Exit.CLEAN


COMMAND = Command(
    summary="check workflows without running them",
    description=(
        "Reads workflows and tells everything that is wrong with them: unknown keys, paths that lead nowhere,\n"
        "functions that are missing or do not fit, steps that can never run, cycles."
    ),
    examples=(
        Example("troth validate examples/workflow/order.yaml", "check one workflow and the functions it names"),
        Example("troth validate --json flows/*.yaml", "the same for several, for a machine"),
    ),
    add_arguments=add_arguments,
    run=run,
)
