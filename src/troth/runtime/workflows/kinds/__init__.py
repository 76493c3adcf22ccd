"""The kinds of steps, one file each. To add a kind, add a file here with a `KIND`; nothing else is edited.

The file declares the keys of its step (`fields`), the frozen value they are read into (`body`), what that value reads
and which steps it holds, and how it is performed: a generator that yields asks to the engine and never waits.
"""

import importlib
import pkgutil
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from troth.runtime.workflows.document.expressions import Expression
from troth.runtime.workflows.document.fields import Field
from troth.runtime.workflows.document.nodes import SourceMark
from troth.runtime.workflows.document.paths import Path
from troth.runtime.workflows.document.sources import Source
from troth.runtime.workflows.spec import Block, CallTarget, StepSpec, WorkflowSpec

if TYPE_CHECKING:
    from troth.runtime.workflows.execute.frame import BlockFrame

__all__ = ["Decision", "Kind", "blocks_of", "kind_of", "kinds", "paths_in"]

Body = TypeVar("Body")
Decision: TypeAlias = Generator[Any, Any, object]
"""Yields asks to the engine, is sent their answers, returns the step's output."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[Body]):
    """What a file in this package offers as `KIND`. Its name is the key that makes a step one of this kind."""

    name: str
    says: str
    body: type[Body]
    fields: tuple[Field, ...]
    perform: "Callable[[StepSpec, Body, BlockFrame], Decision]"
    reads: Callable[[Body], Iterator[tuple[Path, SourceMark]]]
    blocks: Callable[[Body], tuple[Block, ...]] = lambda _: ()
    calls: Callable[[Body], tuple[tuple[CallTarget, Mapping[str, Source]], ...]] = lambda _: ()
    shows: Callable[[Body], str] = lambda _: ""
    """A few words for the picture of a run."""
    inner: Callable[[Body], WorkflowSpec | None] = lambda _: None
    retries: bool = False
    times_out: bool = False


@cache
def kinds() -> Mapping[str, Kind[Any]]:
    """Every kind, by name, in the order of their names."""
    by_name = {}
    for module in pkgutil.iter_modules(__path__):
        kind: Kind[Any] = importlib.import_module(f"{__name__}.{module.name}").KIND
        by_name[kind.name] = kind
    return dict(sorted(by_name.items()))


def kind_of(step: StepSpec) -> Kind[Any]:
    """The kind of `step`."""
    return kinds()[step.kind]


def blocks_of(step: StepSpec) -> tuple[Block, ...]:
    """The blocks of steps inside `step`."""
    return kind_of(step).blocks(step.body)


def paths_in(*values: Source | Expression | Mapping[str, Source] | None) -> Iterator[tuple[Path, SourceMark]]:
    """Every path in these values."""
    for value in values:
        if isinstance(value, Mapping):
            yield from paths_in(*value.values())
        elif value is not None:
            yield from value.paths()
