"""What a project says of the versions it can live with decides whose words are taken."""

from pathlib import Path

import pytest

from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project
from troth.analysis.project.version_pins import newest_allowed, oldest_allowed

LOCK = (
    'version = 1\n\n[[package]]\nname = "aio_x"\nversion = "2.9"\n\n[[package]]\nname = "aio-x"\nversion = "3.1.4"\n\n'
    '[[package]]\nname = "b"\nversion = "1.0a1"\nsource = { registry = "x" }\ndependencies = [{ name = "aio-x" }]\n'
)
PIPENV = (
    '{"_meta": {"hash": {"sha256": "0"}}, "default": {"a": {"hashes": [], "version": "==2.1"}},'
    ' "develop": {"b": {"version": "==0.4"}, "c": {"git": "x"}}}'
)
SETUP = 'setup(\n    extras_require={"telegram": ["python-telegram-bot==13.15"]},\n)\n'


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        pytest.param("setup.py", SETUP, {"python-telegram-bot": 13}, id="in a list of Python"),
        pytest.param("requirements.txt", "discord.py<2\nredis>=4,<6.2\n", {"discord-py": 1, "redis": 6}, id="a list"),
        pytest.param("requirements.txt", "a >= 3\nb != 4\n", {}, id="nothing forbids what is newer"),
        pytest.param("requirements/dev.txt", "a~=2.1  # b==1\n", {"a": 2, "b": 1}, id="in a folder"),
        pytest.param("pyproject.toml", 'dependencies = ["a[x] < 20.0"]\n', {"a": 19}, id="in TOML, with an extra"),
        pytest.param(
            "pyproject.toml", 'a = "^3.1"\nb = {version = "~4", extras = []}\n', {"a": 3, "b": 4}, id="poetry"
        ),
        pytest.param(
            "pyproject.toml",
            'a = ">=1.2,<1.4"\nb = { version = ">=2,<4", extras = [] }\n',
            {"a": 1, "b": 3},
            id="bounds",
        ),
        pytest.param("requirements.txt", "a==1\n", {"a": 1}, id="exactly"),
        pytest.param(
            "requirements.txt", "py-cord[voice]\na  # b\n", {"py-cord": 999, "a": 999}, id="whatever there is"
        ),
        pytest.param("notes.txt", "a==1\n", {}, id="in another file"),
        pytest.param(
            "pyproject.toml", '"ruamel.yaml" = "^0.17"\n"b" = ">=2,<4"\n', {"ruamel-yaml": 0, "b": 3}, id="quoted"
        ),
        pytest.param("uv.lock", LOCK, {"aio-x": 3, "b": 1}, id="a lock of uv"),
        pytest.param("poetry.lock", LOCK, {"aio-x": 3, "b": 1}, id="a lock of poetry"),
        pytest.param("pdm.lock", LOCK, {"aio-x": 3, "b": 1}, id="a lock of pdm"),
        pytest.param("Pipfile.lock", PIPENV, {"a": 2, "b": 0}, id="a lock of pipenv"),
        pytest.param("Pipfile.lock", "{", {}, id="a lock that is cut off"),
        pytest.param("Pipfile.lock", '{"default": {"a": 1}, "b": []}', {}, id="a lock that is none"),
    ],
)
def test_the_newest_version_that_is_allowed(name: str, text: str, allowed: dict[str, int], tmp_path: Path) -> None:
    """By its major number, from wherever requirements are written."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    assert newest_allowed(tmp_path) == allowed


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        pytest.param("requirements.txt", "a>=2.1\nb\nc<3\nd==1.2\ne~=4.0\n", {"a": 2, "d": 1, "e": 4}, id="a list"),
        pytest.param("pyproject.toml", 'a = "^3.1"\n"b" = ">=2,<4"\n', {"a": 3, "b": 2}, id="of poetry"),
        pytest.param(
            "pyproject.toml", 'dependencies = ["a>=2.14.4", "A >= 1"]\n', {"a": 1}, id="the lowest of several"
        ),
        pytest.param("uv.lock", LOCK, {"aio-x": 3, "b": 1}, id="a lock"),
    ],
)
def test_the_oldest_version_that_is_allowed(name: str, text: str, allowed: dict[str, int], tmp_path: Path) -> None:
    """Only where a bound says so; a name alone is taken for the newest."""
    (tmp_path / name).write_text(text)
    assert oldest_allowed(tmp_path) == allowed


def test_a_lock_outweighs_what_lists_allow(tmp_path: Path) -> None:
    """What is locked is what is installed."""
    (tmp_path / "requirements.txt").write_text("b<9\nc<3\n")
    (tmp_path / "uv.lock").write_text(LOCK)
    assert newest_allowed(tmp_path) == {"aio-x": 3, "b": 1, "c": 2}


def test_a_folder_of_several_projects(tmp_path: Path) -> None:
    """Where nothing is asked for at the top, what the projects below ask for counts."""
    for name, text in (("one", "b<9\n"), ("two", "b<3\nc<3\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "requirements.txt").write_text(text)
    assert newest_allowed(tmp_path) == {"b": 8, "c": 2}
    (tmp_path / "requirements.txt").write_text("c<2\n")
    assert newest_allowed(tmp_path) == {"c": 1}


SEND = "import telegram\ndef main():\n    bot = telegram.Bot(token='x')\n    bot.sendMessage(1, 'hello')\n"
OTHER = "async def other(bot: telegram.Bot):\n    await bot.getMe()\n"
AWAITS = "async def other(bot: telegram.Bot):\n    await bot.sendMessage(1, 'hello')\n"


FILES = "from anyio import Path\nasync def main(path: Path):\n    if path.exists():\n        await path.unlink()\n"
ENGINE = (
    "import sqlalchemy\ndef make(url):\n    return sqlalchemy.create_engine(url, strategy='later')\n"
    "async def main():\n    return await make('x')\n"
)


@pytest.mark.parametrize(
    ("requirements", "source", "found"),
    [
        pytest.param("", SEND, ["TR101"], id="any version"),
        pytest.param("python-telegram-bot>=20\n", SEND, ["TR101"], id="one that is async"),
        pytest.param("anyio>=3,<4\n", FILES, ["TR104"], id="an older one of what never was plain"),
        pytest.param("python-telegram-bot==13.15\n", SEND, [], id="one that was plain"),
        pytest.param("", ENGINE, ["TR401"], id="an object of any version"),
        pytest.param("SQLAlchemy<1.4\n", ENGINE, [], id="an object of an older version"),
        pytest.param("python-telegram-bot==13.15\n", SEND + OTHER, [], id="of which something else is awaited"),
        pytest.param(
            "python-telegram-bot==13.15\n", SEND + AWAITS, ["TR101"], id="whoever awaits it means another one"
        ),
    ],
)
def test_a_library_of_another_version(requirements: str, source: str, found: list[str], tmp_path: Path) -> None:
    """Of a version that is older than the table nothing is known, unless the project itself awaits it."""
    (tmp_path / "requirements.txt").write_text(requirements)
    (tmp_path / "bot.py").write_text(source)
    assert [f.code for f in analyse(Project(tmp_path, ("bot.py",))).findings] == found


USES = "import aioredis\nasync def main(redis: aioredis.Redis):\n    redis.close()\n    with redis as one:\n        one.get('a')\n"
POOL = "async def pool():\n    return await aioredis.create_redis_pool('redis://x')\n"


@pytest.mark.parametrize(
    ("asked", "more", "found"),
    [
        pytest.param("aioredis>=2\n", "", ["TR101", "TR117"], id="the library that the tables know"),
        pytest.param("aioredis>=1.3,<2.0\n", "", [], id="the one before"),
        pytest.param("aioredis\n", POOL, [], id="the one before, by what is called"),
    ],
)
def test_a_library_that_was_another_one(asked: str, more: str, found: list[str], tmp_path: Path) -> None:
    """A connection of aioredis 1 was closed by a sync method, and a pool was entered by a plain `with`."""
    (tmp_path / "requirements.txt").write_text(asked)
    (tmp_path / "bot.py").write_text(USES + more)
    assert [f.code for f in analyse(Project(tmp_path, ("bot.py",))).findings] == found


TOOLS = "from langchain_mcp_adapters.client import MultiServerMCPClient\n"
ENTERED = f"{TOOLS}async def main(where):\n    async with MultiServerMCPClient(where) as client:\n        print(client.get_tools())\n"
MADE = f"{TOOLS}async def main(where):\n    client = MultiServerMCPClient(where)\n    print(client.get_tools())\n"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param(MADE, ["TR107"], id="a client as it is made today"),
        pytest.param(ENTERED, [], id="a client that is entered, as before version 0.1"),
    ],
)
def test_a_library_that_was_entered(source: str, found: list[str], tmp_path: Path) -> None:
    """A client had its tools once it was entered; now entering it raises, and the tools are awaited."""
    (tmp_path / "bot.py").write_text(source)
    assert [f.code for f in analyse(Project(tmp_path, ("bot.py",))).findings] == found


ADD = "from discord.ext import commands\nasync def main(bot: commands.Bot, cog):\n    bot.add_cog(cog)\n    bot.get_cog('x').bot.add_cog(cog)\n"


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        pytest.param("discord.py\n", [3, 4], id="the edition that the tables know"),
        pytest.param("discord.py==1.7.3\n", [], id="an older one"),
        pytest.param("py-cord==2.7.0\n", [], id="another one of the same name"),
        pytest.param("py-cord\n", [], id="another one, in any version"),
    ],
)
def test_an_edition_of_the_same_name(asked: str, lines: list[int], tmp_path: Path) -> None:
    """What became async in one edition of a library only is believed of that one."""
    (tmp_path / "requirements.txt").write_text(asked)
    (tmp_path / "app.py").write_text(ADD)
    found = analyse(Project(tmp_path, ("app.py",))).findings
    assert [f.span.line for f in found] == lines


@pytest.mark.parametrize(
    ("asked", "confidence"),
    [
        pytest.param("discord.py\n", "certain", id="whatever there is"),
        pytest.param("discord.py>=2.3\n", "certain", id="only the edition that the tables know"),
        pytest.param("discord.py>=1.7\n", "likely", id="an older one, or a newer one"),
    ],
)
def test_either_of_two_editions(asked: str, confidence: str, tmp_path: Path) -> None:
    """Where a project may have either, what is plain in one of them is no certain coroutine."""
    (tmp_path / "requirements.txt").write_text(asked)
    (tmp_path / "app.py").write_text(ADD)
    found = analyse(Project(tmp_path, ("app.py",))).findings
    assert found[0].confidence == confidence
