"""One workflow from every place that code runs in, through every door, with the same result and the same record."""

import asyncio
import contextvars
import socket
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager

import pytest

from troth.runtime import Runtime, Workflow, arun_workflow, run_workflow, step

WORD = contextvars.ContextVar("WORD", default="unset")


def add(left, right):
    return {"sum": left + right}


async def double(value):
    await asyncio.sleep(0)
    return {"value": value * 2}


def word():
    return WORD.get()


FLOW = Workflow(
    "sums",
    step("first", function=add, inputs={"left": "inputs.number", "right": 1}),
    step("both", parallel=[
        step("twice", function=double, inputs={"value": "steps.first.sum"}),
        step("more", function=add, inputs={"left": "steps.first.sum", "right": 10}),
    ]),
    step("last", function=double, inputs={"value": "steps.both.more.sum"}),
    step("said", function=word),
    inputs={"number": "integer"},
    output={"result": "steps.last.value", "said": "steps.said"},
)  # fmt: skip
EXPECTED = [
    ("first", "function", "done", {"left": 1, "right": 1}, {"sum": 2}),
    ("both", "parallel", "done", None, None),
    ("twice", "function", "done", {"value": 2}, {"value": 4}),
    ("more", "function", "done", {"left": 2, "right": 10}, {"sum": 12}),
    ("last", "function", "done", {"value": 12}, {"value": 24}),
    ("said", "function", "done", {}, "hello"),
]


def shape(run):
    assert run.output == {"result": 24, "said": "hello"}
    return [(one.place, one.kind, str(one.state), one.inputs, one.output) for one in run.steps]


# ---- doors: every public entry, with a fresh runtime and a shared one


def fresh_sync(shared, path):
    return shape(run_workflow(FLOW, {"number": 1}, store=path))


def shared_sync(shared, path):
    return shape(shared.run(FLOW, {"number": 1}))


async def fresh_async(shared, path):
    return shape(await arun_workflow(FLOW, {"number": 1}, store=path))


async def shared_async(shared, path):
    return shape(await shared.arun(FLOW, {"number": 1}))


SYNC_DOORS = [fresh_sync, shared_sync]
ASYNC_DOORS = [fresh_async, shared_async]


@pytest.fixture
def shared(tmp_path):
    token = WORD.set("hello")
    with Runtime(tmp_path / "shared.db") as runtime:
        yield runtime
    WORD.reset(token)


# ---- places


def in_a_script(door, *given):
    return door(*given)


def in_a_thread(door, *given):
    context = contextvars.copy_context()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(context.run, door, *given).result(60)


def in_a_coroutine(door, *given):
    async def main():
        return door(*given)

    return asyncio.run(main())


def in_uvloop(door, *given):
    uvloop = pytest.importorskip("uvloop")

    async def main():
        return door(*given)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


def in_a_worker_thread_of_a_loop(door, *given):
    async def main():
        return await asyncio.to_thread(door, *given)

    return asyncio.run(main())


PLACES = [in_a_script, in_a_thread, in_a_coroutine, in_uvloop, in_a_worker_thread_of_a_loop]


