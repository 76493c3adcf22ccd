"""Lines are found whatever the reads were, told at a rate, and counted: hits and summaries add up."""

import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troth.runtime import Runtime, bind
from troth.runtime.jobs import watching
from troth.runtime.jobs.watching import LineScanner, WatchPatterns, WatchState, decide_what_to_tell

from .conftest import QUICK, Chat, until

TEXT = "first ERROR\nprogress\rERROR in it\nnothing\nüber ERRÖR\nERROR at the end".encode()
WATCH = WatchPatterns(["ERROR", re.compile(r"ERR.R$")])
LINES = ["first ERROR", "progress\rERROR in it", "über ERRÖR", "ERROR at the end"]


def scan(pieces, patterns=WATCH, state=WatchState()):
    scanner = LineScanner(patterns, state)
    hits = [hit for piece in pieces for hit in scanner.feed(piece)]
    return hits + scanner.finish(), scanner


@pytest.mark.parametrize("cut", range(len(TEXT) + 1))
def test_a_pattern_cut_at_every_byte(cut):
    """F12: two reads that meet anywhere find what one read finds."""
    hits, scanner = scan([TEXT[:cut], TEXT[cut:]])
    assert [hit.line for hit in hits] == LINES
    assert [TEXT[hit.offset :].startswith(hit.line.encode()[:5]) for hit in hits] == [True] * 4
    assert scanner.offset == len(TEXT)


@pytest.mark.parametrize("cut", range(0, len(TEXT), 7))
def test_going_on_after_a_restart(cut):
    """Where a scanner was left, another one goes on: nothing twice, nothing left out."""
    first = LineScanner(WATCH, WatchState())
    hits = first.feed(TEXT[:cut])
    more, _ = scan([TEXT[first.offset :]], state=WatchState(offset=first.offset, is_counted=first.is_counted))
    assert [hit.line for hit in hits + more] == LINES


def test_a_line_without_an_end_is_matched_in_pieces(monkeypatch):
    """Memory is bounded; a line counts once, also where the pattern lies on the seam."""
    monkeypatch.setattr(watching, "_LONGEST", 100)
    monkeypatch.setattr(watching, "_OVERLAP", 10)
    for place in range(300):
        line = b"x" * place + b"ERROR" + b"y" * (400 - place)
        hits, _ = scan([line[n : n + 13] for n in range(0, len(line), 13)] + [b"\nERROR\n"])
        assert len(hits) == 2, place


@given(st.lists(st.tuples(st.integers(0, 30), st.floats(-5, 30)), max_size=30))
@settings(max_examples=60)
def test_hits_and_summaries_add_up(steps):
    """Whatever comes when, and wherever the clock goes."""
    state, now, singles, summaries, total = WatchState(), 1000.0, 0, 0, 0
    for count, later in steps:
        now += later
        told = decide_what_to_tell(state, [watching.WatchHit("x", "x", 0)] * count, now, is_end=False)
        assert len(told.hits) <= watching.RATE
        singles, summaries, total, state = singles + len(told.hits), summaries + told.summary, total + count, told.state
        assert singles + summaries + state.untold == total == state.hits
    told = decide_what_to_tell(state, [], now, is_end=True)
    assert singles + summaries + told.summary == total


def test_from_the_first_byte_idle_and_busy(runtime, chat):
    """F9, F12: told while the job runs and nobody has a turn; byte by byte as it is printed."""
    program = """
import sys, time
for letter in "ready\\nERR":
    sys.stdout.write(letter); sys.stdout.flush()
for letter in "OR 7\\n":
    sys.stdout.write(letter); sys.stdout.flush(); time.sleep(0.01)
sys.stdin.read()
"""
    with bind("s", chat):
        job = runtime.jobs.start([sys.executable, "-c", program], watch=["ready", "ERROR"]).promise.id
    until(lambda: len(chat.of("watch")) == 2)
    assert [delivery.data["line"] for delivery in chat.of("watch")] == ["ready", "ERROR 7"]
    assert runtime.jobs.get(job).state.value == "running"
    runtime.jobs.write(job, end=True)
    until(lambda: chat.of("done"))


@pytest.mark.parametrize("count", [1, watching.RATE, watching.RATE + 1, 500])
def test_a_flood_is_counted_and_the_end_is_told_all_the_same(runtime, chat, count):
    """F10, F11: some hits one by one in their order, the others in a summary, and the end."""
    with bind("s", chat):
        job = runtime.jobs.start(f"for i in $(seq {count}); do echo hit $i; done; exit 6", watch="hit").promise.id
    until(lambda: chat.of("done"))
    singles, summaries = chat.of("watch"), chat.of("summary")
    assert len(singles) + sum(delivery.count for delivery in summaries) == count == runtime.jobs.get(job).hits
    assert [delivery.data["line"] for delivery in singles] == [f"hit {n + 1}" for n in range(len(singles))]
    assert bool(summaries) == (count > watching.RATE)
    assert (chat.sent[0].kind, chat.sent[-1].kind) == ("watch", "done")  # the oldest first, whatever came in one look
    assert chat.sent[-1].data["result"]["exit_code"] == 6


def test_a_summary_comes_when_the_time_is_over(path, monkeypatch):
    """Not only at the end: a job may run for days."""
    monkeypatch.setattr(watching, "WINDOW", 0.3)
    with Runtime(path, delivery=QUICK) as runtime:
        chat = Chat()
        runtime.open_channel(chat)
        with bind("s", chat):
            job = runtime.jobs.start("seq 1 30; exec sleep 60", watch=re.compile("[0-9]")).promise.id
        until(lambda: chat.of("summary"))
        assert len(chat.of("watch")) + sum(delivery.count for delivery in chat.of("summary")) == 30
        runtime.jobs.stop(job)


def test_two_programs_that_look_at_one_job_tell_of_it_once(path):
    """Each thing that is written is a compare-and-set on the job's log."""
    with Runtime(path, delivery=QUICK) as one, Runtime(path, delivery=QUICK) as two:
        chat = Chat()
        one.open_channel(chat)
        two.jobs.look_after()
        with bind("s", chat):
            job = one.jobs.start("for i in $(seq 8); do echo hit $i; sleep 0.03; done", watch="hit").promise.id
        two.jobs.look_after()
        until(lambda: chat.of("done"))
        assert sorted(delivery.data["line"] for delivery in chat.of("watch")) == [f"hit {n + 1}" for n in range(8)]
        assert one.jobs.get(job).hits == 8
        assert one.outbox.counts().promised == 9
