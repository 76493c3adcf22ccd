"""Keep a background response as a promise: it is told when it is done, to whoever its owner wants to have told.

The promise's row is committed before the agent begins. Its end is read off the log: by this process, or by any other
server on the store if this one dies.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from troth.bridge import call
from troth.runtime.promises.promises import WorkKind
from troth.runtime.store import Transaction, commit_point
from troth.runtime.store.promise_records import PromiseState
from troth.server.access.scopes import Caller
from troth.server.openai_api.answer import LoggedAnswer
from troth.server.openai_api.talk import ClosingError, Talk, follow

if TYPE_CHECKING:
    from troth.server.context import ServerContext

__all__ = ["RESPONSE", "BackgroundResponses", "talk_of"]

log = logging.getLogger("troth.server")

SETTLE = commit_point("server.response.settle", "the end of a response, and the delivery that tells of it")

RESPONSE = "response"
_LOOK = 2.0  # seconds between two looks for responses that another process began

_STATES = {
    "completed": PromiseState.DONE,
    "incomplete": PromiseState.DONE,
    "failed": PromiseState.FAILED,
    "cancelled": PromiseState.CANCELLED,
}


async def talk_of(context: "ServerContext", response_id: str) -> Talk | None:
    """Where a response is answered; nothing if there is none of that id."""
    belonging = await call(context.store.read_server, lambda rows: rows.belonging(RESPONSE, response_id))
    if belonging is None:
        return None
    about = belonging.details
    caller = Caller(belonging.owner, frozenset())
    return Talk(context, caller, about["model"], about["conversation"], response_id, about["after"])


class BackgroundResponses:
    """The background responses of one server."""

    def __init__(self, context: "ServerContext") -> None:
        self._context = context
        self._watched: dict[str, asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def open(self) -> None:
        """Begin to look for responses whose end nobody has told."""
        self._loop = asyncio.get_running_loop()
        promises = await call(lambda: self._context.runtime.promises)
        promises.register(WorkKind(RESPONSE, self._cancel))
        self._task = asyncio.create_task(self._look_for_ever(), name="troth-responses")

    async def close(self) -> None:
        """Look no more; what is open is told by the next server."""
        tasks = [task for task in (self._task, *self._watched.values()) if task is not None]
        self._task = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def promise(self, talk: Talk) -> Callable[[Transaction], None]:
        """What writes down that the response will be told; once, however often it is asked for. Then `watch` it."""
        promises = self._context.runtime.promises
        with talk.session():
            binding = promises.binding_for("must")
        assert binding is not None

        def work(tx: Transaction) -> None:
            if tx.promises.find(talk.answer_id) is None:
                promises.open_promise(
                    tx, RESPONSE, talk.answer_id, talk.agent, promise_id=talk.answer_id, binding=binding
                )

        return work

    def _cancel(self, response_id: str) -> None:
        """For whoever cancels the promise, on any thread."""
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(self._acancel(response_id), self._loop).result(30)

    async def _acancel(self, response_id: str) -> None:
        talk = await talk_of(self._context, response_id)
        if talk is not None:
            await talk.cancel()

    # Telling of the end

    async def _look_for_ever(self) -> None:
        while True:
            try:
                for response_id in await call(self._context.store.promises.open_subjects, RESPONSE):
                    self.watch(response_id)
            except Exception:
                log.exception("The look for open responses failed; trying again.")
            await asyncio.sleep(_LOOK)

    def watch(self, response_id: str) -> None:
        """Tell of the end of a response that was promised."""
        if response_id not in self._watched:
            task = asyncio.create_task(self._tell(response_id), name=f"troth-response-{response_id}")
            self._watched[response_id] = task
            task.add_done_callback(lambda _: self._watched.pop(response_id, None))

    async def _tell(self, response_id: str) -> None:
        """Wait for the end of a response, and write it down with its delivery."""
        talk = await talk_of(self._context, response_id)
        if talk is None:
            return
        try:
            answer = LoggedAnswer(response_id)
            async for events in follow(self._context, talk.conversation_id, talk.after):
                answer.read(events)
                if answer.is_over:
                    break
            await self._context.store.acommit(SETTLE, lambda tx: self._settle(tx, answer))
        except ClosingError:
            return
        except Exception:
            log.exception("The end of the response %r could not be delivered yet; trying again.", response_id)

    def _settle(self, tx: Transaction, answer: LoggedAnswer) -> None:
        error = {"type": str((answer.error or {}).get("type")), "message": "the agent failed"}
        tx.promises.settle(
            RESPONSE,
            answer.id,
            _STATES[answer.state],
            self._context.store.clock(),
            result=json.dumps({"status": answer.state, "text": answer.text}) if answer.state != "failed" else None,
            error=json.dumps(error) if answer.state == "failed" else None,
        )
