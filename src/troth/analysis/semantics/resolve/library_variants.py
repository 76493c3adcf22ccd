"""Tell whether a project has another edition of a library than the tables know, in which a function is plain."""

from collections.abc import Mapping

from troth.analysis.knowledge.corrections import correction

__all__ = ["is_plain_here"]


def is_plain_here(top: str, name: str, allowed: Mapping[str, int]) -> bool:
    """Whether a project that allows itself these versions has another edition of `top`, in which `name` is plain."""
    edition = correction(top).edition
    if edition is None or name not in edition.sync:
        return False
    return allowed.get(edition.name, edition.since) < edition.since or any(fork in allowed for fork in edition.others)
