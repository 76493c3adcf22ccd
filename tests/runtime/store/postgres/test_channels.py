"""A channel that is opened on one machine while another finds that nobody serves it: what is owed through it is due."""

import threading

from troth.runtime.store.failpoints import commit_point
from troth.runtime.store.identity import new_owner
from troth.runtime.store.postgres.store import PostgresStore
from troth.runtime.store.promise_records import DeliveryState, NewPromise, PromiseState

TEST = commit_point("test.channels", "a delivery for the tests of channels")


def test_opening_and_storing_take_turns(postgres_server):
    """Whoever comes second sees what the first has written."""
    address = postgres_server.address()
    with PostgresStore(address) as leaves, PostgresStore(address) as comes:
        owner = new_owner(comes.clock())
        promise = NewPromise("p", "s", "job", "p", "title", "chat", None, None, 1.0)

        def owe(tx):
            tx.promises.add(promise)
            tx.promises.settle("job", "p", PromiseState.DONE, 2.0, text="done")

        leaves.commit(TEST, owe)

        def open_it(tx):
            tx.enroll(owner)
            tx.promises.open_channel("chat", owner.id, comes.clock())
            return tx.promises.revive("chat", None, comes.clock())

        opening = threading.Thread(target=comes.commit, args=(TEST, open_it))
        with leaves.transaction(TEST) as tx:
            assert not tx.promises.is_served("chat", leaves.clock())
            opening.start()
            opening.join(0.5)  # it waits for us
            assert tx.promises.downgrade("chat", "nobody serves it", leaves.clock()) == 1
        opening.join(60)
        assert comes.promises.delivery("p-done-1").state is DeliveryState.DUE
