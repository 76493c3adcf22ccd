"""Print what each witness and each doubt of `check` is worth: what it finds, what it silences, what it costs.

`python -m bench.check.worth [TREE …]` switches each one off by itself (`evidence/judge.py` names them) and compares
with a run that has all of them:

- the cases: programs of this repository (rule cases, specimens, families, and the cases of the witnesses and doubts)
  whose findings change;
- the trees: findings that are lost (`-`) and new (`+`) without it, as the trees are. For a witness, what is lost is
  what it finds; for a doubt, what is new is what it silences;
- planted awaits: of so many awaits that are removed, a few at a time, how many lost calls fewer (`-`) or more (`+`) are
  reported on their line without it;
- CPU: how much less (`-`) or more (`+`) a run over the trees takes without it.

What is worth nothing on trees and on planted awaits, and has no case that somebody would miss, goes.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tools.same.awaits import Await, awaits_in, without
from tools.same.programs import programs
from tools.same.troth import findings_in_program, findings_in_tree
from troth.analysis.semantics.evidence import doubts, witnesses
from troth.analysis.semantics.evidence.judge import DOUBTS, WITNESSES
from troth.analysis.semantics.evidence.switches import OFF

__all__ = ["main"]

_LOST = ("TR1", "TR2")  # the families of lost calls
_IN_A_ROUND = 12  # awaits


class Measured(NamedTuple):
    """What one run says."""

    cases: Mapping[str, frozenset[str]]
    findings: frozenset[str]
    planted: frozenset[str]  # those of the planted awaits that are reported on their line
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure with all of them, then without each, and print the differences as they come."""
    parser = argparse.ArgumentParser(prog="python -m bench.check.worth", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("trees", nargs="*", type=Path, help="projects to check and to plant in (default: cases alone)")
    parser.add_argument("--planted", type=int, default=60, metavar="N", help="awaits to remove in each tree")
    parser.add_argument("--no-cases", action="store_true", help="leave the programs of this repository out")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="of the witnesses and doubts, these alone")
    options = parser.parse_args(arguments)
    trees = [tree.resolve() for tree in options.trees]
    overlays = {tree: list(_overlays(tree, options.planted)) for tree in trees}
    count = sum(len(sites) for rounds in overlays.values() for _, sites in rounds)
    cases = {} if options.no_cases else {**dict(programs()), **_own_cases()}
    everything = _measure(cases, trees, overlays)
    print(f"{len(everything.cases)} programs, {len(trees)} trees with {len(everything.findings)} findings;", end=" ")
    print(f"{len(everything.planted)} of {count} planted awaits found; {everything.seconds:.1f} s of CPU")
    row = "{:<22}{:<9}{:>7}{:>8}{:>8}{:>9}{:>9}{:>8}"
    print(row.format("name", "kind", "cases", "lost", "new", "planted", "", "CPU"))
    kinds = {**dict.fromkeys(WITNESSES, "witness"), **dict.fromkeys(DOUBTS, "doubt")}
    for name in options.only or kinds:
        OFF.add(name)
        try:
            measured = _measure(cases, trees, overlays)
        finally:
            OFF.discard(name)
        changed = sum(measured.cases[key] != rows for key, rows in everything.cases.items())
        fewer, more = everything.findings - measured.findings, measured.findings - everything.findings
        missed, extra = everything.planted - measured.planted, measured.planted - everything.planted
        cpu = 100 * (measured.seconds / everything.seconds - 1) if trees else 0.0
        numbers = (changed, f"-{len(fewer)}", f"+{len(more)}", f"-{len(missed)}", f"+{len(extra)}", f"{cpu:+.0f} %")
        print(row.format(name, kinds[name], *numbers), flush=True)
    return 0


def _own_cases() -> dict[str, dict[str, bytes]]:
    """The cases of the witnesses and doubts, each of which one of them decides."""
    return {
        f"evidence/{module.__name__.rpartition('.')[2]}/{case.name}": {"case.py": case.program.encode()}
        for room in (doubts, witnesses)
        for found in pkgutil.iter_modules(room.__path__)
        for module in (importlib.import_module(f"{room.__name__}.{found.name}"),)
        for case in module.CASES
    }


def _measure(
    files_of: Mapping[str, dict[str, bytes]],
    trees: Sequence[Path],
    overlays: Mapping[Path, list[tuple[dict[str, bytes], set[str]]]],
) -> Measured:
    cases = {name: _rows(findings_in_program(files)) for name, files in files_of.items()}
    begin = time.process_time()
    findings = frozenset(row for tree in trees for row in _rows(findings_in_tree(tree, {})))
    seconds = time.process_time() - begin
    planted: set[str] = set()
    for tree, rounds in overlays.items():
        for overlay, sites in rounds:
            rows = findings_in_tree(tree, overlay)
            lines = {f"{tree.name}/{row['path']}:{row['line']}" for row in rows if str(row["code"]).startswith(_LOST)}
            planted |= sites & lines
    return Measured(cases, findings, frozenset(planted), seconds)


def _rows(found: Sequence[Mapping[str, object]]) -> frozenset[str]:
    return frozenset(f"{row['path']}:{row['line']}:{row['code']}:{row['confidence']}" for row in found)


def _overlays(tree: Path, count: int) -> Iterator[tuple[dict[str, bytes], set[str]]]:
    """The texts of a tree with awaits removed, at most one in a file and a few in a round.

    One await at a time would be fairer, and take a run each; so few in a round take hardly any evidence away.
    """
    texts = {path.relative_to(tree).as_posix(): path.read_bytes() for path in sorted(tree.rglob("*.py"))}
    sites = [site for name, data in texts.items() for site in awaits_in(name, data)]
    pending = sorted(sites, key=lambda site: site.rank)[:count]
    while pending:
        planted: dict[str, Await] = {}
        later: list[Await] = []
        for site in pending:
            if site.path in planted or len(planted) >= _IN_A_ROUND:
                later.append(site)
            else:
                planted[site.path] = site
        overlay = {name: without(texts[name], [site]) for name, site in planted.items()}
        yield overlay, {f"{tree.name}/{site.path}:{site.line}" for site in planted.values()}
        pending = later


if __name__ == "__main__":
    sys.exit(main())
