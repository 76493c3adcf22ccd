"""Tell of a run whatever has become of it: one of which something cannot be read any more is told as damaged."""

from troth.runtime.assemble import Runtime
from troth.runtime.engine.errors import UnknownRunError
from troth.runtime.store import DamagedStoreError, RunRecord, RunState
from troth.runtime.workflows.record.build_report import tell_damaged
from troth.runtime.workflows.record.report import RunReport
from troth.server.access.owners import acheck_seen, afind
from troth.server.access.scopes import Caller
from troth.server.context import ServerContext
from troth.server.errors import ApiError

__all__ = ["afind_run", "areport"]


async def afind_run(context: ServerContext, caller: Caller, run_id: str) -> None:
    """Refuse to tell of a run that is neither the caller's nor one of a session of theirs.

    No server began a run that a session carries out, so none has written down whose it is.
    """
    try:
        await afind(context, caller, "run", run_id)
    except ApiError:
        try:
            run = await areport(context.runtime, run_id)
        except UnknownRunError:
            run = None
        if run is None or run.session is None or not await acheck_seen(context, caller, run.session, "session"):
            raise


async def areport(runtime: Runtime, run_id: str, *, talks: bool = False) -> RunReport:
    """`Runtime.ashow`, but with the damage as the report's error: one damaged run hides neither itself nor others."""
    try:
        return await runtime.ashow(run_id, talks=talks)
    except DamagedStoreError as damage:
        page = await runtime.lists.aruns(text=run_id, limit=50)
        label, begun = next(((item.label, item.created_at) for item in page if item.id == run_id), (None, 0.0))
        record = RunRecord(
            *(run_id, "", label, RunState.DAMAGED, (), None, None, None, None),
            *(None, False, None, None, begun, begun, None),
        )
        return tell_damaged(record, damage)
