"""How context variables travel with a call and come back from it."""

import contextvars
import sys

__all__ = ["bring_back", "take_along"]


def take_along(library: str | None = None) -> contextvars.Context:
    """Copy the caller's context for work that runs elsewhere, under `library` where sniffio is in use.

    A Context is entered once at a time, and the caller is still in its own; so the work gets a copy, and
    `bring_back` carries its changes home. sniffio keeps the name of the running async library in a context variable:
    a copy made under trio would tell anyio the wrong one.
    """
    context = contextvars.copy_context()
    sniffio = sys.modules.get("sniffio")
    if sniffio is not None and context.get(sniffio.current_async_library_cvar) != library:
        context.run(sniffio.current_async_library_cvar.set, library)
    return context


def bring_back(context: contextvars.Context) -> None:
    """Give the current context every value that `context` has and it has not."""
    sniffio = sys.modules.get("sniffio")
    for variable, value in context.items():
        if variable.get(_UNSET) is not value and (
            sniffio is None or variable is not sniffio.current_async_library_cvar
        ):
            variable.set(value)


_UNSET = object()
