"""`troth recolor --to async` of functions that are handed around: by a variable, by a partial, to who calls them plain."""

import subprocess
import sys

import pytest

# One write for a line: threads print at the same time.
LOAD = "import threading\nfrom functools import partial\n\n\ndef load(x, y=1):\n    print(f'{x} {y}\\n', end='')\n    return x\n\n\n"
RUN = '\n\nasync def main():\n    print(use())\n\n\nif __name__ == "__main__":\n    import asyncio\n\n    asyncio.run(main())\n'


def output(project):
    command = [sys.executable, "app.py"]
    return subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=60, check=True).stdout


def recolor(project, text, *options, **files):
    project.write({"pyproject.toml": '[project]\nname = "x"\n', "app.py": text, **files})
    return project.troth("recolor", "app:load", "--to", "async", "--cascade", "all", *options)


@pytest.mark.parametrize(
    ("use", "after"),
    [
        pytest.param("    f = load\n    return f(1) + f(2)\n", "    return await f(1) + await f(2)\n", id="a variable"),
        pytest.param(
            "    f = partial(load, 1, y=2)\n    return f()\n",
            "    f = partial(load, 1, y=2)\n    return await f()\n",
            id="a partial",
        ),
        pytest.param(
            "    return partial(load, 1)()\n", "    return await partial(load, 1)()\n", id="a partial in place"
        ),
    ],
)
def test_what_is_called_by_a_variable(project, use, after):
    """Each call of the variable is awaited; the program does what it did."""
    text = f"{LOAD}def use():\n{use}{RUN}"
    project.write({"app.py": text})
    before = output(project)
    done = recolor(project, text)
    assert done.code == 0, done.out + done.err
    assert after in (project.root / "app.py").read_text()
    assert output(project) == before


@pytest.mark.parametrize(
    "use",
    [
        pytest.param("    f = load\n    return other(f)\n", id="handed on"),
        pytest.param(
            "    f = load\n\n    def inner():\n        return f(1)\n    return inner()\n", id="called further in"
        ),
        pytest.param("    global f\n    f = load\n    return f(1)\n", id="global"),
        pytest.param("    f = load if other else None\n    return f(1)\n", id="one of two"),
    ],
)
def test_a_variable_that_others_may_call(project, use):
    """Then nobody knows who calls it, and nothing is written."""
    text = f"{LOAD}def use(other=None):\n{use}"
    done = recolor(project, text)
    assert done.code == 1
    assert "`load`: the function itself is handed around" in done.out
    assert (project.root / "app.py").read_text() == text


THREAD = "    thread = threading.Thread(target=load, args=(1,))\n    thread.start()\n    thread.join()\n    return 3\n"


def test_what_a_thread_calls_is_run_by_it(project):
    """With a decision, or with `--boundary auto`, whoever calls the function plain runs the coroutine so."""
    text = f"{LOAD}def use():\n{THREAD}{RUN}"
    project.write({"app.py": text})
    before = output(project)
    done = recolor(project, text)
    assert done.code == 1
    assert "decided by  app.py:use: recolor | boundary | leave" in done.out
    done = recolor(project, text, "--decide", "answers.txt", **{"answers.txt": "app.py:use: boundary\n"})
    assert done.code == 0, done.out + done.err
    assert "1 place where sync code runs it" in done.out
    changed = (project.root / "app.py").read_text()
    assert "target=lambda *args, **kwargs: asyncio.run(load(*args, **kwargs)), args=(1,)" in changed
    assert output(project) == before
    done = recolor(project, text, "--boundary", "auto", "--allow-dirty")
    assert done.code == 0, done.out + done.err
    assert "lambda *args, **kwargs: bridge.run(load(*args, **kwargs))" in (project.root / "app.py").read_text()
    assert output(project) == before


def test_a_lambda_is_decided_like_the_others(project):
    """A lambda cannot await; it can run the coroutine."""
    text = f"{LOAD}def use():\n    return sorted([2, 1], key=lambda x: load(x))\n"
    done = recolor(project, text)
    assert done.code == 1
    assert "decided by  app.py:use: boundary | leave" in done.out
    done = recolor(project, text, "--decide", "answers.txt", **{"answers.txt": "app.py:use: boundary\n"})
    assert done.code == 0, done.out + done.err
    assert "key=lambda x: asyncio.run(load(x))" in (project.root / "app.py").read_text()


EXECUTOR = (
    "async def use():\n    loop = asyncio.get_running_loop()\n    work = loop.run_in_executor(None, load, 1, 2)\n"
    "    first = await loop.run_in_executor(None, load, 3)\n    return first, await work\n"
)


def test_work_that_is_awaited_later(project):
    """What was begun in an executor is begun as a task."""
    text = f"import asyncio\n{LOAD}{EXECUTOR}\n\nprint(asyncio.run(use()))\n"
    project.write({"app.py": text})
    before = output(project)
    done = recolor(project, text)
    assert done.code == 0, done.out + done.err
    changed = (project.root / "app.py").read_text()
    assert "    work = loop.create_task(load(1, 2))\n    first = await load(3)\n" in changed
    assert sorted(output(project).splitlines()) == sorted(before.splitlines())


def test_what_a_function_keeps_is_awaited_with_it(project):
    """In plain code nobody could tell whether the coroutine is for others."""
    text = "async def meta():\n    return 2\n\n\ndef load():\n    x = meta()\n    return 1\n"
    done = recolor(project, text)
    assert done.code == 0, done.out + done.err
    assert "async def load():\n    x = await meta()\n" in (project.root / "app.py").read_text()


def test_a_lambda_calls_on_a_parameter_around_it(project):
    """Whose method it is, is told by what callers give; whether the lambda may wait has to be decided."""
    project.write(
        {
            "app.py": "class Link:\n    def open(self):\n        return 1\n\n\ndef use(link):\n    call = lambda: link.open()\n"
            "    return call()\n\n\ndef main():\n    return use(Link())\n"
        }
    )
    done = project.troth("recolor", "app:Link.open", "--to", "async", "--cascade", "all", "--plan")
    assert done.code == 1
    assert "app.py:7" in done.out
