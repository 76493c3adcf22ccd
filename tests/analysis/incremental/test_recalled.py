"""What one file says of its own functions is worked out once, as long as the file says the same."""

import pytest

from troth.analysis.check import CheckRequest, check, prepare
from troth.analysis.pipeline.warm_state import Memory

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


def test_handling_of_parameters(prepared):
    """An edit of the file that subscribes asks the bus nothing again; one of the bus does."""
    memory = Memory()

    def found(**texts):
        overlay = {f"{name}.py": text.encode() for name, text in texts.items()}
        report = check(prepared._replace(overlay=overlay), memory=memory)
        return [(finding.code, finding.span.path, finding.span.line) for finding in report.findings]

    def handlings():
        """What is remembered of the bus's functions; an answer that was worked out again is another object."""
        module = next(module for module in memory.program.own_modules() if module.path == "bus.py")
        return [value for value, _ in module._recalled.values() if value]

    assert found() == [("TR403", "app.py", 14)]
    first = handlings()
    assert first
    assert found(app=f"import os\n{APP}") == [("TR403", "app.py", 15)]
    assert list(map(id, handlings())) == list(map(id, first))
    assert found(bus=BUS.replace("await listener", "listener")) == [("TR402", "app.py", 13)]
    assert not set(map(id, handlings())) & set(map(id, first))
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
