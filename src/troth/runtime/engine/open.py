"""Decide which engine an address means. No other module names an engine's class.

open_engine(None, store)                                     carried out in this process
open_engine("temporal://host:7233/namespace", store)         carried out by the workers of a Temporal server
local_engine(store)                                          in this process, whatever the address
"""

import importlib.util

from troth.errors import MisuseError
from troth.runtime.engine.embedded.engine import EmbeddedEngine
from troth.runtime.engine.invoke.worker_pool import GRACE, MAX_RESULT
from troth.runtime.engine.port import Engine, LocalEngine
from troth.runtime.store import Store

__all__ = ["VARIABLE", "check_local_engine", "local_engine", "open_engine"]

VARIABLE = "TROTH_ENGINE"
_SCHEME = "temporal://"


def open_engine(
    address: str | None,
    store: Store,
    *,
    threads: int = 32,
    grace: float = GRACE,
    max_result: int | None = MAX_RESULT,
) -> Engine:
    """The engine that `address` names, on an open store. What its server must not be asked for is refused here."""
    if address is None:
        return EmbeddedEngine(store, recover=False, threads=threads, grace=grace, max_result=max_result)
    if not str(address).startswith(_SCHEME):
        raise MisuseError(
            f"There is no engine {address!r}. Nothing was opened.\n"
            "Omit `engine` to execute runs in this process, or name a Temporal server: "
            "`temporal://host:7233/namespace?queue=troth`."
        )
    if importlib.util.find_spec("temporalio") is None:
        raise MisuseError(
            "An engine on Temporal needs temporalio, which is not installed. Nothing was opened.\n"
            "Install it with `pip install 'troth[temporal]'`."
        )
    from troth.runtime.engine.temporal.engine import TemporalEngine

    return TemporalEngine(address, store, threads=threads, grace=grace, max_result=max_result)


def local_engine(store: Store, *, recover: bool = False) -> LocalEngine:
    """An engine for what has to be in a commit of this store; with `recover` it takes up what a dead process left."""
    return EmbeddedEngine(store, recover=recover)


def check_local_engine(engine: LocalEngine, store: object) -> None:
    """Refuse an engine whose commits are not those of `store`."""
    if not hasattr(engine, "run_short"):
        raise MisuseError(
            f"`engine` is {engine!r}, which executes runs elsewhere. Nothing was opened.\n"
            "A session decides in the commit that begins a step: give an `EmbeddedEngine`."
        )
    if not engine.commits_to(store):
        raise MisuseError("`engine` is on another store. Nothing was opened; give both the same store.")
