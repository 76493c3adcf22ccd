"""Hold our fixes against the ones that the projects themselves made, bug by bug."""

import json
import subprocess
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Verdict", "compare", "show"]

Entry = dict[str, Any]
_WORDS = {
    "equal": "the lines are those of the project's own fix, byte for byte",
    "same await": "the same call is awaited; the project changed more in these lines",
    "other": "the project repaired it in another way",
    "no fix": "found, and no fix is offered (the caller is a plain `def`, a lambda, …)",
    "not found": "not found",
}
_OFFERED = ("equal", "same await", "other")


class Verdict(NamedTuple):
    """What became of one bug."""

    entry: Entry
    word: str
    ours: Sequence[str] = ()
    theirs: Sequence[str] = ()


def compare(entries: Path, repos: Path, work: Path, kinds: str = "ah") -> Iterator[Verdict]:
    """Run `troth check` on every commit that has such a bug, apply the fix at its site, and compare."""
    groups: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for line in entries.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["kind"] in kinds and entry.get("confidence") == "high" and entry.get("fix_form") == "await":
            groups[entry["repo"], entry["parent"]].append(entry)
    for (repo, commit), found in groups.items():
        bare = repos / repo.replace("/", "+") / "repo"
        tree = _unpack(bare, work / "trees" / repo.replace("/", "+") / commit[:12], commit)
        findings = _check(tree, sorted({one["path"] for one in found}))
        for entry in found:
            yield _judge(entry, tree, findings, _lines_at(bare, entry["fix"], entry["path"]))


def show(verdicts: Iterable[Verdict], *, details: bool) -> None:
    """Each verdict as it comes, if `details` are wanted; then the shares, over the bugs for which a fix is offered."""
    counts: Counter[str] = Counter()
    for one in verdicts:
        counts[one.word] += 1
        if details:
            print(f"{one.word}  {one.entry['key']}")
            theirs = one.theirs[: len(one.ours) + 6]  # where much was rewritten, the region is long
            rows = [f"    ours    {line}" for line in one.ours] + [f"    theirs  {line}" for line in theirs]
            print(*rows, sep="\n", end="\n" if rows else "", flush=True)
    offered = sum(counts[word] for word in _OFFERED)
    print(f"{counts.total()} bugs that their projects repaired with an await; a fix is offered for {offered}")
    for word, meaning in _WORDS.items():
        share = f"{counts[word] / offered:6.1%}" if offered and word in _OFFERED else " " * 6
        print(f"  {counts[word]:4}  {share}  {word}: {meaning}")


def _judge(entry: Entry, tree: Path, findings: list[Entry], theirs: list[str] | None) -> Verdict:
    at_site = [
        one for one in findings if one["path"] == entry["path"] and entry["stmt"] <= one["line"] <= entry["stmt_end"]
    ]
    if not at_site:
        return Verdict(entry, "not found")
    text = (tree / entry["path"]).read_bytes().decode("utf-8")
    before = text.splitlines()
    first, last = entry["line"] - 1, entry["end"]
    chosen = [one["fix"] for one in at_site if one["fix"] and _touches(text, one["fix"], entry)]
    if not chosen or theirs is None:
        return Verdict(entry, "no fix")
    for edit in sorted(chosen[0]["edits"], key=lambda one: (one["start"], one["end"]), reverse=True):
        text = text[: edit["start"]] + edit["text"] + text[edit["end"] :]
    ours = text.splitlines()[first:last]
    begin, end = _region(before, theirs, first, last)
    region = theirs[begin:end]
    if any(region[at : at + len(ours)] == ours for at in range(len(region) - len(ours) + 1)):
        return Verdict(entry, "equal")
    same = f"await {entry['callee']}(" in " ".join(region) and f"await {entry['callee']}(" in " ".join(ours)
    return Verdict(entry, "same await" if same else "other", ours, region)


def _touches(text: str, fix: Entry, entry: Entry) -> bool:
    lines = [text.count("\n", 0, edit["start"]) + 1 for edit in fix["edits"] if "await" in edit["text"]]
    return any(entry["line"] <= line <= entry["end"] for line in lines)


def _region(before: list[str], after: list[str], first: int, last: int) -> tuple[int, int]:
    """The lines of `after` that stand where the lines `first` to `last` of `before` stood."""
    begin, end = len(after), 0
    for _, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if i1 < last and i2 > first:
            begin, end = min(begin, j1), max(end, j2)
    return begin, end


def _check(tree: Path, paths: list[str]) -> list[Entry]:
    there = [path for path in paths if (tree / path).exists()]
    command = [sys.executable, "-m", "troth", "check", "--no-cache", "--output-format", "json", *there]
    done = subprocess.run(command, cwd=tree, capture_output=True, timeout=600, check=False)
    return list(json.loads(done.stdout)["findings"]) if done.stdout else []


def _lines_at(bare: Path, commit: str, path: str) -> list[str] | None:
    done = subprocess.run(
        ["git", "-C", bare, "show", f"{commit}:{path}"], capture_output=True, timeout=120, check=False
    )
    return done.stdout.decode("utf-8", "replace").splitlines() if done.returncode == 0 else None


def _unpack(bare: Path, here: Path, commit: str) -> Path:
    """The sources of a commit, unpacked once."""
    if (here / ".complete").exists():
        return here
    here.mkdir(parents=True, exist_ok=True)
    for pattern in ("*.py", "*.pyi"):
        archive = ["git", "-C", str(bare), "archive", commit, "--", pattern]
        with subprocess.Popen(archive, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as packing:
            try:
                with tarfile.open(fileobj=packing.stdout, mode="r|") as packed:
                    packed.extractall(here, filter="data")
            except tarfile.ReadError:
                continue  # no such file in that commit
    (here / ".complete").touch()
    return here
