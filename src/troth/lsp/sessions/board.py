"""Keep what is told about each file, so that a client hears of it again only when something has changed."""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

from lsprotocol import types

from troth.analysis.facts.store import Stamp
from troth.analysis.findings import Finding
from troth.lsp.protocol.client import Client
from troth.lsp.protocol.diagnostics import Telling, diagnostic
from troth.lsp.sessions.checker import Look
from troth.lsp.sessions.places import Places

__all__ = ["Board", "DiagnosticsNotice"]

_numbers = count(1)


class DiagnosticsNotice(NamedTuple):
    """All diagnostics of one URI, under a name that changes with them."""

    name: str
    items: tuple[types.Diagnostic, ...]


class _File(NamedTuple):
    findings: tuple[Finding, ...]
    stamp: Stamp | None
    uris: tuple[str, ...]


class Board:
    """The notices of one session."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._files: dict[str, _File] = {}
        self.notices: dict[str, DiagnosticsNotice] = {}

    def take(self, look: Look, places: Places) -> set[str]:
        """Bring all notices up to date, and tell which URIs have another one now."""
        by_path: dict[str, list[Finding]] = {}
        for finding in look.report.findings:
            by_path.setdefault(finding.span.path, []).append(finding)
        changed: set[str] = set()
        for path in self._files.keys() | by_path.keys():
            findings = tuple(by_path.get(path, ()))
            file = _File(findings, look.stamps.get(path), tuple(places.uris(path)))
            before = self._files.get(path)
            if file == before:
                continue
            if before is not None:
                changed |= self._remove(set(before.uris) - set(file.uris))
            changed |= self._tell(file, look, places)
            if findings:
                self._files[path] = file
            else:
                self._files.pop(path, None)
        return changed

    def clear(self) -> set[str]:
        """Take everything back."""
        self._files.clear()
        return self._remove(set(self.notices))

    def _tell(self, file: _File, look: Look, places: Places) -> set[str]:
        client = self._client
        telling = Telling(
            places.positions,
            places.uri,
            look.report.rules,
            has_related=client.has_related,
            has_links=client.has_links,
            has_tags=client.has_tags,
        )
        items: dict[str, list[types.Diagnostic]] = {uri: [] for uri in file.uris}
        for finding in file.findings:
            uri, positions = places.uri_of(finding.span)
            item = diagnostic(finding, telling, positions)
            for address in (uri, *places.twins(finding.span.path)):
                items.setdefault(address, []).append(item)
        changed = set()
        for uri, diagnostics in items.items():
            before = self.notices.get(uri)
            if (before.items if before is not None else ()) == tuple(diagnostics):
                continue
            changed.add(uri)
            if diagnostics:
                self.notices[uri] = DiagnosticsNotice(str(next(_numbers)), tuple(diagnostics))
            else:
                del self.notices[uri]
        return changed

    def _remove(self, uris: set[str]) -> set[str]:
        return {uri for uri in uris if self.notices.pop(uri, None) is not None}
