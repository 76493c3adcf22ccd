"""Run a workflow from the command line."""

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.pipe import kept_for_json, say, say_json, warn
from troth.cli.runtime.live import watched
from troth.cli.stores import add_app, add_store, find_value, needs_yaml, opened, options_of
from troth.cli.terminal import Style
from troth.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.runtime.workflows.document.contracts import Contract
    from troth.runtime.workflows.record.report import RunReport

__all__ = ["COMMAND", "going_on", "show_outcome"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `troth run`."""
    parser.add_argument("workflow", metavar="WORKFLOW", help="a file in YAML, or `module:name` of a Workflow in Python")
    parser.add_argument(
        "-i", "--input", action="append", default=[], metavar="NAME=VALUE", help="an input; may be given several times"
    )
    parser.add_argument("--inputs", metavar="FILE", help="a JSON file with inputs; `-` reads them from stdin")
    parser.add_argument("--id", metavar="ID", help="the run's id: an existing run of that id is resumed or shown")
    parser.add_argument("--wait", action="store_true", help="wait until questions for people are answered elsewhere")
    add_store(parser)
    add_app(parser)


def run(args: argparse.Namespace) -> int:
    """Run to the end, or to a question for a person."""
    from troth.runtime.workflows.execute.run_ids import new_id

    with opened(args) as runtime, kept_for_json(args.json):
        linked = runtime.load(_source(args.workflow))
        inputs = _inputs(args, linked.spec.inputs)
        run_id = args.id or new_id(linked.spec.name)
        with watched(runtime, run_id, sum(1 for _ in linked.spec.all_steps())), going_on(args, run_id):
            report = runtime.run(linked, inputs, run_id=run_id, check=False, wait=args.wait)
    return show_outcome(report, args)


@contextlib.contextmanager
def going_on(args: argparse.Namespace, run_id: str) -> Iterator[None]:
    """Say on Ctrl-C what became of the run, and how it goes on."""
    try:
        yield
    except KeyboardInterrupt:
        where = quote(run_id) + options_of(args)
        sys.stderr.write(
            f"\nRun {run_id}: interrupted. Completed steps are recorded.\n"
            f"  troth runs resume {where}\n      resume where it was interrupted\n"
            f"  troth runs cancel {where}\n      cancel it and undo what it did\n"
        )
        raise


def show_outcome(report: "RunReport", args: argparse.Namespace) -> int:
    """Print what became of a run in as few lines as will do, and answer the exit code."""
    from troth.runtime.workflows.record.report import RunWord
    from troth.runtime.workflows.record.report_json import as_json
    from troth.runtime.workflows.render.summary import explain
    from troth.runtime.workflows.render.words import RUN_MARKS

    is_well = report.succeeded or report.state is RunWord.WAITING
    if args.json:
        say_json(as_json(report, options_of(args)))
    elif report.succeeded:
        paint = Style(sys.stdout)
        say([f"{paint(f'{RUN_MARKS[report.state]} {report.state}', 'green')}  {report.id}"])
        if report.output is not None:
            say_json(report.output, indent=None)
    else:
        options = options_of(args)
        whole = f"{explain(report, options)}\n  troth runs show {quote(report.id)}{options}"
        if is_well:
            say([whole])
        else:
            warn(whole)
    return Exit.CLEAN if is_well else Exit.FOUND


def _source(word: str) -> Any:
    """A path; or the workflow that `module:name` or `file.py:name` leads to."""
    if ":" not in word or Path(word).exists():
        needs_yaml()
        return word
    from troth.runtime.workflows.link.builder import Workflow

    workflow = find_value(word, "workflow")
    if not isinstance(workflow, Workflow):
        raise MisuseError(f"`{word}` is a {type(workflow).__name__}, not a Workflow. Nothing was started.")
    return workflow


def _inputs(args: argparse.Namespace, contracts: "Mapping[str, Contract]") -> dict[str, object]:
    inputs: dict[str, object] = {}
    if args.inputs:
        inputs = _read(args.inputs)
    for pair in args.input:
        name, equals, text = pair.partition("=")
        if not equals:
            raise MisuseError(f"`-i {pair}` has no value; write `-i {pair}=VALUE`.")
        inputs[name] = _typed(text, contracts.get(name))
    return inputs


def _read(name: str) -> dict[str, object]:
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8-sig")
        inputs = json.loads(text)
    except OSError as problem:
        raise MisuseError(f"`--inputs {name}` cannot be read: {problem.strerror}. Nothing was started.") from None
    except UnicodeDecodeError as broken:
        raise MisuseError(f"{name}: this is not UTF-8: {broken.reason} at byte {broken.start}.") from None
    except json.JSONDecodeError as broken:
        raise MisuseError(f"{name}:{broken.lineno}:{broken.colno}: this is not JSON: {broken.msg}") from None
    except RecursionError:
        raise MisuseError(f"{name}: this is nested too deeply.") from None
    if not isinstance(inputs, dict):
        raise MisuseError(f"{name} has to hold a JSON object: names and values.")
    return inputs


def _typed(text: str, contract: "Contract | None") -> object:
    """A value from the command line: text where a string is wanted, else JSON where it is some."""
    if contract is not None and contract.type == "string":
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


COMMAND = Command(
    summary="run a workflow durably",
    description=(
        "Runs a workflow. Every step is recorded, so a run that fails or is killed continues from there.\n"
        "A run that has a question for a person prints it and exits; `troth runs approve` resumes the run."
    ),
    examples=(
        Example("troth run examples/workflow/order.yaml -i order=A7", "run it with one input"),
        Example("troth run order.yaml --inputs order.json --json", "inputs from a file, the record as JSON"),
        Example("troth run order.yaml -i order=A7 --id order-A7", "the same id resumes the same run"),
        Example("troth run triage.yaml --app shop:runtime", "with the agents and tools of a runtime in Python"),
    ),
    add_arguments=add_arguments,
    run=run,
)
