"""A program that uses every verb of the outbox and is killed; started again, whoever there is delivers the rest."""

import json
import threading
import time
from pathlib import Path

from crash_program import POLICY, SESSION, FileChannel, give

from troth.runtime import Capability, Receipt, Runtime, bind
from troth.runtime.engine import Step
from troth.runtime.promises import outbox
from troth.runtime.store import SqliteStore

HOUR = 3600.0


class Chat(FileChannel):
    """The effect is a line in a file; it can accept only, or be unable to push."""

    accepts = False
    can = Capability.PUSH

    @property
    def capability(self):
        return self.can

    def send(self, delivery):
        receipt = super().send(delivery)
        return Receipt.accepted() if self.accepts else receipt


GO = threading.Event()


def wait_for_it(value):
    GO.wait(60)
    return value


def late(value):
    return (yield Step("wait", wait_for_it, value))


def until(condition, what):
    deadline = time.monotonic() + 20
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(what)
        time.sleep(0.003)


def program(folder):
    """Use every verb once; after a restart, deliver what is owed through the channel that `restart.json` names."""
    restart = Path(folder) / "restart.json"
    how = json.loads(restart.read_text()) if restart.exists() else None
    shift = HOUR if how and how["later"] else 0.0
    with (
        SqliteStore(Path(folder) / "troth.db", clock=lambda: time.time() + shift) as store,
        Runtime(store, delivery=POLICY, in_process=False) as runtime,
    ):
        runtime.register(give)
        runtime.register(late)
        if how is None:
            use_every_verb(runtime, folder)
        else:
            deliver_the_rest(runtime, folder, how["channel"])
        counts = runtime.outbox.counts()
        ids = [record.id for record in runtime.promises.list()]
    return {"counts": counts._asdict(), "balanced": counts.is_balanced, "promises": ids}


def use_every_verb(runtime, folder):
    promises, post = runtime.promises, runtime.outbox
    chat = Chat("chat", folder)
    chat.accepts = True
    runtime.open_channel(chat)
    with bind(SESSION, chat):
        promises.start(give, 1, promise_id="p-1").promise.wait(60)
        until(lambda: chat.reset(SESSION) == 1, "nothing was taken back")
        until(lambda: post._held.of("chat", accepted=True), "nothing was accepted")
        post._beat()
        outbox.LEASE = 0.01
        until(lambda: post.find("p-1-done-1").leased_until < time.time() + 15, "nothing was renewed")
        outbox.LEASE = 30.0
        post.ack("p-1-done-1")
        chat.accepts = False
        post.replay("p-1-done-1")
        until(lambda: post.counts().delivered == 1, "it was not replayed")
    with bind(SESSION):
        promises.start(give, 2, promise_id="p-2").promise.wait(60)
    with bind(SESSION, chat):
        until(lambda: post.counts().delivered == 2, "it was not offered")
        promise = promises.start(late, 5, promise_id="p-5").promise
        chat.can = Capability.STORE
        GO.set()
        promise.wait(60)
        until(lambda: post.find("p-5-done-1").state == "stored", "losing push changed nothing")
        chat.can = Capability.PUSH
        until(lambda: post.counts().delivered == 3, "it was not sent when the channel could push again")
    chat.accepts = True
    with bind(SESSION, chat):
        promises.start(give, 3, promise_id="p-3").promise.wait(60)
        until(lambda: post._held.of("chat", accepted=True), "nothing was accepted")
    runtime.close_channel(chat)
    chat.accepts, chat.can = False, Capability.STORE
    with bind(SESSION, chat):
        promises.start(give, 4, promise_id="p-4").promise.wait(60)
    chat.can = Capability.PUSH
    runtime.open_channel(chat)
    with bind(SESSION, chat):
        until(lambda: post.counts().delivered == 5, "the rest was not delivered")


def deliver_the_rest(runtime, folder, name):
    GO.set()
    for record in runtime.promises.list():
        runtime.promises.wait(record.id, 20)
    if name is None:
        until(lambda: not runtime.engine.store.promises.needs_sweep(runtime.engine.store.clock()), "it does not settle")
        return
    chat = Chat(name, folder)
    runtime.open_channel(chat)
    with bind(SESSION, chat):
        until(lambda: runtime.outbox.counts().stored == 0, "something stays owed")
