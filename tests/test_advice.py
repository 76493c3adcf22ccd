"""What our messages advise exists: commands with their verbs and options, names of `troth`, methods of what users hold."""

import argparse
import ast
import builtins
import importlib
import inspect
import re
from pathlib import Path

import pytest
from tests.test_public_face import FACES

from troth import bridge, guard
from troth.cli.app import COMMANDS, load, parser_of
from troth.runtime import Conversation, Conversations, Hypervisor, Runtime
from troth.runtime.engine import EmbeddedEngine
from troth.runtime.store import SqliteStore

SOURCE = Path(importlib.import_module("troth").__file__).parent
HOLDERS = {  # what a user has under such a name
    "engine": EmbeddedEngine,
    "runtime": Runtime,
    "Runtime": Runtime,
    "conversation": Conversation,
    "Conversation": Conversation,
    "conversations": Conversations,
    "Conversations": Conversations,
    "hypervisor": Hypervisor,
    "Hypervisor": Hypervisor,
    "SqliteStore": SqliteStore,
    "bridge": bridge,
    "guard": guard,
}
FILES = (".toml", ".json", ".yaml", ".sarif")
CODE = re.compile(r"`([^`]+)`")
COMMAND = re.compile(r"^troth [a-z]")
DOTTED = re.compile(r"\btroth(?:\.\w+)+")
METHOD = re.compile(r"^(\w+)(?:\(…\))?\.(\w+)")
CALL = re.compile(r"^([A-Za-z_]\w*)\(")


def _docstrings(tree):
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            for one in body:
                if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                    yield id(one.value)


def _texts(tree):
    """Every text of a module that is no docstring; what an f-string puts in stands as `…`."""
    skipped = set(_docstrings(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [one.value if isinstance(one, ast.Constant) else "…" for one in node.values]
            skipped.update(map(id, node.values))
            yield node.lineno, "".join(map(str, parts))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def _trees():
    """The modules one after the other: all at once take a hundred megabytes."""
    for file in sorted(SOURCE.rglob("*.py")):
        if not {"knowledge", "rules"} & set(file.parts):  # what those quote is the code of others
            yield file.relative_to(SOURCE), ast.parse(file.read_text(encoding="utf-8"))


def _advised():
    for file, tree in _trees():
        for line, text in _texts(tree):
            for code in CODE.findall(text):
                yield f"{file}:{line}", code


ADVISED = sorted(set(_advised()))


def _parsers(name):
    parser = parser_of(name, load(name))
    verbs = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    return parser, verbs[0].choices if verbs else {}


def _wrong_command(code):
    words = [word.rstrip("…") for word in code.split()[1:]]
    if words[0] in ("COMMAND", ""):
        return None
    if words[0] not in COMMANDS:
        return f"there is no command {words[0]!r}"
    parser, verbs = _parsers(words[0])
    if verbs and len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]):
        if words[1] not in verbs:
            return f"`troth {words[0]}` has no verb {words[1]!r}"
        parser = verbs[words[1]]
    options = {option for action in parser._actions for option in action.option_strings}
    wrong = [word for word in re.findall(r"(?<!\S)--[a-z-]+", code) if word not in options]
    return f"it has no option {wrong[0]}" if wrong else None


def test_there_is_something_to_look_at():
    """The collection sees what it has to."""
    codes = {code for _, code in ADVISED}
    assert {"troth runs list", "engine.resume(…)", "Runtime(path, read_only=True)"} <= codes


@pytest.mark.parametrize("where", sorted({where for where, code in ADVISED if COMMAND.match(code)}))
def test_commands_exist(where):
    """With their verbs and options."""
    for place, code in ADVISED:
        if place == where and COMMAND.match(code):
            assert _wrong_command(code) is None, code


def _resolve(dotted):
    """What a dotted name leads to; raises where it leads nowhere."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(dotted)


def test_names_of_troth_exist():
    """`troth.testing.scripted.ScriptedModel`, and not where it is not."""
    loggers = {"troth.runtime", "troth.engine", "troth.bridge", "troth.guard"}
    for place, code in ADVISED:
        for dotted in DOTTED.findall(code):
            if dotted not in loggers and not dotted.endswith(FILES):
                try:
                    _resolve(dotted)
                except (AttributeError, ModuleNotFoundError):
                    pytest.fail(f"{place}: `{code}` does not exist")


def test_methods_exist():
    """Of the things that a user holds."""
    for place, code in ADVISED:
        named = METHOD.match(code)
        if named and named[1] in HOLDERS:
            holder = HOLDERS[named[1]]
            assert hasattr(holder, named[2]) or named[2] in _attributes(holder), f"{place}: `{code}`"


def _attributes(holder):
    """What `__init__` keeps on `self`."""
    return set(re.findall(r"^ {8,}self\.([a-z]\w*)\b[^=\n]* = ", inspect.getsource(holder.__init__), re.MULTILINE))


def test_functions_that_are_advised_are_public():
    """A function of ours that a message tells to call can be imported from a public package."""
    public = {name for names in FACES.values() for name in names} | set(dir(builtins)) | {"troth"}
    private = {
        node.name
        for _, tree in _trees()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    } - public
    private -= {
        name
        for module in ("troth.testing.scripted", "troth.runtime.agents.openai")
        for name in getattr(importlib.import_module(module), "__all__", ())
    }
    private.discard("close")  # of whatever has one
    wrong = [f"{place}: `{code}`" for place, code in ADVISED if (called := CALL.match(code)) and called[1] in private]
    assert wrong == []
