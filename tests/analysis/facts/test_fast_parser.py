"""Facts are the same whether a file was read by `ast` or by the quicker parser, or that one is not asked."""

import ast
import random
import sys
import sysconfig
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from troth.analysis.facts import extract_many, fast_parser
from troth.analysis.facts.fast_parser import plain_source, quick_parser, read_quickly, same_facts
from troth.analysis.facts.from_ast.extract import extract
from troth.analysis.facts.from_serialized.statements import read_serialized
from troth.analysis.facts.from_serialized.tree import UnsupportedTreeError

hypothesmith = pytest.importorskip("hypothesmith")
pytest.importorskip("ast_serialize")
pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")

HERE = Path(__file__).resolve().parents[1]
SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def is_same(source: bytes) -> bool | None:
    """Whether both ways say the same; None where the quicker one does not say anything."""
    parser = quick_parser()
    assert parser is not None
    found = read_quickly(source, parser)
    return None if found is None else same_facts(found, extract(ast.parse(source)))


READ = {
    "nothing": "",
    "only comments": "# one\n# two\n",
    "no newline at the end": "x = 1",
    "windows newlines": "def f():\r\n    try:\r\n        g()\r\n    except:\r\n        pass\r\n",
    "columns behind letters that are not ascii": "é = 'ß'; x.y = 'ä'.z(ü)".replace("é", "e").replace("ü", "u"),
    "texts that are not ascii": 'x = {"größe": f"ä{a["b"]}"}'.replace('a["b"]', "a['b']"),
    "texts with escapes": r'x = ["\u00e9", "\N{DASH}", "\ud800", "\x41", b"\xff", r"\d"]'.replace("DASH", "EN DASH"),
    "long texts": f"x = {'a' * 500!r}; y = {'a' * 120!r}; z = {'ä' * 120!r}; w = {'ä' * 121!r}",
    "numbers": "x = [0x10, 1_000, 10**30, 123456789012345678901234567890, 1e5, 2j, -1, a[3], a[-1], a[1:2, ...]]",
    "a generator in the brackets of a call": "f(x for x in y)\nf(x\n  for x in y\n)\nf((x for x in y))\nf((a) for a in (b))",
    "brackets around what is called": "(f)(1)\n(a.b)(c)(d)[e](g)",
    "annotations": (
        "x: int\ny: 'list[int]' = []\nz: (a.b\n  | None) = 1\n"
        "def f(a: Annotated[int, Depends(g, x=[1, 'é'])], *b: int, c: Literal['é', 1, True] = 2) -> t.Callable[..., a.b]: ...\n"
        "async def g(x: None, y: lambda: z, w: a if b else c, v: (yield_ := 3)) -> 'x.y' 'z': ...\n"
    ),
    "parameters": "def f(a, b=1, /, c=2, *d, e, f=3, **g): ...\ndef g(*, a): ...\nx = lambda a, /, *b, c=1, **d: a",
    "parameters with two underscores": "def f(self, __a: int, __b=1, *, c): ...\ndef g(__a__): ...",
    "decorators": "@a\n# one\n@b.c(\n  1)\nasync def f(): ...\n@d\n\nclass A(B, *c, metaclass=D, **e): x = 1",
    "handlers": (
        "try: a()\nexcept (\n  B\n): b()\nexcept C.d as e: c()\nexcept:\n    # one\n\n    with f(): pass\n"
        "else: d()\nfinally: e()\ntry:\n    try: a\n    except: b\nexcept* C: pass\n"
    ),
    "with of both colors": (
        "async def f():\n    with a() as b, c.d as (e, *g): h()\n    async with (\n        a(), b as c\n    ): d()\n"
        "    async with a[0] / b: pass\n    async for x in y(): pass\n    for x in await y: pass\n    else: z()"
    ),
    "definitions inside": (
        "class A:\n    class B: x = C\n    def f(self):\n        def g(): nonlocal x; x = self.y = h()\n        import a.b, c as d\n"
        "        from . import e\n        from ..f import *\n        return [await g() async for z in g()]\n"
    ),
    "conditions that never change": (
        "def f():\n    if 0: yield\n    elif False: a()\n    elif None: b()\n    elif not True: c()\n    else: d()\n"
        "    while 1: break\n    return a if 1 else b\n"
    ),
    "patterns": (
        "match a:\n    case B(c, d=[e, *f]) as g if h: pass\n    case {'i': j, **k} | l.m: pass\n"
        "    case None | 1 | -1 | 'x' | (n): pass\n    case [*_]: pass\n    case _: pass\n"
    ),
    "targets": "a = b.c = d[e] = f()\n[a, *b], (c, d.e) = f\nfor [x, y] in z: pass\ndel a, (b), [c]\ndel (a, b)\na: int\na.b += c",
    "comparisons": "x = a < b <= c != d is not e not in f is g in h\ny = not a and b or c and (d or e)\nz = a | b + c @ d",
    "what is exported": "__all__ = ['a']\n__all__ += ['b', c]\n__all__.extend(d)\n_IS_SYNC = True\nX = False\nif _IS_SYNC: x = 1",
    "f-strings": "x = f'{a!r:>{b}}{{}}' 'c' f\"{d['e']}\"\ny = f'''{\n  a\n}'''\nz = f'{f\"{a}\"}{b=}'",
    "yields": "def f():\n    x = yield\n    y = yield a, b\n    yield from c\n    return (yield)\nasync def g(): yield await a.b, await (await c()), await d[e]",
    "lines that go on": "x = a \\\n  .b \\\n  (c)\nif a and \\\n   b: pass",
}

