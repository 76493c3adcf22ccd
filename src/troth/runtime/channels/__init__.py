"""Ways out to a person or a program: what a channel is, which one a turn is bound to, and the one in this process."""

from troth.runtime.channels.binding import Binding, bind, current, stateless
from troth.runtime.channels.capability import Capability
from troth.runtime.channels.channel import Channel, Delivery, Receipt
from troth.runtime.channels.dedupe import Deduplicator
from troth.runtime.channels.in_process import Inbox, InProcessChannel

__all__ = [
    "Binding",
    "Capability",
    "Channel",
    "Deduplicator",
    "Delivery",
    "InProcessChannel",
    "Inbox",
    "Receipt",
    "bind",
    "current",
    "stateless",
]
