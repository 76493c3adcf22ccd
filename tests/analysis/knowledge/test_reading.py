"""What the generator reads out of source code, case by case, without installing anything."""

import textwrap

import pytest

from tools.knowledge.observed import Observed
from tools.knowledge.sources import read_package
from tools.knowledge.surface import read_surface
from tools.knowledge.table import make_tables


def table_of(folder, files, observed=None):
    for name, text in files.items():
        path = folder / "lib" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    modules = read_package(folder, "lib")
    return make_tables(read_surface(modules, observed or Observed()), frozenset({"lib"}))["lib"]


HEAD = """
import asyncio, contextlib, functools
from typing import Any, AsyncIterator, Awaitable, Callable, Coroutine, Generic, Optional, TypeVar, Union, overload
T = TypeVar("T")
class Thing:
    async def go(self) -> None: ...
"""


@pytest.mark.parametrize(
    ("source", "name", "flags", "returns"),
    [
        pytest.param("async def f() -> Thing: ...", "f", "a", "lib.Thing", id="async def"),
        pytest.param("async def f():\n    yield 1", "f", "g", "", id="async generator"),
        pytest.param("def f() -> Coroutine[Any, Any, Thing]: ...", "f", "a", "lib.Thing", id="def that gives a coroutine"),
        pytest.param("def f() -> Awaitable[Thing]: ...", "f", "w", "collections.abc.Awaitable[lib.Thing]", id="awaitable"),
        pytest.param("def f() -> 'asyncio.Future[Thing]': ...", "f", "w", "asyncio.Future[lib.Thing]", id="quoted future"),
        pytest.param("def f() -> AsyncIterator[Thing]: ...", "f", "g", "collections.abc.AsyncIterator[lib.Thing]", id="iterator"),
        pytest.param("def f() -> Union[Thing, Awaitable[Thing]]: ...", "f", "o", "lib.Thing", id="either"),
        pytest.param("def f() -> Optional[Thing]: ...", "f", "", "lib.Thing | None", id="plain, leading on"),
        pytest.param("def f():\n    return Thing()", "f", "", "lib.Thing", id="unannotated constructor"),
        pytest.param("def f(loop):\n    return loop.create_future()", "f", "w", "", id="unannotated future"),
        pytest.param("Alias = Awaitable[T]\ndef f() -> Alias[Thing]: ...", "f", "w", "collections.abc.Awaitable[lib.Thing]", id="alias"),
        pytest.param(
            "@contextlib.asynccontextmanager\nasync def f() -> AsyncIterator[Thing]:\n    yield Thing()",
            "f", "m", "contextlib.AbstractAsyncContextManager[lib.Thing]", id="async context manager",
        ),
        pytest.param(
            "@overload\ndef f(x: int) -> Thing: ...\n@overload\ndef f(x: str) -> Awaitable[Thing]: ...\ndef f(x): ...",
            "f", "o", "lib.Thing", id="overloads of both colors",
        ),
        pytest.param(
            "def same(fn: T) -> T: ...\n@same\nasync def f() -> Thing: ...", "f", "a", "lib.Thing", id="decorator that keeps",
        ),
        pytest.param(
            "def wrap(fn):\n    @functools.wraps(fn)\n    def inner(*a, **k):\n        return fn(*a, **k)\n    return inner\n"
            "@wrap\nasync def f() -> Thing: ...", "f", "a", "lib.Thing", id="decorator whose wrapper passes on",
        ),
        pytest.param(
            "class Result(Generic[T]):\n    def __await__(self): ...\n"
            "def wrap(fn: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., Result[T]]: ...\n"
            "@wrap\nasync def f() -> Thing: ...", "f", "w", "lib.Result[lib.Thing]", id="decorator with a result of its own",
        ),
        pytest.param("import strange\n@strange.wrap\nasync def f() -> Thing: ...", "f", "o", "lib.Thing", id="unknown decorator"),
        pytest.param(
            "try:\n    from strange import f\nexcept ImportError:\n    async def f(): ...\ndef g() -> Thing: ...",
            "g", "", "lib.Thing", id="a stand-in for a failed import is not ours",
        ),
    ],
)  # fmt: skip
def test_function(tmp_path, source, name, flags, returns):
    """The color and the result come from annotations, decorators, and where these are silent from the body."""
    table = table_of(tmp_path, {"__init__.py": HEAD + source})
    assert table["lib"]["f"][name][:2] == (flags, returns)


@pytest.mark.parametrize(
    ("parameter", "role"),
    [
        pytest.param("x: Awaitable[int]", "consumes", id="awaitable"),
        pytest.param("x: 'list[asyncio.Task[int]]'", "consumes", id="list of tasks"),
        pytest.param("x: Callable[[], Awaitable[None]]", "coroutine_function", id="coroutine function"),
        pytest.param("x: Callable[[], None]", "plain_function", id="sync function"),
        pytest.param("x: Callable[[], Union[None, Awaitable[None]]]", "either", id="either, in the result"),
        pytest.param(
            "x: Union[Callable[[], None], Callable[[], Awaitable[None]]]", "either", id="either, in the callable"
        ),
        pytest.param("x: Callable[..., Any]", None, id="anything"),
        pytest.param("x: int", None, id="no function"),
    ],
)
def test_role(tmp_path, parameter, role):
    """A parameter's annotation says what it does with a promise or a function."""
    table = table_of(tmp_path, {"__init__.py": f"{HEAD}\nasync def f({parameter}): ..."})
    assert table["lib"]["f"]["f"][2] == ({"0": role, "x": role} if role else {})


