"""A lint over channels, promises and jobs: nothing is swallowed, no task is without a holder, no receipt is ignored."""

import ast
from pathlib import Path

import pytest

import troth.runtime

ROOT = Path(troth.runtime.__file__).parent
MODULES = sorted(module for room in ("channels", "promises", "jobs") for module in (ROOT / room).rglob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_nothing_ends_in_silence(module):
    """No `except: pass`, no `suppress`, no dropped task, no `send` whose answer nobody looks at."""
    problems = []
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.ExceptHandler):
            if all(isinstance(line, ast.Pass | ast.Continue) for line in node.body):
                problems.append(f"{node.lineno}: an error is swallowed")
            if node.type is None:
                problems.append(f"{node.lineno}: a bare except")
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            problems.append(f"{node.lineno}: an error is suppressed")
        if isinstance(node, ast.Expr):
            value = node.value.value if isinstance(node.value, ast.Await) else node.value
            called = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
            if called.endswith(("asyncio.create_task", "ensure_future", "loop.create_task")):
                problems.append(f"{node.lineno}: a task without a holder")
            if called.endswith((".send", "_answer", "_call", "judge", "settle_attempt")):
                problems.append(f"{node.lineno}: a receipt is ignored")
    assert not problems


def test_the_lint_sees_what_it_is_for(tmp_path):
    """It finds each of the things it looks for."""
    module = tmp_path / "swallowing.py"
    module.write_text("try:\n    channel.send(1)\nexcept Exception:\n    pass\nasyncio.create_task(x())\n", "utf-8")
    with pytest.raises(AssertionError) as told:
        test_nothing_ends_in_silence(module)
    for problem in ("swallowed", "ignored", "without a holder"):
        assert problem in str(told.value)
