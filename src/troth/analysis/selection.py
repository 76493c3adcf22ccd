"""Find which rules are meant by codes, beginnings of codes and names."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from troth.analysis.old_codes import current
from troth.errors import MisuseError

__all__ = ["Selection", "check_names", "meant", "nearest_rule"]


_GROUPS = {"migrate": "TR9"}  # families that have a name of their own


class Selection(NamedTuple):
    """What is reported and what is not; the more exact of two that match decides, and `ignore` decides a draw."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    on_request: tuple[str, ...] = ()
    """Codes of rules that are reported only if they are selected."""
    extend: tuple[str, ...] = ()
    """What is reported beside `select`, or beside the rules that are on by default."""

    def takes(self, code: str, name: str) -> bool:
        """Whether the rule is reported."""
        extended = _best(self.extend, code, name)
        if not self.select and extended < 0 and code in self.on_request:
            return False
        chosen = max(extended, _best(self.select, code, name) if self.select else 0)
        refused = _best(self.ignore, code, name)
        return chosen >= 0 and (refused < 0 or chosen > refused)


def _best(words: Sequence[str], code: str, name: str) -> int:
    """How exactly one of the words means the rule: the length of the code it names, or -1 for not at all."""
    lengths = [len(code) if word == name else len(word) for word in words if word == name or code.startswith(word)]
    return max(lengths, default=-1)


def meant(word: str) -> str:
    """The code, or the beginning of codes, that a word stands for; every other word as it is."""
    return _GROUPS.get(word) or current(word)


def check_names(
    words: Sequence[str], rules: Mapping[str, str], where: str, place: Callable[[str], str] | None = None
) -> tuple[str, ...]:
    """The words, if each of them means a rule; `rules` gives the name for each code.

    `where` says who wrote them, and `place`, for those of a file, where in it one of them stands.
    """
    names = set(rules.values())
    tidy = []
    for word in words:
        code = _GROUPS.get(word) or current(word.upper())
        if word in names:
            tidy.append(word)
        elif word and any(rule_code.startswith(code) for rule_code in rules):
            tidy.append(code)
        else:
            raise MisuseError(
                f"{f'{place(word)}: ' if place else ''}{where}: there is no rule {word!r}.\n"
                "Nothing was checked, so that a misspelt rule never passes for a clean one.\n"
                + nearest_rule(word, rules)
            )
    return tuple(tidy)


def nearest_rule(word: str, rules: Mapping[str, str]) -> str:
    """Advice about a rule that does not exist: its nearest neighbour only if it is near."""
    from difflib import get_close_matches

    near = get_close_matches(word.lower(), rules.values(), n=1, cutoff=0.75)
    if not near and word[:1] in "Tt":
        near = get_close_matches(word.upper(), rules, n=1, cutoff=0.75)
    return f"Did you mean {near[0]!r}?" if near else "Run `troth explain` to list the rules."
