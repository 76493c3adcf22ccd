"""Write the reference pages of the runtime's public names from their docstrings and signatures.

Signatures are shown as they are written in the source, so that a page does not depend on the Python that makes it. The
pages are part of the repository; `python docs/_ext/api.py` writes them anew, and a test holds them against the code.
"""

import ast
import enum
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

__all__ = ["PAGES", "names_of", "write_api_pages"]


@dataclass(frozen=True)
class Page:
    """One page: the modules whose public names it shows, and further names by module."""

    title: str
    about: str
    modules: tuple[str, ...]
    more: tuple[tuple[str, str], ...] = ()


PAGES = {
    "runtime": Page(
        "`troth.runtime`",
        "Workflows, sagas and their records. Sessions, promises, channels and conversations have pages of their own.",
        ("troth.runtime",),
        (
            ("troth.runtime.workflows.record.report", "StepReport"),
            ("troth.runtime.workflows.record.report", "AttemptReport"),
            ("troth.runtime.workflows.record.report", "RunWord"),
            ("troth.runtime.workflows.record.report", "StepWord"),
            ("troth.runtime.workflows.record.report", "ErrorReport"),
        ),
    ),
    "agents": Page(
        "`troth.runtime.agents`",
        "Agents, and the models that some of them ask.",
        ("troth.runtime.agents",),
        (
            ("troth.runtime.agents.model", "SyncModel"),
            ("troth.runtime.agents.model", "AsyncModel"),
            ("troth.runtime.agents.openai", "OpenAIModel"),
            ("troth.runtime.agents.openai", "Price"),
        ),
    ),
    "conversations": Page(
        "`troth.runtime.conversations`",
        "Conversations, their runs, and what they refuse.",
        ("troth.runtime.conversations",),
        (("troth.runtime.store", "Event"), ("troth.runtime.store", "LeaseLostError")),
    ),
    "tools": Page("`troth.runtime.tools`", "What agents can do.", ("troth.runtime.tools",)),
    "channels": Page("`troth.runtime.channels`", "The ways out to people and systems.", ("troth.runtime.channels",)),
    "promises": Page("`troth.runtime.promises`", "Results that come later.", ("troth.runtime.promises",)),
    "jobs": Page("`troth.runtime.jobs`", "Commands in the background.", ("troth.runtime.jobs",)),
    "sessions": Page("`troth.runtime.sessions`", "Governed sessions.", ("troth.runtime.sessions",)),
    "engine": Page("`troth.runtime.engine`", "What executes decisions durably.", ("troth.runtime.engine",)),
    "server": Page("`troth.server`", "A runtime that others reach over HTTP.", ("troth.server",)),
    "store": Page("`troth.runtime.store`", "What remembers.", ("troth.runtime.store",)),
}


def names_of(page: Page) -> Iterator[tuple[str, str, object]]:
    """The module, the name and the object of every entry that a page has."""
    for module in page.modules:
        for name in sorted(importlib.import_module(module).__all__, key=str.lower):
            thing = getattr(importlib.import_module(module), name)
            if not isinstance(thing, ModuleType):
                yield module, name, thing
    for module, name in page.more:
        thing = getattr(importlib.import_module(module), name, None)
        if thing is not None:
            yield module, name, thing


def write_api_pages(folder: Path) -> list[Path]:
    """Write `index.md` and every page into `folder`. A file that says the same already is not touched."""
    texts = {folder / f"{name}.md": _page(page) for name, page in PAGES.items()}
    texts[folder / "index.md"] = _index()
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        if old not in texts:
            old.unlink()
    for path, text in texts.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return sorted(texts)


def _index() -> str:
    lines = ["# Python API of the runtime", "", "Every public name, as its docstring tells of it.", ""]
    lines += ["| module | names |", "|---|---|"]
    for file, page in PAGES.items():
        names = ", ".join(f"`{name}`" for _, name, _ in names_of(page))
        lines.append(f"| [{page.title}]({file}.md) | {names} |")
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *PAGES, "```", ""])


def _page(page: Page) -> str:
    lines = [f"# {page.title}", "", page.about, ""]
    for module, name, thing in names_of(page):
        lines += [f"## `{name}`", "", f"`from {module} import {name}`", ""]
        home = _home(thing, page)
        if home is not None:
            first = inspect.cleandoc(thing.__doc__ or "").split("\n\n")[0]
            lines += [*_text(first), f"All of it: [{PAGES[home].title}]({home}.md).", ""]
        elif isinstance(thing, type):
            lines += _class(name, thing)
        elif callable(thing):
            lines += [*_signature(name, thing), *_text(thing.__doc__)]
        else:
            lines += [*_code(f"{name} = {thing!r}")]
    return "\n".join(lines)


def _home(thing: object, page: Page) -> str | None:
    """The page of the room that a name of `troth.runtime` comes from, if it has one."""
    if page is not PAGES["runtime"]:
        return None
    module = getattr(thing, "__module__", "")
    for file, candidate in PAGES.items():
        is_from_there = candidate is not page and any(module.startswith(f"{room}.") for room in candidate.modules)
        if is_from_there and any(entry is thing for _, _, entry in names_of(candidate)):
            return file
    return None


# ---- classes


