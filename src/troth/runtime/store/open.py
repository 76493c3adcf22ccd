"""Decide which store an address means. Nobody else names a store's class.

    open_store("troth.db")                                a SQLite file, for one machine
    open_store("postgresql://user@host/database")         PostgreSQL, for several

`TROTH_STORE` names the store of commands where none is given.
"""

import importlib.util
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from troth.errors import MisuseError
from troth.runtime.arguments import check_path
from troth.runtime.store.sqlite.folder import make_folder_of

if TYPE_CHECKING:
    from troth.runtime.store.port import Store

__all__ = ["VARIABLE", "check_file_name", "check_postgres", "is_address", "is_store", "open_store"]

VARIABLE = "TROTH_STORE"
_SCHEMES = ("postgresql://", "postgres://")
_CONNECTION_STRING = re.compile(r"(postgres(ql)?:(?!//)|\w+=\S* (.* )?(host|dbname|user|password)=|password=)")


def is_address(store: object) -> bool:
    """Whether `store` names a database server, not a file."""
    return isinstance(store, str) and store.startswith(_SCHEMES)


def is_store(store: object) -> bool:
    """Whether `store` is an open store, not the name of one."""
    return not isinstance(store, str | os.PathLike) and hasattr(store, "commit")


def open_store(
    store: str | os.PathLike[str],
    *,
    read_only: bool = False,
    makes_folder: bool = False,
    clock: Callable[[], float] | None = None,
) -> "Store":
    """Open the store that `store` names: the path of a file, or `postgresql://…`.

    `makes_folder` makes the folder of a file that does not exist yet. `clock` is for tests; without it, a file goes by
    this machine's clock and a database by its own.
    """
    if isinstance(store, str) and is_address(store):
        return _open_postgres(store, read_only=read_only, clock=clock)
    check_path("store", store)
    check_file_name(str(store))
    from troth.runtime.store.sqlite.store import SqliteStore

    if makes_folder and not read_only:
        make_folder_of(Path(store).absolute())
    if clock is None:
        return SqliteStore(store, read_only=read_only)
    return SqliteStore(store, read_only=read_only, clock=clock)


def check_file_name(store: str) -> None:
    """Refuse what is not an address that is known here, and looks like one; a password in it is not repeated."""
    if _CONNECTION_STRING.match(store):
        raise MisuseError(
            "That is a connection string, not an address. It is not repeated here, because it may contain a password. "
            "Nothing was opened.\nName a database as `postgresql://user@host/database`, or a file by its path."
        )
    if "://" in store:
        raise MisuseError(
            f"There is no kind of store {store.partition('://')[0]!r}. Nothing was opened.\n"
            "Name a file, or a database as `postgresql://user@host/database`."
        )


def check_postgres() -> None:
    """Refuse to go on without the parts that talk to PostgreSQL, and say how to get them."""
    missing = [name for name in ("psycopg", "psycopg_pool") if importlib.util.find_spec(name) is None]
    if missing:
        raise MisuseError(
            f"A store in PostgreSQL needs {' and '.join(missing)}, which is not installed. Nothing was opened.\n"
            "Install it with `pip install 'troth[postgres]'`."
        )


def _open_postgres(address: str, *, read_only: bool, clock: Callable[[], float] | None) -> "Store":
    check_postgres()
    from troth.runtime.store.postgres.store import PostgresStore

    return PostgresStore(address, read_only=read_only, clock=clock)
