"""The package as users get it: a wheel, installed beside nothing but its own dependencies."""

import subprocess
import venv
import zipfile
from email.parser import Parser

import pytest

from troth import __version__

pytestmark = pytest.mark.xdist_group("wheel")  # built once


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    """Types are declared, the licence is there, and no test or example slipped in."""
    names = zipfile.ZipFile(wheel).namelist()
    assert "troth/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0] for name in names} <= {"troth", "troth_guard.pth", f"troth-{__version__}.dist-info"}


def test_the_base_install_is_light(wheel):
    """Analysis and boundary need two small libraries; everything else is an extra."""
    with zipfile.ZipFile(wheel) as archive:
        meta = Parser().parsestr(archive.read(f"troth-{__version__}.dist-info/METADATA").decode())
    needed = [line for line in meta.get_all("Requires-Dist") if "extra ==" not in line]
    assert [line.split(">")[0] for line in needed] == ["ast-serialize", "shtab"]


def test_the_installed_command_works(wheel, tmp_path):
    """In an environment of its own: as a command and as a module."""
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env/bin/python"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel],
        check=True,
        timeout=110,
        capture_output=True,
    )
    for command in ([tmp_path / "env/bin/troth"], [python, "-m", "troth"]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout == f"troth {__version__}\n"
