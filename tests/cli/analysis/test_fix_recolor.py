"""`troth fix --recolor`: what a sync function loses is awaited, with all who call it, or what is in the way is named."""

import subprocess
import sys

import pytest

HEAD = "async def save(x):\n    print('saved', x)\n\n\n"


def fix(project, text, *options):
    project.write({"pyproject.toml": '[project]\nname = "x"\n', "app.py": text})
    return project.troth("fix", *options)


def after(project):
    return (project.root / "app.py").read_text()


CHAIN = (
    HEAD + "def record(x):\n    save(x)\n\n\ndef step():\n    record(1)\n\n\nasync def main():\n    step()\n\n\n"
    'if __name__ == "__main__":\n    step()\n'
)


def test_callers_follow_and_the_call_is_awaited(project):
    """One command, and the program does what it was written for."""
    done = fix(project, CHAIN, "--recolor")
    assert done.code == 0, done.out + done.err
    assert "All clear" in done.out
    text = after(project)
    assert "async def record(x):\n    await save(x)\n" in text
    assert "async def main():\n    await step()\n" in text
    assert "    asyncio.run(step())\n" in text
    run = subprocess.run(
        [sys.executable, "app.py"], cwd=project.root, capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout == "saved 1\n"
    assert project.troth("fix", "--undo").code == 0
    assert after(project) == CHAIN


def test_a_diff_changes_nothing(project):
    """It shows the same change."""
    done = fix(project, CHAIN, "--recolor", "--diff")
    assert done.code == 1
    assert "+    await save(x)" in done.out
    assert after(project) == CHAIN


SLOTS = (
    HEAD
    + "class Box:\n    def __init__(self):\n        save(3)\n\n    @property\n    def size(self):\n        save(4)\n        return 1\n"
)


def test_what_python_calls_is_told_another_way(project):
    """Neither `__init__` nor a property can be async."""
    done = fix(project, SLOTS, "--recolor")
    assert done.code == 1
    assert after(project) == SLOTS
    assert "`Box.__init__` is a plain `def` and loses 1 call: Python itself calls it" in done.out
    assert "--run-with bridge.run" in done.out
    assert "What a change of color would repair" not in done.out


def test_what_python_calls_is_run_with_what_the_user_names(project):
    """`bridge.run` works inside a loop and outside of one."""
    done = fix(project, SLOTS, "--recolor", "--run-with", "bridge.run")
    assert done.code == 0, done.out + done.err
    assert "        bridge.run(save(3))\n" in after(project)
    assert after(project).startswith("from troth import bridge\n")
    run = subprocess.run(
        [sys.executable, "-c", "import app; app.Box().size"],
        cwd=project.root,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert run.stdout == "saved 3\nsaved 4\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(
            f"{HEAD}import lib\ndef record(x):\n    save(x)\nlib.on_event(record)\n",
            "given to `lib.on_event`",
            id="a callback",
        ),
        pytest.param(f"{HEAD}def record(x):\n    save(x)\nrecord(1)\n", "while the module is imported", id="at import"),
    ],
)
def test_a_change_that_would_not_go_through_is_not_proposed(project, text, says):
    """What stands in the way is named in its place."""
    done = fix(project, text, "--recolor")
    assert done.code == 1
    assert after(project) == text
    assert "What a change of color would repair" not in done.out
    assert "Decide these first:" in done.out
    assert says in done.out


def test_a_function_inside_another_one(project):
    """It has no name that `troth recolor` takes; `fix --recolor` needs none."""
    text = f"{HEAD}async def main():\n    def inner():\n        save(5)\n    inner()\n"
    done = fix(project, text)
    assert "`troth fix --recolor` makes `inner` async" in done.out
    done = fix(project, text, "--recolor")
    assert done.code == 0, done.out + done.err
    assert "    async def inner():\n        await save(5)\n    await inner()\n" in after(project)


def test_one_after_the_other(project):
    """The second change rests on what the first has left."""
    text = f"{HEAD}def a():\n    save(1)\ndef b():\n    save(2)\n    a()\nasync def main():\n    b()\n"
    done = fix(project, text, "--recolor")
    assert done.code == 0, done.out + done.err
    assert "async def b():\n    await save(2)\n    await a()\n" in after(project)


def test_options_that_do_not_go_together(project):
    """Each says which."""
    assert fix(project, CHAIN, "--run-with", "bridge.run").code == 2
