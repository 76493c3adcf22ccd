"""Write what `troth explain` tells as JSON; `schemas/explain-v1.json` describes it."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from troth.analysis.report.json import as_object
from troth.analysis.report.rulebook import Rulebook, RulePage

if TYPE_CHECKING:
    from troth.analysis.log_lookup.locate import Located
    from troth.analysis.log_lookup.sites import LoggedSite

__all__ = ["render_lost_calls", "render_rules"]

_VERSION = 1


def render_rules(book: Rulebook, codes: Iterable[str]) -> str:
    """The rules with these codes."""
    return json.dumps({"version": _VERSION, "rules": [_rule(book[code], book) for code in codes]}, indent=2)


def render_lost_calls(lost: Iterable["Located"], root: Path) -> str:
    """The lost calls of a log, with what is known of each."""
    rows = [_lost_call(located) for located in lost]
    return json.dumps({"version": _VERSION, "root": str(root), "lost": rows}, indent=2)


def _rule(page: RulePage, book: Rulebook) -> dict[str, object]:
    return {
        "code": page.code,
        "name": page.name,
        "title": page.title,
        "family": page.family,
        "is_default": page.code not in book.on_request,
        "url": page.url,
        "parts": [{"heading": heading, "text": " ".join(text.split())} for heading, text in page.parts],
        "examples": [example._asdict() for example in page.examples],
    }


def _lost_call(located: "Located") -> dict[str, object]:
    mention = located.mention
    return {
        "name": mention.name,
        "kind": mention.kind,
        "times": mention.times,
        "made_at": None if located.born is None else _site(located.born),
        "defined": [_site(site) for site in located.definitions],
        "lost_at": [as_object(finding) for finding in located.findings],
        "called": [_site(site) for site in located.calls],
    }


def _site(site: "LoggedSite") -> dict[str, object]:
    return {"path": site.path, "line": site.line, "symbol": site.symbol, "use": site.use}
