"""Find which run did what in a fork: the steps it was given were done by the run it was forked from, or one before.

The key of a step names the run that did it, and stays with the step when it is given to a fork. A step that read
`run.id` read the id of the run that did it; what the fork does itself reads the fork's.
"""

from collections.abc import Mapping, Sequence

from troth.runtime.store import StepRecord
from troth.runtime.workflows.execute.waits import approval_signal
from troth.runtime.workflows.recorded import appended

__all__ = ["doer", "origins_of"]


def doer(row: StepRecord) -> str:
    """The id of the run that did what `row` records."""
    place = f":{row.place}"
    return row.key.removesuffix(f"{place}:{row.name}") if row.kind != "append" else row.key.removesuffix(place)


def origins_of(run_id: str, rows: Sequence[StepRecord]) -> Mapping[str, str]:
    """The runs that did the steps which the fork `run_id` was given, by the places of the steps."""
    origins: dict[str, str] = {}
    for row in rows:
        if row.kind in ("step", "wait", "append", "sleep") and (who := doer(row)) != run_id:
            origins[_place_of(row)] = who
    return origins


def _place_of(row: StepRecord) -> str:
    if row.kind == "append":
        return str(appended(row)[1]["place"])
    return row.name.removeprefix(approval_signal("")) if row.kind == "wait" else row.name