def test_overloads_want_a_color_only_together(tmp_path):
    """One overload takes an async function, the other a sync one: the parameter takes either."""
    source = """
@overload
def f(x: Callable[[], Awaitable[None]]) -> Thing: ...
@overload
def f(x: Callable[[], None]) -> Thing: ...
def f(x): ...
"""
    assert table_of(tmp_path, {"__init__.py": HEAD + source})["lib"]["f"]["f"][2] == {"0": "either", "x": "either"}


def test_an_overload_without_the_function_says_nothing(tmp_path):
    """`key=None` in one overload does not weaken what the other one wants."""
    source = """
@overload
def f(x: None = None) -> Thing: ...
@overload
def f(x: Callable[[], int]) -> Thing: ...
def f(x): ...
"""
    assert table_of(tmp_path, {"__init__.py": HEAD + source})["lib"]["f"]["f"][2]["x"] == "plain_function"


def test_a_module_that_asks_for_the_color_takes_both(tmp_path):
    """Annotations say plain, the code says otherwise."""
    source = f"{HEAD}\nasync def f(x: Callable[[], None]):\n    asyncio.iscoroutinefunction(x)"
    assert table_of(tmp_path, {"__init__.py": source})["lib"]["f"]["f"][2]["x"] == "either"


def test_a_method_that_is_a_function_under_another_name(tmp_path):
    """`__enter__ = helpers.enter_sync`: without it, a plain `with` would seem to raise."""
    files = {
        "__init__.py": """
            from lib import helpers
            class Client:
                async def __aenter__(self): ...
                __enter__ = helpers.enter_sync
                __exit__ = unknown.leave
        """,
        "helpers.py": "def enter_sync(self):\n    return self\n",
    }
    methods = table_of(tmp_path, files)["lib"]["c"]["Client"]["m"]
    assert {name: signature[0] for name, signature in methods.items()} == {"__aenter__": "a", "__enter__": ""}


def test_a_mixin_has_the_color_of_each_client(tmp_path):
    """One method, plain in one class and a coroutine in the other."""
    source = """
        from typing import Awaitable, Union
        class Commands:
            def get(self, key) -> Union[Awaitable[str], str]:
                return self.execute("GET", key)
        class Client(Commands):
            def execute(self, *parts): ...
        class AsyncClient(Commands):
            async def execute(self, *parts): ...
    """
    classes = table_of(tmp_path, {"__init__.py": source})["lib"]["c"]
    assert classes["Commands"]["m"]["get"][0] == "o"
    assert classes["Client"]["m"]["get"][0] == ""
    assert classes["AsyncClient"]["m"]["get"][:2] == ("a", "str")


def test_a_private_definition_is_found_under_its_public_name(tmp_path):
    """Re-exports are written down, and private modules only as far as something public leads there."""
    files = {
        "__init__.py": "from ._impl import run as run\n",
        "_impl.py": "async def run() -> 'Handle': ...\nclass Handle:\n    async def stop(self): ...\nclass Hidden:\n    async def x(self): ...\n",
    }  # fmt: skip
    table = table_of(tmp_path, files)
    assert table["lib"]["x"] == {"run": "lib._impl.run"}
    assert table["lib._impl"]["c"].keys() == {"Handle"}


def test_a_stub_speaks_for_its_source(tmp_path):
    """What the stub says wins over what the source does not say."""
    files = {"__init__.py": "", "a.py": "def f(): ...\n", "a.pyi": "async def f() -> int: ...\n"}
    assert table_of(tmp_path, files)["lib.a"]["f"]["f"] == ("a", "int", {})


@pytest.mark.parametrize(
    ("seen", "flags"),
    [pytest.param("a", "a", id="a coroutine function"), pytest.param("u", "o", id="a sync wrapper around one")],
)
def test_reality_corrects_what_was_read(tmp_path, seen, flags):
    """Where a decorator is not understood, the real object decides."""
    source = "import strange\n@strange.wrap\nasync def f(): ...\n"
    assert table_of(tmp_path, {"__init__.py": source}, Observed({"lib.f": seen}))["lib"]["f"]["f"][0] == flags


def test_what_leads_to_nothing_async_is_left_out(tmp_path):
    """Sync functions stay as bare names; plain classes go, unless something async mentions them."""
    source = """
        class Options: ...
        class Lonely:
            def stop(self): ...
        def helper(): ...
        async def run() -> Options: ...
    """
    module = table_of(tmp_path, {"__init__.py": source})["lib"]
    assert module["s"] == "helper"
    assert module["c"] == {"Options": {"s": 1}}
