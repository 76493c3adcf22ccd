"""A run after which nothing has changed is answered from what is kept, and by nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOST = "async def save(): ...\nasync def main():\n    save()\n"

LOADED = """
import sys
sys.argv = ["troth", "check", *sys.argv[1:]]
from troth.cli.app import run
code = run(sys.argv[1:])
sys.stdout.flush()
heavy = {"troth.analysis.pipeline", "troth.analysis.semantics", "troth.analysis.facts.from_ast.extract", "dataclasses", "inspect"}
heavy |= {"pickle", "ast", "tempfile", "subprocess", "asyncio"}
print("heavy:", sorted(heavy & set(sys.modules)), file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "pyproject.toml").touch()
    (root / "app.py").write_text(LOST)
    (root / "other.py").write_text("def f(): ...\n")
    return root


def check(root: Path, *options: str) -> tuple[int, str, str]:
    """The exit code, the report, and which of the large modules were loaded for it."""
    environment = {key: value for key, value in os.environ.items() if key not in {"VIRTUAL_ENV", "TROTH_NO_CACHE"}}
    command = [sys.executable, "-c", LOADED, *options]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr.rpartition("heavy: ")[2].strip()


def test_nothing_is_loaded_for_a_project_in_which_nothing_changed(project: Path) -> None:
    """Neither program nor rules, nor what is slow to import; the report is the same to the letter."""
    first = check(project)
    again = check(project)
    assert "troth.analysis.semantics" in first[2]
    assert again == (*first[:2], "[]")
    assert again[0] == 1
    assert "TR101" in again[1]


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        pytest.param("app.py", LOST.replace("    save", "    await save"), [], id="repaired"),
        pytest.param("app.py", LOST.replace("save()\n", "save()  # troth: allow TR101\n"), [], id="allowed"),
        pytest.param("other.py", LOST, ["TR101", "TR101"], id="a new one"),
        pytest.param("other.py", "def f(:\n", ["TR001", "TR101"], id="cannot be parsed"),
        pytest.param("third.py", LOST, ["TR101", "TR101"], id="a file more"),
        pytest.param("other.py", None, ["TR101"], id="a file less"),
        pytest.param("pyproject.toml", "[tool.troth]\nignore = ['TR101']\n", [], id="other settings"),
        pytest.param("other.py", "x = 1  # troth: allow TR101\n", ["TR002", "TR101"], id="an idle comment"),
    ],
)
def test_a_change_is_seen(project: Path, path: str, text: str | None, found: list[str]) -> None:
    """Whatever it is that changed, before and after it is answered from what is kept."""
    check(project)
    assert "TR101" in check(project)[1]
    if text is None:
        (project / path).unlink()
    else:
        (project / path).write_text(text)
    for _ in range(2):
        _, report, heavy = check(project, "--output-format", "github")
        assert sorted(line.partition("title=")[2][:5] for line in report.splitlines()) == found
    assert "troth.analysis.semantics" not in heavy


def test_a_file_that_cannot_be_parsed_is_told_again(project: Path) -> None:
    """What is kept of it is why it could not be read."""
    (project / "other.py").write_text("def f(:\n")
    first = check(project)
    assert check(project) == (*first[:2], "[]")
    assert "TR001" in first[1]


def test_a_folder_that_two_projects_name_serves_each_of_them(project: Path, tmp_path: Path) -> None:
    """What is known of a file of one is not believed of its namesake in the other, were it as long and as old."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "pyproject.toml").touch()
    (other / "app.py").write_text(LOST)
    texts = {project: LOST + "x = 1  # nothing here of rule\n", other: LOST + "x = 1  # troth: allow TR101\n"}
    texts = {root: text.ljust(max(map(len, texts.values())), "\n") for root, text in texts.items()}
    for root, text in texts.items():
        (root / "app.py").write_text(text)
        os.utime(root / "app.py", (1, 1))
    shared = ("--cache-dir", str(tmp_path / "cache"))
    for _ in range(2):
        assert "TR002" not in check(project, *shared)[1]
        assert "TR002" in check(other, *shared)[1]


def test_rules_on_request_are_kept_too(project: Path) -> None:
    """They are part of what was asked."""
    options = ("--select", "TR301,TR101")
    first = check(project, *options)
    assert check(project, *options)[:2] == first[:2]
    assert check(project)[0] == 1
    assert "TR301" not in check(project)[1]
