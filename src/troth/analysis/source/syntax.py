"""Decide whether a file still holds a program, without keeping anything of it."""

import ast
import warnings

from troth.analysis.source.backport_syntax import in_older_syntax
from troth.analysis.source.notebook import read_notebook

__all__ = ["problem_in"]


def problem_in(path: str, data: bytes) -> str | None:
    """What keeps `data` from being a Python file (or, as `.ipynb`, a notebook), or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in somebody's string is not our subject
            if path.endswith(".ipynb"):
                data = read_notebook(data).source.encode()
            _compile(path, data)
    except (SyntaxError, ValueError, RecursionError) as problem:
        return f"{path}: {problem}"
    return None


def _compile(path: str, source: str | bytes) -> None:
    try:
        # Not the tree alone: an `await` in a sync function is only refused when code is made of it. At the top a
        # cell may have one, and so may a script that is made of cells.
        compile(source, path, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:
        older = in_older_syntax(source, error)
        if older is None:
            raise
        _compile(path, older)
