"""gRPC stub: a method of a generated stub is called in a file, or a project, whose channels are those of `grpc.aio`.

Stubs are generated, mostly without types and often not kept beside the code. Their classes are called `…Stub` and come
from a module that is called `…_pb2_grpc`; the channel decides whether a call gives the answer or something to await.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import ATTR_BASE, CALL_FUNC, KIND
from troth.analysis.facts.names import dotted, last_name
from troth.analysis.findings import Reason
from troth.analysis.semantics.evidence.question import EvidenceCase, Testimony
from troth.analysis.semantics.symbols import Class
from troth.analysis.semantics.values import Instance, members_of

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from troth.analysis.semantics.evidence.question import Question
    from troth.analysis.semantics.infer.inference import Inference
    from troth.analysis.semantics.symbols import Module

__all__ = ["CASES", "testify"]

_METHOD = re.compile(r"_pb2_grpc\.\w+Stub\(\)\.[A-Za-z]\w*$")
_AIO = re.compile(r"(?:^|\.)aio\.(?:insecure_|secure_)channel$")
_PLAIN = re.compile(r"(?:^|\.)grpc\.(?:insecure_|secure_)channel$")
_ANSWERING = frozenset({"unary_unary", "stream_unary"})  # the other two give something for `async for`

CASES = [
    EvidenceCase(
        "the answer is used",
        "import grpc.aio\nimport shop_pb2\nimport shop_pb2_grpc\n\n\n"
        "async def main():\n    async with grpc.aio.insecure_channel('shop') as channel:\n"
        "        stub = shop_pb2_grpc.ShopStub(channel)\n"
        "        answer = stub.Buy(shop_pb2.Order(item=1))  # lost\n        print(answer.price)\n",
    ),
]


def testify(question: Question) -> Testimony | None:
    """By where the receiver comes from, and by the channels of the file or of the whole project."""
    if not question.is_method or not question.function.is_async:
        return None
    program = question.program
    if _channels(program) in {"", "plain"}:
        return None
    here = _channels_of(program.module(question.path))
    if (here != "aio" and (here or _channels(program) != "aio")) or not _is_of_stub(question):
        return None
    return Testimony(Reason("the channels of the stub are those of `grpc.aio`"), awaitable="future", is_proof=True)


def _is_of_stub(question: Question) -> bool:
    if question.external:
        return _METHOD.search(question.external) is not None
    base = question.callee[ATTR_BASE]
    if not dotted(base[CALL_FUNC] if base[KIND] == "call" else base):
        return False  # a chain of calls is no stub, and whoever asked has gone through it: twice at each link is 2**n
    receiver = question.scope.value(base)
    return any(
        isinstance(member, Instance) and isinstance(member.cls, Class) and _answers(member.cls, question.name)
        for member in members_of(receiver)
    )


def _answers(cls: Class, name: str) -> bool:
    """Whether a generated class sets the method to one of a channel that gives a single answer."""
    if not cls.name.endswith("Stub") or not cls.module.path.endswith("_pb2_grpc.py"):
        return False
    return any(
        attribute == name and value is not None and value[KIND] == "call" and last_name(value[CALL_FUNC]) in _ANSWERING
        for attribute, _, _, value in cls.facts.self_attributes
    )


def _channels_of(module: Module) -> str:
    """Which channels a file opens or speaks of: "aio", "plain", "both", or none."""
    names = {callee for f in module.facts.functions for callee in (*f.calls, *f.awaited)}
    speaks = {f"{i.module}.{i.name}" if i.name else i.module for i in module.facts.imports}
    entered = {dotted(p[1]) for f in module.facts.functions for p in f.params if p[1] is not None}
    is_aio = (
        any(map(_AIO.search, names)) or "grpc.aio" in speaks or any(text.endswith("aio.Channel") for text in entered)
    )
    is_plain = any(map(_PLAIN.search, names)) or "grpc.Channel" in entered
    return "both" if is_aio and is_plain else "aio" if is_aio else "plain" if is_plain else ""


def _channels(program: Inference) -> str:
    """The same of all files that import `grpc`."""
    answers: MutableMapping[str, str] = program.answers_to("channels of gRPC")
    answer = answers.get("")
    if answer is None:
        modules = (program.module(path) for path in program.paths)
        opened = {_channels_of(module) for module in modules if "grpc" in module.packages} - {""}
        answer = answers[""] = next(iter(opened)) if len(opened) == 1 else "both" if opened else ""
    return answer
