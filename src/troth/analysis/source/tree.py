"""Parse what may not be Python, without a word on stderr."""

import ast
import warnings

from troth.analysis.source.backport_syntax import in_older_syntax

__all__ = ["tree_of"]


def tree_of(source: str | bytes) -> ast.Module | None:
    """The syntax tree, or None if there is none.

    Python warns about odd escapes while it parses; that is between the author and Python. A text may be newer than the
    running interpreter: what is known of it then was read by another one, and its syntax is not to be had here.
    """
    if isinstance(source, str):
        source = source.removeprefix("\ufeff")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except SyntaxError as error:
            older = in_older_syntax(source, error)
            return None if older is None else tree_of(older)
        except (ValueError, RecursionError, MemoryError):
            return None
