"""What is said about repair where the rule's own words would not fit the place."""

import pytest
from tests.analysis.rules.test_cases import findings

VALIDATOR = """from pydantic import BaseModel, field_validator
class Model(BaseModel):
    a: int
    @field_validator("a")
    async def check(cls, value):
        return value
"""
FACTORY = """from dataclasses import dataclass, field
async def load(): ...
@dataclass
class Row:
    value: int = field(default_factory=load)
"""
COMMAND = "import click\n@click.command()\nasync def main(): ...\n"
SCHEDULED = """from apscheduler.schedulers.background import BackgroundScheduler
scheduler = BackgroundScheduler()
@scheduler.scheduled_job("interval")
async def tick(): ...
"""
THREAD = "import asyncio\nasync def work(): ...\nasync def main():\n    await asyncio.to_thread(work)\n"
TIMER = "import threading\nasync def tick(): ...\ndef main():\n    threading.Timer(1, tick).start()\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(VALIDATOR, "make this a plain `def`", id="a validator"),
        pytest.param(FACTORY, "pass it to the constructor", id="a factory"),
        pytest.param(COMMAND, "run the async part inside it: `asyncio.run(work())`", id="a command"),
        pytest.param("import trio\n" + COMMAND, "`trio.run(work)`", id="a command of a file that knows trio"),
        pytest.param(SCHEDULED, "`AsyncIOScheduler`", id="a scheduler that has an async twin"),
        pytest.param(THREAD, "await `work(…)` itself", id="a thread that is awaited"),
        pytest.param(TIMER, "`lambda: asyncio.create_task(work())`", id="a timer"),
        pytest.param("import anyio\n" + TIMER, "`lambda: task_group.start_soon(work)`", id="a timer, and anyio"),
        pytest.param("import trio\n" + TIMER, "`lambda: nursery.start_soon(work)`", id="a timer, and trio"),
        pytest.param("import trio, asyncio\n" + TIMER, "`lambda: asyncio.create_task(work())`", id="both libraries"),
    ],
)
def test_a_framework_gets_advice_that_it_accepts(text: str, words: str) -> None:
    """A validator or a factory cannot start a task in place of a value; the words are of the file's own library."""
    (finding,) = [found for found in findings({"app.py": text}) if found.code == "TR402"]
    assert words in finding.repair


GENERATOR = "async def rows():\n    yield 1\ndef take(n: int) -> None: ...\nasync def main():\n"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("if rows():\n        pass", id="tested"),
        pytest.param("assert rows() == 3", id="compared"),
        pytest.param("rows()['a']", id="subscripted"),
        pytest.param("rows().name", id="asked for an attribute"),
        pytest.param("return rows() + 1", id="in an operation"),
        pytest.param("rows()", id="dropped"),
        pytest.param("await rows()", id="awaited"),
        pytest.param("for row in rows():\n        pass", id="in a plain loop"),
    ],
)
def test_an_async_generator_is_never_told_to_be_awaited(line: str) -> None:
    """It is looped over; it is no coroutine, and no fix puts an `await` before it."""
    (finding,) = findings({"app.py": f"{GENERATOR}    {line}\n"})
    assert "coroutine" not in finding.message
    assert "await the call" not in finding.repair
    assert finding.fix is None or "await rows" not in "".join(edit.text for edit in finding.fix.edits)
    assert finding.repair or finding.fix is not None or finding.code in {"TR114", "TR115"}


@pytest.mark.parametrize(
    ("use", "words"),
    [
        pytest.param("return data['a']", "is subscripted", id="subscripted"),
        pytest.param("if data:\n        return 1", "is tested for truth", id="tested"),
        pytest.param("if not data:\n        return 1", "is tested for truth", id="tested the other way round"),
        pytest.param("assert data == {}", "is compared", id="compared"),
        pytest.param("return f'{data}'", "is given to an f-string", id="in an f-string"),
        pytest.param("return data + 1", "is used in an operation", id="in an operation"),
        pytest.param("a, b = data\n    return a", "is unpacked", id="unpacked"),
        pytest.param("for row in data:\n        print(row)", "is looped over", id="looped over"),
        pytest.param("return data.name", "is read", id="asked for an attribute"),
    ],
)
def test_a_use_is_told_with_its_line(use: str, words: str) -> None:
    """The finding stands where the `await` is missing; the reason names the line that takes it for the result."""
    program = f"async def load(): ...\nasync def main():\n    data = load()\n    print(1)\n    {use}\n"
    (finding,) = findings({"app.py": program})
    told = [(reason.text, reason.line) for reason in finding.reasons if words in reason.text]
    assert finding.span.line == 3
    assert [line for _, line in told] == [5]


ENGINE = "from sqlalchemy import create_engine\nengine = create_engine('sqlite://')\nasync def main(make):\n"


@pytest.mark.parametrize(
    ("text", "safety"),
    [
        pytest.param("import asyncio, time\nasync def main():\n    time.sleep(1)\n", "sure", id="a sleep"),
        pytest.param(
            "import asyncio, time\nasync def main(n):\n    await asyncio.sleep(2)\n    if n > 25:\n        time.sleep(1)\n",
            "likely",
            id="a sleep beside the other one, under a condition: it may hold up everything on purpose",
        ),
        pytest.param(
            "import asyncio, time\nasync def main():\n    await asyncio.sleep(2)\n    time.sleep(1)\n",
            "sure",
            id="a sleep beside the other one",
        ),
        pytest.param(
            f"{ENGINE}    async with engine.begin() as conn:\n        print(conn)\n", "likely", id="a sync connection"
        ),
        pytest.param(
            f"{ENGINE}    async with engine.begin() as conn:\n        await conn.run_sync(make)\n",
            "guess",
            id="a sync connection whose block waits for it: an async engine was meant",
        ),
    ],
)
def test_a_fix_is_no_surer_than_what_stands_around_it(text: str, safety: str) -> None:
    """What speaks for another repair makes the fix less sure."""
    found = [finding for finding in findings({"app.py": text}) if finding.code in {"TR602", "TR417"}]
    assert [finding.fix.safety for finding in found if finding.fix is not None] == [safety]
