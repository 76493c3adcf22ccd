"""Write a first workflow that runs: its YAML, its functions, and the schema for the editor."""

import argparse
from pathlib import Path
from shlex import quote

from troth.cli.command import Command, Example
from troth.cli.exit import Exit
from troth.cli.pipe import say, say_json
from troth.errors import MisuseError

__all__ = ["COMMAND"]

_WORKFLOW = """\
# yaml-language-server: $schema=./.troth/workflow-v1.json
troth: 1
name: order
description: Takes an order, and undoes everything if a part of it fails.
inputs:
  order: {type: string, description: the number of the order}
  weight: {type: number, default: 3, description: in kilograms}

steps:
  - id: charge
    function: steps:charge
    inputs: {order: inputs.order}
    undo: steps:refund

  - id: ship
    function: steps:ship
    inputs: {order: inputs.order, weight: inputs.weight}
    retry: {attempts: 3, delay: 200ms, on: [ConnectionError]}
    timeout: 10s

output:
  payment: steps.charge.payment
  parcel: steps.ship.parcel
"""

_STEPS = '''\
"""What the workflow calls. A step may be sync or async; it returns what JSON can hold."""


def charge(order: str) -> dict[str, object]:
    return {"payment": f"pay-{order}"}


async def refund(order: str, result: object = None) -> None:
    """Undoes `charge`; it has to tolerate that nothing was charged."""
    print(f"refunded {order}")


async def ship(order: str, weight: float) -> dict[str, object]:
    if weight > 30:
        raise ValueError(f"parcel too heavy: {weight:g} kg")
    return {"parcel": f"box-{order}"}
'''


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `troth init`."""
    parser.add_argument(
        "folder", nargs="?", default=".", metavar="FOLDER", help="the folder to write to (default: the current one)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Write the files; nothing that is there already is touched."""
    from troth.runtime.store.sqlite.folder import FOLDER, hide_from_git
    from troth.runtime.workflows.document.json_schema import FILE, published

    folder = Path(args.folder)
    texts = {"workflow.yaml": _WORKFLOW, "steps.py": _STEPS, f"{FOLDER}/{FILE}": published()}
    existing = [name for name in ("workflow.yaml", "steps.py") if (folder / name).exists()]
    if existing:
        raise MisuseError(
            f"{' and '.join(str(folder / name) for name in existing)} would be overwritten. Nothing was written.\n"
            "Name another folder: `troth init FOLDER`."
        )
    for name, text in texts.items():
        try:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        except OSError as problem:
            raise MisuseError(
                f"{str(folder / name)!r} cannot be written: {problem.strerror}.\n"
                "Name another folder: `troth init FOLDER`."
            ) from None
    hide_from_git(folder / FOLDER)
    written = [str(folder / name) for name in texts]
    if args.json:
        say_json({"written": written})
        return Exit.CLEAN
    workflow = quote(str(folder / "workflow.yaml"))
    say(
        [
            f"wrote {', '.join(written)}",
            f"run it:  troth run {workflow} -i order=A7",
            f"see it fail and be undone:  troth run {workflow} -i order=A8 -i weight=198",
        ]
    )
    return Exit.CLEAN


COMMAND = Command(
    summary="write a first workflow that runs",
    description="Writes a workflow, the functions it calls, and the schema for editors.",
    examples=(
        Example("troth init", "here"),
        Example("troth init flows", "into the folder flows"),
    ),
    add_arguments=add_arguments,
    run=run,
)
