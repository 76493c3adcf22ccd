"""Say how a first run is begun: the commands for the workflows and the store of this server, ready to be pasted."""

import json
from shlex import quote

from troth.runtime.assemble import store_options
from troth.runtime.workflows.document.contracts import ABSENT, Contract
from troth.runtime.workflows.link.linker import LinkedWorkflow
from troth.runtime.workflows.render.markup import Html, join, tag
from troth.runtime.workflows.render.words import short_place
from troth.server.context import ServerContext

__all__ = ["first_run"]

_EXAMPLES: dict[str, object] = {"integer": 1, "number": 1, "boolean": True, "list": [], "map": {}}


def first_run(context: ServerContext) -> Html:
    """The command lines, and the same over HTTP."""
    options = store_options(context.store)
    linked = next(iter(context.workflows.values()), None)
    if linked is None:
        lines = f"troth init hello\ntroth run hello/workflow.yaml -i order=A7{options}"
        return tag("pre", lines)
    needed = {
        name: _example(name, contract)
        for name, contract in linked.spec.inputs.items()
        if contract.required and contract.default is ABSENT
    }
    body = {"workflow": linked.spec.name, **({"inputs": needed} if needed else {})}
    file = _file(linked)
    command = f"troth run {quote(file)}{''.join(_input(name, value) for name, value in needed.items())}{options}"
    return join(
        tag("pre", command) if file else None,
        tag("p", "Over HTTP:" if not file else "Or over HTTP:", class_="soft"),
        tag("pre", f"POST /v1/runs {json.dumps(body, ensure_ascii=False)}"),
    )


def _file(linked: LinkedWorkflow) -> str:
    """The file of a workflow, seen from where the server was started; empty for one that is made in Python."""
    file = linked.spec.mark.file
    return short_place(file) if file.endswith((".yaml", ".yml")) else ""


def _example(name: str, contract: Contract) -> object:
    return contract.enum[0] if contract.enum else _EXAMPLES.get(contract.type, name.upper())


def _input(name: str, value: object) -> str:
    word = value if isinstance(value, str) else json.dumps(value)
    return f" -i {quote(f'{name}={word}')}"
