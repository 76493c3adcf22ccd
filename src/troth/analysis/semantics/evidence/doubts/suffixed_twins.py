"""Suffixed twins: what is awaited of the same object ends in `_async`, so what does not is the sync one.

The other twin may be an attribute of the sync one: `await run.remote.aio(2)` beside `run.remote(2)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from troth.analysis.semantics.evidence.question import EvidenceCase

if TYPE_CHECKING:
    from collections.abc import Collection

    from troth.analysis.semantics.evidence.question import Question

__all__ = ["CASES", "doubts", "is_plain_twin"]

_SUFFIX = "_async"
_FEWEST = 2

CASES = [
    EvidenceCase(
        "a notification beside requests",
        "class Editor:\n    async def open_document(self, uri): ...\n\n\n"
        "async def main(client, uri):\n    client.open_document(uri)  # lost\n"
        "    await client.hover_async(uri)\n    await client.resolve_async(uri)\n",
    ),
    EvidenceCase(
        "an attribute of the sync one",
        "class Function:\n    async def remote_call(self, x): ...\n\n\n"
        "async def main(square, cube):\n    print(square.remote_call(2) == 4)  # lost\n"
        "    print(await cube.remote_call.aio(2) == 8)\n",
    ),
]


def doubts(question: Question) -> bool:
    """By what the function awaits of the same receiver, or of what is called."""
    start = f"{question.text.rpartition('.')[0]}."
    awaited = {callee for callee in question.function.facts.awaited if callee.startswith(start)}
    if question.is_method and is_plain_twin(question.name, awaited):
        return True
    return any(callee.split(".")[-2:-1] == [question.name] for callee in question.function.facts.awaited)


def is_plain_twin(name: str, awaited: Collection[str]) -> bool:
    """Whether several of the awaited names have the ending, and this one has not."""
    return not name.endswith(_SUFFIX) and sum(callee.endswith(_SUFFIX) for callee in awaited) >= _FEWEST
