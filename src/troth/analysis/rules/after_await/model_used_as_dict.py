"""Model used as a dict.

What it finds: `result.get("k")` or `result["k"]` where `result` comes from a call of the project that gives a dataclass or
pydantic model without such methods.
Why it matters: it raises AttributeError or TypeError as soon as the call really happens. While the `await` was missing, or
an `except` hid the error, it went unnoticed; adding the `await` reveals it.
How to repair: read the attribute: `result.k`.
How sure the fix is: the attribute in the place of the key is likely where the model has a field of that name and no default
was asked for, because the annotation may be wrong; in a test that is a guess. Else none is offered.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from troth.analysis.facts.fields import INDEX_BASE, KIND
from troth.analysis.facts.names import decorator_name
from troth.analysis.facts.nodes import words_of
from troth.analysis.findings import Edit, Finding, Fix, Reason
from troth.analysis.findings.phrases import with_article
from troth.analysis.incremental.project_queries import part, question
from troth.analysis.project.test_files import is_test
from troth.analysis.rules._finding import tell_at
from troth.analysis.rules._syntax import syntax_of
from troth.analysis.rules.registry import Case, rule
from troth.analysis.semantics.resolve.library import LibraryClass
from troth.analysis.semantics.symbols import Class, Function
from troth.analysis.semantics.values import Builtin, External, members_of

if TYPE_CHECKING:
    from troth.analysis.facts.model import At, FileFacts, FunctionFacts, Node
    from troth.analysis.semantics import Program
    from troth.analysis.semantics.symbols import Module

_USER = "from dataclasses import dataclass\n@dataclass\nclass User:\n    name: str\nasync def load() -> User:\n    return User('a')\n"
CASES = [
    Case(
        "of a method that a test replaces by one that hands on what it gets",
        good={
            "store.py": "from dataclasses import dataclass\n@dataclass\nclass User:\n    name: str\nclass Api:\n    def parse(self, row):\n        return User(row['name'])\n    async def load(self) -> User:\n        return self.parse(await self.read())\n",
            "tests/test_store.py": "from store import Api\nasync def test_load():\n    api = Api()\n    api.parse = lambda row: row\n    user = await api.load()\n    assert user['name'] == 'a'\n",
        },
    ),
    Case(
        "of a method that asks what a test has patched",
        good={
            "store.py": "from dataclasses import dataclass\n@dataclass\nclass User:\n    name: str\nclass Rows:\n    async def read(self) -> User:\n        return User('a')\n"
            "class Api:\n    def __init__(self):\n        self.rows = Rows()\n    async def load(self) -> User:\n        return await self.rows.read()\n",
            "tests/test_store.py": "from unittest.mock import AsyncMock, patch\nfrom store import Api\nasync def test_load():\n    api = Api()\n"
            "    with patch.object(api.rows, 'read', new_callable=AsyncMock) as read:\n        read.return_value = {'name': 'a'}\n        user = await api.load()\n        assert user['name'] == 'a'\n",
        },
    ),
    Case(
        "of a function whose annotation promises more than it returns",
        good="from dataclasses import dataclass\n@dataclass\nclass Status:\n    state: str\n"
        "class Client:\n    async def post(self, url) -> dict[str, str]:\n        return {}\n"
        "    async def status(self, key) -> Status:\n        return await self.post(key)\n"
        "    async def wait(self, key):\n        status = await self.status(key)\n        return status['state']\n",
    ),
    Case(
        "in a test that replaces nothing",
        bad={
            "store.py": "from dataclasses import dataclass\n@dataclass\nclass User:\n    name: str\nclass Api:\n    async def load(self) -> User:\n        return User('a')\n",
            "tests/test_store.py": "from store import Api\nasync def test_load():\n    api = Api()\n    user = await api.load()\n    assert user['name'] == 'a'  # here\n",
        },
    ),
    Case(
        "get",
        bad=_USER + "async def main():\n    user = await load()\n    return user.get('name')  # here\n",
        fixed=_USER + "async def main():\n    user = await load()\n    return user.name  # here\n",
    ),
    Case(
        "a key",
        bad=_USER + "async def main():\n    user = await load()\n    return user['name']  # here\n",
        fixed=_USER + "async def main():\n    user = await load()\n    return user.name  # here\n",
    ),
    Case(
        "asked at once",
        bad=_USER + "async def main():\n    return (await load())['name']  # here\n",
        fixed=_USER + "async def main():\n    return (await load()).name  # here\n",
    ),
    Case("asked at once by get", bad=_USER + "async def main():\n    return (await load()).get('name')  # here\n"),
    Case(
        "one of a list",
        bad=_USER
        + "async def all_users() -> list[User]:\n    return [await load()]\nasync def main():\n    users = await all_users()\n    return users[0]['name']  # here\n",
        fixed=_USER
        + "async def all_users() -> list[User]:\n    return [await load()]\nasync def main():\n    users = await all_users()\n    return users[0].name  # here\n",
    ),
    Case(
        "part of a parameter whose type says otherwise",
        good=_USER
        + "async def main(users: list[User]):\n    await load()\n    first = users[0]\n    return first.get('tags', []), first['tags']\n",
    ),
    Case("the attribute", good=_USER + "async def main():\n    user = await load()\n    return user.name\n"),
    Case(
        "made a dict first",
        good=_USER
        + "from dataclasses import asdict\nasync def main():\n    user = await load()\n    return asdict(user)['name']\n",
    ),
    Case(
        "a dataclass that is a dict with types",
        good=_USER.replace("class User", "class User(TypedDict)").replace(
            "dataclass\n@", "dataclass\nfrom typing import TypedDict\n@"
        )
        + "async def main():\n    user = await load()\n    return user['name']\n",
    ),
    Case(
        "a model with keys",
        good=_USER.replace(
            "    name: str\n", "    name: str\n    def get(self, k): ...\n    def __getitem__(self, k): ...\n"
        )
        + "async def main():\n    user = await load()\n    return user.get('name'), user['name']\n",
    ),
    Case(
        "a pydantic model",
        bad="from pydantic import BaseModel\nclass User(BaseModel):\n    name: str\nasync def load() -> User:\n    return User(name='x')\nasync def main():\n    user = await load()\n    return user['name']  # here\n",
    ),
    Case(
        "a real dict",
        good="async def load() -> dict:\n    return {}\nasync def main():\n    user = await load()\n    return user.get('name')\n",
    ),
    Case(
        "asked what it is first",
        good="from dataclasses import dataclass\n@dataclass\nclass User:\n    name: str\nasync def load() -> User:\n    return User('a')\nasync def main():\n    user = await load()\n"
        "    if not isinstance(user, dict) or not user.get('name'):\n        raise ValueError\n",
    ),
    Case(
        "asked what it has first",
        good="from dataclasses import dataclass\n@dataclass\nclass User:\n    name: str\nasync def load() -> User:\n    return User('a')\nasync def main():\n    user = await load()\n"
        "    return user.name if hasattr(user, 'name') else user.get('name')\n",
    ),
]

_MODELS = frozenset({"BaseModel", "SQLModel"})
_REPLACES = re.compile(
    r"(?m)^\s*\w+(?:\.\w+)+\s*=\s*(?:lambda\b|\w*(?:[Mm]ock|[Ff]ake|[Ss]tub))"
    r"|\breturn_value\s*=|\b(?:monkeypatch\.setattr|mocker\.patch(?:\.object)?)\("
)
_ASKS = r"\b(?:isinstance|hasattr|getattr|type|is_dataclass|callable)\(\s*{}\b"


_LIKE_A_DICT = frozenset({"TypedDict", "dict", "Mapping", "MutableMapping"})


@rule("TR801", "model-used-as-dict", cases=CASES)
def check(program: Program) -> Iterator[Finding]:
    """Models that are asked for keys."""
    for path in program.asked:
        module = program.module(path)
        for index, facts in enumerate(module.facts.functions):
            if not (facts.flags & 1 and index and _asked_for_keys(facts)):
                continue
            giving = program.names_found("functions giving models")
            if any(callee.rpartition(".")[2] in giving for callee in (*facts.awaited, *facts.calls)):
                yield from _judge(program, module, module.function(index))


def _gives_dicts(program: Program, function: Function, cls: Class) -> bool:
    """Whether something that is awaited here is annotated with the model, and its body returns a dict all the same."""
    names = {callee.rpartition(" ")[2].rpartition(".")[2] for callee in function.facts.awaited}
    return any(
        isinstance(member, Builtin) and member.name == "dict"
        for name in names.intersection(program.names_found("functions giving models"))
        for giving in program.index.functions_named(name)
        if giving.facts.returns is not None and cls.name in set(words_of(giving.facts.returns))
        for member in members_of(program.inferred(giving))
    )


def _asked_for_keys(facts: FunctionFacts) -> set[str]:
    """What is asked for a key: variables of the function, no parameters."""
    names = {
        *facts.keyed,
        *(callee[:-4] for callee in facts.calls if callee.endswith(".get") and callee.count(".") == 1),
    }
    return names.difference(param[0] for param in facts.params) if names else names


@question("functions giving models")
def _giving_models(program: Program) -> set[str]:
    models = {name for names in program.said("models").values() for name in names}
    return {
        name
        for returned in program.said("what async functions return").values()
        for name, words in returned.items()
        if not words.isdisjoint(models)
    }


@part("models")
def _models_in(file: FileFacts) -> frozenset[str]:
    return frozenset(
        c.name
        for c in file.classes
        if any(decorator_name(d) == "dataclass" for d in c.decorators)
        or any(decorator_name(b) in _MODELS or decorator_name(b).endswith(("Model", "Base")) for b in c.bases)
    )


@part("what async functions return")
def _returned_in(file: FileFacts) -> dict[str, set[str]]:
    by_name: dict[str, set[str]] = {}
    for f in file.functions:
        if f.flags & 1 and f.returns is not None:
            by_name.setdefault(f.name, set()).update(word.strip("'\"") for word in words_of(f.returns))
    return by_name


def _judge(program: Program, module: Module, function: Function) -> Iterator[Finding]:
    if is_test(module.path) and _REPLACES.search(program.text(module.path).cut(*function.facts.at)):
        return  # what a replaced method gives is not what it is annotated with
    tree: ast.AST | None = None
    met = {(key.variable, key.key, key.at): key.base for key in program.summary(function).keys}
    for (variable, key, at), base in met.items():
        cls = base.cls
        if base.guess or not isinstance(cls, Class) or variable in function.params or not _is_model(program, cls):
            continue
        if _gives_dicts(program, function, cls):
            continue
        if re.search(_ASKS.format(re.escape(variable)), program.text(module.path).cut(*function.facts.at)):
            continue  # it asks what it has
        if key is None:
            if program.classes.has(cls, "get") is not True and "get" not in cls.annotations:
                tree = tree or syntax_of(program, function)
                places = _gets(tree, variable, at)
                yield from _told(program, function, cls, _believed(tree, function, cls, variable, places))
        elif program.classes.has(cls, "__getitem__") is not True:
            tree = tree or syntax_of(program, function)
            places = _items(tree, variable, key, function) if variable else _items_at(tree, key, at)
            yield from _told(program, function, cls, _believed(tree, function, cls, variable, places))


def _believed(
    tree: ast.AST, function: Function, cls: Class, variable: str, places: Iterator[tuple[ast.expr, str, bool]]
) -> Iterator[tuple[ast.expr, str, bool]]:
    """Callers give what they like: of a parameter's annotation only what asks for the model's own fields is told."""
    for place in places:
        if place[1] in cls.annotations or not _comes_from_parameter(tree, function, variable):
            yield place


def _comes_from_parameter(tree: ast.AST, function: Function, variable: str) -> bool:
    """Whether it is a part of what the function was given: `first = rows[0]` of a parameter `rows`."""
    first, last = function.facts.at[0], function.facts.at[2]
    values = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and first <= node.lineno <= last and ast.unparse(node.targets[0]) == variable
    ]
    names = [node for value in values for node in ast.walk(value)] or [ast.Name(variable.removesuffix("[]"))]
    is_called = any(isinstance(name, ast.Call | ast.Await) for name in names)
    return not is_called and any(isinstance(name, ast.Name) and name.id in function.params for name in names)


def _is_model(program: Program, cls: Class) -> bool:
    """A dataclass or pydantic model whose bases are all known, and none of which behaves like a dict."""
    order = program.classes.order(cls)
    if any(
        isinstance(ancestor, Class) and {"__getattr__", "__getitem__", "get"} & ancestor.methods.keys()
        for ancestor in order
    ):
        return False
    own = [ancestor for ancestor in order if isinstance(ancestor, Class)]
    if any(decorator_name(base) in _LIKE_A_DICT for ancestor in own for base in ancestor.facts.bases):
        return False
    strangers = [base for ancestor in own for base in ancestor.facts.bases if _is_stranger(program, ancestor, base)]
    libraries = [ancestor.qualified for ancestor in order if isinstance(ancestor, LibraryClass)]
    if strangers and len(strangers) != order.count(None):
        return False
    if None in order and not strangers:
        return False
    if any(not library.startswith(("pydantic.", "sqlmodel.", "typing.", "abc.", "builtins.")) for library in libraries):
        return False
    is_dataclass = any(decorator_name(d) == "dataclass" for ancestor in own for d in ancestor.facts.decorators)
    return is_dataclass or bool(strangers) or any(library.rpartition(".")[2] in _MODELS for library in libraries)


def _is_stranger(program: Program, cls: Class, base: Node) -> bool:
    """Whether a base is a model of a library that is not at hand."""
    node = base[INDEX_BASE] if base[KIND] == "index" else base
    value = program.static(cls.module).value(node)
    return (
        isinstance(value, External)
        and value.path.startswith(("pydantic.", "sqlmodel."))
        and value.path.rpartition(".")[2] in _MODELS
    )


def _gets(tree: ast.AST, variable: str, at: At | None) -> Iterator[tuple[ast.expr, str, bool]]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get"
            and _is_written(node.func.value, variable) and at is not None
            and (node.func.lineno, node.func.col_offset) == at[:2] and node.args
            and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
        ):  # fmt: skip
            yield node, node.args[0].value, len(node.args) == 1


def _is_written(node: ast.expr, variable: str) -> bool:
    return isinstance(node, ast.Name) and node.id == variable if variable else isinstance(node, ast.Await)


def _items_at(tree: ast.AST, key: str, at: At | None) -> Iterator[tuple[ast.expr, str, bool]]:
    """`(await f())["key"]`, by the place of the `await`."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Subscript) and isinstance(node.value, ast.Await) and at is not None
            and (node.value.lineno, node.value.col_offset) == at[:2]
            and isinstance(node.slice, ast.Constant) and node.slice.value == key
        ):  # fmt: skip
            yield node, key, isinstance(node.ctx, ast.Load)


