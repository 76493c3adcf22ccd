"""What a server keeps: keys, what belongs to whom, turns, and requests that may be repeated."""

from functools import partial

from troth.runtime.store import Store, Transaction
from troth.runtime.store.rows.server import KeyRow, RequestRow
from troth.testing.store_conformance.check import POINT, StoreGround, check, enrolled, in_threads

__all__: list[str] = []


@check("server")
def keys_and_belongings_are_kept(ground: StoreGround) -> None:
    """A key until it is revoked, once; what somebody began belongs to the first who says so."""
    key = KeyRow("k1", "shop", "till", "digest", "read run", 1.0, None, None)

    def write(tx: Transaction) -> tuple[str, str]:
        tx.server.add_key(key)
        first = tx.server.claim("run", "r1", "shop", 1.0, {"agent": "a"})
        return first, tx.server.claim("run", "r1", "other", 2.0)

    with ground.open() as store, ground.open() as second:
        assert store.commit(POINT, write) == ("shop", "shop")
        assert second.read_server(lambda rows: (rows.key("k1"), rows.keys(), rows.key("k2"))) == (key, [key], None)
        assert second.commit(POINT, lambda tx: tx.server.revoke_key("k1", 3.0)) is True
        assert second.commit(POINT, lambda tx: tx.server.revoke_key("k1", 4.0)) is False
        for number in range(3):
            store.commit(POINT, lambda tx, n=number: tx.server.claim("run", f"s{n}", "shop", 5.0 + n))  # type: ignore[misc]
        page = second.read_server(lambda rows: rows.belongings("run", owner="shop", limit=2))
        assert [each.id for each in page] == ["s2", "s1"]
        earlier = second.read_server(lambda rows: rows.belongings("run", before=(page[-1].created_at, page[-1].id)))
        assert [(each.id, each.details) for each in earlier] == [("s0", {}), ("r1", {"agent": "a"})]
        assert second.read_server(lambda rows: rows.count(["run", "saga"])) == {"run": 4, "saga": 0}


@check("server")
def work_under_way_is_counted(ground: StoreGround) -> None:
    """The runs and the turns of an owner that are not over."""

    def write(tx: Transaction) -> None:
        for run_id in ("r1", "r2"):
            tx.add_run(run_id, "workflow:w", "[]", 1.0)
            tx.server.claim("run", run_id, "shop", 1.0)
        tx.server.claim("conversation", "c", "shop", 1.0)
        tx.server.begin_turn("c", "agent", 2.0)
        tx.server.begin_turn("c", "agent", 3.0)

    with ground.open() as store, ground.open() as second:
        store.commit(POINT, write)
        assert second.read_server(lambda rows: (rows.under_way("shop"), rows.under_way("else"))) == (3, 0)
        second.commit(POINT, lambda tx: tx.server.end_turn("c", 2.0))
        assert [turn.begun_at for turn in store.read_server(lambda rows: rows.open_turns())] == [3.0]
        second.commit(POINT, lambda tx: tx.server.end_turn("c", 3.0))
        assert store.read_server(lambda rows: rows.under_way("shop")) == 2
        assert store.read_server(lambda rows: rows.runs_by_state()) == {"running": 2}


@check("server")
def a_repeated_request_is_carried_out_once(ground: StoreGround) -> None:
    """Of many that come at the same time with one key, one is the first; the others find it."""

    def begin(store: Store, base: str) -> str:
        def work(tx: Transaction) -> str:
            row = tx.server.request("shop", "key")
            if row is None:
                tx.server.put_request(RequestRow("shop", "key", "print", base, "me", None, 1.0, None))
                return base
            return row.base

        return store.commit(POINT, work)

    with ground.open() as store, ground.open() as second:
        bases = in_threads(
            [partial(begin, each, f"b{n}-{m}") for n in range(6) for m, each in enumerate((store, second))]
        )
        assert len(set(bases)) == 1
        base = str(bases[0])
        answer = partial(store.commit, POINT)
        assert answer(lambda tx: tx.server.answer_request("shop", "key", "another", "{}", 2.0)) is False
        assert answer(lambda tx: tx.server.answer_request("shop", "key", base, "{}", 2.0)) is True
        row = second.read_server(lambda rows: rows.request("shop", "key"))
        assert row == RequestRow("shop", "key", "print", base, None, "{}", 1.0, 2.0)
        assert second.read_server(lambda rows: rows.has_requests(2.0)) is True
        assert answer(lambda tx: tx.server.forget_requests(2.0, 10)) == 1
        assert second.read_server(lambda rows: rows.has_requests(2.0)) is False


@check("server")
def the_process_of_an_owner_is_looked_up(ground: StoreGround) -> None:
    """Alive while it is enrolled, and not once it has retired."""
    with ground.open() as store:
        now = store.clock()
        with enrolled(store) as owner:
            assert store.read_server(lambda rows: rows.is_alive(owner.id, now)) is True
            assert store.read_server(lambda rows: rows.is_alive("nobody", now)) is False
            store.commit(POINT, lambda tx: tx.retire(owner.id))
        assert store.commit(POINT, lambda tx: tx.server.is_alive(owner.id, now)) is False
