"""Write a saga down so that another process can carry it on, and build it again from what was written.

The words of a workflow (see `from_saga`) show a saga; they leave out how often and how long its steps are tried, and
its steps may have names that no workflow has. So its own record is kept beside them. A function is written down by a
name that leads to it; one that has none, a closure or a method of an object, is only in the program.
"""

import contextlib
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from troth.errors import MisuseError
from troth.runtime.engine.retry import Retry
from troth.runtime.sagas.saga import ResultOf, Saga, Tried, result
from troth.runtime.store import DamagedStoreError
from troth.runtime.workflows.document.nodes import SourceMark
from troth.runtime.workflows.document.problems import Problems
from troth.runtime.workflows.link.from_saga import workflow_of
from troth.runtime.workflows.link.function_lookup import NotFound, find_part, reference_of
from troth.runtime.workflows.link.linker import Registry
from troth.runtime.workflows.spec import WorkflowSpec

__all__ = ["KEY", "dump_saga", "load_saga", "spec_of_record"]

KEY = "saga"
"""Where the record of a workflow has the saga that it stands for."""
_MARK = SourceMark("<the record>")


def dump_saga(saga: Saga) -> dict[str, object]:
    """What `load_saga` makes the same saga of."""
    return {
        "name": saga.name,
        "steps": [
            {
                "name": step.name,
                "do": _dump_tried(step.do),
                "undo": None if step.undo is None else _dump_tried(step.undo),
                "arguments": {name: _dump_argument(value) for name, value in step.arguments.items()},
            }
            for step in saga.steps
        ],
    }


def load_saga(document: Mapping[str, Any], registry: Registry, folder: Path) -> Saga:
    """The saga in the record of a run; `InvalidWorkflowError` with every function that cannot be found here."""
    problems = Problems()
    with _reading():
        saga = Saga(document["name"])
        for step in document["steps"]:
            do = _find(step["name"], step["do"], registry, folder, problems)
            undo = None if step["undo"] is None else _find(step["name"], step["undo"], registry, folder, problems)
            if problems.found:
                continue
            try:
                saga.step(
                    step["name"],
                    do=do,
                    undo=undo,
                    arguments={name: _load_argument(value) for name, value in step["arguments"].items()},
                    retry=_load_retry(step["do"]),
                    timeout=step["do"]["timeout"],
                    undo_retry=1 if step["undo"] is None else _load_retry(step["undo"]),
                    undo_timeout=None if step["undo"] is None else step["undo"]["timeout"],
                )
            except MisuseError as refused:  # a function is another one now, and cannot be called like that
                problems.add(_MARK, str(refused).partition("\n")[0])
    problems.raise_any()
    return saga


def spec_of_record(document: Mapping[str, Any]) -> WorkflowSpec:
    """The same in the words of a workflow, to be shown; none of its functions is looked for."""
    with _reading():
        return workflow_of(
            document["name"],
            [
                (
                    step["name"],
                    step["do"]["function"],
                    None if step["undo"] is None else step["undo"]["function"],
                    {name: _load_argument(value) for name, value in step["arguments"].items()},
                )
                for step in document["steps"]
            ],
        )


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as wrong:
        raise DamagedStoreError("the saga of a run", f"it is not a saga ({wrong!r})") from wrong


def _dump_tried(tried: Tried) -> dict[str, object]:
    retry: dict[str, object] = {}
    for field in fields(Retry):
        value = getattr(tried.retry, field.name)
        if field.name == "on":
            value = [kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}" for kind in value]
        retry[field.name] = "inf" if value == math.inf else value
    name = reference_of(tried.action.call)
    leads_there = _leads_to(name, tried.action.call)
    return {"function": name, "can_be_found": leads_there, "retry": retry, "timeout": tried.timeout}


def _leads_to(name: str, call: object) -> bool:
    """Whether `name` leads to `call` and to nothing else: that of a method leads to its function."""
    module, _, attributes = name.partition(":")
    target: object = sys.modules.get(module)
    for attribute in attributes.split("."):
        target = getattr(target, attribute, None)
    return target is call


def _find(step: str, tried: Mapping[str, Any], registry: Registry, folder: Path, problems: Problems) -> Any:
    if not tried["can_be_found"]:
        problems.add(
            _MARK,
            f"step {step!r} of the saga calls a function that has no name to find it by",
            "Only the program that started the saga has it. Use a function of a module: other programs can then resume "
            "the saga, too.",
        )
        return None
    try:
        return find_part("function", tried["function"], registry.functions, folder)
    except NotFound as missing:
        problems.add(_MARK, missing.what, missing.advice)
        return None


def _load_retry(tried: Mapping[str, Any]) -> Retry:
    values: dict[str, Any] = {name: math.inf if value == "inf" else value for name, value in tried["retry"].items()}
    values["on"] = tuple(values["on"])
    return Retry(**values)


def _dump_argument(value: object) -> dict[str, object]:
    return {"result": [value.step, *value.parts]} if isinstance(value, ResultOf) else {"value": value}


def _load_argument(value: Mapping[str, Any]) -> object:
    return result(*value["result"]) if "result" in value else value["value"]