def _is_held(node: ast.expr, variable: str) -> bool:
    """Whether that is the variable, or for `users[]` one of what it holds."""
    if variable.endswith("[]"):
        return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == variable[:-2]
    return isinstance(node, ast.Name) and node.id == variable


def _items(tree: ast.AST, variable: str, key: str, function: Function) -> Iterator[tuple[ast.expr, str, bool]]:
    first, last = function.facts.at[0], function.facts.at[2]
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Subscript) and _is_held(node.value, variable)
            and isinstance(node.slice, ast.Constant) and node.slice.value == key and first <= node.lineno <= last
        ):  # fmt: skip
            yield node, key, isinstance(node.ctx, ast.Load)


def _told(
    program: Program, function: Function, cls: Class, places: Iterator[tuple[ast.expr, str, bool]]
) -> Iterator[Finding]:
    path = function.module.path
    for node, key, is_simple in places:
        at = (node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)
        written = ast.unparse(node)
        message = f"`{written}` treats {with_article(cls.name)} as a dict: it is a model without keys, and this raises"
        text, fix = program.text(path), None
        held = node.value if isinstance(node, ast.Subscript) else node.func.value  # type: ignore[attr-defined]
        variable = ast.unparse(held)
        variable = f"({variable})" if isinstance(held, ast.Await) else variable
        if is_simple and key in cls.annotations and not path.endswith(".ipynb"):
            edit = Edit(path, text.offset(*at[:2]), text.offset(*at[2:]), f"{variable}.{key}")
            # A test that runs shows what it is given: there it is the annotation that may be wrong.
            fix = Fix("read the attribute", "guess" if is_test(path) else "likely", (edit,))
        reason = Reason(f"`{variable}` is {with_article(cls.name)}, which has attributes", *cls.place)
        yield tell_at(
            program,
            "TR801",
            "model-used-as-dict",
            function,
            at,
            message,
            sure=False,
            reasons=(reason,),
            fix=fix,
            subject=written,
        )
