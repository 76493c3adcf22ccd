"""The tools with which an agent delegates work and asks what became of it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from troth.runtime.promises.errors import NotSettledError
from troth.runtime.promises.outcome import Inline, Pushed
from troth.runtime.promises.wording import text_of
from troth.runtime.store.promise_records import PromiseRecord
from troth.runtime.tools import Tool, tool

if TYPE_CHECKING:
    from troth.runtime.promises.promises import Promises

__all__ = ["tools_for"]


def tools_for(promises: "Promises", session: Callable[[], str]) -> list[Tool]:
    """Delegate, look, wait and stop. Each works only on promises of the caller's own session."""

    async def delegate(agent: str, prompt: str) -> dict[str, Any]:
        """Let another agent work on a prompt in the background.

        Args:
            agent: the name of the agent
            prompt: what it is to do, in full: it sees nothing of this conversation

        """
        outcome = await promises.astart(agent, prompt=prompt)
        if isinstance(outcome, Inline):
            note = "It was done immediately, because nothing could be delivered later."
            return {"state": "done", "result": outcome.result, "note": note}
        if isinstance(outcome, Pushed):
            note = f"The result will be delivered through {outcome.channel}."
            return {"promise": outcome.promise.id, "delivery": "pushed", "note": note}
        note = f"{outcome.note} Use `wait_for_promise` or `look_at_promise` to get it."
        return {"promise": outcome.promise.id, "delivery": "stored", "note": note}

    async def look_at_promise(promise: str) -> dict[str, Any]:
        """Look what became of work in the background, without waiting.

        Args:
            promise: the id of the promise

        """
        return _told(await promises.aget(promise, session=session()))

    async def wait_for_promise(promise: str, seconds: float = 60.0) -> dict[str, Any]:
        """Wait for work in the background, and get its result.

        Args:
            promise: the id of the promise
            seconds: how long to wait

        """
        try:
            return _told(await promises.await_end(promise, seconds, session=session()))
        except NotSettledError:
            return {
                "promise": promise,
                "state": "open",
                "note": f"It is not done after {seconds:g} s. It is still running.",
            }

    async def stop_promise(promise: str) -> dict[str, Any]:
        """Stop work in the background.

        Args:
            promise: the id of the promise

        """
        was_open = await promises.acancel(promise, session=session())
        return {"promise": promise, "stopping": was_open}

    return [tool(delegate), tool(look_at_promise), tool(wait_for_promise), tool(stop_promise)]


def _told(record: PromiseRecord) -> dict[str, Any]:
    answer: dict[str, Any] = {"promise": record.id, "state": record.state.value, "text": text_of(record)}
    if record.is_settled:
        answer["result"] = record.result
        answer["error"] = record.error
    if record.expired_at is not None:
        answer["expired_since"] = record.expired_at
    return answer