@pytest.mark.parametrize("door", SYNC_DOORS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("place", PLACES, ids=lambda one: one.__name__)
def test_a_sync_door_in_every_place(shared, tmp_path, place, door):
    """The same record, whatever thread or loop it is called on; context variables go in."""
    assert place(door, shared, tmp_path / "fresh.db") == EXPECTED


@pytest.mark.parametrize("door", ASYNC_DOORS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_an_async_door_on_every_loop(shared, tmp_path, loop, door):
    """And the same record again."""
    factory = pytest.importorskip("uvloop").new_event_loop if loop == "uvloop" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        assert runner.run(door(shared, tmp_path / "fresh.db")) == EXPECTED


def test_a_runtime_made_in_one_thread_runs_in_another_and_on_two_loops(shared):
    """Nothing in it is bound to the thread it was made in."""
    assert in_a_thread(shared_sync, shared, None) == EXPECTED
    for _ in range(2):
        assert asyncio.run(shared_async(shared, None)) == EXPECTED


@pytest.mark.parametrize("color", ["sync", "async"])
def test_sixteen_at_once(shared, color):
    """On one runtime, from sixteen threads or sixteen tasks."""
    if color == "sync":
        contexts = [contextvars.copy_context() for _ in range(16)]
        with ThreadPoolExecutor(16) as pool:
            found = [one.result(60) for one in [pool.submit(c.run, shared_sync, shared, None) for c in contexts]]
    else:

        async def main():
            return await asyncio.gather(*[shared_async(shared, None) for _ in range(16)])

        found = asyncio.run(main())
    assert found == [EXPECTED] * 16


def test_the_async_path_never_blocks_the_loop(shared, tmp_path):
    """A sync step of most of a second; the loop's longest gap meanwhile is a fraction of it."""

    def slow():
        time.sleep(0.7)
        return 1

    async def main():
        gaps = []
        ended = asyncio.Event()

        async def tick():
            before = time.monotonic()
            while not ended.is_set():
                await asyncio.sleep(0.01)
                now = time.monotonic()
                gaps.append(now - before)
                before = now

        ticking = asyncio.create_task(tick())
        await shared.arun(Workflow("slow", step("a", function=slow)))
        ended.set()
        await ticking
        return max(gaps)

    assert asyncio.run(main()) < 0.35


def test_a_caller_who_loses_patience_gets_its_timeout(shared):
    """`wait_for` round an `arun` ends in time, the step sees its cancellation, and the run can go on."""
    seen = []

    async def long():
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    flow = Workflow("long", step("a", function=long))

    async def main():
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(shared.arun(flow, run_id="one"), 0.3)
        return time.monotonic() - began

    assert asyncio.run(main()) < 5
    assert seen == ["cancelled"]
    assert shared.show("one").state == "interrupted"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_a_step_raises_is_never_a_silent_none(shared, error):
    """SystemExit in a step fails the step; Ctrl-C ends the program's run, which can go on."""

    def work():
        raise error

    flow = Workflow("w", step("a", function=work))
    if error is SystemExit:
        assert shared.run(flow, check=False).state == "failed"
    else:
        with pytest.raises(KeyboardInterrupt):
            shared.run(flow, run_id="one")
        assert shared.show("one").state == "interrupted"


# ---- a real server


@contextmanager
def served(app):
    import uvicorn

    with socket.socket() as finder:
        finder.bind(("127.0.0.1", 0))
        port = finder.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning", lifespan="on"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)


def test_fastapi(tmp_path):
    """Sync route, async route and lifespan of a real server, through every door, fresh and shared."""
    import httpx
    from fastapi import FastAPI

    made = {}

    @asynccontextmanager
    async def lifespan(app):
        WORD.set("hello")
        made["runtime"] = Runtime(tmp_path / "served.db")
        made["in lifespan, sync"] = shared_sync(made["runtime"], None)
        made["in lifespan, async"] = await shared_async(made["runtime"], None)
        yield
        await made["runtime"].aclose()

    app = FastAPI(lifespan=lifespan)

    @app.get("/sync/{door}")
    def sync_route(door: str):
        WORD.set("hello")
        return globals()[door](made["runtime"], tmp_path / f"{door}.db")

    @app.get("/async/{door}")
    async def async_route(door: str):
        WORD.set("hello")
        found = globals()[door](made["runtime"], tmp_path / f"a{door}.db")
        return await found if asyncio.iscoroutine(found) else found

    with served(app) as url, httpx.Client(timeout=60) as client:
        for route in (
            "sync/fresh_sync",
            "sync/shared_sync",
            "async/fresh_sync",
            "async/shared_sync",
            "async/fresh_async",
            "async/shared_async",
        ):
            answer = client.get(f"{url}/{route}")
            assert answer.status_code == 200, (route, answer.text)
            assert [tuple(one) for one in answer.json()] == EXPECTED, route
        with ThreadPoolExecutor(8) as pool:
            many = list(pool.map(lambda _: client.get(f"{url}/async/shared_async").json(), range(16)))
        assert all([tuple(one) for one in found] == EXPECTED for found in many)
    assert made["in lifespan, sync"] == made["in lifespan, async"] == EXPECTED


# ---- a real notebook


def test_jupyter(tmp_path):
    """In a real kernel, whose loop runs in every cell: sync doors, async doors, fresh and shared."""
    import nbformat
    from nbclient import NotebookClient

    cells = [
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})",
        "import asyncio; asyncio.get_running_loop() is not None",
        (
            "from troth.runtime import Runtime, Workflow, step, run_workflow, arun_workflow\n"
            "def add(left, right): return left + right\n"
            "async def double(value): return value * 2\n"
            "flow = Workflow('nb', step('a', function=add, inputs={'left': 1, 'right': 2}), step('b', function=double, inputs={'value': 'steps.a'}))"
        ),
        "print(run_workflow(flow).output)",
        "print((await arun_workflow(flow)).output)",
        "rt = Runtime('nb.db')\nprint(rt.run(flow).output)",
        "print((await rt.arun(flow)).output)",
        "print(rt.run(flow).output); rt.close()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    NotebookClient(
        notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    # A busy machine sends what one cell prints in several pieces.
    printed = ["".join(out.text for out in cell.outputs if out.get("name") == "stdout") for cell in notebook.cells]
    assert [text for text in printed if text] == ["6\n"] * 5


def test_the_quick_start_is_quick_and_quiet(tmp_path):
    """At most fifteen lines from nothing, at most three lines of output, no key, no guard, nothing on stderr."""
    code = textwrap.dedent(
        """\
        from troth.runtime import Workflow, run_workflow, step

        def charge(order):
            return {"payment": f"pay-{order}"}

        async def ship(order, payment):
            return {"parcel": f"box-{order}", "paid": payment}

        flow = Workflow(
            "order",
            step("charge", function=charge, inputs={"order": "inputs.order"}),
            step("ship", function=ship, inputs={"order": "inputs.order", "payment": "steps.charge.payment"}),
            inputs={"order": "string"},
        )
        print(run_workflow(flow, {"order": "A7"}).output)
        """
    )
    assert len(code.splitlines()) <= 15
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "{'parcel': 'box-A7', 'paid': 'pay-A7'}\n"
    assert done.stderr == ""
