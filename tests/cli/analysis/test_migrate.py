"""`troth fix --select migrate`: leaving nest_asyncio and asgiref."""

import json
import subprocess
import sys

import pytest

ASYNC = "async def load(n=1):\n    return n\n\n\n"
NESTED = (
    "import asyncio\n\nimport nest_asyncio2\n\nnest_asyncio2.apply()\n\n\nasync def load(n):\n    await asyncio.sleep(0)\n"
    "    return n\n\n\ndef twice(n):\n    return 2 * asyncio.run(load(n))\n\n\nasync def main():\n"
    "    return twice(20) + asyncio.run(load(2))\n\n\nprint(asyncio.run(main()))\n"
)


def after(project, *options):
    done = project.troth("fix", "--select", "migrate", "--allow-dirty", *options)
    return done, (project.root / "app.py").read_text()


BOTH = (
    "import asyncio\nimport nest_asyncio2\nfrom asgiref.sync import async_to_sync\nimport os\n"
    "from asgiref.sync import sync_to_async\n\nnest_asyncio2.apply()\n\n\nasync def load(n):\n    await asyncio.sleep(0)\n"
    "    return n\n\n\ndef twice(n):\n    return 2 * asyncio.run(load(n))\n\n\nasync def main():\n"
    "    await sync_to_async(print, thread_sensitive=False)(os.name)\n"
    "    return twice(20) + async_to_sync(load)(2)\n"
)


def test_the_bridge_is_imported_once(project):
    """Whichever imports it takes the place of, and however many rules ask for it."""
    project.write({"app.py": BOTH, "pyproject.toml": ""})
    _, text = after(project)
    assert text.count("from troth import bridge") == 1
    assert "return 2 * bridge.run(load(n))" in text
    assert "await bridge.aio(print)(os.name)" in text
    assert "return twice(20) + bridge.sync(load)(2)" in text
    assert "asgiref" not in text


def test_a_program_does_the_same_without_nest_asyncio(project):
    """Loops inside of loops are awaited or crossed by the bridge, then the patch goes, with its import."""
    project.write({"app.py": NESTED, "pyproject.toml": ""})

    def run():
        done = subprocess.run(
            [sys.executable, "app.py"], cwd=project.root, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stdout

    assert run() == (0, "42\n")
    done, text = after(project)
    assert done.code == 0, done.out + done.err
    assert "nest_asyncio" not in text
    assert "return 2 * bridge.run(load(n))" in text
    assert "return twice(20) + await load(2)" in text
    assert "print(asyncio.run(main()))" in text
    assert run() == (0, "42\n")


@pytest.mark.parametrize(
    ("before", "expected", "options"),
    [
        pytest.param(
            f"from asgiref.sync import async_to_sync\n\n\n{ASYNC}print(async_to_sync(load)(n=2))\n",
            f"from troth import bridge\n\n\n{ASYNC}print(bridge.sync(load)(n=2))\n",
            [],
            id="the import goes with the last use",
        ),
        pytest.param(
            f"from asgiref.sync import ThreadSensitiveContext, async_to_sync as cross\n\n\n{ASYNC}print(cross(load)(), ThreadSensitiveContext)\n",
            f"from asgiref.sync import ThreadSensitiveContext\nfrom troth import bridge\n\n\n{ASYNC}print(bridge.sync(load)(), ThreadSensitiveContext)\n",
            [],
            id="other names stay",
        ),
        pytest.param(
            f"import asgiref.sync  # old\r\n\r\n{ASYNC}print(asgiref.sync.async_to_sync(load)())\r\n",
            f"from troth import bridge\r\n\r\n{ASYNC}print(bridge.sync(load)())\r\n",
            [],
            id="a module, and line ends of Windows",
        ),
        pytest.param(
            f"from troth import bridge\nfrom asgiref.sync import async_to_sync\n\n{ASYNC}print(async_to_sync(load)(), bridge)\n",
            f"from troth import bridge\n\n{ASYNC}print(bridge.sync(load)(), bridge)\n",
            [],
            id="the bridge is there",
        ),
        pytest.param(
            f"{ASYNC}def main():\n    from asgiref.sync import async_to_sync\n\n    return async_to_sync(load)()\n",
            f"{ASYNC}def main():\n    from troth import bridge\n\n    return bridge.sync(load)()\n",
            [],
            id="in a function",
        ),
        pytest.param(
            "from asgiref.sync import async_to_sync, sync_to_async\n\n\ndef work(): ...\n\n\n"
            f"{ASYNC}a, b = async_to_sync(load), sync_to_async(work)\n",
            f"from troth import bridge\n\n\ndef work(): ...\n\n\n{ASYNC}a, b = bridge.sync(load), bridge.aio(work)\n",
            ["--all"],
            id="both",
        ),
        pytest.param(
            "from asgiref.sync import sync_to_async\n\n\ndef work(): ...\n\n\n"
            "a, b = sync_to_async(work), sync_to_async(work, thread_sensitive=False)\n",
            "from asgiref.sync import sync_to_async\nfrom troth import bridge\n\n\ndef work(): ...\n\n\n"
            "a, b = sync_to_async(work), bridge.aio(work)\n",
            [],
            id="what is sure, and no more",
        ),
    ],
)
def test_asgiref(before, expected, options, project):
    project.write({"app.py": before.encode(), "pyproject.toml": ""})
    after(project, *options)
    assert (project.root / "app.py").read_bytes().decode() == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            f"from asgiref.sync import async_to_sync\n{ASYNC}a = async_to_sync(load, force_new_loop=True)\n",
            "chooses the loop itself: decide by hand",
            id="an option",
        ),
        pytest.param(
            "from asgiref.sync import sync_to_async\nfrom django.db import models\ndef work(): ...\na = sync_to_async(work)\n",
            "to which Django's database connections belong",
            id="Django",
        ),
        pytest.param(
            f"from asgiref.sync import async_to_sync\n{ASYNC}bridge = async_to_sync(load)\n",
            "`async_to_sync` can be `bridge.sync`",
            id="the name of the bridge is taken",
        ),
        pytest.param(
            f"{ASYNC}def a():\n    from asgiref.sync import async_to_sync\n    return async_to_sync(load)()\n"
            "def b():\n    from asgiref.sync import async_to_sync\n    return async_to_sync(load)()\n",
            "`async_to_sync` can be `bridge.sync`",
            id="two imports",
        ),
        pytest.param(
            f"import nest_asyncio\nif True:\n    nest_asyncio.apply()\n{ASYNC}",
            "nest_asyncio patches asyncio for the whole process",
            id="a patch that is all of its block",
        ),
    ],
)
def test_what_is_told_and_left_alone(text, told, project):
    """Also with `--all`: a finding says why."""
    project.write({"app.py": text, "pyproject.toml": ""})
    done, now = after(project, "--all")
    assert (done.code, now) == (1, text)
    assert told in done.out


