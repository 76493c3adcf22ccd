"""What is committed, together and by whom."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from troth.errors import MisuseError
from troth.runtime.store import (
    RunState,
    Store,
    Transaction,
)
from troth.runtime.store.failpoints import InjectedFaultError
from troth.testing import failpoints
from troth.testing.store_conformance.check import (
    POINT,
    StoreGround,
    append,
    check,
    in_threads,
    said,
)

__all__: list[str] = []


@check("commits")
def what_raises_leaves_no_trace(ground: StoreGround) -> None:
    """The error is the caller's, what the work wrote is gone, and the next commit goes on."""

    def half(tx: Transaction) -> None:
        tx.append_event("s", "said", "half", 1.0)
        tx.add_run("r", "d", "[]", 1.0)
        raise ValueError("enough")

    with ground.open() as store:
        store.commit(POINT, append("before"))
        for commit in (store.commit, lambda point, work: asyncio.run(_acommit(store, point, work))):
            try:
                commit(POINT, half)
            except ValueError as error:
                assert str(error) == "enough"  # noqa: PT017
            else:
                raise AssertionError("what the work raised was not raised")
        assert store.commit(POINT, append("after")) == 2
        assert (said(store), store.run("r")) == (["before", "after"], None)


@check("commits")
def a_name_that_is_no_text_is_refused(ground: StoreGround) -> None:
    """Half of a character can be kept by no store: who asks for it, or writes it, is told so in words."""
    name = "a\ud83d"
    asked: tuple[Callable[[Store], object], ...] = (
        lambda store: store.run(name),
        lambda store: store.events(name),
        lambda store: store.promises.find(name),
        lambda store: store.commit(POINT, lambda tx: tx.append_event(name, "said", "it", 1.0)),
        lambda store: asyncio.run(_acommit(store, POINT, lambda tx: tx.add_run(name, "d", "[]", 1.0))),
    )
    with ground.open() as store:
        for ask in asked:
            try:
                ask(store)
            except MisuseError as error:
                assert "half of a character" in str(error)  # noqa: PT017
            else:
                raise AssertionError("a name that is no text was taken")
        assert store.commit(POINT, append("after")) == 1


async def _acommit(store: Store, point: Any, work: Callable[[Transaction], Any]) -> Any:
    return await store.acommit(point, work)


@check("commits")
def those_who_commit_at_once_get_their_own_answers(ground: StoreGround) -> None:
    """Threads and tasks, some of whose work fails: what they share is nobody's loss."""

    def work(number: int) -> Callable[[Transaction], int]:
        def write(tx: Transaction) -> int:
            tx.append_event(f"s{number}", "said", number, 1.0)
            if number % 5 == 0:
                raise KeyError(number)
            return number

        return write

    def in_thread(store: Store, number: int) -> object:
        try:
            return store.commit(POINT, work(number))
        except KeyError as refused:
            return refused.args[0], "refused"

    async def in_tasks(store: Store) -> list[object]:
        commits = (store.acommit(POINT, work(number)) for number in range(100, 130))
        return list(await asyncio.gather(*commits, return_exceptions=True))

    with ground.open() as store:
        threads = in_threads([partial(in_thread, store, number) for number in range(20)])
        assert threads == [(number, "refused") if number % 5 == 0 else number for number in range(20)]
        for number, answer in enumerate(asyncio.run(in_tasks(store)), start=100):
            assert isinstance(answer, KeyError) if number % 5 == 0 else answer == number
        for number in [*range(20), *range(100, 130)]:
            assert said(store, f"s{number}") == ([] if number % 5 == 0 else [number])


@check("commits")
def a_commit_is_whole_at_every_failpoint(ground: StoreGround) -> None:
    """Before it is committed nothing is there, after that everything is, whatever happens in between."""
    with ground.open() as store:
        for name, is_kept in ((POINT.before, False), (POINT.written, False), (POINT.after, True)):
            stream = name.rpartition(".")[2]
            with failpoints.armed(name, "raise"):
                try:
                    store.commit(POINT, append("x", stream))
                except InjectedFaultError:
                    pass
                else:
                    raise AssertionError(f"{name} was not reached")
            assert said(store, stream) == (["x"] if is_kept else [])
        assert store.commit(POINT, append("y", "after")) == 2


@check("commits")
def a_commit_sees_what_it_has_written(ground: StoreGround) -> None:
    """And nobody else does before it is kept; the store itself is not asked inside of it."""

    def work(tx: Transaction) -> None:
        tx.append_event("s", "said", "a", 1.0)
        tx.add_run("r", "d", "[1]", 1.0)
        assert [event.payload for event in tx.events("s")] == ["a"]
        assert tx.last_event("s") == 1
        assert tx.asked_of("r") == ("d", "[1]", RunState.RUNNING)
        tx.set_meta("k", {"v": 1})
        assert tx.get_meta("k") == {"v": 1}
        for question in (partial(store.events, "s"), partial(store.run, "r")):
            try:
                question()
            except MisuseError:
                continue
            raise AssertionError("the store was asked inside a commit")

    with ground.open() as store, ground.open() as second:
        store.commit(POINT, work)
        assert said(second) == ["a"]
        assert second.commit(POINT, lambda tx: tx.get_meta("k")) == {"v": 1}
        assert second.commit(POINT, lambda tx: tx.get_meta("nothing")) is None


@check("commits")
def a_closed_store_says_so(ground: StoreGround) -> None:
    """It may be closed twice, and then neither writes nor reads."""
    with ground.open() as store:
        store.commit(POINT, append("a"))
        store.close()
        store.close()
        for use in (partial(store.commit, POINT, append("b")), partial(store.events, "s")):
            try:
                use()
            except MisuseError:
                continue
            raise AssertionError("a closed store was used")
    with ground.open() as again:
        assert said(again) == ["a"]
