"""Parse a file, and what to say when it cannot be parsed."""

import ast
import io
import re
import tokenize
import warnings

from troth.analysis.source.backport_syntax import in_older_syntax
from troth.analysis.source.problem import Problem

__all__ = ["Problem", "parse"]


def parse(data: bytes, *, top_level_await: bool = False) -> ast.Module | Problem:
    """The syntax tree of a file, or the reason why there is none."""
    flags = ast.PyCF_ONLY_AST | (ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if top_level_await else 0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes and the like are the file's own affair
            tree = compile(data, "<file>", "exec", flags, dont_inherit=True)
    except SyntaxError as error:
        older = in_older_syntax(data, error)
        if isinstance(older, bytes):
            return parse(older, top_level_await=top_level_await)
        # An unknown coding is at column -1, a file that ends too soon in line 0.
        place = (max(error.lineno or 1, 1), max(error.offset or 1, 1), error.msg or "invalid syntax")
        return Problem(*place, _is_newer(data, error), _TEMPLATE.search(data) is not None, is_syntax=True)
    except UnicodeDecodeError as error:
        return Problem(data[: error.start].count(b"\n") + 1, 1, f"cannot be decoded as {error.encoding}")
    except (ValueError, LookupError) as error:  # null bytes, an unknown coding
        return Problem(1, 1, str(error))
    except (RecursionError, MemoryError):
        return Problem(1, 1, "nested too deeply to be parsed")
    assert isinstance(tree, ast.Module)
    return tree


# Marks of Jinja, cookiecutter and their like where Python has no use for them: a line that begins with `{% if x %}`,
# `# % block` or `{{ name }}`, and a name to be filled in. Inside a line they may be part of somebody's string.
_TEMPLATE = re.compile(
    rb"^\s*(?:#\s*)?\{%-?\s*\w+.*%\}|^\s*#\s*%\s*(?:if|for|block|set|filter|extends|include|raw|macro)\b"
    rb"|^\s*\{\{.*\}\}|^\s*(?:import|from|class|def|async def)\s[\w.]*\{\{",
    re.MULTILINE,
)


def _is_newer(data: bytes, error: SyntaxError) -> bool:
    """Whether the error may be syntax that a newer Python knows.

    Newer grammars only ever added to these constructs: type parameters and `type` statements (3.12), quotes and
    backslashes inside f-strings (3.12), `except` without parentheses and t-strings (3.14).
    """
    try:
        lines = io.TextIOWrapper(io.BytesIO(data), tokenize.detect_encoding(io.BytesIO(data).readline)[0]).readlines()
    except (SyntaxError, ValueError, LookupError):  # a coding that the text is not in says so in many ways
        return False
    line = lines[error.lineno - 1].strip() if error.lineno and error.lineno <= len(lines) else ""
    message = error.msg or ""
    if line.startswith("type ") and "=" in line:
        return True
    if line.startswith(("def ", "async def ", "class ")) and "[" in line.partition("(")[0]:
        return True
    if message.startswith("f-string"):
        return True
    if line.startswith(("except", "except*")) and "parenthesized" in message:
        return True
    return any(mark in line for mark in ("t'", 't"')) and "invalid syntax" in message
