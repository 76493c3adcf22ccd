"""Decide when a file can be read by the quicker parser, how that is asked, and how to tell that it is understood.

The parser is `ast_serialize`, whose trees are read by compiled code alone: as plain Python that would take longer than
`ast`. It is not needed: where it is missing, or writes what this does not understand, all is read by `ast`.
"""

import ast
import re
import sys
import threading
import warnings
from collections.abc import Callable
from functools import cache

from troth.analysis.facts.from_ast.extract import extract
from troth.analysis.facts.from_serialized import statements, tags
from troth.analysis.facts.from_serialized.tree import STRANGE, UnsupportedTreeError
from troth.analysis.facts.model import FileFacts, body_of

__all__ = ["Parser", "own_parser", "plain_source", "quick_parser", "read_quickly", "same_facts"]

Parser = Callable[[bytes], bytes | None]

_LINE = 10_000  # bytes: to the parser a long line costs the square of its length
_LEVEL = 160  # bytes of stack that it takes for each call, attribute, item or operation inside another
_USUAL_STACK = 8 << 20
_SMALL_STACK = 1 << 20
_NESTING = b".([+-*/%@&|^<>"  # whatever can stand in a row without an end
_FOR_A_CHECKER = re.compile(rb"#[ \t]*(?:type:(?![ \t]*ignore)|mypy:)")  # it would add types, or leave out bodies
_CODING = re.compile(rb"\A(?:\xef\xbb\xbf|[^\n]*\n?[^\n]*coding[:=](?![ \t]*utf-?8\b))")
_ASCII = bytes(byte if byte < 128 else STRANGE for byte in range(256))

# Something of everything: a parser that writes one of these in another way than we read it is not used.
_SAMPLE = b"""
from __future__ import annotations
import a.b, c as d
from . import (e, f as g)
from h import *
@i.j(k, *l, m=1, **n)
async def o(p, q: int = 0, /, *r: str, s: "list[int]" = ..., t: u.v[w, None] | None, **x) -> Annotated[y, z(1)]:
    global a1
    async with b1(), c1.d1() as e1:
        await f1(g1 for g1 in h1)
    async for i1, *j1 in k1(): yield l1["m1"][0], -1 << 200, 1.5, 2j, b"", not n1
    else: del o1, p1.q1
    if r1 and (s1 or t1) is not u1 < 3: return
    elif v1 := w1: pass
    else: x1 += y1 | z1
    try: raise a2("") from b2
    except c2 as d2: continue_ = {**e2, f2: {g2, *h2}}
    except: i2: j2[k2:l2, ::m2] = [n2, (o2,), {p2: q2 async for p2 in r2 if s2}, {t2 for t2 in u2}]
    finally: assert v2, f"{w2!r:>{x2}} {y2['z2']}"
class a3(b3, metaclass=c3):
    def d3(self):
        while True: break
        else: self.e3, self.f3 = lambda g3, *h3, i3=0: (j3 if k3 else l3), (yield from m3)
        match n3:
            case {"o3": p3, **q3} | [r3.s3, *_] if t3: continue
            case u3(1, v3=None) as w3: nonlocal x3
"""


@cache
def own_parser() -> Parser | None:
    """The parser, if it is at hand, and those who read its trees are compiled."""
    return None if statements.__file__.endswith(".py") else quick_parser()


def quick_parser() -> Parser | None:
    """The parser, if it is at hand and writes what is understood here."""
    try:
        import ast_serialize
    except ImportError:
        return None

    def parsed(source: bytes) -> bytes | None:
        tree, errors, *_others = ast_serialize.parse("file.py", source, cache_version=tags.FORMAT)
        return None if errors else bytes(tree)

    try:
        facts = read_quickly(_SAMPLE, parsed)
    except Exception:  # noqa: BLE001  whatever another version may raise: it is not the one that is wanted
        return None
    return parsed if facts is not None and same_facts(facts, extract(ast.parse(_SAMPLE))) else None


def same_facts(first: FileFacts, second: FileFacts) -> bool:
    """Whether two readers say the same; bodies may be packed in different ways."""
    bodies = [[body_of(function) for function in facts.functions] for facts in (first, second)]
    heads = [
        facts._replace(functions=tuple(function._replace(body=b"") for function in facts.functions))
        for facts in (first, second)
    ]
    return bodies[0] == bodies[1] and heads[0] == heads[1]


def read_quickly(source: bytes, parsed: Parser) -> FileFacts | None:
    """The facts of a file; None where it had better be read by `ast`."""
    text = plain_source(source)
    if text is None:
        return None
    tree = parsed(text)
    if tree is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes and the like are the file's own affair
            return statements.read_serialized(tree, source)
    except (UnsupportedTreeError, RecursionError):
        return None


def plain_source(data: bytes) -> bytes | None:
    """The text as it is given to the parser; None for one that is better not."""
    if (len(data) - len(data.translate(None, _NESTING))) * _LEVEL > _stack() or _CODING.match(data) is not None:
        return None
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return None
    if b"\t" in data and (b"\n\t" in data or b" \t" in data):  # it takes any mixture of tabs and spaces
        return None
    if (
        b"\0" in data
        or b"\f" in data
        or ((b"type:" in data or b"mypy:" in data) and _FOR_A_CHECKER.search(data) is not None)
    ):
        return None
    for start in range(0, len(data) - _LINE, _LINE):
        if data.find(b"\n", start, start + _LINE) < 0:
            return None
    if data.isascii():
        return data
    try:
        data.decode()
    except UnicodeDecodeError:
        return None
    return data.translate(_ASCII)  # so that columns are those of bytes


def _stack() -> int:
    """The bytes of stack that a parser without an end to its recursion may use."""
    if threading.current_thread() is not threading.main_thread():
        return (threading.stack_size() or _SMALL_STACK) // 2
    if sys.platform == "win32":
        return _SMALL_STACK // 2
    import resource

    limit = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return (_USUAL_STACK if limit == resource.RLIM_INFINITY else min(limit, _USUAL_STACK)) // 2
