"""What an agent is: something that takes a step in a conversation, in one color or the other."""

import inspect
from typing import Any

from troth.bridge import call
from troth.runtime.agents.step_thread import STEP_THREAD

__all__ = ["Agent"]


class Agent:
    """Derive from it and write one of two methods, whichever color the work has.

    `step(conversation)` is plain code: it runs on one thread together with its callbacks, and may block.
    `async astep(conversation)` is async code: it runs on the loop and may not block.

    The other one follows by itself. Which of the two is the agent's own is decided once, when it joins a conversation:
    the more derived wins, so a subclass that overrides only `step` has its `step` called.
    """

    def step(self, conversation: Any) -> Any:
        """Take one step. Not written: this agent is async, and is driven through `astep`."""
        raise NotImplementedError(f"{type(self).__qualname__} has no `step` of its own; its `astep` is used")

    async def astep(self, conversation: Any) -> Any:
        """Take one step by running `step` in a worker thread: in a run, on one thread together with its callbacks.

        An override that forwards here (for tracing, say) changes nothing about what runs where. Cancelled, it waits for
        the step to return: a thread cannot be stopped.
        """
        thread = STEP_THREAD.get()
        if thread is None:
            return await call(self.step, conversation)
        result = await thread.run(self.step, conversation)
        return await result if inspect.isawaitable(result) else result
