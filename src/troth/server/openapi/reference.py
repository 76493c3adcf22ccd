"""Write the reference page of the routes: `python -m troth.server.openapi.reference FILE`."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from troth.runtime.assemble import Runtime
from troth.server.server import Server

__all__ = ["page", "write"]

_HEAD = """# The routes of `troth serve`

<!-- Made from the OpenAPI document by `python -m troth.server.openapi.reference docs/reference/server-routes.md`. -->

Every route is under `/v1` and returns JSON, except streams. `GET /v1/openapi.json` is this page as an OpenAPI document.
A request carries `Authorization: Bearer KEY`; each route names the scope that the key has to have. An error is
returned as `{"error": {"message", "type", "param", "code", "advice", "request_id"}}`.
"""


def page() -> str:
    """The page as it is now."""
    with tempfile.TemporaryDirectory() as folder, Runtime(Path(folder) / "x.db", in_process=False) as runtime:
        document = Server(runtime, keys=False).app.openapi()
    return _HEAD + "".join(f"\n{line}" for line in _lines(document)) + "\n"


def _lines(document: dict[str, Any]) -> Iterator[str]:
    tag = None
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if operation["tags"][0] != tag:
                tag = operation["tags"][0]
                yield f"## {tag}\n"
            yield from _operation(method, path, operation, document)


def _operation(method: str, path: str, operation: dict[str, Any], document: dict[str, Any]) -> Iterator[str]:
    yield f"### `{method.upper()} {path}`\n"
    scope, channel = operation.get("x-troth-scope"), operation.get("x-troth-channel")
    words = operation.get("description", "").partition("\n\nScope:")[0]
    yield (
        f"{words} Scope: {f'`{scope}`' if scope else 'none, no key is needed'}."
        + (f" Its agents are bound to the channel `{channel}`." if channel else "")
        + "\n"
    )
    parameters = operation.get("parameters", ())
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    rows = [
        f"| `{parameter['name']}` | {parameter['in']} | {_type(parameter['schema'])} | {_words(parameter)} |"
        for parameter in parameters
        if parameter["name"].lower() not in ("idempotency-key", "prefer")
    ]
    rows += _fields(body, document) if body else []
    if rows:
        yield "| name | in | type | |\n|---|---|---|---|"
        yield "\n".join(rows) + "\n"
    names = {parameter["name"].lower() for parameter in parameters}
    headers = [name for name in ("Idempotency-Key", "Prefer") if name.lower() in names]
    header_note = f" Headers: {', '.join(f'`{name}`' for name in headers)}." if headers else ""
    good = ", ".join(_answer(status, answer) for status, answer in operation["responses"].items() if int(status) < 400)
    yield f"Answers: {good}.{header_note}\n"


def _fields(schema: dict[str, Any], document: dict[str, Any]) -> list[str]:
    reference = next(option for option in schema.get("anyOf", [schema]) if "$ref" in option)  # a body may be left out
    whole = document["components"]["schemas"][reference["$ref"].rpartition("/")[2]]
    required = whole.get("required", ())
    return [
        f"| `{name}` | body | {_type(field)}{'' if name in required else ', optional'} | {_words(field)} |"
        for name, field in whole.get("properties", {}).items()
    ]


def _words(thing: dict[str, Any]) -> str:
    return str(thing.get("description", "")).replace("\n", " ").replace("|", "\\|")


def _answer(status: str, response: dict[str, Any]) -> str:
    content = response.get("content", {})
    if "text/event-stream" in content and "application/json" in content:
        return f"{status} (JSON; with `stream`, server-sent events)"
    if "text/event-stream" in content:
        return f"{status} (server-sent events)"
    media: dict[str, Any] = next(iter(content.values()), {})
    schema = media.get("schema", {})
    return f"{status} `{schema['$ref'].rpartition('/')[2]}`" if "$ref" in schema else status


def _type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(option) for option in schema["anyOf"]))
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    return str(schema.get("type", "any"))


def write(file: Path) -> None:
    """Write the page to `file`."""
    file.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