NOT_READ = {
    "a syntax error": "x = (",
    "a letter that is not ascii in a name": "é = 1",
    "a byte order mark": "\ufeffx = 1",
    "another encoding": "# coding: latin-1\nx = 1",
    "type comments": "x = [] # type: list[int]",
    "comments for a checker that leave out bodies": "# mypy: ignore-errors\ndef f():\n    from a import b",
    "a comment for a checker that leaves out all": "# type: ignore\nimport a\n",
    "what follows something that is never true": "import sys\nassert sys.platform == 'beos'\nimport a\n",
    "tabs": "def f():\n\treturn 1",
    "a form feed": "x = 1\n\fy = 2",
    "the old newlines": "x = 1\ry = 2",
    "a long line": f"x = [{'a, ' * 9000}]",
    "a long row": f"x = a{'.b' * 200}",
    "many branches": "if a: pass\n" + "elif b: pass\n" * 150,
    "a condition that is a text": "def f():\n    if 'a': pass",
    "a choice of flavors": "_IS_SYNC = True\nx = a if _IS_SYNC else b",
    "brackets between a callee and a generator": "(f)(x for x in y)",
    "a space before the brackets of a generator": "f (x for x in y)",
    "a slash that may be in a default": "def f(__a=b/c): ...",
    "a file that ends in brackets": "(\n  a()\n)\n",
    "an annotation with a star": "def f(*a: *Ts): ...",
    "a semicolon at the end": "def f():\n    return 1;\nx = 1",
}
if sys.version_info < (3, 12):
    NOT_READ |= {"type parameters": "def f[T](a: T): ...", "quotes in quotes": 'x = f"{a["b"]}"'}
    NOT_READ |= {"lines in quotes": "x = f'{\n  a\n}'"}


@pytest.mark.parametrize("source", [pytest.param(text, id=name) for name, text in READ.items()])
def test_both_ways_say_the_same(source: str) -> None:
    """Whatever the tree leaves out or has in another order is found."""
    assert is_same(source.encode()) is True


@pytest.mark.parametrize("source", [pytest.param(text, id=name) for name, text in NOT_READ.items()])
def test_what_is_left_to_ast(source: str) -> None:
    """What the tree does not tell, or tells in another way, is not guessed."""
    assert is_same(source.encode()) is None


def test_bytes_that_are_no_text() -> None:
    """A file that cannot be decoded is for `ast` to complain of."""
    assert is_same(b"x = '\xff'") is None
    assert is_same(b"x = '\0'") is None


