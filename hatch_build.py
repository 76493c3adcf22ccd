"""How a wheel is made: the tables of libraries are packed, and the analysis is compiled where somebody asks for it.

Tables are text in the repository, 21 MB that a person can read and compare; a wheel carries a tenth of it.

Compiling is mypyc's work and needs a C compiler. `TROTH_COMPILE=1` asks for it and takes a wheel of plain Python where
it cannot be had; `TROTH_COMPILE=require` fails then. An editable install is never compiled: what was compiled would
hide what is edited.

Run by itself, `python hatch_build.py FOLDER` makes a folder that can take the place of `src` on the path.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by itself
    BuildHookInterface = object  # type: ignore[assignment, misc]

TABLES = Path("src/troth/analysis/knowledge/tables")
NEEDED = ["mypy>=2.4,<3", "setuptools>=77"]
# Packages whose modules are compiled, with all packages in them, and single modules; an `__init__.py` never is.
COMPILED = (
    "src/troth/analysis/facts",
    "src/troth/analysis/incremental",
    "src/troth/analysis/pipeline/facts_diff.py",
    "src/troth/analysis/semantics",
    "src/troth/analysis/rules",
)
# These wait for files and processes, are asked once in a run, or hold classes that mypyc cannot make.
NOT_COMPILED = (
    "src/troth/analysis/facts/extract_many.py",
    "src/troth/analysis/facts/model.py",
    "src/troth/analysis/facts/other_interpreter.py",
    "src/troth/analysis/facts/fast_parser.py",
    "src/troth/analysis/facts/checksum.py",
    "src/troth/analysis/facts/directives.py",
    "src/troth/analysis/facts/store.py",
    "src/troth/analysis/incremental/context.py",
    "src/troth/analysis/incremental/dependencies.py",
    "src/troth/analysis/rules/catalog.py",
    "src/troth/analysis/semantics/evidence/words.py",
    "src/troth/analysis/rules/_mocks.py",
    "src/troth/analysis/rules/registry.py",
)


class WheelHook(BuildHookInterface):  # type: ignore[misc]
    """Adds the packed tables to a wheel, and the compiled modules beside the sources they were made of."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What compiling needs, where it will be tried."""
        if not self._is_wanted() or missing() is not None:
            return []
        return NEEDED if compiler() else [*NEEDED, "ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Pack and compile, before the wheel is put together. An editable install reads the text of the tables."""
        if version == "editable" or self.target_name != "wheel":
            return
        self._folder = Path(tempfile.mkdtemp(prefix="troth-build-"))
        packed = self._folder / TABLES.relative_to("src")
        pack_tables(Path(self.root) / TABLES, packed)
        for table in packed.iterdir():
            build_data["force_include"][str(table)] = table.relative_to(self._folder).as_posix()
        if self._is_wanted():
            self._compile(build_data)

    def _compile(self, build_data: dict[str, Any]) -> None:
        reason = missing()
        if reason is None:
            command = [sys.executable, __file__, str(self._folder)]
            process = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)
            reason = (
                None
                if process.returncode == 0
                else f"mypyc or the C compiler failed:\n{process.stdout}{process.stderr}"
            )
        if reason is not None:
            if os.environ["TROTH_COMPILE"] == "require":
                shutil.rmtree(self._folder, ignore_errors=True)
                raise RuntimeError(f"Troth cannot be compiled: {reason}")
            self.app.display_warning(f"Troth is built as plain Python, which takes almost twice the time: {reason}")
            return
        for extension in self._folder.rglob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}"):
            build_data["force_include"][str(extension)] = extension.relative_to(self._folder).as_posix()
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing behind."""
        if hasattr(self, "_folder"):
            shutil.rmtree(self._folder, ignore_errors=True)

    def _is_wanted(self) -> bool:
        return self.target_name == "wheel" and os.environ.get("TROTH_COMPILE", "0") not in {"", "0"}


def missing() -> str | None:
    """What is not at hand that compiling needs."""
    if sys.platform == "win32":
        return "compiled code was never tried on Windows"
    if sys.implementation.name != "cpython":
        return "mypyc compiles for CPython alone"
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return "the headers of this Python are not installed (Python.h)"
    return None


def compiler() -> str | None:
    """The C compiler of this machine, if it has one."""
    candidates = (os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc", "gcc", "clang")
    return next((command for command in candidates if command and shutil.which(command.split()[0])), None)


def modules(root: Path) -> list[Path]:
    """The modules of the project in `root` that are compiled, relative to it.

    A path above where nothing lies any more is refused: what moved would silently be compiled, or not, by accident.
    """
    if gone := [path for path in (*COMPILED, *NOT_COMPILED) if not (root / path).exists()]:
        raise FileNotFoundError(f"hatch_build.py names paths that are not there; did they move? {', '.join(gone)}")
    paths = [path.relative_to(root) for place in COMPILED for path in sorted(_modules_at(root / place))]
    return [path for path in paths if path.name != "__init__.py" and path.as_posix() not in NOT_COMPILED]


def _modules_at(place: Path) -> list[Path]:
    return [place] if place.is_file() else list(place.rglob("*.py"))


def compile_into(folder: Path) -> None:
    """Compile what is to be compiled; the current folder is that of the project."""
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    class SideBySide(build_ext):
        """Compiles as many files at once as there are cores; setuptools takes those of one library in turn."""

        def build_extensions(self) -> None:
            compile_all = self.compiler.compile

            def compile_each(sources: list[str], **options: Any) -> list[str]:
                with ThreadPoolExecutor(os.cpu_count()) as pool:
                    compiled = pool.map(lambda source: compile_all([source], **options), sources)
                    return [object_file for objects in compiled for object_file in objects]

            self.compiler.compile = compile_each
            super().build_extensions()

    os.environ["CC"] = compiler() or f"{sys.executable} -m ziglang cc"  # one that pip can install
    with tempfile.TemporaryDirectory(prefix="troth-c-") as scratch:
        extensions = mypycify(
            [f"--cache-dir={scratch}/mypy", "--follow-imports=silent", *map(str, modules(Path()))],
            opt_level="3",
            debug_level="0",
            multi_file=True,
            target_dir=scratch,
            group_name="troth",
        )
        build = SideBySide(Distribution({"name": "troth", "ext_modules": extensions}))
        build.build_lib, build.build_temp = str(folder), f"{scratch}/objects"
        build.ensure_finalized()
        build.run()


def pack_tables(tables: Path, into: Path) -> None:
    """Write each table as lines of JSON under zlib, a module a line: `troth.analysis.knowledge.library` reads them."""
    into.mkdir(parents=True, exist_ok=True)
    for path in tables.glob("*.json"):
        table = json.loads(path.read_bytes())
        modules = table.pop("modules")
        head = {**table, "modules": list(modules)}
        lines = (json.dumps(part, separators=(",", ":"), sort_keys=True) for part in (head, *modules.values()))
        (into / f"{path.stem}.z").write_bytes(zlib.compress("\n".join(lines).encode("ascii"), 9))


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    shutil.copytree("src", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    tables = folder / TABLES.relative_to("src")
    pack_tables(tables, tables)
    for path in tables.glob("*.json"):
        path.unlink()
    compile_into(folder)
