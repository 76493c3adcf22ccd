"""The nine mistakes of the table, and one correct program: as scripts and as tests."""

MISTAKES = {
    "bare call": "work()  # here",
    "dropped variable": "result = work()  # here\ndel result",
    "broad except": "try:\n    work()  # here\nexcept Exception:\n    pass",
    "taken for true": "if work():  # here\n    pass",
    "three on a line": "for _ in range(3): work()  # here",
    "reference cycle": "cycle = [work()]  # here\ncycle.append(cycle)\ndel cycle",
    "kept until exit": "KEPT.append(work())  # here",
    "worker thread": "thread = threading.Thread(target=lambda: work() and None)  # here\nthread.start()\nthread.join()",
    "dropped by a callee": "len([work()])  # here",
}
CORRECT = "asyncio.run(work())"

HEAD = "import asyncio, gc, threading\nKEPT = []\n\nasync def work():\n    return 1\n\n"


def script(body: str) -> str:
    return HEAD + body + "\nprint('done')\n"


def suite() -> str:
    """A test per mistake, each followed by an innocent one that collects."""
    tests = []
    for number, body in enumerate([*MISTAKES.values(), CORRECT]):
        indented = body.replace("\n", "\n    ")
        tests.append(
            f"def test_{number}_guilty():\n    {indented}\n\ndef test_{number}_innocent():\n    gc.collect()\n"
        )
    return HEAD + "\n".join(tests)


def line_of(source: str, number: int = 0) -> int:
    """The line of the mistake in `source` (the `number`th one)."""
    return [at for at, line in enumerate(source.splitlines(), 1) if line.endswith("# here")][number]
