"""The engine's port is the only way in: whoever stands on an engine knows neither its class nor its store."""

import ast
import inspect
from pathlib import Path

import pytest

import troth.runtime
from troth.runtime.engine import EmbeddedEngine, Engine

SOURCE = Path(troth.runtime.__file__).parent
OPENING = {"assemble.py", "sessions/hypervisor.py"}  # where an engine is made
ROOMS = ("workflows", "promises", "sagas", "sessions", "conversations", "agents")


def modules():
    files = [SOURCE / "assemble.py", *(file for room in ROOMS for file in (SOURCE / room).rglob("*.py"))]
    return {file.relative_to(SOURCE).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in files}


def test_nobody_reaches_through_an_engine():
    """No `engine.store`, and no engine's own class but where one is made."""
    guilty = []
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == "store" and ast.unparse(node.value).endswith("engine"):
                guilty.append(f"{module}:{node.lineno}: {ast.unparse(node)}")
            if isinstance(node, ast.Name) and node.id == "EmbeddedEngine" and module not in OPENING:
                guilty.append(f"{module}:{node.lineno}: {node.id}")
    assert not guilty


@pytest.mark.parametrize("verb", [name for name in vars(Engine) if not name.startswith("_")])
def test_the_embedded_engine_has_every_verb(verb):
    """With the arguments that the port says."""
    theirs = inspect.getattr_static(EmbeddedEngine, verb, None)
    if verb == "workers":
        return  # a value
    assert theirs is not None
    assert list(inspect.signature(getattr(Engine, verb)).parameters) == list(inspect.signature(theirs).parameters)
