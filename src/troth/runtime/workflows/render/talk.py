"""Draw what an agent was told, said and had done: in a terminal, and as a table in HTML."""

import textwrap
from collections.abc import Iterator, Sequence

from troth.runtime.conversations.transcript import TranscriptEntry
from troth.runtime.workflows.render.markup import Html, tag
from troth.runtime.workflows.render.printable import printable_text

__all__ = ["STYLE", "talk_lines", "talk_table"]

_MANY = 60  # entries that are shown; of a longer talk, the first and the last
_FIRST = 12
_LONG = 1200  # letters of one entry that are shown in a terminal
_LONG_ON_A_PAGE = 20_000

STYLE = """
table.talk { width: auto; margin: .3rem 0; font-size: .92em; }
table.talk td { border: 0; padding: .1rem .6rem .1rem 0; }
table.talk td:first-child { min-width: 0; color: var(--soft); white-space: nowrap; }
table.talk td:last-child { white-space: pre-wrap; }
table.talk tr.call td:last-child { font-family: ui-monospace, monospace; }
"""


def talk_lines(talk: Sequence[TranscriptEntry], width: int, *, whole: bool = False) -> Iterator[str]:
    """A line for each entry, broken between words; who speaks stands at the left. Long ones are cut, unless `whole`."""
    shown, left_out = (list(talk), 0) if whole else _shortened(talk)
    indent = max((len(_who(entry)) for entry in shown if entry is not None), default=0)
    for entry in shown:
        if entry is None:
            yield f"{'…':<{indent}}  {left_out} more"
            continue
        text = printable_text(_text_of(entry))
        cut = text if whole or len(text) <= _LONG else f"{text[:_LONG]} … ({len(text):,} letters)"
        lines = [part for line in cut.splitlines() for part in textwrap.wrap(line, max(20, width - indent - 2)) or [""]]
        for number, line in enumerate(lines or [""]):
            yield f"{_who(entry) if number == 0 else '':<{indent}}  {line}".rstrip()


def talk_table(talk: Sequence[TranscriptEntry]) -> Html:
    """A row for each entry."""
    shown, left_out = _shortened(talk)
    rows = []
    for entry in shown:
        if entry is None:
            rows.append(tag("tr", tag("td", "…"), tag("td", f"{left_out} more")))
            continue
        text = _text_of(entry)
        cut = text if len(text) <= _LONG_ON_A_PAGE else f"{text[:_LONG_ON_A_PAGE]} … ({len(text):,} letters)"
        rows.append(tag("tr", tag("td", _who(entry)), tag("td", cut), class_=entry.who))
    return tag("table", rows, class_="talk")


def _shortened(talk: Sequence[TranscriptEntry]) -> tuple[list[TranscriptEntry | None], int]:
    """The entries to show, with None where some are left out, and how many those are."""
    if len(talk) <= _MANY:
        return list(talk), 0
    last = talk[-(_MANY - _FIRST) :]
    return [*talk[:_FIRST], None, *last], len(talk) - _MANY


def _who(entry: TranscriptEntry) -> str:
    return "assistant" if entry.who == "call" else (entry.tool or "tool") if entry.who == "answer" else entry.who


def _text_of(entry: TranscriptEntry) -> str:
    if entry.who == "call":
        return f"→ {entry.tool}({entry.text})"
    return f"→ {entry.text}" if entry.who == "answer" else entry.text
