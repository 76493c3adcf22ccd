"""Libraries of which several editions go by one name, and what is plain in the others than the tables know."""

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["is_plain_here"]


class _Edition(NamedTuple):
    """The distribution that the tables know from that version on, and what others have as plain functions."""

    name: str
    since: int
    others: tuple[str, ...]
    plain: frozenset[str]


_EDITIONS = {
    "discord": _Edition(
        "discord-py",
        2,
        ("py-cord", "pycord"),
        frozenset({"add_cog", "remove_cog", "load_extension", "unload_extension", "reload_extension", "cog_unload"}),
    ),
}


def is_plain_here(top: str, name: str, allowed: Mapping[str, int]) -> bool:
    """Whether a project that allows itself these versions has another edition of `top`, in which `name` is plain."""
    edition = _EDITIONS.get(top)
    if edition is None or name not in edition.plain:
        return False
    return allowed.get(edition.name, edition.since) < edition.since or any(one in allowed for one in edition.others)
