"""CPU of one agent turn with durability on, beside peers with the same fake model: `python -m bench.runtime.agents`.

Ten turns a conversation: nine tool calls and an answer. Peers are measured where they are installed (`make bench`);
they keep nothing unless their row says so.
"""

import argparse
import asyncio
import gc
import importlib.util
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

from troth.runtime.agents.tool_calling import ToolCallingAgent
from troth.runtime.conversations import Conversations
from troth.runtime.store import SqliteStore
from troth.runtime.tools import Tool, tool
from troth.testing.scripted import ScriptedModel, call

TURNS = 10


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


ADD = tool(add)  # made once, as a program makes its tools


def script() -> ScriptedModel:
    return ScriptedModel(*[call("add", '{"a": 1, "b": 2}', id=f"c{n}") for n in range(TURNS - 1)], "three")


def cpu(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def ours_sync(home: Conversations, many: int) -> None:
    for _ in range(many):
        conversation = home.open(ToolCallingAgent(script(), [ADD]))
        conversation.send("add")
        conversation.run()


def ours_async(home: Conversations, many: int) -> None:
    async def one() -> None:
        conversation = home.open(ToolCallingAgent(script(), [ADD]))
        await conversation.asend("add")
        await conversation.arun()

    async def main() -> None:
        await asyncio.gather(*(one() for _ in range(many)))

    asyncio.run(main())


def floor(many: int) -> None:
    """The same turns with nothing around them: the model's script and the tool."""
    from troth.runtime.agents.model import Message, Request

    for _ in range(many):
        model, talk = script(), [Message("user", "add")]
        for _ in range(TURNS):
            reply = model.reply(Request(talk))
            talk.append(reply.message)
            talk += [Message("tool", str(add(1, 2)), call_id=one.id) for one in reply.message.calls]


def langgraph(many: int, *, durable: bool, folder: Path) -> Callable[[], object] | None:
    if importlib.util.find_spec("langgraph") is None or importlib.util.find_spec("langchain_core") is None:
        return None
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    class Model(GenericFakeChatModel):
        def bind_tools(self, *_: object, **__: object) -> "Model":
            return self

    saver = None
    if durable:
        import sqlite3

        from langgraph.checkpoint.sqlite import SqliteSaver

        saver = SqliteSaver(sqlite3.connect(folder / "langgraph.db", check_same_thread=False))

    def run() -> None:
        for number in range(many):
            said = [
                AIMessage("", tool_calls=[{"name": "add", "args": {"a": 1, "b": 2}, "id": f"c{n}"}])
                for n in range(TURNS - 1)
            ]
            agent = create_agent(Model(messages=iter([*said, AIMessage("three")])), [add], checkpointer=saver)
            setting = {"configurable": {"thread_id": str(number)}, "recursion_limit": 100}
            agent.invoke({"messages": [("user", "add")]}, setting)

    return run


def pydantic_ai(many: int) -> Callable[[], object] | None:
    if importlib.util.find_spec("pydantic_ai") is None:
        return None
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def answer(messages: list[object], _: object) -> ModelResponse:
        if len(messages) // 2 < TURNS - 1:
            return ModelResponse(parts=[ToolCallPart("add", {"a": 1, "b": 2})])
        return ModelResponse(parts=[TextPart("three")])

    def run() -> None:
        for _ in range(many):
            Agent(FunctionModel(answer), tools=[add]).run_sync("add")

    return run


def further_answer(home: Conversations, rounds: int = 15, many: int = 3) -> dict[str, float]:
    """CPU seconds that each further call of a turn costs, beyond the second: called, answered, written, told."""

    async def aadd(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    def turns(entry: str, given: Tool, calls: int) -> None:
        for _ in range(many):
            lines = [[call(given.name, '{"a": 1, "b": 2}', id=f"{n}-{i}") for i in range(calls)] for n in range(TURNS)]
            conversation = home.open(ToolCallingAgent(ScriptedModel(*lines, "three"), [given]))
            conversation.send("add")
            conversation.run() if entry == "run" else asyncio.run(conversation.arun())

    costs = {}
    for entry in ("run", "arun"):
        for given in (tool(aadd), ADD):
            best = {calls: min(cpu(partial(turns, entry, given, calls)) for _ in range(rounds)) for calls in (2, 12)}
            costs[f"{entry}, {given.color.value} tool"] = (best[12] - best[2]) / 10 / TURNS / many
    return costs


def idle(home: Conversations, many: int = 200) -> float:
    """Bytes held by a conversation that is open, followed, and has ten turns behind it."""
    ours_sync(home, 3)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = []
    agent = ToolCallingAgent(script(), [ADD])
    for _ in range(many):
        conversation = home.open(agent)
        for n in range(TURNS):
            conversation.send(f"message {n}")
        followed = conversation.subscribe()
        for _ in range(TURNS + 1):
            next(followed)
        kept.append((conversation, followed))
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (after - before) / len(kept)


def import_cpu() -> float:
    import subprocess

    code = (
        "import time; s = time.process_time(); import troth.runtime.conversations, "
        "troth.runtime.agents.tool_calling; print(time.process_time() - s)"
    )
    return min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    )


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--many", type=int, default=30, help="conversations per row")
    many = parser.parse_args(argv).many
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with SqliteStore(folder / "troth.db") as store, Conversations(store, max_concurrent_runs=1000) as home:
            rows: dict[str, Callable[[], object] | None] = {
                "floor: script and tool alone": lambda: floor(many),
                "troth, sync, durable": lambda: ours_sync(home, many),
                "troth, async, all at once, durable": lambda: ours_async(home, many),
                "langgraph": langgraph(many, durable=False, folder=folder),
                "langgraph + sqlite checkpoints": langgraph(many, durable=True, folder=folder)
                if importlib.util.find_spec("langgraph") and importlib.util.find_spec("langgraph.checkpoint.sqlite")
                else None,
                "pydantic-ai": pydantic_ai(many),
            }
            print(f"{'':<38}{'CPU ms per turn':>16}")
            for label, work in rows.items():
                if work is None:
                    print(f"{label:<38}{'not installed':>16}")
                    continue
                work()  # warm
                best = min(cpu(work) for _ in range(3))
                print(f"{label:<38}{best / many / TURNS * 1000:>16.3f}")
            print(f"\n{'each further tool answer of a turn':<38}{'CPU ms':>16}")
            for label, cost in further_answer(home).items():
                print(f"{label:<38}{cost * 1000:>16.3f}")
            print(f"\nidle conversation, open and followed: {idle(home) / 1000:.1f} kB")
            print(f"import of conversations and agents: {import_cpu():.3f} s CPU")


if __name__ == "__main__":
    main()
