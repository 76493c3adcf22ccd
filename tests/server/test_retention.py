"""Talks are forgotten after as long as the server is told, and never sooner; whoever asks is told that they are gone."""

import json

import pytest
from tests.server.service import frames, wait_until

from troth.errors import MisuseError
from troth.runtime.conversations.log import stream_of
from troth.runtime.store import commit_point
from troth.runtime.store.sqlite.store import SqliteStore
from troth.server import Limits
from troth.server.retention import TalkRetention

POINT = commit_point("test.talk_retention", "talks for a test")
DAY = 86_400.0


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    with SqliteStore(tmp_path / "a.db", clock=clock) as store:
        yield store


def write(store, talk_id, count=5):
    def work(tx):
        tx.server.claim("conversation", talk_id, "me", store.clock())
        for number in range(count):
            tx.append_event(stream_of(talk_id), "message", {"n": number}, store.clock())

    store.commit(POINT, work)


def left(store, talk_id):
    return [event.seq for event in store.events(stream_of(talk_id))]


def test_what_is_old_is_forgotten_and_what_is_young_is_not(store, clock):
    """The age of a talk is that of its last entry."""
    write(store, "old")
    write(store, "busy")
    clock.now += 6 * DAY
    write(store, "busy")
    write(store, "young")
    clock.now += 2 * DAY
    retention = TalkRetention(store, 7 * DAY)
    assert retention.look() == 1
    assert left(store, "old") == [5]
    assert left(store, "busy") == list(range(1, 11))
    assert left(store, "young") == [1, 2, 3, 4, 5]
    assert retention.look() == 0
    clock.now += 7 * DAY
    assert retention.look() == 2
    assert left(store, "busy") == [10]


def test_many_are_forgotten_some_at_a_time(store, clock):
    """No look takes long, and none is passed over."""
    for number in range(450):
        write(store, f"talk-{number}", 2)
    clock.now += 2 * DAY
    retention = TalkRetention(store, DAY)
    assert [retention.look() for _ in range(4)] == [200, 200, 50, 0]


def test_for_ever_without_a_setting(store, clock):
    write(store, "old")
    clock.now += 10_000 * DAY
    assert TalkRetention(store, None).look() == 0
    assert left(store, "old") == [1, 2, 3, 4, 5]


def test_a_talk_that_runs_is_not_forgotten(store, clock):
    """Somebody has its lease, however long ago its last entry was."""
    from troth.runtime.store.identity import new_owner, retire

    owner = new_owner(clock())
    write(store, "running")
    store.commit(POINT, lambda tx: (tx.enroll(owner), tx.claim(stream_of("running"), owner.id, "run", clock())))
    clock.now += 2 * DAY
    store.commit(POINT, lambda tx: tx.beat(owner.id, clock()))
    assert TalkRetention(store, DAY).look() == 0
    retire(owner)


@pytest.mark.parametrize("keep", [0, -1.0, float("inf"), True, "7"])
def test_a_span_that_is_none_is_refused(keep):
    with pytest.raises(MisuseError):
        Limits(keep=keep)


def test_a_server_forgets_and_says_so(serve):
    """`gap` in the stream, 410 for the response, and the list still has the talk."""
    server = serve("app:forgetful")
    with server.client() as client:
        response = client.post("/responses", json={"model": "parrot", "input": "hello"}).json()
        talk_id = response["conversation"]["id"]
        gone = wait_until(
            lambda: (got := client.get(f"/responses/{response['id']}")).status_code == 410 and got, "the forgetting"
        )
        assert gone.json()["error"]["code"] == "response_trimmed"
        told = frames(client.get(f"/conversations/{talk_id}/events?follow=false").text)
        assert told[0][1] == "gap"
        assert json.dumps(told).count("hello") == 0
        assert talk_id in [row["id"] for row in client.get("/conversations").json()["data"]]
        further = {"model": "parrot", "input": "again", "previous_response_id": response["id"]}
        assert client.post("/responses", json=further).status_code == 410
