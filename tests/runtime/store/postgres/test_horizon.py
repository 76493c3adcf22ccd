"""No change is told before every lower one is there, in whatever order transactions begin, write and end."""

import contextlib

import pytest

from troth.runtime.store import open_store
from troth.runtime.store.postgres import link
from troth.runtime.store.postgres.address import parse

BEGIN = "BEGIN; SELECT pg_current_xact_id()"
TELL = "INSERT INTO state_changes (at, kind, thing, word) VALUES (1.0, 'run/flow:', %s, 'running')"


def told(store):
    return [change.thing for change in store.lists.changes().items]


@pytest.mark.parametrize("first_begun", ["ends first", "ends last"])
def test_a_lower_change_that_is_committed_later(postgres_server, first_begun):
    """Also where the one that is under way has the highest number of all transactions."""
    address = postgres_server.address()
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(open_store(address))
        early, late = (stack.enter_context(contextlib.closing(link.connect(parse(address)))) for _ in range(2))
        early.execute(BEGIN)
        late.execute(BEGIN)
        ending, staying = (early, late) if first_begun == "ends first" else (late, early)
        staying.execute(TELL, ("lower",))
        ending.execute(TELL, ("higher",))
        ending.execute("COMMIT")
        assert told(store) == []
        staying.execute("COMMIT")
        assert told(store) == ["lower", "higher"]


def test_transactions_that_write_elsewhere_hold_nothing_back(postgres_server):
    """A server is shared: somebody's long transaction in another schema or database is nothing to wait for."""
    address = postgres_server.address()
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(open_store(address))
        theirs, ours = (stack.enter_context(contextlib.closing(link.connect(parse(address)))) for _ in range(2))
        theirs.execute("CREATE TABLE public.theirs_of_test_horizon (x int)")
        stack.callback(theirs.execute, "DROP TABLE public.theirs_of_test_horizon")
        stack.callback(theirs.execute, "ROLLBACK")
        theirs.execute(BEGIN)
        theirs.execute("INSERT INTO public.theirs_of_test_horizon VALUES (1)")
        ours.execute(TELL, ("ours",))
        assert told(store) == ["ours"]
