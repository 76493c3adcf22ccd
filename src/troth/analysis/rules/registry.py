"""Find which rules there are: every module below this package that has one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from types import ModuleType

    from troth.analysis.findings import Finding
    from troth.analysis.semantics import Program

__all__ = ["Case", "Check", "CheckRule", "all_rules", "rule", "rules_in"]

Check = Callable[["Program"], Iterator["Finding"]]
Sources = str | Mapping[str, str]


class Case(NamedTuple):
    """An example that is shown and tested.

    `bad` has exactly one finding of the rule, on the line that ends in `# here` (or anywhere, without that mark);
    `fixed` is `bad` after the edits of its fix. `good` has none. Several files are a mapping from path to text; the
    finding is looked for in all of them.
    """

    name: str
    bad: Sources | None = None
    fixed: Sources | None = None
    good: Sources | None = None


class CheckRule(NamedTuple):
    """A rule with all that is known about it."""

    code: str
    name: str
    cases: tuple[Case, ...]
    check: Check
    is_default: bool = True
    """Whether it is on unless somebody says otherwise; the others are asked for with `--select`."""

    @property
    def family(self) -> int:
        """The hundred its code belongs to."""
        return int(self.code.removeprefix("TR")) // 100


_declared: dict[str, list[CheckRule]] = {}  # by the modules that declare them


def rule(code: str, name: str, *, cases: Sequence[Case], default: bool = True) -> Callable[[Check], Check]:
    """Declare the function below to be the rule `code`; `default` says whether it is on unless asked for."""

    def declare(check: Check) -> Check:
        _declared.setdefault(check.__module__, []).append(CheckRule(code, name, tuple(cases), check, default))
        return check

    return declare


@cache
def all_rules() -> tuple[CheckRule, ...]:
    """Every rule, by code; also those that somebody else has declared before this is asked for the first time."""
    import pkgutil  # late: most runs need no rule

    import troth.analysis.rules as package

    for family in pkgutil.iter_modules(package.__path__):
        if not family.ispkg:
            continue
        home = importlib.import_module(f"{package.__name__}.{family.name}")
        for entry in pkgutil.iter_modules(home.__path__):
            importlib.import_module(f"{home.__name__}.{entry.name}")
    return tuple(sorted((rule for rules in _declared.values() for rule in rules), key=lambda r: r.code))


def rules_in(module: ModuleType) -> list[CheckRule]:
    """The rules that a module declares."""
    return _declared.get(module.__name__, [])