def test_a_patch_stays_where_loops_may_be_nested(project):
    """A function that starts a loop may be called where one is running: taking the patch away is only likely right."""
    text = f"import asyncio\nimport nest_asyncio\nnest_asyncio.apply()\n{ASYNC}def main():\n    return asyncio.run(load())\n"
    project.write({"app.py": text, "pyproject.toml": ""})
    done, now = after(project)
    assert (done.code, now) == (1, text)
    assert "functions in app.py start loops, and need it where one is running" in done.out
    done, now = after(project, "--all")
    assert (done.code, "nest_asyncio" in now) == (0, False)


def test_the_family_is_off_by_default(project):
    """It is asked for by its name, also in settings."""
    text = f"from asgiref.sync import async_to_sync\n{ASYNC}a = async_to_sync(load)\n"
    project.write({"app.py": text, "pyproject.toml": ""})
    assert project.troth("check").code == 0
    assert project.troth("check", "--extend-select", "migrate").code == 1
    assert project.troth("check", "--select", "TR902").code == 1
    project.write({"pyproject.toml": '[tool.troth]\nselect = ["migrate"]\n'})
    assert project.troth("check").code == 1
    project.write(
        {"pyproject.toml": '[tool.troth]\nselect = ["migrate"]\n[tool.troth.per-file-ignores]\n"*" = ["migrate"]\n'}
    )
    assert project.troth("check").code == 0


def test_a_notebook(project):
    """What stands in a cell is awaited; the patch is told."""
    cells = ["import asyncio, nest_asyncio\nnest_asyncio.apply()", "async def load(): ...\nasyncio.run(load())"]
    sources = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in cells]
    project.write({"n.ipynb": json.dumps({"cells": sources, "metadata": {}, "nbformat": 4}), "pyproject.toml": ""})
    done = project.troth("fix", "--select", "migrate", "--all")
    now = [cell["source"] for cell in json.loads((project.root / "n.ipynb").read_text())["cells"]]
    assert (done.code, now) == (1, [cells[0], "async def load(): ...\nawait load()"])
    assert "n.ipynb#1:2:1  TR901" in done.out
