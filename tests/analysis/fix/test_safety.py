"""How sure a fix is: what rests on an `async def` that was resolved is certain, what takes an `await` away never is."""

from pathlib import Path

import pytest

from troth.analysis.edits.apply import apply
from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project

WORK = "import asyncio\nasync def work(n=0) -> list: ...\n"


def findings_in(source: str, root: Path = Path("/nowhere")):
    return analyse(Project(root, ("app.py",)), overlay={"app.py": source.encode()}).findings


def fix_at(source: str, code: str, root: Path = Path("/nowhere")):
    return next(one.fix for one in findings_in(source, root) if one.code == code)


@pytest.mark.parametrize(
    ("source", "code", "safety"),
    [
        pytest.param(f"{WORK}async def main():\n    work()\n", "TR101", "sure", id="a function that was resolved"),
        pytest.param(
            f"{WORK}async def main():\n" + "    work()\n" * 12, "TR101", "sure", id="the ninth of one cause, and more"
        ),
        pytest.param(
            "from lib import task\n@task\nasync def work(): ...\nasync def a():\n    await work()\nasync def b():\n    await work()\n"
            "async def main():\n    work()\n",
            "TR101",
            "likely",
            id="under a decorator that nobody can follow",
        ),
        pytest.param(
            'import time, asyncio\nasync def hold():\n    """Deliberately blocks the loop."""\n    time.sleep(1)\n',
            "TR602",
            "guess",
            id="a docstring says that it blocks",
        ),
        pytest.param(
            'import time, asyncio\nasync def scroll():\n    """Until it stops changing; the blockchain is installed."""\n    time.sleep(1)\n',
            "TR602",
            "sure",
            id="a docstring of changes, a blockchain and what is installed",
        ),
        pytest.param(
            "import asyncio, time\nfrom lib import threadpool\nasync def main():\n    await asyncio.sleep(1)\n    async with threadpool():\n        time.sleep(1)\n",
            "TR602",
            "guess",
            id="in a block that may run in a thread",
        ),
        pytest.param(
            "import time, asyncio\nfrom lib import LoopMonitor\nasync def show():\n    with LoopMonitor(after=1) as monitor:\n"
            "        async def busy():\n            time.sleep(3)\n        await busy()\n",
            "TR602",
            "guess",
            id="a monitor is to see it",
        ),
        pytest.param(
            "import time, asyncio\nasync def sleepy(seconds):\n    if seconds >= 0:\n        await asyncio.sleep(seconds)\n"
            "    else:\n        time.sleep(-seconds)\n",
            "TR602",
            "guess",
            id="the other branch does not block",
        ),
        pytest.param(
            "import time, asyncio\nasync def sleepy(seconds):\n    if seconds >= 0:\n        await asyncio.sleep(seconds)\n"
            "    time.sleep(seconds)\n",
            "TR602",
            "sure",
            id="a branch above does not block",
        ),
        pytest.param(
            "import time, asyncio\nasync def watch():\n    print('stopped, look here')\n    time.sleep(3600)\n",
            "TR602",
            "guess",
            id="everything is to stop",
        ),
        pytest.param(
            "import time, asyncio\nfrom lib import concurrent\n@concurrent\nasync def hook():\n    time.sleep(1)\n",
            "TR602",
            "guess",
            id="a decorator runs it in a thread",
        ),
        pytest.param(
            f"{WORK}async def main():\n    # intentionally not awaiting this call\n    work()\n",
            "TR101",
            "guess",
            id="a comment says that nobody waits",
        ),
        pytest.param(
            f"{WORK}async def main():\n    work()  # fire and forget\n",
            "TR101",
            "guess",
            id="a comment beside it says so",
        ),
        pytest.param(
            f"{WORK}async def main():\n    # nothing else waits here\n\n    work()\n",
            "TR101",
            "sure",
            id="a comment of something else",
        ),
        pytest.param(
            f"{WORK}async def main():\n    tasks = []\n    for n in range(3):\n        one = work(n)\n"
            "        tasks.append(one)\n",
            "TR102",
            "guess",
            id="put into a list of tasks that nobody reads",
        ),
        pytest.param(
            f"{WORK}async def main(how):\n    if how == 'await':\n        await work()\n    elif how == 'bare':\n        work()\n",
            "TR101",
            "guess",
            id="awaited on another branch, which does nothing else",
        ),
        pytest.param(
            f"{WORK}async def main(how):\n    if how == 'await':\n        await work()\n    else:\n        print(how)\n        work()\n",
            "TR101",
            "sure",
            id="awaited on another branch, with more beside it",
        ),
        pytest.param(
            f"{WORK}async def main():\n    task = work()\n    print(1)\n", "TR102", "guess", id="named a task"
        ),
        pytest.param(
            "async def load_task() -> dict: ...\nasync def main():\n    task = load_task()\n    return task['name']\n",
            "TR102",
            "sure",
            id="a task is what is loaded",
        ),
        pytest.param(
            "import asyncio, time\nasync def test_blocking_timeout():\n    async def run():\n        time.sleep(1)\n"
            "    await asyncio.wait_for(run(), 0.2)\n",
            "TR602",
            "guess",
            id="a test of blocking",
        ),
        pytest.param(
            f"{WORK}async def start():\n    return work()\nasync def main():\n    return await start()\n",
            "TR109",
            "sure",
            id="returned, and all who call it await it once",
        ),
        pytest.param(
            f"{WORK}async def start():\n    return work()\n", "TR109", "likely", id="returned, and nobody calls it"
        ),
        pytest.param(
            f"{WORK}async def start():\n    return work()\nHOOKS = [start]\nasync def main():\n    await start()\n",
            "TR109",
            "likely",
            id="returned, and handed around",
        ),
        pytest.param(
            "from unknown import db\nasync def a():\n    await db.commit()\nasync def b():\n    await db.commit()\n"
            "async def c():\n    db.commit()\n",
            "TR201",
            "guess",
            id="siblings alone",
        ),
        pytest.param(
            "class Purge:\n    async def start_purge(self): ...\nasync def main(handler):\n    handler.start_purge()\n",
            "TR101",
            "guess",
            id="the only method of that name",
        ),
        pytest.param(
            "def load() -> str:\n    return ''\nasync def main():\n    return await load()\n",
            "TR401",
            "likely",
            id="an await taken away",
        ),
        pytest.param(
            "class StateMachine:\n    def step_on(self) -> int:\n        return 1\n"
            "async def main(state_machine):\n    await state_machine.step_on()\n",
            "TR401",
            "guess",
            id="an await taken away because of a name",
        ),
        pytest.param(
            f"{WORK}async def main():\n    return await work()[0]\nasync def other():\n    return await work(1)[0]\n",
            "TR106",
            "likely",
            id="an await that moves",
        ),
        pytest.param(
            f"{WORK}async def main():\n    tasks = []\n    tasks.append(work())\n    print(len(tasks))\n",
            "TR102",
            "likely",
            id="put into a list that is called tasks",
        ),
    ],
)
def test_how_sure_a_fix_is(source, code, safety):
    """A finding may be certain while its repair is not, and the other way round."""
    assert fix_at(source, code).safety == safety


