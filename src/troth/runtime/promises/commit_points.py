"""Every place where the outbox commits, and where a channel's `send` runs.

A promise is written in the commit that writes down its run (`run.start`), and settled in the one that ends it
(`run.finish`).
"""

from troth.runtime.store import commit_point
from troth.runtime.store.failpoints import effect_point

__all__ = [
    "CHANNEL_CLOSE",
    "CHANNEL_OPEN",
    "CHANNEL_SEND",
    "OUTBOX_ACK",
    "OUTBOX_BEAT",
    "OUTBOX_ENROLL",
    "OUTBOX_LEASE",
    "OUTBOX_OFFER",
    "OUTBOX_RECEIPT",
    "OUTBOX_RENEW",
    "OUTBOX_REPLAY",
    "OUTBOX_RETIRE",
    "OUTBOX_SWEEP",
    "OUTBOX_TAKE_BACK",
]

OUTBOX_LEASE = commit_point("outbox.lease", "who sends some deliveries, and that it is one attempt more")
OUTBOX_RECEIPT = commit_point("outbox.receipt", "what an attempt came to; if it was the last one, who else is told")
OUTBOX_RENEW = commit_point("outbox.renew", "that deliveries are still being sent, or still held in memory")
OUTBOX_TAKE_BACK = commit_point("outbox.take_back", "that deliveries which were held in memory are pending again")
OUTBOX_ACK = commit_point("outbox.ack", "that a delivery reached its receiver")
OUTBOX_REPLAY = commit_point("outbox.replay", "that a delivery is pending again")
OUTBOX_OFFER = commit_point("outbox.offer", "that what is stored goes through a channel that can push it")
OUTBOX_SWEEP = commit_point("outbox.sweep", "leases of dead processes, what no channel can push, and what has expired")
OUTBOX_ENROLL = commit_point("outbox.enroll", "who delivers in this process")
OUTBOX_BEAT = commit_point("outbox.beat", "that this process still delivers")
OUTBOX_RETIRE = commit_point("outbox.retire", "that this process delivers no more")
CHANNEL_OPEN = commit_point("channel.open", "that a channel is served here, and that what waited for it is due")
CHANNEL_CLOSE = commit_point("channel.close", "that a channel is no longer served, and what it held is pending again")
CHANNEL_SEND = effect_point("channel.send", "a channel's own code, with the effect on the receiver")
