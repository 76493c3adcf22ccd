"""What the settings of pytest say decides whether an async test needs a mark."""

from pathlib import Path

import pytest

from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project
from troth.analysis.project.pytest_mode import self_running


@pytest.mark.parametrize(
    ("name", "text", "folders"),
    [
        pytest.param("pyproject.toml", '[tool.pytest.ini_options]\nasyncio_mode = "auto"\n', ("",), id="in TOML"),
        pytest.param("pytest.ini", "[pytest]\nasyncio_mode = auto\n", ("",), id="in an ini file"),
        pytest.param("setup.cfg", "[tool:pytest]\naddopts = -q --asyncio-mode=auto\n", ("",), id="as an option"),
        pytest.param("tox.ini", "[pytest]\nanyio_mode=auto\n", ("",), id="of anyio"),
        pytest.param("pytest.ini", "[pytest]\ntrio_mode = true\n", ("",), id="of trio"),
        pytest.param("lib/pyproject.toml", 'asyncio_mode = "auto"\n', ("lib",), id="of a project inside"),
        pytest.param("pyproject.toml", 'asyncio_mode = "strict"\n', (), id="strict"),
        pytest.param("notes.txt", "asyncio_mode = auto\n", (), id="in another file"),
    ],
)
def test_where_every_async_test_is_run(name: str, text: str, folders: tuple[str, ...], tmp_path: Path) -> None:
    """Settings hold for the folder they stand in and for what is below."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    assert self_running(tmp_path, ("lib/src", "")) == folders


TESTS = "import pytest\nasync def load(): ...\n" + "".join(
    f"@pytest.mark.asyncio\nasync def test_{n}():\n    await load()\n" for n in range(12)
)


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        pytest.param("[pytest]\n", ["TR414"], id="nothing said"),
        pytest.param("[pytest]\nasyncio_mode = strict\n", ["TR414"], id="strict"),
        pytest.param("[pytest]\nasyncio_mode = auto\n", [], id="auto"),
    ],
)
def test_a_test_without_a_mark(settings: str, found: list[str], tmp_path: Path) -> None:
    """It is forgotten only where a mark is needed."""
    (tmp_path / "pytest.ini").write_text(settings)
    (tmp_path / "test_a.py").write_text(f"{TESTS}async def test_last():\n    await load()\n")
    assert [f.code for f in analyse(Project(tmp_path, ("test_a.py",))).findings] == found
