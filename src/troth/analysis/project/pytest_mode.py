"""Find where a project's pytest takes on every async test by itself, so that none of them needs a mark."""

import re
from collections.abc import Iterable
from pathlib import Path

from troth.analysis.project.optional_file import handwritten

__all__ = ["self_running"]

_SETTINGS = ("pyproject.toml", "pytest.ini", ".pytest.ini", "pytest.toml", "tox.ini", "setup.cfg")
_TAKES_ALL = re.compile(
    r"""(?im)\b(?:asyncio|anyio)[_-]mode["']?[ \t]*[= ][ \t]*["']?auto\b"""
    r"""|^[ \t]*trio_mode[ \t]*=[ \t]*["']?(?:true|1)\b"""
)


def self_running(root: Path, source_roots: Iterable[str]) -> tuple[str, ...]:
    """The folders of `root` whose settings say `asyncio_mode = auto` or the like; "" is `root` itself.

    Settings stand where a project begins, which is at a source root or right above one (`src`, `tests`).
    """
    folders = {"", *source_roots, *(source_root.rpartition("/")[0] for source_root in source_roots)}
    return tuple(sorted(folder for folder in folders if _takes_all(root / folder)))


def _takes_all(folder: Path) -> bool:
    return any(_TAKES_ALL.search(handwritten(folder / name)) for name in _SETTINGS)
