"""Describe the routes as OpenAPI 3.1: what FastAPI makes of them, in the shape that the server answers in."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

__all__ = ["document"]

_ERROR = "#/components/schemas/ErrorBody"
_STREAM = {"schema": {"type": "string", "description": "server-sent events, each with its number as `id`"}}


def document(app: FastAPI) -> dict[str, Any]:
    """The document of the application, made once."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            routes=app.routes,
            separate_input_output_schemas=False,
        )
        app.openapi_schema = _ours(schema)
    return app.openapi_schema


def _ours(made: dict[str, Any]) -> dict[str, Any]:
    """Wrong input is answered with 400 and our own shape, not with FastAPI's 422; most routes need a key."""
    for path in made["paths"].values():
        for operation in path.values():
            responses = operation["responses"]
            responses.pop("422", None)
            if any(
                "Idempotency-Key".lower() == parameter["name"].lower() for parameter in operation.get("parameters", ())
            ):
                responses["422"] = {
                    **responses["400"],
                    "description": "The `Idempotency-Key` was used with another request.",
                }
            for status, response in responses.items():
                if int(status) >= 400 and _ERROR not in str(response):
                    continue
                if int(status) >= 400:
                    response["content"] = {"application/json": {"schema": {"$ref": _ERROR}}}
                if "text/event-stream" in response.get("content", {}):
                    response["content"]["text/event-stream"] = _STREAM
            scope = operation.get("x-troth-scope")
            if scope is not None:
                operation["security"] = [{"key": []}]
                operation["description"] = f"{operation.get('description', '')}\n\nScope: `{scope}`.".strip()
    schemas = made["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    made["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    return made
