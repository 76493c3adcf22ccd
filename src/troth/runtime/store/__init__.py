"""What is remembered: runs and their steps, signals, streams of events, and who owns what.

    from troth.runtime.store import open_store

    with open_store("troth.db") as store:  # or "postgresql://user@host/database"
        ...

`port.py` says what every store does, `writer.py` how commits are grouped, `schema.py` how the file's versions follow
one another, `failpoints.py` how a test stops a process at any commit.
"""

from troth.runtime.store.errors import (
    CursorTrimmedError,
    DamagedStoreError,
    LeaseLostError,
    NewerStoreError,
    NotAStoreError,
    NotJsonError,
    ReadOnlyStoreError,
    StoreBusyError,
    StoreError,
    UnsupportedSqliteError,
)
from troth.runtime.store.failpoints import CommitPoint, commit_point
from troth.runtime.store.follow import Follower, HistoryFollower
from troth.runtime.store.identity import Owner
from troth.runtime.store.list_records import (
    ConversationItem,
    DeliveryItem,
    Page,
    PromiseItem,
    RunItem,
    SearchHit,
    SessionItem,
    StateChange,
    StateChanges,
    StoreCounts,
    changes_topic,
)
from troth.runtime.store.lists import StoreLists
from troth.runtime.store.notifications import Notifier
from troth.runtime.store.open import open_store
from troth.runtime.store.port import Store, Transaction
from troth.runtime.store.records import (
    Attempt,
    Event,
    Happened,
    HistoryEntry,
    Recorded,
    RunRecord,
    RunState,
    Signal,
    StepRecord,
    StepState,
)
from troth.runtime.store.sqlite.store import SqliteStore

__all__ = [
    "Attempt",
    "CommitPoint",
    "ConversationItem",
    "CursorTrimmedError",
    "DamagedStoreError",
    "DeliveryItem",
    "Event",
    "Follower",
    "Happened",
    "HistoryEntry",
    "HistoryFollower",
    "LeaseLostError",
    "NewerStoreError",
    "NotAStoreError",
    "NotJsonError",
    "Notifier",
    "Owner",
    "Page",
    "PromiseItem",
    "ReadOnlyStoreError",
    "Recorded",
    "RunItem",
    "RunRecord",
    "RunState",
    "SearchHit",
    "SessionItem",
    "Signal",
    "SqliteStore",
    "StateChange",
    "StateChanges",
    "StepRecord",
    "StepState",
    "Store",
    "StoreBusyError",
    "StoreCounts",
    "StoreError",
    "StoreLists",
    "Transaction",
    "UnsupportedSqliteError",
    "changes_topic",
    "commit_point",
    "open_store",
]
