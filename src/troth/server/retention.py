"""Forget what was said in old talks, where a server is told to: `Limits(keep=…)`.

A talk is forgotten when nothing was written in it for so long and nothing runs in it. Its log is cut off but for its
last entry: whoever follows it from further back is told of the `gap`, and its responses are gone (410). Whose it was,
and that it was, stays known.
"""

from troth.runtime.conversations.log import stream_of
from troth.runtime.store import Store, Transaction, commit_point

__all__ = ["TalkRetention"]

FORGET = commit_point("server.talk.forget", "that old conversations are trimmed, and up to where")

_AT_ONCE = 200  # talks that are looked at in one look


class TalkRetention:
    """Walks through the talks of a store from the oldest on, some at each look; then from the beginning again."""

    def __init__(self, store: Store, keep: float | None) -> None:
        self._store = store
        self._keep = keep
        self._cursor = (0.0, "")
        self._again_at = 0.0

    def look(self) -> int:
        """Forget some of what is due; answers how many talks that were. Blocks."""
        if self._keep is None or self._store.clock() < self._again_at:
            return 0
        moment = self._store.clock() - self._keep
        page = self._store.read_server(lambda rows: rows.begun_before("conversation", moment, self._cursor, _AT_ONCE))
        if len(page) < _AT_ONCE:  # to the end; some that were too young then are due later
            self._cursor, self._again_at = (0.0, ""), self._store.clock() + min(self._keep / 4, 3600.0)
        else:
            self._cursor = (page[-1].created_at, page[-1].id)
        due = [belonging.id for belonging in page if self._is_due(belonging.id, moment)]
        if due:
            self._store.commit(FORGET, lambda tx: _cut_off(tx, due))
        return len(due)

    def _is_due(self, conversation_id: str, moment: float) -> bool:
        stream = stream_of(conversation_id)
        last = self._store.last_event(stream)
        if last - self._store.trimmed(stream) <= 1:
            return False  # there is nothing to forget
        newest = self._store.events(stream, after=last - 1, limit=1)
        holder = self._store.holder(stream)
        return bool(newest) and newest[0].at < moment and (holder is None or not self._store.is_alive(holder))


def _cut_off(tx: Transaction, conversation_ids: list[str]) -> None:
    for conversation_id in conversation_ids:
        tx.trim(stream_of(conversation_id), 1)
