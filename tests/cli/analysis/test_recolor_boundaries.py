"""`troth recolor --to async` where async ends: at the start of a program, and wherever a caller has to stay plain."""

import subprocess
import sys
from textwrap import dedent

import pytest

LOAD = "def load(n):\n    return n + 1\n\n\n"


def test_the_start_of_a_program(project):
    """The one call under `if __name__ == "__main__":` gets its loop without being asked for."""
    text = f"{LOAD}def main():\n    print(load(1))\n\n\nif __name__ == '__main__':\n    main()\n"
    project.write({"app.py": text})
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    made = (project.root / "app.py").read_text()
    assert "    asyncio.run(main())\n" in made
    ran = subprocess.run([sys.executable, "app.py"], cwd=project.root, capture_output=True, text=True, check=True)
    assert ran.stdout == "2\n"


def test_two_loops_are_not_made_by_themselves(project):
    """Two calls at the start would each get a loop of its own; objects do not live in two, so somebody has to say."""
    text = f"{LOAD}if __name__ == '__main__':\n    print(load(1))\n    print(load(2))\n"
    project.write({"app.py": text})
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all")
    assert done.code == 1
    assert (project.root / "app.py").read_text() == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "class A:\n    def __init__(self):\n        self.n = load(1)\n",
            "class A:\n    def __init__(self):\n        self.n = bridge.run(load(1))\n",
            id="what Python calls",
        ),
        pytest.param(
            "class A:\n    @property\n    def n(self):\n        return load(1)\n",
            "class A:\n    @property\n    def n(self):\n        return bridge.run(load(1))\n",
            id="a property",
        ),
        pytest.param("N = load(1)\n", "N = bridge.run(load(1))\n", id="while the module is imported"),
        pytest.param("class A:\n    n = load(1)\n", "class A:\n    n = bridge.run(load(1))\n", id="a class body"),
        pytest.param(
            "def first(xs):\n    return sorted(xs, key=lambda x: load(x))\n",
            "def first(xs):\n    return sorted(xs, key=lambda x: bridge.run(load(x)))\n",
            id="a lambda that nobody awaits",
        ),
        pytest.param(
            "import atexit\n\n\ndef end():\n    load(1)\n\n\natexit.register(end)\n",
            "import atexit\n\n\ndef end():\n    bridge.run(load(1))\n\n\natexit.register(end)\n",
            id="a function that is given away",
        ),
        pytest.param(
            "def total(xs):\n    return sum(load(x) for x in xs)\n\n\nN = total([1])\n",
            "async def total(xs):\n    return sum([await load(x) for x in xs])\n\n\nN = bridge.run(total([1]))\n",
            id="a generator expression",
        ),
    ],
)
def test_wherever_a_caller_stays_plain(project, before, after):
    """`--boundary auto` runs the coroutine there, says where, and the program goes on as before."""
    project.write({"app.py": LOAD, "user.py": f"from app import load\n\n\n{before}"})
    refused = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all")
    assert refused.code == 1, refused.out
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all", "--boundary", "auto")
    assert done.code == 0, done.out + done.err
    made = (project.root / "user.py").read_text()
    assert made == f"from troth import bridge\nfrom app import load\n\n\n{after}"
    assert "run here by `bridge.run`" in done.out
    subprocess.run([sys.executable, "user.py"], cwd=project.root, check=True, capture_output=True)


def test_who_can_follow_does(project):
    """Only what has to stay plain runs it; the others await."""
    text = dedent("""\
        from app import load


        class Cart:
            def __init__(self):
                self.n = self.count()

            def count(self):
                return load(1)


        async def main():
            print(Cart().count())
    """)
    project.write({"app.py": LOAD, "user.py": text})
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all", "--boundary", "auto")
    assert done.code == 0, done.out + done.err
    made = (project.root / "user.py").read_text()
    assert "self.n = bridge.run(self.count())" in made
    assert "    async def count(self):\n        return await load(1)" in made
    assert "print(await Cart().count())" in made


def test_a_framework_that_takes_both_colors(project):
    """A sync route of FastAPI may become async; a command of click may not."""
    text = f"from fastapi import APIRouter\nrouter = APIRouter()\n\n\n{LOAD}@router.get('/')\ndef show():\n    return load(1)\n"
    project.write({"app.py": text})
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    assert "async def show():\n    return await load(1)" in (project.root / "app.py").read_text()
    project.write({"app.py": f"import click\n\n\n{LOAD}@click.command()\ndef show():\n    return load(1)\n"})
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all", "--allow-dirty")
    assert done.code == 1
    assert "click.command" in done.out


def test_what_blocks_is_told_and_no_obstacle(project):
    """A sleep in what becomes async holds up the loop from now on: told with the change, and repaired by `fix`."""
    text = "import time\n\n\ndef load(n):\n    time.sleep(n)\n\n\nasync def main():\n    load(1)\n"
    project.write({"app.py": text})
    done = project.troth("recolor", "app:load", "--to", "async")
    assert done.code == 0, done.out + done.err
    assert "1 blocking call in what is async now" in done.out
    assert "app.py:5" in done.out