def _class(name: str, cls: type) -> list[str]:
    lines: list[str] = []
    fields = list(_fields(cls))
    if issubclass(cls, enum.Enum):
        pass
    elif (init := _own(cls, "__init__")) is not None:
        lines += _signature(name, init, skip_first=True)
    elif fields:
        rows = [f"    {field}: {kind}{default}," for field, kind, default, _ in fields]
        lines += _code("\n".join([f"{name}(", *rows, ")"]))
    bases = [base.__name__ for base in cls.__bases__ if base not in (object, tuple) and base.__name__ != "Protocol"]
    if bases:
        lines += [f"A kind of {', '.join(f'`{base}`' for base in bases)}.", ""]
    lines += _text(cls.__doc__)
    if issubclass(cls, enum.Enum):
        lines += ["| member | value |", "|---|---|"]
        lines += [f"| `{member.name}` | `{member.value!r}` |" for member in cls]
        lines += [""]
    documented = [(field, meaning) for field, _, _, meaning in fields if meaning]
    if documented:
        lines += ["| field | |", "|---|---|"]
        lines += [f"| `{field}` | {_cell(meaning)} |" for field, meaning in documented] + [""]
    for method, function in _methods(cls):
        lines += [f"### `{name}.{method}`", ""]
        if isinstance(function, property):
            lines += [*_text(function.__doc__)]
        else:
            is_bound = not isinstance(inspect.getattr_static(cls, method), staticmethod)
            lines += [*_signature(method, function, skip_first=is_bound), *_text(function.__doc__)]
    return lines


def _own(cls: type, name: str) -> object | None:
    """A method written in one of our classes, and not made by `dataclass` or inherited from a builtin."""
    for base in cls.__mro__:
        if name in vars(base) and base.__module__.startswith("troth"):
            function = inspect.unwrap(vars(base)[name])
            return function if _source_of(function) is not None else None
    return None


def _methods(cls: type) -> Iterator[tuple[str, object]]:
    shown: set[str] = set()
    for base in cls.__mro__:
        if not base.__module__.startswith("troth"):
            continue
        for name, thing in vars(base).items():
            if name.startswith("_") or name in shown:
                continue
            shown.add(name)
            function = getattr(thing, "__func__", thing)
            if isinstance(thing, property) or (inspect.isfunction(function) and function.__doc__):
                yield name, thing if isinstance(thing, property) else function


def _fields(cls: type) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and meaning of what the class has as fields, in the order in which they are written."""
    for base in reversed(cls.__mro__):
        tree = _tree(base) if base.__module__.startswith("troth") else None
        if not isinstance(tree, ast.ClassDef):
            continue
        for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
                continue
            if node.target.id.startswith("_"):
                continue
            default = "" if node.value is None else f" = {_default(node.value)}"
            meaning = ""
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                meaning = " ".join(str(after.value.value).split())
            yield node.target.id, _annotation(node.annotation), default, meaning


def _default(value: ast.expr) -> str:
    """A default as it reads; what a `field(…)` makes is shown as what it makes."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "field":
        for keyword in value.keywords:
            if keyword.arg == "default_factory":
                return f"{ast.unparse(keyword.value)}()"
            if keyword.arg == "default":
                return ast.unparse(keyword.value)
    return ast.unparse(value)


# ---- signatures and texts


def _source_of(thing: object) -> str | None:
    try:
        return textwrap.dedent(inspect.getsource(thing))  # type: ignore[arg-type]  # what has no source raises TypeError
    except (OSError, TypeError):
        return None


def _tree(thing: object) -> ast.stmt | None:
    source = _source_of(thing)
    return ast.parse(source).body[0] if source is not None else None


def _annotation(node: ast.expr) -> str:
    """A type as it is written, without the quotes around what is imported late."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    text = ast.unparse(node)
    return text if "Literal" in text else re.sub(r"'([\w.\[\], |]+)'", r"\1", text)


def _signature(name: str, function: object, *, skip_first: bool = False) -> list[str]:
    tree = _tree(inspect.unwrap(function))  # type: ignore[arg-type]  # callables only
    if not isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef):
        return []
    parts = list(_parameters(tree.args))
    if skip_first and parts:
        parts = parts[1:]
        if parts and parts[0] == "/":
            parts = parts[1:]
    returns = "" if tree.returns is None or name == "__init__" else f" -> {_annotation(tree.returns)}"
    if tree.name == "__init__":
        returns = ""
    prefix = "await " if isinstance(tree, ast.AsyncFunctionDef) else ""
    line = f"{prefix}{name}({', '.join(parts)}){returns}"
    if len(line) > 100:
        line = "\n".join([f"{prefix}{name}(", *(f"    {part}," for part in parts), f"){returns}"])
    return _code(line)


def _parameters(arguments: ast.arguments) -> Iterator[str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: Sequence[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + list(
        arguments.defaults
    )
    for index, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        yield _parameter(argument, default)
        if arguments.posonlyargs and index == len(arguments.posonlyargs) - 1:
            yield "/"
    if arguments.vararg is not None:
        yield f"*{_parameter(arguments.vararg, None)}"
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _parameter(argument, default)
    if arguments.kwarg is not None:
        yield f"**{_parameter(arguments.kwarg, None)}"


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    text = argument.arg
    if argument.annotation is not None:
        text += f": {_annotation(argument.annotation)}"
    if default is not None:
        text += (" = " if argument.annotation is not None else "=") + ast.unparse(default)
    return text


def _code(text: str) -> list[str]:
    return ["```py", text, "```", ""]  # not `python`: these blocks are shown, and not run


def _text(docstring: str | None) -> list[str]:
    """A docstring as Markdown; what is laid out in columns, or indented, is shown as it stands."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(docstring or "").split("\n\n"):
        rows = paragraph.split("\n")
        if any(re.match(r"\s*\S.* {2,}\S", row) or row.startswith("    ") for row in rows):
            lines += ["```text", *rows, "```", ""]
        elif paragraph.strip():
            lines += [*rows, ""]
    return lines


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    target = Path(__file__).resolve().parents[1] / "api"
    for written in write_api_pages(target):
        print(written.relative_to(Path.cwd()) if written.is_relative_to(Path.cwd()) else written, file=sys.stdout)
