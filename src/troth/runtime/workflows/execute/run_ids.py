"""Name a run: short, telling the workflow, and never used twice."""

import uuid

__all__ = ["new_id"]

_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"  # none that looks like another
_COUNT = 10  # about 10^15 names for each workflow: no two of a million runs share one


def new_id(name: str) -> str:
    """An id for a run of the workflow `name`, as in `order-k3v9x2m7qa`."""
    number = uuid.uuid4().int
    return f"{name}-" + "".join(_LETTERS[number // len(_LETTERS) ** place % len(_LETTERS)] for place in range(_COUNT))
