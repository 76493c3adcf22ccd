"""An answer as it is read off a log, also of a run that was cut off and begun anew."""

import pytest

from troth.runtime.store import Event
from troth.server.openai_api.answer import ANSWER, LoggedAnswer

NAMED = (ANSWER, {"id": "a"})
STARTED = ("run.started", {"run": "r"})
CUT_OFF = ("run.ended", {"run": "r", "outcome": "interrupted"})
DONE = ("step.done", {"run": "r", "step": 1})
FINISHED = ("run.ended", {"run": "r", "outcome": "finished"})


def heard(text):
    return "tokens", {"text": text}


def said(text):
    return "message", {"role": "assistant", "text": text}


def log(*entries):
    return [Event(0, "log", seq, kind, payload, 0.0) for seq, (kind, payload) in enumerate([NAMED, *entries], 1)]


def told(events, **options):
    """What is told while the log is read, and the answer in the end."""
    answer = LoggedAnswer("a", **options)
    return [(one.kind, one.index, one.text) for one in answer.take(events) if one.kind.startswith("text")], answer


@pytest.mark.parametrize("cut", [[CUT_OFF, STARTED], [STARTED]], ids=["whose end was written", "without an end"])
def test_a_step_that_was_cut_off_is_told_once(cut):
    """It says everything again, so what was heard of it before counts no more."""
    happenings, answer = told(log(STARTED, heard("one "), *cut, heard("one "), heard("two"), said("one two"), FINISHED))
    assert answer.text == "one two"
    assert answer.counting == [1]
    assert happenings == [
        ("text begun", 0, ""),
        ("text", 0, "one "),
        ("text taken back", 0, ""),
        ("text begun", 1, ""),
        ("text", 1, "one "),
        ("text", 1, "two"),
        ("text done", 1, "one two"),
    ]


def test_whoever_reads_it_later_is_told_nothing_of_that():
    """`taken_back` of one reader is `skipped` of the next."""
    events = log(STARTED, heard("one "), CUT_OFF, STARTED, heard("one "), CUT_OFF, STARTED, said("one two"), FINISHED)
    _, first = told(events)
    assert first.taken_back == [(3, 4), (6, 7)]
    happenings, second = told(events, skipped=first.taken_back)
    assert [kind for kind, _, _ in happenings] == ["text begun", "text", "text done"]
    assert second.text == first.text == "one two"


def test_what_a_step_that_is_over_said_stays():
    """Only the step that was cut off is taken again."""
    _, answer = told(log(STARTED, heard("first "), DONE, heard("secon"), CUT_OFF, STARTED, heard("second"), FINISHED))
    assert answer.text == "first \n\nsecond"
    _, answer = told(log(STARTED, said("first"), heard("secon"), CUT_OFF, STARTED, said("second"), FINISHED))
    assert answer.text == "first\n\nsecond"


def test_what_was_heard_of_an_answer_that_was_stopped_stays():
    """Nobody says it again."""
    _, answer = told(log(STARTED, heard("half"), ("asked", {}), CUT_OFF))
    assert (answer.state, answer.text) == ("incomplete", "half")
