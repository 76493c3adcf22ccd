"""The project around named paths: its root, its files, its source roots, its environment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from troth.analysis.project.discover import discover, project_root
from troth.analysis.project.environment import find_environment, named_environment
from troth.analysis.project.listing import list_files
from troth.errors import MisuseError


def tree(root: Path, *paths: str, **contents: str) -> Path:
    for path in paths:
        file = root / path
        if path.endswith("/"):
            file.mkdir(parents=True, exist_ok=True)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(contents.get(path, ""))
    return root


def git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


@pytest.mark.parametrize(
    ("there", "cwd", "named", "root"),
    [
        pytest.param(["p/pyproject.toml", "p/a.py"], "p", [], "p", id="the working folder is the project"),
        pytest.param(["p/pyproject.toml", "p/s/a.py"], "p/s", [], "p", id="upwards from the working folder"),
        pytest.param(["p/setup.py", "p/s/a.py"], "", ["p/s/a.py"], "p", id="setup.py"),
        pytest.param(["p/c/setup.py", "p/c/__init__.py", "p/c/a.py"], "", ["p/c/a.py"], "", id="a module called setup"),
        pytest.param(["p/setup.cfg", "p/s/a.py"], "", ["p/s"], "p", id="setup.cfg"),
        pytest.param(["p/.git/", "p/s/a.py"], "", ["p/s"], "p", id="a repository"),
        pytest.param(["p/s/a.py"], "p", ["p/s/a.py"], "p", id="none: the working folder"),
        pytest.param(
            ["m/.git/", "m/pk/a/pyproject.toml", "m/pk/b/pyproject.toml"],
            "m",
            ["m/pk/a"],
            "m",
            id="a monorepo is whole",
        ),
        pytest.param(
            ["m/pyproject.toml", "m/pk/a/pyproject.toml"], "m", ["m/pk/a"], "m", id="a monorepo without a repository"
        ),
        pytest.param(
            ["m/pyproject.toml", "m/pk/a/pyproject.toml"], "m/pk/a", [], "m/pk/a", id="seen from one of its packages"
        ),
        pytest.param(["x/pyproject.toml", "x/a.py"], "y", ["x/a.py"], "x", id="named from elsewhere"),
    ],
)
def test_root_of_the_project(there, cwd, named, root, tmp_path):
    """The repository, else the nearest packaging file, else the working folder."""
    tree(tmp_path, *there)
    (tmp_path / cwd).mkdir(parents=True, exist_ok=True)
    found = project_root([tmp_path / name for name in named], tmp_path / cwd)
    assert found.path == tmp_path / root
    assert found.is_whole


def test_a_repository_that_ignores_the_place_is_not_its_project(tmp_path):
    """A tree that was unpacked into an ignored folder is a project of its own."""
    tree(tmp_path, ".git/", "trees/one/a.py", "trees/two/pyproject.toml")
    (tmp_path / ".gitignore").write_text("trees/\n")
    assert project_root([], tmp_path / "trees/one").path == tmp_path / "trees/one"
    assert project_root([tmp_path / "trees/two"], tmp_path).path == tmp_path / "trees/two"


@pytest.mark.parametrize("ignore", ["", ".venv/\n"])
def test_an_installed_package_is_not_part_of_the_project(ignore, tmp_path):
    """Named, it is checked by itself, as what it is imported as."""
    tree(tmp_path, ".git/", "pyproject.toml", "app.py", ".venv/lib/site-packages/pkg/__init__.py")
    (tmp_path / ".gitignore").write_text(ignore)
    scope = discover([".venv/lib/site-packages/pkg"], tmp_path)
    assert scope.project.files == (".venv/lib/site-packages/pkg/__init__.py",)
    assert ".venv/lib/site-packages" in scope.project.source_roots


def test_two_loose_files_do_not_make_the_disk_a_project(tmp_path):
    """Where there is no project, what is named is all there is."""
    tree(tmp_path, "x/a.py", "y/b.py", "z/huge.py", "here/")
    scope = discover([str(tmp_path / "x/a.py"), str(tmp_path / "y")], tmp_path / "here")
    assert scope.project.files == ("x/a.py", "y/b.py")


@pytest.mark.parametrize(
    ("there", "ignore", "files"),
    [
        pytest.param(["a.py", "b.pyi", "c.ipynb", "d.txt"], "", ["a.py", "b.pyi", "c.ipynb"], id="what is source"),
        pytest.param([".venv/x.py", "node_modules/y.py", "__pycache__/z.py", "a.py"], "", ["a.py"], id="nobody's"),
        pytest.param(["my-env/pyvenv.cfg", "my-env/lib/x.py", "a.py"], "", ["a.py"], id="an environment by any name"),
        pytest.param(["build/lib/a.py", "dist/a.py", "a.py"], "", ["a.py"], id="build output"),
        pytest.param(
            ["p/build/__init__.py", "p/build/a.py"], "", ["p/build/__init__.py", "p/build/a.py"], id="a package"
        ),
        pytest.param(["gen/a.py", "a.py"], "gen/\n", ["a.py"], id="gitignore"),
        pytest.param(["s/a.py", "s/b.py"], "s/*\n!s/b.py\n", ["s/b.py"], id="gitignore with a negation"),
    ],
)
def test_files_of_the_project(there, ignore, files, tmp_path):
    """What somebody wrote is listed; what tools wrote or `.gitignore` hides is not."""
    tree(tmp_path, *there)
    (tmp_path / ".gitignore").write_text(ignore)
    assert list(list_files(tmp_path).files) == sorted(files)


def test_nested_gitignore_decides_for_its_folder(tmp_path):
    """The nearest file with an opinion decides."""
    tree(tmp_path, "a/x.py", "a/keep.py", "b/x.py")
    (tmp_path / ".gitignore").write_text("x.py\n")
    (tmp_path / "a/.gitignore").write_text("!x.py\nkeep.py\n")
    assert list_files(tmp_path).files == ("a/x.py",)


def test_a_tracked_file_is_not_ignored(tmp_path):
    """Git does not ignore what it tracks, whatever a template in `.gitignore` says."""
    tree(tmp_path, "lib/core.py", "lib/scratch.py", "a.py")
    (tmp_path / ".gitignore").write_text("lib/\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-f", "lib/core.py", "a.py")
    assert list_files(tmp_path).files == ("a.py", "lib/core.py")


def test_links(tmp_path):
    """A loop of links ends, nothing is read twice, and a named link means the file behind it."""
    tree(tmp_path, "p/pyproject.toml", "p/a.py", "outside.py")
    (tmp_path / "p/loop").symlink_to(tmp_path / "p")
    (tmp_path / "p/again.py").symlink_to(tmp_path / "p/a.py")
    (tmp_path / "p/guest.py").symlink_to(tmp_path / "outside.py")
    assert list_files(tmp_path / "p").files == ("a.py", "guest.py")
    assert discover(["again.py"], tmp_path / "p").reported == {"a.py"}


def test_paths_say_what_is_reported_and_the_program_stays_whole(tmp_path):
    """Three files of a project are understood with all of it."""
    tree(tmp_path, "pyproject.toml", "a.py", "s/b.py", "s/c.py")
    scope = discover(["s"], tmp_path)
    assert scope.reported == {"s/b.py", "s/c.py"}
    assert scope.project.files == ("a.py", "s/b.py", "s/c.py")


def test_a_named_file_is_checked_although_ignored(tmp_path):
    """Unless `--force-exclude` says otherwise, naming a file or folder is asking for it."""
    tree(tmp_path, ".git/", "gen/a.py", "gen/sub/b.py", "m.py")
    (tmp_path / ".gitignore").write_text("gen/\n")
    assert discover(["gen/a.py", "m.py"], tmp_path).reported == {"gen/a.py", "m.py"}
    assert discover(["gen/a.py", "m.py"], tmp_path, force_exclude=True).reported == {"m.py"}


@pytest.mark.parametrize("name", ["missing.py", "nowhere/", "notes.md", "tool"])
def test_what_cannot_be_checked_is_refused(name, tmp_path):
    """A misspelt path and a file that is no Python never pass for clean."""
    tree(tmp_path, "notes.md", "tool")
    with pytest.raises(MisuseError, match=name.strip("/")):
        discover([name], tmp_path)


def test_a_script_without_suffix_is_read_if_it_names_python(tmp_path):
    """Hooks hand over such scripts as Python files."""
    (tmp_path / "tool").write_text("#!/usr/bin/env python3\n")
    assert discover(["tool"], tmp_path).reported == {"tool"}


def test_a_pipe_is_refused(tmp_path):
    """What cannot be read twice is not a file to check."""
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(MisuseError, match="neither a file nor a folder"):
        discover(["pipe.py"], tmp_path)


@pytest.mark.parametrize(
    ("there", "roots"),
    [
        pytest.param(["app/__init__.py", "app/a.py"], {""}, id="a package at the root"),
        pytest.param(["pyproject.toml", "src/app/__init__.py"], {"", "src"}, id="src layout"),
        pytest.param(["pyproject.toml", "src/acme/billing/__init__.py"], {"", "src"}, id="a namespace below src"),
        pytest.param(
            ["pk/a/pyproject.toml", "pk/a/src/a/__init__.py", "pk/b/setup.py", "pk/b/b/__init__.py"],
            {"", "pk/a", "pk/a/src", "pk/b"},
            id="a monorepo",
        ),
        pytest.param(["tools/run.py", "tools/help.py"], {"", "tools"}, id="scripts beside each other"),
        pytest.param(["app/__init__.py", "app/data/x.py"], {""}, id="a folder inside a package is no root"),
        pytest.param(["backend/app/__init__.py", "backend/app/m/__init__.py"], {"", "backend"}, id="a nested backend"),
    ],
)
def test_source_roots(there, roots, tmp_path):
    """Imports start from projects, their `src`, the folders above packages, and scripts."""
    tree(tmp_path, *there)
    found = discover([], tmp_path).project.source_roots
    assert set(found) == roots
    assert [one.count("/") + bool(one) for one in found] == sorted(
        (one.count("/") + bool(one) for one in found), reverse=True
    )


@pytest.mark.parametrize(
    "toml",
    [
        pytest.param('[tool.setuptools.packages.find]\nwhere = ["python"]\n', id="setuptools find"),
        pytest.param('[tool.setuptools.package-dir]\n"" = "python"\n', id="setuptools package-dir"),
        pytest.param('[tool.poetry]\npackages = [{ include = "acme", from = "python" }]\n', id="poetry"),
        pytest.param('[tool.pytest.ini_options]\npythonpath = "python"\n', id="pytest"),
        pytest.param('[tool.hatch.build.targets.wheel]\npackages = ["python/acme"]\n', id="hatch"),
    ],
)
def test_layout_that_the_project_states(toml, tmp_path):
    """Where packaging says that imports start elsewhere, they do."""
    tree(tmp_path, "python/acme/sub/__init__.py")
    (tmp_path / "pyproject.toml").write_text(toml)
    assert "python" in discover([], tmp_path).project.source_roots


def environment(folder: Path) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").touch()
    (folder / "bin/python").symlink_to(sys.executable)
    return folder / "bin/python"


def test_environment_of_a_project(tmp_path):
    """Its own `.venv` before one that is switched on, that before conda's, and conda's base is nobody's."""
    own, active = environment(tmp_path / "p/.venv"), environment(tmp_path / "active")
    conda = environment(tmp_path / "conda")
    on = {"VIRTUAL_ENV": str(tmp_path / "active"), "CONDA_PREFIX": str(tmp_path / "conda")}
    assert find_environment([tmp_path / "p"], on) == own
    assert find_environment([tmp_path], on) == active
    assert find_environment([tmp_path], {"CONDA_PREFIX": str(tmp_path / "conda")}) == conda
    assert find_environment([tmp_path], {"CONDA_PREFIX": str(tmp_path / "conda"), "CONDA_DEFAULT_ENV": "base"}) is None


def test_environment_that_is_named(tmp_path):
    """A folder, an interpreter or a command; what is not there is refused."""
    own = environment(tmp_path / ".venv")
    assert named_environment(".venv", tmp_path, "`--python`") == own
    assert named_environment(".venv/bin/python", tmp_path, "`--python`") == own
    assert named_environment("python3", tmp_path, "`--python`").name == "python3"
    for wrong in ("nowhere", "pythn3.99", "."):
        with pytest.raises(MisuseError, match="--python"):
            named_environment(wrong, tmp_path, "`--python`")
