"""Knows what each rule says about itself: its page, in parts that reports, `troth explain` and the docs share."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from troth.analysis.rules import Case

__all__ = ["DOCS", "FAMILIES", "Example", "RulePage", "page_of", "rule_pages"]

DOCS = "https://troth.readthedocs.io"

FAMILIES = {
    "T0": "upkeep",
    "T1": "lost calls",
    "T2": "left behind",
    "T3": "needless async",
    "T4": "wrong color handed over",
    "T5": "hidden shims",
    "T6": "loop misuse",
    "T7": "promises to nobody",
    "T8": "aftermath",
}

_HEADING = re.compile(r"^([A-Z][\w' -]{2,40}):(?:\s+|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Example:
    """A case of a rule: code that it reports (`is_bad`) or leaves alone, and what its fix makes of it."""

    title: str
    code: str
    is_bad: bool
    fixed: str | None = None


@dataclass(frozen=True, slots=True)
class RulePage:
    """One rule: `parts` are its documentation by heading, the first of them under an empty one."""

    code: str
    name: str
    title: str
    parts: tuple[tuple[str, str], ...]
    examples: tuple[Example, ...] = ()

    @property
    def url(self) -> str:
        """Where the page is published."""
        return f"{DOCS}/rules/{self.name}.html"

    @property
    def family(self) -> str:
        """The family its code belongs to."""
        return FAMILIES.get(self.code[:2], "")

    def part(self, *headings: str) -> str:
        """The text under the first of the headings that the page has; empty if it has none of them."""
        wanted = {heading.lower() for heading in headings}
        return next((text for heading, text in self.parts if heading.lower() in wanted), "")


def page_of(code: str, name: str, documentation: str, examples: Sequence[Example] = ()) -> RulePage:
    """Take a rule's documentation apart: a title, then paragraphs, some of which start with `Heading:`."""
    title, _, rest = documentation.strip().partition("\n")
    pieces = _HEADING.split(rest.strip())
    parts = [("", pieces[0].strip())] if pieces[0].strip() else []
    parts += [(heading, text.strip()) for heading, text in zip(pieces[1::2], pieces[2::2], strict=True)]
    return RulePage(code, name, title.strip().rstrip("."), tuple(parts), tuple(examples))


def rule_pages() -> dict[str, RulePage]:
    """All rules there are, by code."""
    from troth.analysis.rules import all_rules

    pages = [page_of(rule.code, rule.name, rule.documentation, _examples(rule.cases)) for rule in all_rules()]
    return {page.code: page for page in sorted([*_UPKEEP, *pages], key=lambda one: one.code)}


def _examples(cases: "Sequence[Case]") -> list[Example]:
    found = []
    for case in cases:
        if case.bad is not None:
            fixed = None if case.fixed is None else _one_text(case.fixed)
            found.append(Example(case.name, _one_text(case.bad), is_bad=True, fixed=fixed))
        if case.good is not None:
            found.append(Example(case.name, _one_text(case.good), is_bad=False))
    return found


def _one_text(sources: "str | Mapping[str, str]") -> str:
    """Several files as one text, each under its name; the mark that tests look for is taken out."""
    files = {"": sources} if isinstance(sources, str) else sources
    texts = [f"# {path}\n{text}" if path else text for path, text in files.items()]
    return "\n".join(re.sub(r"[ \t]*# here$", "", text, flags=re.MULTILINE) for text in texts)


_UPKEEP = (
    page_of(
        "T001",
        "unreadable-file",
        """Unreadable file.

What it finds: a file that cannot be decoded, or that is not Python.
Why it matters: nothing in it is checked, and what other files use of it is unknown.
How to repair: repair the file; if it is not meant to be Python, put it into `exclude` of the settings.
""",
        [Example("half a function", "def half(:\n", is_bad=True)],
    ),
    page_of(
        "T002",
        "unused-allow",
        """Unused allow.

What it finds: a comment `# troth: allow <rule>` that silences nothing, because nothing of the kind is found on its
line any more, or because there is no rule of that name.
Why it matters: it would silence the next real one without anybody having looked at it.
How to repair: take the comment, or the name in it, away.
How sure the fix is: it changes a comment and nothing else; `troth fix` applies it.
""",
        [Example("left standing", "total = 1  # troth: allow unawaited-coroutine\n", is_bad=True, fixed="total = 1\n")],
    ),
)
