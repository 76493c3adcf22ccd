"""Ten traps of a real change of color, seen in a monorepo where a codemod that goes by names falls into each."""

import json

import pytest

CORE = '''\
class Hyper:
    """Sessions.

    Usage:
        hyper = Hyper()
        session = await hyper.create_session("me")
    """

    def __init__(self):
        self.sessions = {}

    async def create_session(self, owner):
        if not owner:
            raise ValueError("no owner")
        self.sessions[owner] = []
        return owner

    async def join_session(self, session, who):
        self.sessions[session].append(who)
'''
SERVER = """\
from fastapi import APIRouter

from hyper import Hyper

router = APIRouter()
_hyper = Hyper()


def _hv() -> Hyper:
    return _hyper


@router.post("/sessions")
async def create_session(owner: str):
    return await _hv().create_session(owner)


@router.post("/join")
async def join_session(session: str, who: str):
    await _hyper.join_session(session, who)
"""
SANDBOX = """\
import asyncio


class Provider:
    def create_session(self, owner):
        return owner

    async def create_session_async(self, owner):
        return await asyncio.to_thread(self.create_session, owner)


class Mesh:
    async def create_session(self, owner):
        await asyncio.sleep(0)


async def use(mesh: Mesh):
    await mesh.create_session("me")
"""
AGENT = """\
try:
    from hyper import Hyper as Runtime
except ImportError:
    Runtime = None


async def main():
    runtime = Runtime()
    await runtime.create_session(
        "me",  # who
    )
"""
TESTS = """\
import pytest

from hyper import Hyper


@pytest.fixture
def hyper():
    return Hyper()


@pytest.fixture
async def session(hyper):
    return await hyper.create_session("me")


async def _active(hyper: Hyper):
    session = await hyper.create_session("me")
    await hyper.join_session(session, "you")
    return session


class TestHyper:
    def setup_method(self):
        self.hv = Hyper()

    @pytest.mark.asyncio
    async def test_create(self):
        assert await self.hv.create_session("me") == "me"

    @pytest.mark.asyncio
    async def test_refused(self, hyper):
        with pytest.raises(ValueError):
            await hyper.create_session("")


@pytest.mark.asyncio
async def test_active(hyper):
    assert (await _active(hyper)).upper() == "ME"
"""
PAGE = "# Use\n\n```python\nfrom hyper import Hyper\n\nhv = Hyper()\nawait hv.create_session('me')\n```\n"
MESH = "```python\nfrom sandbox import Mesh\n\nmesh = Mesh()\nawait mesh.create_session('me')\n```\n"
NOTEBOOK = {
    "cells": [
        {
            "cell_type": "code",
            "source": [
                "import asyncio\n",
                "from hyper import Hyper\n",
                "def run(coro):\n",
                "    return asyncio.get_event_loop().run_until_complete(coro)\n",
                "hv = Hyper()\n",
                "run(hv.create_session('me'))",
            ],
        }
    ],
    "metadata": {"language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}
FILES = {
    "python/hyper/pyproject.toml": "[project]\nname = 'hyper'\n",
    "python/hyper/src/hyper/__init__.py": "from hyper.core import Hyper\n\n__all__ = ['Hyper']\n",
    "python/hyper/src/hyper/core.py": CORE,
    "python/hyper/src/hyper/server.py": SERVER,
    "python/hyper/tests/test_hyper.py": TESTS,
    "python/hyper/notebooks/tour.ipynb": json.dumps(NOTEBOOK, indent=1),
    "python/sandbox/pyproject.toml": "[project]\nname = 'sandbox'\n",
    "python/sandbox/src/sandbox/__init__.py": SANDBOX,
    "python/compliance/examples/agent.py": AGENT,
    "docs/use.md": PAGE,
    "docs/mesh.md": MESH,
}
_CODE, _TESTS = "python/hyper/src/hyper", "python/hyper/tests/test_hyper.py"

TRAPS = [
    pytest.param(f"{_CODE}/core.py", CORE.replace("async def", "def").replace("await ", ""), id="definitions and docstring"),
    pytest.param(f"{_CODE}/server.py", SERVER.replace("await ", ""), id="1 routes of the same name stay async"),
    pytest.param("python/sandbox/src/sandbox/__init__.py", SANDBOX, id="2 methods of other classes"),
    pytest.param("docs/mesh.md", MESH, id="2 a page about another class"),
    pytest.param("python/compliance/examples/agent.py", AGENT.replace("await ", ""), id="3 aliased import, 5 several lines"),
    pytest.param(_TESTS, TESTS.replace("await hyper.", "hyper.").replace("await self", "self"), id="4 fixtures and attributes, 8 a helper"),
    pytest.param("python/hyper/notebooks/tour.ipynb", json.dumps(NOTEBOOK, indent=1).replace("run(hv.create_session('me'))", "hv.create_session('me')"), id="6 wrapped in a notebook"),
    pytest.param("docs/use.md", PAGE.replace("await ", ""), id="10 a page"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "after"), TRAPS)
def test_a_trap(project, path, after):
    """From the top of the monorepo, by the name the package has in Python."""
    done = project.write(FILES).troth("recolor", "hyper.core:Hyper", "--to", "sync")
    assert done.code == 0, done.out + done.err
    assert (project.root / path).read_text() == after


def test_callers_that_wait_no_more(project):
    """Trap 7 and 8: with a cascade the tests follow, with their marks and fixtures; routes do not."""
    done = project.write(FILES).troth("recolor", "hyper.core:Hyper", "--to", "sync", "--cascade", "all")
    assert done.code == 0, done.out + done.err
    tests = (project.root / _TESTS).read_text()
    assert not {"async", "await"} & set(tests.split())
    assert "pytest.mark.asyncio" not in tests
    assert "assert _active(hyper).upper()" in tests
    assert (project.root / f"{_CODE}/server.py").read_text().count("async def") == 2


@pytest.mark.parametrize(
    ("kept", "says"),
    [
        pytest.param([_TESTS], "TR401", id="calls left behind"),
        pytest.param([f"{_CODE}/core.py"], "TR101", id="definitions left behind"),
    ],
)
def test_half_a_change_that_tests_do_not_notice(project, kept, says):
    """Trap 9: an error raised before the await, or a blanket `raises`, keeps a test green; `check` still sees it."""
    before = {path: (project.write(FILES).root / path).read_text() for path in kept}
    assert project.troth("recolor", "hyper.core:Hyper", "--to", "sync").code == 0
    project.write(before)
    done = project.troth("check")
    assert done.code == 1
    assert says in done.out


@pytest.mark.parametrize("target", ["hyper.core:Hyper", "hyper:Hyper", f"{_CODE}/core.py:Hyper"])
def test_how_a_target_is_said_from_the_top(project, target):
    """By the module that defines it, by one that re-exports it, or by its path."""
    done = project.write(FILES).troth("recolor", target, "--plan", "--to", "sync")
    assert done.code == 0, done.out + done.err
    assert "2 definitions" in done.out


@pytest.mark.parametrize("to", ["sync", "async"])
def test_a_file_that_cannot_be_read(project, to):
    """What calls the function there is not seen: the file is named, unless it does not say the name or is decided."""
    old, call = ("async ", "await ") if to == "sync" else ("", "")
    app = f"{old}def load():\n    return 1\n"
    project.write({"app.py": app, "user.py": f"from app import load\nthis is no Python\nx = {call}load()\n"})
    done = project.troth("recolor", "app:load", "--to", to)
    assert done.code == 1, done.out
    assert "user.py:3" in done.out
    assert (project.root / "app.py").read_text() == app
    (project.root / "decided.txt").write_text("user.py:<module>: leave\n")
    assert project.troth("recolor", "app:load", "--to", to, "--plan", "--decide", "decided.txt").code == 0
    project.write({"user.py": "this is no Python\n"})
    assert project.troth("recolor", "app:load", "--to", to, "--allow-dirty").code == 0