def test_what_is_handed_out_by_name_is_only_likely_lost():
    asks = "import inspect\nasync def main(policy, conditions):\n    for condition in conditions:\n        result = condition(policy)\n"
    asks += "        if inspect.isawaitable(result):\n            result = await result\n"
    source = f"{asks}async def may(policy) -> bool: ...\ndef rule():\n    def ask(policy) -> bool:\n        return may(policy)\n"
    handed_out, kept_inside = f"{source}    return ask\n", f"{source}    return bool(1)\n"
    assert [finding.confidence for finding in findings_in(handed_out) if finding.code == "TR109"] == ["likely"]
    assert [finding.confidence for finding in findings_in(kept_inside) if finding.code == "TR109"] == ["certain"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("return await work()[0]", "return (await work())[0]", id="subscripted"),
        pytest.param("return await work().x", "return (await work()).x", id="an attribute"),
        pytest.param("return await work()[0].x[1]", "return (await work())[0].x[1]", id="a chain"),
        pytest.param("return await client().get()", "return await (await client()).get()", id="an async method"),
        pytest.param("return await client().name()", "return (await client()).name()", id="a sync method"),
        pytest.param("return await work().run()", "return await (await work()).run()", id="a method nobody knows"),
        pytest.param("return await row().model_dump()", "return (await row()).model_dump()", id="a method of pydantic"),
        pytest.param("return await row().load()", "return await (await row()).load()", id="an async method of a model"),
    ],
)
def test_an_await_before_the_wrong_part_moves(before, after):
    """What is subscripted is the result, so the `await` belongs to the call; a method may be async itself."""
    head = (
        "class Client:\n    async def get(self): ...\n    def name(self) -> str:\n        return ''\n"
        f"async def client() -> Client: ...\nfrom pydantic import BaseModel\nclass Row(BaseModel):\n    async def load(self): ...\n"
        f"async def row() -> Row: ...\n{WORK}async def main():\n"
    )
    source = f"{head}    {before}\n"
    fix = fix_at(source, "TR106")
    assert apply(source, fix.edits) == f"{head}    {after}\n"


