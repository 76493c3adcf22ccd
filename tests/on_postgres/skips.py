"""Tests of the runtime that say something of files alone, and why they do not run on PostgreSQL.

A name is that of one test, or the beginning of the names of several.
"""

_CONVERSATIONS = "tests/runtime/conversations"
_ENGINE = "tests/runtime/engine"
_SESSIONS = "tests/runtime/sessions"
_LOCKS = "locks the file with SQLite"
_LATER = "the end of a run whose task was cancelled is committed beside the loop, so a moment later"

SKIPS: dict[str, str] = {
    f"{_CONVERSATIONS}/test_never_wedged.py::test_a_lock_that_outlasts_every_patience": _LOCKS,
    f"{_CONVERSATIONS}/test_never_wedged.py::test_a_message_before_the_late_end_is_not_lost": _LOCKS,
    f"{_CONVERSATIONS}/test_never_wedged.py::test_a_start_that_is_cancelled_while_it_is_written": _LOCKS,
    f"{_CONVERSATIONS}/test_never_wedged.py::test_a_disk_that_is_full": "limits the size of the file",
    f"{_CONVERSATIONS}/test_never_wedged.py::test_no_thread_can_be_started": "the pool of connections needs threads",
    f"{_CONVERSATIONS}/test_handles.py::test_a_callback_that_never_returns_does_not_hold_the_run": _LATER,
    f"{_CONVERSATIONS}/test_run.py::test_exactly_one_end_whatever_a_step_raises": _LATER,
    f"{_CONVERSATIONS}/test_run.py::test_cancelling_who_waits_behaves_as_asyncio_promises": (
        "counts on a commit and a step within 50 ms"
    ),
    f"{_CONVERSATIONS}/test_opening.py::test_a_run_that_starts_in_the_transaction_in_which_another_ends": (
        "sends messages faster than a database answers, so that a run never sees the last one"
    ),
    f"{_SESSIONS}/test_audit.py::test_tampering_is_detected": "tampers with the file through SQLite",
    f"{_SESSIONS}/test_audit.py::test_an_edit_is_seen_without_the_key": "tampers with the file through SQLite",
    f"{_SESSIONS}/test_lifecycle.py::test_legality": "reads the file with SQLite",
    f"{_SESSIONS}/test_lifecycle.py::test_scores_are_checked": "reads the file with SQLite",
    f"{_SESSIONS}/test_lifecycle.py::test_a_rejected_join_changes_nothing": "reads the file with SQLite",
    "tests/runtime/promises/test_crash_matrix.py::test_a_lease_of_the_dead_is_void_at_once": (
        "tampers with the file through SQLite"
    ),
    "tests/runtime/promises/test_stateful.py::test_any_order": "opens more stores than the time limit of a test allows",
    f"{_SESSIONS}/test_kill.py::test_an_agent_in_a_process_of_its_own_is_killed": "sets PYTHONPATH itself",
    f"{_ENGINE}/embedded/test_off_loop.py::test_with_full_nothing_is_committed_on_the_loop": "`synchronous` is SQLite's",
    f"{_ENGINE}/embedded/test_short_runs.py::test_who_takes_a_run_over_counts_its_history_anew": (
        "reads the rows of the file; PostgreSQL gives the numbers itself"
    ),
    f"{_ENGINE}/embedded/test_setbacks.py::test_a_disk_that_is_full_is_told": "limits the size of the file",
    f"{_ENGINE}/temporal": "their store is in PostgreSQL already",
    f"{_ENGINE}/test_two_workers.py": "its store is in PostgreSQL already",
    f"{_ENGINE}/test_decisions.py::test_hundreds_of_waiting_runs_need_no_threads": "counts the threads of a file's store",
}
