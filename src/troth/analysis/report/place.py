"""How a path of the project is shown to somebody in the working folder, so that it can be clicked there."""

from collections.abc import Callable
from pathlib import Path

__all__ = ["shown_from"]


def shown_from(cwd: Path, root: Path) -> Callable[[str], str]:
    """Turn paths from `root` into paths from `cwd`; into whole ones where the two lie apart."""
    inside = cwd.relative_to(root).as_posix() + "/" if cwd != root and cwd.is_relative_to(root) else ""
    if inside:
        way = "../" * inside.count("/")
    elif root.is_relative_to(cwd):
        way = "" if root == cwd else root.relative_to(cwd).as_posix() + "/"
    else:
        way = root.as_posix().rstrip("/") + "/"

    def shown(path: str) -> str:
        if path.startswith("/"):  # in an installed package
            return path
        return path[len(inside) :] if inside and path.startswith(inside) else way + path

    return shown
