"""The walk over nodes meets every node once, and takes nothing else for one."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import troth.analysis
from troth.analysis.facts.from_ast.extract import extract
from troth.analysis.facts.model import FileFacts, Node, body_of
from troth.analysis.facts.nodes import KINDS, children, of_kind, walk, words_of

EVERYTHING = """
import attr, call.list as const
from index import name as compare, walrus
class Plain(attr.Base, name=call):
    from call import attr
    dict: list[attr] = call(attr=1, **compare)
    def attr(self, name, /, call: "x.y" = await_(), *list, set=(yield_()), **dict): return name
async def everything(attr, call=lambda name, attr=compare: call(name, attr=attr)):
    global const
    first, [second, *rest] = a.b.c = await d(e, *f, g=h, **i)
    typed: j[k] = l
    bare: m
    n += o
    if p: q
    elif not r: s
    else: t
    while u: v; break
    else: continue_
    for w in x: continue
    else: y
    async for aa in bb(): cc
    with dd as ee, ff(): gg
    async with hh(): ii
    try: jj
    except (kk, ll) as name: mm
    except attr: nn
    except: oo
    else: pp
    finally: qq
    raise rr(call=ss)
    raise
    assert tt, uu
    del vv, ww[xx]
    match yy:
        case attr(name=call, tuple=[*list]) if zz: ab
        case {"call": name, **compare}: ac
        case _: ad
    class Inside:
        ae = af
    [ag for ah in ai if aj async for ak in al]
    {am: an for ao in ap}
    {aq, ar}; {as_: at, **au}; (av, aw); [ax]
    ay if az else ba
    bb and bc or bd
    be < bf in bg is not bh
    bi | bj + bk; -bl
    f"{bm!r:{bn}} {bo}"
    (bp := bq)
    lambda name, attr=by, *, call=bz: ca
    br[bs:bt:bu, ...]
    yield
    yield bv
    return bw
def generator():
    yield from bx
    return
"""
SOURCES = sorted(Path(troth.analysis.__file__).parent.rglob("*.py"))


def facts_of(text: str) -> FileFacts:
    return extract(ast.parse(text), top_level_await=False)


def bodies(file: FileFacts) -> list[Node]:
    return [statement for function in file.functions for statement in body_of(function)]


def with_a_place(value: object) -> list[Node]:
    """Every tuple below `value` that is a node beyond doubt: of a kind, as long as that kind is, with a place at its end."""
    lengths = {"attr": 4, "call": 5, "await": 3, "lambda": 4, "comp": 5, "return": 3, "for": 7, "with": 5}
    if not isinstance(value, tuple) or not value:
        return []
    last = value[-1]
    is_place = isinstance(last, tuple) and len(last) == 4 and all(isinstance(part, int) for part in last)
    is_node = is_place and isinstance(value[0], str) and lengths.get(value[0]) == len(value)
    return [*([value] if is_node else []), *(node for part in value for node in with_a_place(part))]


def test_every_kind_is_met() -> None:
    """The program above has each kind of node that a body can hold; what only facts of classes hold is not in it."""
    met = {node[0] for node in walk(bodies(facts_of(EVERYTHING)))}
    assert met == KINDS - {"entered", "classref", "imported"}


def test_every_name_is_met() -> None:
    """What `ast` calls a name in the bodies, and is kept there, is met by the walk."""
    met = {node[1] for node in of_kind(bodies(facts_of(EVERYTHING)), "name")}
    names = {node.id for node in ast.walk(ast.parse(EVERYTHING)) if isinstance(node, ast.Name)}
    # Defaults of parameters are facts of the function; the target of `:=` is a name, and no node.
    assert names - met == {"await_", "yield_", "bp"}


@pytest.mark.parametrize("path", SOURCES[::7], ids=lambda path: path.name)
def test_every_node_is_met_once(path: Path) -> None:
    """In code that people wrote, exactly the tuples are met that are nodes beyond doubt, each as often as it is there."""
    body = tuple(bodies(facts_of(path.read_text())))
    placed = {"attr", "call", "await", "lambda", "comp", "return", "for", "with"}
    assert Counter(node for node in walk(body) if node[0] in placed) == Counter(with_a_place(body))


@pytest.mark.parametrize("word", sorted(KINDS))
def test_a_name_is_never_taken_for_a_kind(word: str) -> None:
    """A keyword, a parameter, an import, whatever they are called: nothing but the values in them is met."""
    call: Node = ("call", ("name", "f"), (), ((word, ("name", "x")), (None, ("name", "y"))), (1, 0, 1, 9))
    assert children(call) == [("name", "f"), ("name", "x"), ("name", "y")]
    function: Node = ("lambda", ((word, None, ("name", "x"), ""), (word, None, None, "*")), ("name", "y"), (1, 0, 1, 9))
    assert children(function) == [("name", "x"), ("name", "y")]
    assert children(("import", ((word, word, None, 0), (word, word, word, 1)))) == []
    assert children(("imported", word, word, 0)) == []
    assert list(words_of(("attr", ("name", word), word, (1, 0, 1, 9)))) == [word, word]


def test_kinds_are_skipped_as_a_whole() -> None:
    """What stands in a node to be skipped is not met either."""
    body = bodies(facts_of("def f():\n    g(lambda: h(), i())\n"))
    assert [node[1][1] for node in of_kind(body, "call", skip=("lambda",))] == ["g", "i"]
    assert [node[1][1] for node in of_kind(body, "call")] == ["g", "h", "i"]
