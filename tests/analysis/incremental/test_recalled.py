"""What one file says of its own functions is worked out once, as long as the file says the same."""

import pytest

from troth.analysis.check import CheckRequest, check, prepare
from troth.analysis.pipeline.warm_state import Memory
from troth.analysis.semantics.queries import dropped_callbacks

BUS = """class Bus:
    def __init__(self):
        self.listeners = []

    def subscribe(self, listener):
        self.listeners.append(listener)

    async def publish(self, event):
        for listener in self.listeners:
            await listener(event)
"""
APP = """from bus import Bus


def show(event):
    print(event)


async def load(event): ...


def main():
    bus = Bus()
    bus.subscribe(load)
    bus.subscribe(show)
"""


@pytest.fixture
def prepared(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "bus.py").write_text(BUS)
    (tmp_path / "app.py").write_text(APP)
    return prepare(CheckRequest(cwd=tmp_path, cache=False))


def test_handling_of_parameters(prepared, monkeypatch):
    """An edit of the file that subscribes asks the bus nothing again; one of the bus does."""
    asked = []
    original = dropped_callbacks._handlings

    def counted(function, *, is_awaited):
        asked.append(function.module.path)
        return original(function, is_awaited=is_awaited)

    monkeypatch.setattr(dropped_callbacks, "_handlings", counted)
    memory = Memory()

    def found(**texts):
        asked.clear()
        overlay = {f"{name}.py": text.encode() for name, text in texts.items()}
        report = check(prepared._replace(overlay=overlay), memory=memory)
        return [(one.code, one.span.path, one.span.line) for one in report.findings]

    assert found() == [("TR403", "app.py", 14)]
    assert "bus.py" in asked
    assert found(app=f"import os\n{APP}") == [("TR403", "app.py", 15)]
    assert "bus.py" not in asked
    assert found(bus=BUS.replace("await listener", "listener")) == [("TR402", "app.py", 13)]
    assert "bus.py" in asked
    assert found() == [("TR403", "app.py", 14)]


def test_a_program_that_was_asked_in_a_hurry(prepared):
    """It remembers answers about a few files: whoever makes up for it asks another one, and goes on with that."""
    memory = Memory()
    check(prepared, memory=memory)
    edited = prepared._replace(overlay={"app.py": f"import os\n{APP}".encode()})
    check(edited, memory=memory, hurry=True)
    hurried = memory.program
    check(edited, memory=memory)
    settled = memory.program
    assert settled is not hurried
    check(edited, memory=memory)
    assert memory.program is settled
