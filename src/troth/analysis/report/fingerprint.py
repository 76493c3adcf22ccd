"""Recognise a finding after the lines around it have moved.

What stays with a finding is the rule, the function around it and what it is about; neither line nor column does, and
the path only helps to choose among several. Two of a kind are told apart by their number, so that a new one is seen.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from troth.analysis.findings import Finding
from troth.analysis.old_codes import lasting
from troth.analysis.source.definitions import definitions_in
from troth.analysis.source.lines import Lines

__all__ = ["FindingsComparison", "Mark", "fingerprints", "mark", "settle", "still_defines"]


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """What is remembered of a finding. `text` is its line without indentation, to choose among several of a kind."""

    path: str
    symbol: str
    code: str
    subject: str
    text: str

    @property
    def function(self) -> str:
        """The bare name of the function or class around it; empty at module level."""
        return self.symbol.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class FindingsComparison:
    """How remembered findings and those of today compare: which of today's are new (by index), which are gone."""

    new: tuple[int, ...]
    gone: tuple[Mark, ...]


def mark(finding: Finding, lines: Lines) -> Mark:
    """What will be remembered of `finding`."""
    span = finding.span
    text = " ".join(lines.at(span.path, span.line, span.cell).split())
    return Mark(span.path, finding.symbol, finding.code, finding.subject, text)


def fingerprints(findings: Sequence[Finding]) -> list[str]:
    """A short text for each finding that stays the same while the code around it moves, also to another file."""
    from hashlib import sha256

    occurrences: Counter[Hashable] = Counter()
    prints = []
    for finding in findings:
        key = (lasting(finding.code), finding.symbol, finding.subject)
        occurrences[finding.span.path, *key] += 1
        whole = "\0".join((*key, str(occurrences[finding.span.path, *key])))
        prints.append(sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:32])
    return prints


def settle(earlier: Iterable[Mark], today: Sequence[Mark], stays: Callable[[Mark], bool]) -> FindingsComparison:
    """Give each remembered finding at most one of today's; what is left over on either side is gone or new.

    Pairs are made from the most alike to the least. Beyond its own file and function a remembered finding is only
    looked for if its function is no longer where it was (`stays` is False): a file or function that was renamed or
    moved takes its findings along, while a bug repaired here does not excuse one made elsewhere.
    """
    remembered = list(earlier)
    unmatched = dict.fromkeys(range(len(remembered)))
    unexplained = dict.fromkeys(range(len(today)))
    for alike, must_have_moved in _PASSES:
        waiting: dict[Hashable, list[int]] = {}
        for old in reversed(unmatched):  # so that the first is taken first
            if not (must_have_moved and stays(remembered[old])):
                waiting.setdefault(alike(remembered[old]), []).append(old)
        for index in list(unexplained) if waiting else ():
            candidates = waiting.get(alike(today[index]))
            if candidates:
                del unmatched[candidates.pop()]
                del unexplained[index]
    return FindingsComparison(new=tuple(unexplained), gone=tuple(remembered[old] for old in unmatched))


def still_defines(lines: Lines) -> Callable[[Mark], bool]:
    """A question to the files of today: whether the function of a remembered finding is still in its file."""

    @cache
    def names_in(path: str) -> Collection[str] | None:
        data = lines.data(path)
        return () if data is None or path.endswith(".ipynb") else definitions_in(data)

    def stays(remembered: Mark) -> bool:
        names = names_in(remembered.path)
        if names is None:
            return True  # it does not parse, so nobody knows: what it holds is not looked for elsewhere
        if (
            not remembered.function.isidentifier()
        ):  # module level, or a lambda: as long as the file is there, so is its place
            return lines.data(remembered.path) is not None
        symbol = remembered.symbol.replace(".<locals>", "")
        return any(symbol == name or symbol.endswith(f".{name}") for name in names)

    return stays


_PASSES: tuple[tuple[Callable[[Mark], Hashable], bool], ...] = (
    (lambda mark: mark, False),
    (lambda mark: (mark.path, mark.symbol, mark.code, mark.subject), False),
    (lambda mark: (mark.symbol, mark.code, mark.subject, mark.text), True),
    (lambda mark: (mark.symbol, mark.code, mark.subject), True),
    (lambda mark: (mark.function, mark.code, mark.subject), True),
    (lambda mark: (mark.path, mark.code, mark.subject, mark.text), True),
)
