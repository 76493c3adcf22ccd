"""Knows which packages have a table, and what has to be installed to read each."""

from dataclasses import dataclass

__all__ = ["CATALOGUE", "Entry", "entry_for"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One table: the top-level package, and the distributions it is read from."""

    top: str
    install: tuple[str, ...]
    only: tuple[str, ...] = ()
    """Prefixes of the modules that are read; empty: all."""
    without: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    """What must be there for the package to be imported, and is not studied itself."""
    python: str = ""
    """The interpreter it needs, where that is not the one running."""
    prepare: str = ""
    """Code to run before it is imported: a framework that refuses to be looked at unconfigured."""
    declares: tuple[tuple[str, str], ...] = ()
    """Attributes that a metaclass adds, and their types; both sides must exist in the package."""
    source_only: str = ""
    """Why it is read and not imported; empty: it is imported."""


def _entry(line: str, **more: tuple[str, ...] | tuple[tuple[str, str], ...] | str) -> Entry:
    top, *install = line.split()
    return Entry(top, tuple(install or [top]), **more)  # type: ignore[arg-type]


# Ordered so that what others build on comes first: a table is judged with the tables before it.
CATALOGUE: tuple[Entry, ...] = (
    _entry("anyio", extra=("trio",)),
    _entry("aiohttp"),
    _entry("discord discord.py"),
    _entry("httpcore", extra=("trio", "anyio", "h2", "socksio")),
    _entry("httpx"),
    _entry("starlette", extra=("httpx", "python-multipart", "itsdangerous", "jinja2")),
    _entry("fastapi", extra=("httpx", "python-multipart", "itsdangerous", "jinja2")),
    _entry("redis"),
    _entry("sqlalchemy", extra=("greenlet", "aiosqlite", "asyncpg")),
    _entry("asyncpg", extra=("asyncpg-stubs",)),
    _entry("aiosqlite"),
    _entry("openai"),
    _entry("anthropic"),
    _entry("playwright"),
    _entry("asgiref"),
    _entry(
        "django",
        extra=("django-stubs",),
        declares=(("django.db.models.base.Model.objects", "django.db.models.manager.Manager"),),
        without=("django.contrib.gis",),
        prepare="import django; from django.conf import settings as s; s.configure(); django.setup()",
    ),
)


def entry_for(top: str) -> Entry | None:
    """The entry of a top-level package."""
    return next((entry for entry in CATALOGUE if entry.top == top), None)
