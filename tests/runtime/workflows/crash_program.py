"""A workflow with everything that commits, in one program that can be started again after every kill.

Effects are lines in a file, each with the key of its step; the world is what is left after the undos.
"""

import asyncio
from pathlib import Path

from troth.runtime import Runtime, Saga, SagaFailedError, Workflow, current_step, result, step


def program(folder):
    """Three runs: one that completes, one that is rolled back, and a saga that is rolled back."""
    effects = Path(folder) / "effects"

    def note(what):
        with effects.open("a", encoding="utf-8") as file:
            file.write(f"{current_step().key} {what}\n")
        return what

    def do(name):
        return note(f"do {name}")

    async def ado(name):
        await asyncio.sleep(0)
        return note(f"do {name}")

    def undo(name):
        note(f"undo {name}")

    async def aundo(name):
        note(f"undo {name}")

    def fails(name):
        raise ValueError(name)

    def named(name, function=do, **more):
        return step(name, function=function, inputs={"name": {"value": name}}, **more)

    whole = Workflow(
        "whole",
        named("a", undo=undo),
        step("p", parallel=[named("b", ado, undo=aundo), named("c", undo=undo)]),
        step("l", loop=[step("d", function=do, inputs={"name": {"text": "d${round}"}})], at_most=2),
        step("e", each=[1, 2], steps=[step("f", function=ado, inputs={"name": {"text": "f${item}"}})]),
        step("nap", sleep="1ms"),
        step("r", parallel=[step("slow", sleep="60s"), named("won", ado)], join="any"),
        named("last", ado),
    )
    back = Workflow(
        "back",
        named("a", undo=undo),
        step("p", parallel=[named("b", ado, undo=aundo), named("c", undo=undo)]),
        step("s", saga=[named("d", undo=undo), named("e", fails)]),
    )
    saga = Saga("saga")
    saga.step("a", do=do, undo=undo, arguments={"name": "a"})
    saga.step("b", do=ado, undo=aundo, arguments={"name": "b"})
    # Without an undo: killed in flight, its outcome would be unknown, and the matrix could not expect one ending.
    saga.step("c", do=lambda was: fails(was), undo=None, arguments={"was": result("a")})  # noqa: PLW0108
    with Runtime(Path(folder) / "troth.db") as runtime:
        first = runtime.run(whole, run_id="whole")
        second = runtime.run(back, run_id="back", check=False)
        try:
            runtime.run_saga(saga, run_id="saga")
            third = None
        except SagaFailedError as failed:
            third = failed.outcome
        runtime.settle()
    return [
        [str(first.state), first.output],
        [str(second.state), list(second.undone)],
        [str(third.state), list(third.undone), list(third.done)],
    ]
