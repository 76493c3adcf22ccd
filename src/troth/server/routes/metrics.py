"""Count what there is, for Prometheus. The counts come from the store, so they are exact after a restart."""

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from troth.bridge import call
from troth.server.access import Scope, needs
from troth.server.context import ContextDep, ServerContext

__all__ = ["router"]

router = APIRouter(tags=["metrics"])

_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/metrics", response_class=PlainTextResponse, **needs(Scope.ADMIN))
async def metrics(context: ContextDep) -> PlainTextResponse:
    """The counts of this store and of this process, in the Prometheus text format."""
    return PlainTextResponse(await call(_text, context), media_type=_TYPE)


def _text(context: ServerContext) -> str:
    store = context.store
    runs, belongings, turns = store.read_server(
        lambda rows: (rows.runs_by_state(), rows.count(("run", "conversation", "session")), len(rows.open_turns()))
    )
    owed = store.promises.counts()
    lines = [
        *_family("troth_runs", "gauge", "runs of workflows in the store, by state", "state", runs),
        *_family("troth_begun_total", "counter", "what was begun through a server, by kind", "kind", belongings),
        *_single("troth_turns_open", "gauge", "turns that were accepted and are not known to be over", turns),
        *_family(
            "troth_deliveries",
            "gauge",
            "deliveries in the store, by what became of them",
            "state",
            {name: getattr(owed, name) for name in ("delivered", "stored", "expired", "dead")},
        ),
        *_single("troth_deliveries_promised_total", "counter", "deliveries that were ever owed", owed.promised),
        *_single("troth_server_streams", "gauge", "streams that are open in this process", context.feeds.readers),
        *_single("troth_server_closing", "gauge", "whether this process is being ended", int(context.is_draining)),
    ]
    return "\n".join(lines) + "\n"


def _family(name: str, kind: str, says: str, label: str, values: dict[str, int]) -> list[str]:
    head = [f"# HELP {name} {says}", f"# TYPE {name} {kind}"]
    return [*head, *(f'{name}{{{label}="{key}"}} {value}' for key, value in sorted(values.items()))]


def _single(name: str, kind: str, says: str, value: int) -> list[str]:
    return [f"# HELP {name} {says}", f"# TYPE {name} {kind}", f"{name} {value}"]
