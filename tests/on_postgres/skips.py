"""Tests of the runtime that say something of files alone, and why they do not run on PostgreSQL."""

_CONVERSATIONS = "tests/runtime/conversations"
_SESSIONS = "tests/runtime/sessions"

SKIPS: dict[str, str] = {
    f"{_CONVERSATIONS}/test_never_wedged.py::test_a_lock_that_outlasts_every_patience": "locks the file with SQLite",
    f"{_CONVERSATIONS}/test_never_wedged.py::test_a_message_before_the_late_end_is_not_lost": "locks the file with SQLite",
    f"{_CONVERSATIONS}/test_never_wedged.py::test_a_disk_that_is_full": "limits the size of the file",
    f"{_SESSIONS}/test_audit.py::test_tampering_is_detected": "tampers with the file through SQLite",
    f"{_SESSIONS}/test_audit.py::test_an_edit_is_seen_without_the_key": "tampers with the file through SQLite",
    f"{_SESSIONS}/test_kill.py::test_an_agent_in_a_process_of_its_own_is_killed": "sets PYTHONPATH itself",
}
