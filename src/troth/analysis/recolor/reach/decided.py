"""Apply what people have decided to the calls that were found."""

from collections.abc import Collection
from dataclasses import replace

from troth.analysis.recolor.decisions import Decisions
from troth.analysis.recolor.project.sites import CallSite, Sites
from troth.analysis.semantics.symbols import Function

__all__ = ["decided"]


def decided(sites: Sites, changed: Collection[Function], decisions: Decisions) -> Sites:
    """The sites with those among the calls that somebody has decided to be meant, and without those that are left."""
    if not decisions.answers:
        return sites
    meant = [
        replace(site, functions=tuple(function for function in changed if function.name == site.name))
        for site in (*sites.unknown, *sites.mixed)
        if decisions.about(site.caller, site.path, site.line) in {"recolor", "boundary"}
    ]
    nodes = {site.node for site in meant}

    def rest(found: tuple[CallSite, ...]) -> tuple[CallSite, ...]:
        return tuple(
            site
            for site in found
            if site.node not in nodes and decisions.about(site.caller, site.path, site.line) != "leave"
        )

    return replace(sites, calls=(*sites.calls, *meant), unknown=rest(sites.unknown), mixed=rest(sites.mixed))
