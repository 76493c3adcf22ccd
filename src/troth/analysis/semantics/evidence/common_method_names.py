"""The method names that say nothing: objects of the standard library, or of many libraries, have them too.

A project whose only `write_text` is async still calls `Path.write_text`. `STANDARD` holds the public sync methods of
some eighty classes of the standard library that programs commonly hold in variables; `COMMON` are words that libraries
use for methods of either color. Both stand in `words.toml`.
"""

from troth.analysis.semantics.evidence.words import words

__all__ = ["COMMON", "GENERIC", "STANDARD"]

STANDARD = words("method_names", "standard")
COMMON = words("method_names", "common")
GENERIC = STANDARD | COMMON
