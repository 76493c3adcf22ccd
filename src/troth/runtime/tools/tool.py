"""Make a tool of a function: its name, its schema, its color, and the check of its arguments.

Schema and check come from pydantic, which is imported when the first tool is made and not before.
"""

import inspect
import json
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, overload

from troth.bridge import color_of
from troth.color import Color
from troth.errors import MisuseError
from troth.runtime.arguments import check_seconds
from troth.runtime.tools.docstring import described

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Tool", "ToolArgumentsError", "tool"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what the model providers accept


class ToolArgumentsError(MisuseError):
    """The arguments a model gave do not fit the tool. The message is written for the model to read and correct."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may ask for.

    `color` was decided when the tool was made, before anything could happen. `timeout` is in seconds; None waits.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    function: Callable[..., Any]
    color: Color
    timeout: float | None = None
    _arguments: "type[BaseModel]" = field(repr=False, kw_only=True)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself, unchanged, for code that is no model."""
        return self.function(*args, **kwargs)

    def arguments(self, given: str | Mapping[str, Any]) -> dict[str, Any]:
        """Check what a model gave (a JSON text or a mapping) and return keyword arguments for the function."""
        from pydantic import ValidationError

        parsed: object = given
        if isinstance(given, str):
            try:
                parsed = json.loads(given or "{}")
            except ValueError as problem:
                raise ToolArgumentsError(f"The arguments of {self.name!r} are not JSON: {problem}") from problem
        if not isinstance(parsed, Mapping):
            raise ToolArgumentsError(f"The arguments of {self.name!r} are {type(parsed).__name__}, not an object.")
        try:
            checked = self._arguments.model_validate(dict(parsed))
        except ValidationError as problem:
            rows = "; ".join(
                f"{'.'.join(map(str, row['loc'])) or 'arguments'}: {row['msg']}"
                for row in problem.errors(include_url=False)
            )
            raise ToolArgumentsError(f"The arguments of {self.name!r} do not fit: {rows}") from problem
        return dict(checked.__dict__)  # its fields and nothing else: what is not one of them was refused


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, timeout: float | None = None
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a plain or async function; use it as a decorator, with or without arguments.

    The schema comes from the annotations, the descriptions from the docstring or from `Annotated[T, "text"]`. What
    could not be called safely is refused here: a function of unknown color, `*args`, positional-only parameters.
    """
    if function is None:
        return lambda decorated: _make(decorated, name, description, timeout)
    return _make(function, name, description, timeout)


def _make(function: Callable[..., Any], name: str | None, description: str | None, timeout: float | None) -> Tool:
    called: str = name or str(getattr(function, "__name__", ""))
    if not _NAME.fullmatch(called):
        raise MisuseError(
            f"{called!r} cannot be the name of a tool.\n"
            "Models call tools by name, and accept 1 to 64 letters, digits, `_` and `-`.\n"
            "Give it one: `@tool(name='…')`."
        )
    check_seconds("timeout", timeout)
    if timeout is not None and not timeout > 0:
        raise MisuseError(
            f"The tool {called!r} has the timeout {timeout!r}, which is not a positive duration.\n"
            "It would fail before it starts.\nGive a number of seconds above 0, or None for no limit."
        )
    color = color_of(function)
    called_for = function if inspect.isroutine(function) or isinstance(function, partial) else type(function).__call__
    if inspect.isgeneratorfunction(called_for) or inspect.isasyncgenfunction(called_for):
        raise MisuseError(
            f"The tool {called!r} is a generator function: calling it does none of its work.\n"
            "The tool was not made.\nReturn a list, or consume the generator in a separate function."
        )
    if color not in (Color.SYNC, Color.ASYNC):
        raise MisuseError(
            f"The tool {called!r} is {function!r}, whose color cannot be determined.\n"
            "Calling it could start work that is never awaited.\n"
            "Wrap it in a plain `def` or an `async def`."
        )
    docstring = described(inspect.getdoc(function))
    model = _arguments_model(function, called, docstring.parameters)
    schema = model.model_json_schema()
    schema.pop("title", None)
    for row in schema.get("properties", {}).values():
        row.pop("title", None)
    text = description if description is not None else docstring.summary
    return Tool(called, text, schema, function, color, timeout, _arguments=model)


def _arguments_model(function: Callable[..., Any], name: str, descriptions: Mapping[str, str]) -> "type[BaseModel]":
    from pydantic import ConfigDict, Field, PydanticUserError, create_model

    hints = _hints(function, name)
    fields: dict[str, Any] = {}
    for parameter in _parameters(function, name):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise MisuseError(
                f"The tool {name!r} has the parameter `{parameter}`, which a model cannot fill by name.\n"
                "The tool was not made.\nGive every parameter a unique name that can be passed as a keyword."
            )
        annotation, text = _without_words(hints.get(parameter.name, Any))
        text = text or descriptions.get(parameter.name)
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (annotation, Field(default, description=text))
    try:
        return create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
    except PydanticUserError as problem:
        raise MisuseError(
            f"The tool {name!r} has a parameter that no JSON can describe: {problem.message}\n"
            "A model could not fill it, so the tool was not made.\n"
            "Annotate it with a type made of str, numbers, lists, dicts, Literal, dataclasses or pydantic models."
        ) from problem


def _parameters(function: Callable[..., Any], name: str) -> "list[inspect.Parameter]":
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as problem:
        raise MisuseError(
            f"The tool {name!r} is {function!r}, which has no readable signature.\n"
            "A model could not fill them, so the tool was not made.\nWrap it in a function."
        ) from problem


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    target: Any = function
    while isinstance(target, partial):  # it has no annotations of its own
        target = target.func
    if not inspect.isroutine(target):
        target = type(target).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except NameError as problem:
        raise MisuseError(
            f"The tool {name!r} is annotated with {problem.name!r}, which is not defined where the function is.\n"
            "Its schema could not be made.\nImport the name at run time, not only under `TYPE_CHECKING`."
        ) from problem


def _without_words(annotation: Any) -> tuple[Any, str | None]:
    """Split `Annotated[T, "text"]` into T (with any other metadata) and the text."""
    if typing.get_origin(annotation) is not typing.Annotated:
        return annotation, None
    inner, *extras = typing.get_args(annotation)
    words = [extra for extra in extras if isinstance(extra, str)]
    metadata = tuple(extra for extra in extras if not isinstance(extra, str))
    stripped = typing.Annotated[(inner, *metadata)] if metadata else inner
    return stripped, " ".join(words) or None