def test_files_of_others() -> None:
    """Our own sources, and some of Python's."""
    ours = [*(HERE.parents[1] / "src").rglob("*.py"), *HERE.glob("*.py")]
    theirs = sorted(Path(sysconfig.get_path("stdlib")).glob("*/*.py"))
    read = 0
    chosen = ours[::3] + random.Random(7).sample(theirs, 60)
    for path in chosen:
        data = path.read_bytes()
        try:
            ast.parse(data)
        except (SyntaxError, ValueError):
            continue
        answer = is_same(data)
        assert answer is not False, path.name
        read += answer is True
    assert read > len(chosen) * 0.8


@settings(max_examples=25, deadline=None, suppress_health_check=SLOW)
@given(hypothesmith.from_grammar() | hypothesmith.from_node())
def test_programs_of_the_grammar(text: str) -> None:
    """Anything that Python's grammar allows."""
    data = text.encode("utf-8", "replace")
    try:
        ast.parse(data)
    except (SyntaxError, ValueError):
        return
    assert is_same(data) is not False


@pytest.mark.soak
@settings(max_examples=1500, deadline=None, suppress_health_check=SLOW)
@given(hypothesmith.from_grammar() | hypothesmith.from_node())
def test_many_programs_of_the_grammar(text: str) -> None:
    """The same for a long time."""
    test_programs_of_the_grammar.hypothesis.inner_test(text)  # type: ignore[attr-defined]


def test_a_tree_that_is_cut_off() -> None:
    """Bytes that end too soon are refused, wherever that is."""
    source = READ["handlers"].encode()
    parser = quick_parser()
    assert parser is not None
    tree = parser(source)
    assert tree is not None
    for end in range(len(tree)):
        with pytest.raises(UnsupportedTreeError):
            read_serialized(tree[:end], source)


def test_without_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is not installed nothing is asked of it."""
    monkeypatch.setitem(sys.modules, "ast_serialize", None)
    assert quick_parser() is None


@pytest.mark.parametrize(
    "parse",
    [
        pytest.param(lambda *_args, **_more: (b"\x03\x16\xff", [], [], b"", {}), id="another format"),
        pytest.param(lambda *_args: (b"", [], [], b"", {}), id="other parameters"),
        pytest.param(lambda *_args, **_more: b"", id="another result"),
    ],
)
def test_a_parser_that_is_not_understood(monkeypatch: pytest.MonkeyPatch, parse: object) -> None:
    """A version that does otherwise is not used at all."""
    monkeypatch.setattr("ast_serialize.parse", parse)
    assert quick_parser() is None


def test_no_deeper_than_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser has no end of its own for rows of calls: with a small stack it is not asked."""
    source = b"x = a" + b".b()" * 1000
    assert plain_source(source) == source
    monkeypatch.setattr(fast_parser, "_stack", lambda: 100_000)
    assert plain_source(source) is None


def test_a_project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Files are read by it where that is worth it, and the others by `ast`."""
    sources = {f"m{number}.py": text for number, text in enumerate([*READ.values(), *NOT_READ.values()])}
    for name, text in sources.items():
        (tmp_path / name).write_bytes(text.encode())
    told = extract_many.gather(tmp_path, list(sources), overlay={}, jobs=1)
    asked: list[bytes] = []

    def counted() -> fast_parser.Parser:
        parser = quick_parser()
        assert parser is not None
        return lambda source: (asked.append(source), parser(source))[1]

    monkeypatch.setattr(extract_many, "own_parser", counted)
    monkeypatch.setattr(extract_many, "_WORTH_A_PARSER", 0)
    quickly = extract_many.gather(tmp_path, list(sources), overlay={}, jobs=1)
    assert len(asked) >= len(READ)
    assert list(told) == list(quickly)
    for name, facts in told.items():
        other = quickly[name]
        if isinstance(facts, extract_many.FileFacts):
            assert isinstance(other, extract_many.FileFacts), name
            assert same_facts(facts, other), name
        else:
            assert facts == other
