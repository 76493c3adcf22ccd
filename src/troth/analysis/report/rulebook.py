"""What each rule says about itself: its page, in parts that reports, `troth explain` and the docs share."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from troth.analysis.rules.catalog import Entry, catalog, documentation_of

if TYPE_CHECKING:
    from troth.analysis.rules import Case

__all__ = ["DOCS", "FAMILIES", "RuleExample", "RulePage", "Rulebook", "page_of", "rule_pages"]

DOCS = "https://troth.readthedocs.io"

FAMILIES = {
    "TR0": "upkeep",
    "TR1": "lost calls",
    "TR2": "left behind",
    "TR3": "needless async",
    "TR4": "wrong color",
    "TR5": "hidden shims",
    "TR6": "loop misuse",
    "TR7": "forgotten tasks",
    "TR8": "after await",
    "TR9": "migration",
}

_HEADING = r"(?m)^([A-Z][\w' -]{2,40}):(?:\s+|$)"


class RuleExample(NamedTuple):
    """A case of a rule: code that it reports (`is_bad`) or leaves alone, and what its fix makes of it."""

    title: str
    code: str
    is_bad: bool
    fixed: str | None = None


class RulePage(NamedTuple):
    """One rule: `parts` are its documentation by heading, the first of them under an empty one."""

    code: str
    name: str
    title: str
    parts: tuple[tuple[str, str], ...]
    examples: tuple[RuleExample, ...] = ()

    @property
    def url(self) -> str:
        """Where the page is published."""
        return f"{DOCS}/rules/{self.name}.html"

    @property
    def family(self) -> str:
        """The family its code belongs to."""
        return FAMILIES.get(self.code[:3], "")

    def part(self, *headings: str) -> str:
        """The text under the first of the headings that the page has; empty if it has none of them."""
        lowered = {heading.lower() for heading in headings}
        return next((text for heading, text in self.parts if heading.lower() in lowered), "")


def page_of(code: str, name: str, documentation: str, examples: Sequence[RuleExample] = ()) -> RulePage:
    """Take a rule's documentation apart: a title, then paragraphs, some of which start with `Heading:`."""
    title, _, body = documentation.strip().partition("\n")
    pieces = re.split(_HEADING, body.strip())
    parts = [("", pieces[0].strip())] if pieces[0].strip() else []
    parts += [(heading, text.strip()) for heading, text in zip(pieces[1::2], pieces[2::2], strict=True)]
    return RulePage(code, name, title.strip().rstrip("."), tuple(parts), tuple(examples))


class Rulebook(Mapping[str, RulePage]):
    """All rules by code. A page is made when somebody opens it: a clean run opens none."""

    def __init__(self, rules: Sequence[Entry], *, with_examples: bool) -> None:
        self._rules = {rule.code: rule for rule in rules}
        self._with_examples = with_examples
        self.names = dict(sorted({**{code: name for code, name, _ in _UPKEEP}, **_names(rules)}.items()))
        self.on_request = tuple(rule.code for rule in rules if not rule.is_default)
        """The codes of rules that are put only if somebody asks for them."""
        self._pages: dict[str, RulePage] = {}

    def __getitem__(self, code: str) -> RulePage:
        if code not in self._pages:
            self._pages[code] = self._open(code)
        return self._pages[code]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def _open(self, code: str) -> RulePage:
        if code in self._rules:
            rule = self._rules[code]
            return page_of(code, rule.name, documentation_of(rule), _examples(rule) if self._with_examples else ())
        example = _UPKEEP_EXAMPLES.get(code)
        return page_of(
            code, self.names[code], next(text for upkeep_code, _, text in _UPKEEP if upkeep_code == code), example or ()
        )


def rule_pages(*, with_examples: bool = True) -> Rulebook:
    """All rules there are. A page with examples has the rule itself imported when it is opened."""
    return Rulebook(catalog(), with_examples=with_examples)


def _names(rules: Sequence[Entry]) -> dict[str, str]:
    return {rule.code: rule.name for rule in rules}


def _examples(entry: Entry) -> list[RuleExample]:
    import importlib

    from troth.analysis.rules.registry import rules_in

    rule = next(
        candidate for candidate in rules_in(importlib.import_module(entry.module)) if candidate.code == entry.code
    )
    return _shown(rule.cases)


def _shown(cases: "Sequence[Case]") -> list[RuleExample]:
    """Those with a repair first, and the shortest of them: they show the rule with the least around it."""
    examples: list[RuleExample] = []
    for case in cases:
        if case.bad is not None:
            fixed = None if case.fixed is None else _one_text(case.fixed)
            examples.append(RuleExample(case.name, _one_text(case.bad), is_bad=True, fixed=fixed))
        if case.good is not None:
            examples.append(RuleExample(case.name, _one_text(case.good), is_bad=False))
    return sorted(examples, key=lambda example: (example.fixed is None, len(example.code)))


def _one_text(sources: "str | Mapping[str, str]") -> str:
    """Several files as one text, each under its name; the mark that tests look for is taken out."""
    files = {"": sources} if isinstance(sources, str) else sources
    texts = [f"# {path}\n{text}" if path else text for path, text in files.items()]
    return "\n".join(re.sub(r"[ \t]*# here$", "", text, flags=re.MULTILINE) for text in texts)


# What is found about the checking itself, without a program being asked.
_UPKEEP = (
    (
        "TR000",
        "internal-error",
        """Internal error.

What it finds: a bug in Troth itself. A rule, the reading of a file or the following of a function has failed.
Why it matters: what the rule would have found in that file is missing. Everything else is reported as usual, and the
exit code is 4, so that the run does not pass for a complete one.
How to repair: report it, with the line that Troth printed and the traceback in the file that it names; the code at that
place helps most. Until it is repaired, `--ignore` or `per-file-ignores` with the code of the rule that failed leaves
that rule out, and `exclude` leaves out a file that cannot be read.
""",
    ),
    (
        "TR001",
        "unreadable-file",
        """Unreadable file.

What it finds: a file that cannot be opened or decoded, or that is not Python; a folder that cannot be opened.
Why it matters: nothing in it is checked, and what other files use of it is unknown.
How to repair: repair it, or make it readable; if it is not Python, add it to `exclude` in the settings.
""",
    ),
    (
        "TR002",
        "unused-allow",
        """Unused allow.

What it finds: a comment `# troth: allow <rule>`, in any of its forms, that silences nothing, because nothing of the
kind is found there any more, or because there is no rule of that name.
Why it matters: it would silence the next real one without anybody having looked at it.
How to repair: remove the comment, or the name in it.
How sure the fix is: it changes a comment and nothing else; `troth fix` applies it.
""",
    ),
)
_UPKEEP_EXAMPLES = {
    "TR001": [RuleExample("half a function", "def half(:\n", is_bad=True)],
    "TR002": [
        RuleExample(
            "left standing", "total = 1  # troth: allow unawaited-coroutine\n", is_bad=True, fixed="total = 1\n"
        )
    ],
}
