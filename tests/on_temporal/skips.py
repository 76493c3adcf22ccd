"""Tests of workflows and sagas that say something of an engine in the same process alone, and why.

A name is that of one test, or the beginning of the names of several.
"""

_RUNNING = "tests/runtime/workflows/test_running.py"

SKIPS: dict[str, str] = {
    "tests/runtime/sagas/test_verbs.py::test_the_grace_after_a_timeout_can_be_set": (
        "an async step runs on the loop of its worker, and this one waits for an event of its caller's loop"
    ),
    f"{_RUNNING}::test_each_item_has_its_own_steps": "two steps of 20 ms need not overlap on their way to a worker",
    f"{_RUNNING}::test_every_attempt_has_its_own_error_and_waiting_is_apart_from_work": (
        "a step's work lasts as long as its way to a worker and back"
    ),
}
