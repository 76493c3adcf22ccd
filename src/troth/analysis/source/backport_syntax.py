"""Write newer syntax the older way, where that changes the place of nothing that matters."""

import re

__all__ = ["in_older_syntax"]

# `except A, B:` (3.14), which formatters make of most handlers: with parentheses every Python reads it. The first takes
# the place of a space, so that only the colon moves; a statement behind it would move as well.
_UNPARENTHESIZED = r"^([ \t]*except\*?)[ \t]((?:[ \t]*[\w.]+[ \t]*,)+[ \t]*[\w.]+)([ \t]*:)(?=[ \t]*(?:#[^\n]*)?\r?$)"
_IN_TEXT = re.compile(_UNPARENTHESIZED, re.MULTILINE)
_IN_BYTES = re.compile(_UNPARENTHESIZED.encode(), re.MULTILINE)


def in_older_syntax(source: str | bytes, error: SyntaxError) -> str | bytes | None:
    """The source as older versions of Python can read it; None where the error is another one."""
    if "parenthesized" not in (error.msg or ""):
        return None
    if isinstance(source, str):
        return _IN_TEXT.sub(r"\1(\2)\3", source) if _IN_TEXT.search(source) else None
    return _IN_BYTES.sub(rb"\1(\2)\3", source) if _IN_BYTES.search(source) else None
