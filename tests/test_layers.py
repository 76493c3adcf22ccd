"""The layers of ARCHITECTURE: imports point down only, and a wrong one is caught."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LINT = Path(sys.executable).with_name("lint-imports")


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(folder / "src")}
    return subprocess.run(
        [LINT, "--no-cache"], cwd=folder, capture_output=True, text=True, env=env, timeout=120, check=False
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_the_layers_hold(copy):
    """The tree as it stands breaks no contract."""
    done = lint(copy)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "line"),
    [
        pytest.param("errors.py", "import troth.color", id="two that never meet"),
        pytest.param("color.py", "import troth.cli.exit", id="upwards"),
        pytest.param("analysis/findings/finding.py", "import asyncio", id="analysis runs nothing"),
        pytest.param(
            "analysis/findings/finding.py", "import troth.bridge", id="analysis stands apart from the boundary"
        ),
        pytest.param("runtime/tools/call.py", "import troth.analysis.findings", id="runtime and analysis never meet"),
    ],
)
def test_a_wrong_import_is_caught(copy, module, line):
    """A planted import against the layers fails the contracts, so they are not written in water."""
    path = copy / "src/troth" / module
    path.write_text(path.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    done = lint(copy)
    assert done.returncode != 0
    assert "BROKEN" in done.stdout


def test_a_module_outside_the_layers_is_caught(copy):
    """The list of layers is complete: a new top-level module has to be given its place."""
    (copy / "src/troth/utils.py").write_text('"""Everything."""\n', encoding="utf-8")
    done = lint(copy)
    assert done.returncode != 0
