"""The routes of the server: one module, one router, for each noun.

A new noun is a module with a `router`, and its name in `NOUNS`.
"""

from importlib import import_module

from fastapi import APIRouter

__all__ = ["NOUNS", "routers"]

NOUNS = (
    "chat",  # what is asked for most stands first: routes are tried in this order
    "responses",
    "health",
    "models",
    "workflows",
    "runs",
    "conversations",
    "promises",
    "deliveries",
    "jobs",
    "sessions",
    "standing",
    "workspace",
    "asks",
    "sagas",
    "audit",
    "webhooks",
    "metrics",
    "socket",
)


def routers() -> list[APIRouter]:
    """The routers of all nouns, in the order in which their routes are matched."""
    return [import_module(f"troth.server.routes.{noun}").router for noun in NOUNS]
