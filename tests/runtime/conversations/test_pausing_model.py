"""What a model has said is in the log while it pauses, and not only when it goes on."""

import asyncio

from troth.runtime.agents import Agent
from troth.runtime.conversations import Conversations


def test_a_piece_is_written_though_no_other_follows(tmp_path):
    """A reader sees it while the step still waits."""

    async def main():
        goes_on = asyncio.Event()

        class Pausing(Agent):
            async def astep(self, conversation):
                conversation.token("a")
                conversation.token("b")
                await goes_on.wait()
                await conversation.asay("abc")

        with Conversations(tmp_path / "talks.db") as home:
            talk = await home.aopen(Pausing(), "pausing")
            await talk.asend("x")
            started = await talk.astart()
            async with asyncio.timeout(60):
                async for event in talk.asubscribe(after=started):
                    if event.kind == "tokens":
                        assert event.payload == {"text": "ab"}
                        goes_on.set()
                    if event.kind == "run.ended":
                        break
            kinds = [event.kind for event in talk.events(after=started)]
            await home.aclose()
        return kinds

    assert asyncio.run(main()).count("tokens") == 1