def test_a_caller_that_brings_obstacles_stays_plain(project):
    """With `--boundary auto`, a caller that somebody unknown may call runs the coroutine itself."""
    user = "from app import load\n\n\nclass Job:\n    def start(self):\n        return load(1)\n\n\ndef go(job):\n    job.start()\n"
    project.write({"app.py": LOAD, "user.py": user})
    refused = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all")
    assert refused.code == 1
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all", "--boundary", "auto")
    assert done.code == 0, done.out + done.err
    made = (project.root / "user.py").read_text()
    assert "    def start(self):\n        return bridge.run(load(1))" in made
    assert "user.py:10 may call it" in done.out


def test_a_method_that_extends_one_of_an_unknown_base(project):
    """`super().get(…)` says that the base has it as well, and may call it; a decision overrules that."""
    text = "from lib import Group\n\n\nclass Mine(Group):\n    def get(self, name):\n        return super().get(name)\n"
    project.write({"app.py": text})
    done = project.troth("recolor", "app:Mine.get", "--to", "async")
    assert done.code == 1
    assert "a base class that is not known" in done.out


def test_what_starts_a_loop_stays_plain(project):
    """A caller that runs a loop itself is where async ends, and runs the new coroutine as it runs the others."""
    user = "import asyncio\nfrom app import load\n\n\nasync def work(): ...\n\n\ndef cli():\n    n = load(1)\n    asyncio.run(work())\n    return n\n"
    project.write({"app.py": LOAD, "user.py": user})
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    assert "run here by `asyncio.run`: it starts a loop itself, with `asyncio.run`" in done.out
    assert "def cli():\n    n = asyncio.run(load(1))\n    asyncio.run(work())" in (project.root / "user.py").read_text()


def test_a_loop_that_runs_for_ever_runs_nothing_else(project):
    """Such a caller stays plain, and is no target."""
    user = "import asyncio\nfrom app import load\n\n\ndef cli(loop):\n    n = load(1)\n    loop.run_forever()\n    return n\n"
    project.write({"app.py": LOAD, "user.py": user})
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all")
    assert done.code == 1
    assert "it starts a loop itself, with `loop.run_forever`" in done.out
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all", "--boundary", "auto")
    assert done.code == 0, done.out + done.err
    assert "def cli(loop):\n    n = bridge.run(load(1))" in (project.root / "user.py").read_text()
    done = project.troth("recolor", "user:cli", "--to", "async", "--allow-dirty")
    assert done.code == 1
    assert "starts a loop itself" in done.out


CALLED_BY_LIBRARIES = [
    pytest.param(
        "import logging\n", "class F(logging.Formatter):\n    def format(self, r):", "logging.Formatter", id="source"
    ),
    pytest.param("import cmd\n", "class F(cmd.Cmd):\n    def onecmd(self, line):", "cmd.Cmd", id="standard library"),
    pytest.param(
        "import tornado.web\n",
        "class H:\n    def get_current_user(self):",
        "tornado.web.RequestHandler` in `App`",
        id="a mixin",
    ),
]


@pytest.mark.parametrize(("imports", "head", "base"), CALLED_BY_LIBRARIES)
def test_what_a_base_class_calls_stays_plain(project, imports, head, base):
    """Whatever calls it would take the coroutine for its result: for a user who is logged in, say."""
    mixed = "class App(H, tornado.web.RequestHandler):\n    pass\n" if "class H" in head else ""
    text = f"{imports}def load():\n    return 1\n{head}\n        return load()\n{mixed}"
    project.write({"pyproject.toml": '[project]\nname = "x"\n', "app.py": text})
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all")
    assert done.code == 1, done.out + done.err
    assert f"it is required by its base class `{base}" in done.out
    assert (project.root / "app.py").read_text() == text


def test_a_hook_of_either_color_follows(project):
    """A framework awaits it; calls of `get` on anything else are not it."""
    text = (
        "import tornado.web\ndef load():\n    return 1\nclass App(tornado.web.RequestHandler):\n    def get(self):\n"
        "        self.write(str(load()))\ndef other(settings):\n    return settings.get()\n"
    )
    project.write({"pyproject.toml": '[project]\nname = "x"\n', "app.py": text})
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    changed = (project.root / "app.py").read_text()
    assert "    async def get(self):\n        self.write(str(await load()))\n" in changed
    assert "return settings.get()" in changed


def test_bases_of_traitlets_call_nothing(project):
    """They are not known here, but by their names they are no framework that calls what it finds."""
    text = (
        "from traitlets.config import LoggingConfigurable\ndef load():\n    return 1\n"
        "class Manager(LoggingConfigurable):\n    def launch(self):\n        return load()\n"
    )
    project.write({"pyproject.toml": '[project]\nname = "x"\n', "app.py": text})
    done = project.troth("recolor", "app:load", "--to", "async", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    assert "    async def launch(self):\n        return await load()\n" in (project.root / "app.py").read_text()
