"""A rule that is judged inside a commit is judged on what that commit sees; the store's own readers see less."""

import ast
import asyncio
from pathlib import Path

import pytest

import troth.runtime
from troth.errors import MisuseError
from troth.runtime.store import commit_point
from troth.runtime.store.port import Store, Transaction

POINT = commit_point("test.reads_inside", "for these tests")
READS = {
    "run": lambda store: store.run("r"),
    "runs": lambda store: store.runs(),
    "steps": lambda store: store.steps("r"),
    "recorded": lambda store: store.recorded("r"),
    "history": lambda store: store.history("r"),
    "last_entry": lambda store: store.last_entry("r"),
    "signals": lambda store: store.signals("r"),
    "events": lambda store: store.events("s"),
    "last_event": lambda store: store.last_event("s"),
    "holder": lambda store: store.holder("x"),
    "orphans": lambda store: store.orphans(["d"]),
    "open_decisions": lambda store: store.open_decisions("d"),
    "unheld": lambda store: store.unheld("d"),
    "recent_streams": lambda store: store.recent_streams("s", 1),
    "events_of_all": lambda store: store.events_of_all("s"),
    "cancelling": lambda store: store.cancelling(),
    "signalled": lambda store: store.signalled(),
    "read_sessions": lambda store: store.read_sessions(lambda rows: rows.session("s")),
    "trimmed": lambda store: store.trimmed("s"),
    "read_server": lambda store: store.read_server(lambda rows: rows.keys()),
}


def append_once(tx):
    """Append to a stream that is empty; the answer is what the stream held before."""
    before = [event.kind for event in tx.events("s")]
    if tx.last_event("s") == 0:
        tx.append_event("s", "opened", {}, 0.0)
    return before


def test_commits_that_share_a_transaction_see_each_other(store):
    """What the tasks of a loop commit in one turn is one transaction."""

    async def main():
        return await asyncio.gather(*(store.acommit(POINT, append_once) for _ in range(5)))

    assert asyncio.run(main()) == [[], ["opened"], ["opened"], ["opened"], ["opened"]]
    assert [event.kind for event in store.events("s")] == ["opened"]


def test_a_commit_sees_what_it_has_written(store):
    """Entries after a number, with what they hold."""

    def work(tx):
        for number in range(3):
            tx.append_event("s", "kind", {"number": number}, 1.5)
        assert tx.last_event("nothing") == 0
        return tx.events("s", after=1)

    events = store.commit(POINT, work)
    assert events == store.events("s", after=1)
    assert [(event.seq, event.payload) for event in events] == [(2, {"number": 1}), (3, {"number": 2})]


def test_the_list_of_reads_is_complete():
    """Everything that a store is asked, and nothing that it is told."""
    other = {"commit", "acommit", "commit_at_once", "transaction", "listening", "chore", "close", "is_alive", "trim"}
    methods = {name for name, value in vars(Store).items() if callable(value) and not name.startswith("_")}
    assert methods - other == set(READS)


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("way", ["commit", "acommit", "shared", "at once", "transaction"])
def test_the_store_is_not_asked_inside_a_commit(store, way, read):
    """It would not see what the commit sees, so it refuses; nothing is written, and the next commit goes on."""

    def work(tx):
        tx.append_event("s", "kind", {}, 0.0)
        return read(store)

    async def shared():
        await asyncio.gather(store.acommit(POINT, work), store.acommit(POINT, work))

    with pytest.raises(MisuseError, match="Read from the transaction instead"):
        match way:
            case "commit":
                store.commit(POINT, work)
            case "acommit":
                asyncio.run(store.acommit(POINT, work))
            case "shared":
                asyncio.run(shared())
            case "at once":
                store.commit_at_once(work)
            case "transaction":
                with store.transaction(POINT) as tx:
                    work(tx)
    assert store.last_event("s") == 0
    assert store.commit(POINT, append_once) == []


@pytest.mark.parametrize("way", ["commit", "transaction"])
def test_a_commit_inside_a_commit_is_refused(store, way):
    """It would wait for itself."""
    with pytest.raises(MisuseError, match="inside another one of the same thread"):
        if way == "commit":
            store.commit(POINT, lambda _: store.commit(POINT, append_once))
        else:
            with store.transaction(POINT):
                store.commit(POINT, append_once)
    assert store.commit(POINT, append_once) == []


# ---- the same for the code that no test comes to


def works(tree):
    """Functions and lambdas that are given a transaction."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            if any(
                one.arg == "tx" or (one.annotation and ast.unparse(one.annotation) == "Transaction")
                for one in parameters
            ):
                yield node


def asks_the_store(node):
    """Calls of a store's own readers, or a commit of their own: `store.last_event(…)`, `self._store.commit(…)`."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            owner = ast.unparse(call.func.value).rpartition(".")[2].lstrip("_")
            if owner == "store" and call.func.attr in {*READS, "commit", "acommit", "commit_at_once", "transaction"}:
                yield call


def test_no_commit_of_the_runtime_asks_the_store():
    """A transaction has every read that a commit relies on."""
    root = Path(troth.runtime.__file__).parent
    found, count = [], 0
    for path in sorted(root.rglob("*.py")):
        for work in works(ast.parse(path.read_text(encoding="utf-8"))):
            count += 1
            found += [
                f"{path.relative_to(root)}:{call.lineno} {ast.unparse(call.func)}" for call in asks_the_store(work)
            ]
    assert count > 30, "the commits were not found"
    assert found == []


def test_the_check_finds_what_it_looks_for():
    """As it was once written."""
    text = "def open(self):\n    def work(tx):\n        if self.store.last_event(s) == 0: ...\n    self.store.commit(P, work)"
    (work,) = works(ast.parse(text))
    assert [call.lineno for call in asks_the_store(work)] == [3]


def test_the_port_has_the_reads():
    """Whoever implements a store anew implements them too."""
    assert {"last_event", "events", "open_wait", "state_of", "holder_of", "get_meta"} <= set(vars(Transaction))
