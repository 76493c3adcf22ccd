"""The comments that speak to Troth, and which files have none, so that these are not read again to look for one.

Nearly no file has such a comment. Those that have none are kept in the cache with their stamps (`comments.bin`); with
them, a run of which nothing has changed reads no source at all.
"""

import marshal
from collections.abc import Iterable, Mapping
from pathlib import Path

from troth import __version__
from troth.analysis.facts import store
from troth.analysis.facts.checksum import DamagedError, opened, sealed
from troth.analysis.source.allow import Allow, allows_in
from troth.analysis.source.lines import Lines

__all__ = ["Comments"]

_FILE = "comments.bin"
_FORM = 3  # of the comments; what was silent to an older form need not be to this one


class Comments:
    """The comments of files as they are now; without a `folder` nothing is kept beyond this process."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._silent: dict[str, store.Stamp] | None = None
        self._allows: dict[str, tuple[store.Stamp, list[Allow]]] = {}

    def of(
        self,
        paths: Iterable[str],
        root: Path,
        lines: Lines,
        overlay: Mapping[str, bytes],
        stamps: Mapping[str, store.Stamp] | None = None,
    ) -> list[Allow]:
        """The comments of these files of the project at `root`; `stamps` are those that are known, from."""
        if self._silent is None:
            self._silent = {} if self._folder is None else _silent_files(self._folder / _FILE, root)
        every: list[Allow] = []
        is_news = False
        for path in paths:
            if path in overlay:
                every += allows_in(path, overlay[path])
                continue
            known = None if stamps is None else stamps.get(path)
            stamp = known or store.stamp(
                f"{root}/{path}"
            )  # before it is read: a change meanwhile is seen by the next run
            if self._silent.get(path) == stamp:
                continue
            stamped = self._allows.get(path)
            if stamped is None or stamped[0] != stamp:
                stamped = self._allows[path] = stamp, allows_in(path, lines.data(path) or b"")
                if not stamped[1]:
                    self._silent[path] = stamp
                    is_news = True
            every += stamped[1]
        if is_news and self._folder is not None:
            store.replaced(self._folder, _FILE, [sealed(marshal.dumps((_key(root), self._silent)))])
        return every


def _key(root: Path) -> str:
    """What is kept is good for one version and one project: several may have named the same folder."""
    return f"{__version__} {_FORM} {root}"


def _silent_files(file: Path, root: Path) -> dict[str, store.Stamp]:
    silent: dict[str, store.Stamp]
    try:
        key, silent = marshal.loads(opened(file.read_bytes()))  # noqa: S302  our own file
    except (OSError, DamagedError, ValueError, TypeError, EOFError):
        return {}
    return silent if key == _key(root) else {}
