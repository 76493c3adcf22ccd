"""Compare the digests of a step's code, as they are kept with each attempt.

A digest is a text, `VERSION:DIGEST`. The version names what made it (`py3.12`): another Python makes other bytecode of
the same function, so digests of different versions say nothing about each other.
"""

__all__ = ["has_changed"]


def has_changed(before: str | None, now: str | None) -> bool:
    """Whether the code is known to be another one."""
    if before is None or now is None or before == now:
        return False
    return before.partition(":")[0] == now.partition(":")[0]
