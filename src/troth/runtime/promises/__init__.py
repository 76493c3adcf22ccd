"""Promises: work that reports back later, is kept for whoever asks, or is refused at once."""

from troth.runtime.promises.attempt import RetryPolicy
from troth.runtime.promises.errors import PromiseRefused, UnknownPromiseError
from troth.runtime.promises.outbox import Outbox
from troth.runtime.promises.outcome import Inline, Pushed, Stored
from troth.runtime.promises.promises import Promise, Promises
from troth.runtime.promises.retention import Retention

__all__ = [
    "Inline",
    "Outbox",
    "Promise",
    "PromiseRefused",
    "Promises",
    "Pushed",
    "Retention",
    "RetryPolicy",
    "Stored",
    "UnknownPromiseError",
]