def test_an_await_for_a_method_nobody_knows_is_a_guess():
    """`await work().run()`: whether `run` is async, too, decides where the `await` belongs."""
    assert fix_at(f"{WORK}async def main():\n    return await work().run()\n", "TR106").safety == "guess"


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(
            "    if flag:\n        await asyncio.gather(*tasks)\n    else:\n        for t in tasks:\n            t.join()\n",
            id="gathered on one branch, joined on the other",
        ),
        pytest.param(
            "    for t in tasks:\n        if flag:\n            await t\n        t.join()\n", id="awaited in a loop"
        ),
        pytest.param("    await asyncio.wait(tasks)\n    tasks[0].join()\n", id="waited for"),
    ],
)
def test_what_is_awaited_further_on_is_not_awaited_twice(rest):
    """`tasks.append(await work())` would give results to `gather`."""
    source = f"{WORK}async def main(flag):\n    tasks = []\n    tasks.append(work())\n{rest}"
    assert all(one.fix is None for one in findings_in(source) if one.span.line == 5)


def test_an_async_generator_is_never_awaited():
    """Nobody can."""
    source = "async def pages():\n    yield 1\nasync def main():\n    pages()\n    x = pages()\n    print(x.name)\n"
    assert all(one.fix is None or "await " not in str(one.fix.edits) for one in findings_in(source))


@pytest.mark.parametrize("mark", ["@pytest.mark.trio\n", "pytestmark = [pytest.mark.slow, pytest.mark.trio]\n"])
def test_what_trio_runs_gets_nothing_of_asyncio(mark):
    """Who runs a test may be said by its mark alone."""
    test = "async def test_it():\n    time.sleep(1)\n    await wait()\n"
    head = "import time, pytest\nfrom own import wait\n"
    assert fix_at(f"{head}{test}", "TR602") is not None
    assert fix_at(f"{head}{mark}{test}", "TR602") is None


@pytest.mark.parametrize(
    ("requires", "expected"),
    [
        pytest.param(">=3.8", '_background_tasks: "set[asyncio.Task[object]]" = set()', id="an old Python"),
        pytest.param(">=3.9", "_background_tasks: set[asyncio.Task[object]] = set()", id="a newer one"),
    ],
)
def test_what_is_added_runs_on_every_python_of_the_project(tmp_path, requires, expected):
    """`set[…]` cannot be evaluated before Python 3.9, and `asyncio.to_thread` is not there."""
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "x"\nrequires-python = "{requires}"\n')
    source = (
        "import asyncio\nimport subprocess\nasync def work(): ...\nasync def main():\n"
        "    asyncio.create_task(work())\n    subprocess.run(['ls'])\n"
    )
    assert expected in str(fix_at(source, "TR112", tmp_path).edits)
    assert (fix_at(source, "TR602", tmp_path) is None) == (requires == ">=3.8")


def test_what_a_decorator_makes_may_be_looped_over():
    """`async for` over a function that a decorator may have made a generator is no finding, so nothing is repaired."""
    source = (
        "import pytest\n@pytest.fixture\nasync def pages():\n    return 1\nasync def main():\n"
        "    async for page in pages():\n        print(page)\n"
    )
    assert [finding.code for finding in findings_in(source, Path("/nowhere"))] == []
    undecorated = source.replace("@pytest.fixture\n", "")
    assert [finding.code for finding in findings_in(undecorated, Path("/nowhere"))] == ["TR106"]


@pytest.mark.parametrize(
    ("head", "call", "safety"),
    [
        pytest.param(
            "class S:\n    async def __aenter__(self): ...\n    async def __aexit__(self, *a): ...\n"
            "async def make():\n    return S()\n",
            "make()",
            "sure",
            id="an object that can be entered",
        ),
        pytest.param("async def make():\n    return await unknown()\n", "make()", "likely", id="nobody can tell"),
        pytest.param("async def make():\n    return {}\n", "make()", None, id="a dict"),
        pytest.param("import httpx\nclient = httpx.AsyncClient()\n", "client.get('x')", None, id="a response of httpx"),
    ],
)
def test_a_call_is_awaited_where_its_result_can_be_entered(head, call, safety):
    """`async with await client.get(…)` raises an error where a response has no `__aenter__`: another call was meant."""
    fix = fix_at(f"{head}async def main():\n    async with {call} as x:\n        print(x)\n", "TR106")
    assert (fix and fix.safety) == safety


@pytest.mark.parametrize(
    ("body", "is_repaired"),
    [
        pytest.param("async def rows() -> list[int]:\n    return [1]\n", True, id="a list, which a plain loop takes"),
        pytest.param("async def rows() -> None:\n    print(1)\n", False, id="nothing"),
    ],
)
def test_a_call_is_awaited_where_its_result_can_be_looped_over(body, is_repaired):
    """Awaiting what gives nothing would only raise the next error."""
    fix = fix_at(f"{body}async def main():\n    async for row in rows():\n        print(row)\n", "TR106")
    assert (fix is not None) == is_repaired
