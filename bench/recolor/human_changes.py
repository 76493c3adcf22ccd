"""Does `troth recolor` come to what people came to? `python -m bench.recolor.human_changes CLONE … [--decide]`.

From the histories of git clones (bare or not) the commits are taken whose subjects name async, await or coroutines,
and in which sync functions outside of tests became `async def`; of each clone `--most` are drawn, the same ones every
time. `--commits FILE` takes these commits instead (`human_changes.txt` beside this file has those of the README).
The tree before the commit is exported into a temporary folder, nothing of it is run or installed, and
`troth recolor FUNCTION … --to async --cascade all` is given the functions that became async.

With `--decide`, what is refused is tried again, in up to six rounds, with answers read from what the people did in
that place: follow where they made the function async and await the call, run where they run a loop, else leave.
Where their change does not say it, or only something that they did not do would settle the place, it is left if that
can be, else what is asked for is done; the changes that went through with such an answer are counted as `guessed`.
With `--furthest`, the command is given `--cascade` alone: what has to stay sync runs the coroutine, and what nobody can
tell gets a comment. Differences at such places are counted as `told` too.

Printed are how many changes go through, what stands in the way of the others, and the calls and functions that differ
from what people made of them. A difference is there to be read: people change more in a commit than colors.
"""

import argparse
import ast
import io
import json
import random
import re
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

from bench.recolor.human_answers import Answer, Clone, Comparison, People, compare, definitions, paths_of, single
from bench.recolor.random_functions import kind_of

from troth.analysis.project.test_files import is_test

SUBJECT = re.compile(r"\b(async|await|coroutine)", re.IGNORECASE)
GENERATORS = ("coroutine", "inlineCallbacks")  # a generator that waits: Python before 3.5, and Twisted
NEWEST = 400  # commits with such a subject that are looked at in each clone
FILES = 60  # of a commit; one with more is no change of color alone
FUNCTIONS = 25
ROUNDS = 6
SECONDS = 400  # for one run of the command
SHOWN = 5  # calls of a change
SUFFIXES = {".py", ".pyi", ".toml", ".cfg", ".ini", ".md", ".lock"}

COLUMNS = ("changes", "through", "decided", "guessed", "refused", "marks", "calls", "differ", "told", "colors")

Verdict = Literal["through", "through with decisions", "refused"]


class Change(NamedTuple):
    """A commit of a clone, and the functions outside of tests that became async in it, as `path:name`."""

    clone: Clone
    commit: str
    parent: str
    subject: str
    functions: tuple[str, ...]


@dataclass
class Outcome:
    """What the command made of a change. `refused` is what stood in the way at first, whatever was decided later."""

    clone: str
    commit: str
    subject: str
    functions: tuple[str, ...]
    verdict: Verdict
    refused: list[tuple[str, str]] = field(default_factory=list)
    still_refused: list[tuple[str, str]] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    marked: int = 0  # places that got a comment
    compared: Comparison = field(default_factory=lambda: Comparison(0, [], []))

    @property
    def is_guessed(self) -> bool:
        """Whether it went through with an answer that was not read from what people did."""
        return self.verdict != "refused" and not all(answer.is_theirs for answer in self.answers.values())


class Run(NamedTuple):
    """One run of the command: how it ended, its plan where it shows one, and what it says."""

    code: int
    plan: dict[str, Any] | None
    errors: str


def changes(clone: Clone, wanted: Sequence[str] = ()) -> Iterator[Change]:
    """All changes of a history, newest first; only the commits whose ids begin as `wanted`, where any are."""
    log = clone.git("log", "--no-merges", "--format=%H %P%x1f%s") or ""
    rows = [(ids.split(), subject) for ids, _, subject in (line.partition("\x1f") for line in log.splitlines())]
    if wanted:
        rows = [row for row in rows if row[0][0].startswith(tuple(wanted))]
    else:
        rows = [row for row in rows if SUBJECT.search(row[1])][:NEWEST]
    for ids, subject in rows:
        if len(ids) != 2:  # the first commit of all
            continue
        commit, parent = ids
        functions = tuple(became_async(clone, commit, parent))
        if 0 < len(functions) <= FUNCTIONS:
            yield Change(clone, commit, parent, subject, functions)


def became_async(clone: Clone, commit: str, parent: str) -> list[str]:
    """The functions outside of tests that became `async def`; none where generators that wait became so."""
    paths = clone.changed(parent, commit)
    functions: list[str] = []
    for path in paths if len(paths) <= FILES else ():
        before, after = definitions(clone.text(parent, path)), definitions(clone.text(commit, path))
        for name in before:
            old, new = single(before, name), single(after, name)
            if old is None or new is None or old.is_async or not new.is_async:
                continue
            decorators = [ast.unparse(decorator) for decorator in old.node.decorator_list]
            if any(word in decorator for word in GENERATORS for decorator in decorators):
                return []
            if not is_test(path) and not old.is_local:
                functions.append(f"{path}:{name}")
    return functions


def drawn(clone: Clone, most: int, seed: int) -> list[Change]:
    """Some changes of a clone. One that was made on several branches counts once."""
    distinct = list({(change.subject, change.functions): change for change in changes(clone)}.values())
    random.Random(seed).shuffle(distinct)
    return distinct[:most]


def export(change: Change, folder: Path) -> None:
    """Write the sources before the change, and the settings that say how they are to be read."""
    listing = change.clone.git("ls-tree", "-rz", "--name-only", change.parent) or ""
    names = [PurePosixPath(name) for name in listing.split("\0")]
    # git refuses a pattern that matches nothing. What matches none of these is not asked for: a mirror may lack large
    # files, of which git complains, and exports the others.
    kinds = [f"*{suffix}" for suffix in sorted(SUFFIXES & {name.suffix for name in names})]
    kinds += [":(glob)**/requirements*.txt"] if any(name.match("requirements*.txt") for name in names) else []
    command = ["git", "-C", str(change.clone.path), "archive", "--format=tar", change.parent, "--", *kinds]
    packing = subprocess.run(command, capture_output=True, check=False)
    if packing.returncode:
        message = packing.stderr.decode("utf-8", "replace").strip()
        raise SystemExit(f"git cannot export {change.parent} of {change.clone.path}: {message}")
    with tarfile.open(fileobj=io.BytesIO(packing.stdout)) as packed:
        for member in packed:
            if member.isfile():  # a link may lead out of the folder
                packed.extract(member, folder, filter="data")
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)  # the root of a project is where this is


def recolor(
    folder: Path, functions: Sequence[str], decisions: Path | None = None, cascade: Sequence[str] = ("all",)
) -> Run:
    """Run the command in `folder`, by the running Python; `-P` keeps the folder's modules from being imported."""
    command = [sys.executable, "-P", "-m", "troth", "recolor", *functions, "--to", "async", "--cascade", *cascade]
    command += ["--all", "--allow-dirty", "--output-format", "json"]
    command += [] if decisions is None else ["--decide", str(decisions)]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Run(-1, None, f"not ready after {SECONDS} s")
    return Run(done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else None, done.stderr.strip())


def reasons(run: Run) -> list[tuple[str, str]]:
    """What stands in the way: a kind, and the place with its words."""
    plan: Mapping[str, Any] = run.plan or {}
    found = [
        (f"unable: {kind_of(unable['why'])}", f"{unable['path']}:{unable['line']} {unable['why']}")
        for unable in plan.get("unable", ())
    ]
    for problem in plan.get("problems", ()):
        place = f"{problem['path']}:{problem['line']} {problem['text']}"
        found.append((kind_of(problem["why"]), f"{place}: {problem['why']}"))
    found += [
        ("unknown receiver", f"{site['path']}:{site['line']} {site['text']}")
        for site in plan.get("unknown", ())
        if site["in"] in {"code", "notebook"}
    ]
    if found:
        return found
    first, _, rest = run.errors.partition("\n")
    return [(kind_of(first), rest.strip().partition("\n")[0])]


def tried(change: Change, *, decide: bool, cascade: Sequence[str] = ("all",)) -> Outcome:
    """Run the command on the tree before the change, and compare what it makes with what people made."""
    people = People(change.clone, change.commit)
    outcome = Outcome(change.clone.name, change.commit, change.subject, change.functions, "refused")
    with TemporaryDirectory() as work:
        tree, decisions = Path(work, "tree"), Path(work, "decisions")
        tree.mkdir()
        export(change, tree)
        run = recolor(tree, change.functions, None, cascade)
        outcome.refused = [] if run.code == 0 else reasons(run)
        for _ in range(ROUNDS if decide else 0):
            answers = people.answers(run.plan, run.errors) if run.code else {}
            if not answers.keys() - outcome.answers.keys():
                break
            outcome.answers = answers | outcome.answers
            lines = (f"{place}: {answer.text}\n" for place, answer in outcome.answers.items())
            decisions.write_text("".join(lines), encoding="utf-8")
            run = recolor(tree, change.functions, decisions, cascade)
        if run.code:
            outcome.still_refused = reasons(run)
        elif run.plan is not None:
            outcome.verdict = "through with decisions" if outcome.answers else "through"
            changed = (*run.plan["definitions"], *run.plan["followers"])
            names = {function["name"].rpartition(".")[2] for function in changed}
            paths = paths_of(run.plan) | set(change.clone.changed(change.parent, change.commit))
            outcome.marked = len(run.plan["marked"])
            told = {(place["path"], place["text"]) for place in (*run.plan["marked"], *run.plan["runs"])}
            outcome.compared = compare(people, change.parent, tree, paths, names, told)
    return outcome


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The lines of all projects, and of all together; then what stood in the way; then what differs."""
    projects = list(dict.fromkeys(outcome.clone for outcome in outcomes))
    yield " ".join((f"{'':<28}", *(f"{title:>8}" for title in COLUMNS)))
    for project in projects:
        yield _row(project, [outcome for outcome in outcomes if outcome.clone == project])
    yield _row("all", outcomes)
    yield "\nIn the way at first, by kind, each counted once for a change"
    yield from _kinds([(outcome, outcome.refused) for outcome in outcomes])
    if any(outcome.answers for outcome in outcomes):
        yield "\nIn the way with decisions"
        yield from _kinds([(outcome, outcome.still_refused) for outcome in outcomes])
    yield f"\nCalls that differ, at most {SHOWN} of a change (`--json` has all, and the functions of another color)"
    for outcome in outcomes:
        differing = outcome.compared.differing
        if differing:
            yield f"  {outcome.clone} {outcome.commit[:8]} {outcome.subject[:60]}"
            yield from (f"    {line}" for line in differing[:SHOWN])
        if len(differing) > SHOWN:
            yield f"    … and {len(differing) - SHOWN} more"


def _row(name: str, outcomes: Sequence[Outcome]) -> str:
    verdicts = Counter(outcome.verdict for outcome in outcomes)
    figures = (
        len(outcomes),
        verdicts["through"],
        verdicts["through with decisions"],
        sum(outcome.is_guessed for outcome in outcomes),
        verdicts["refused"],
        sum(outcome.marked for outcome in outcomes),
        sum(outcome.compared.calls for outcome in outcomes),
        sum(len(outcome.compared.differing) for outcome in outcomes),
        sum(line.endswith("(told)") for outcome in outcomes for line in outcome.compared.differing),
        sum(len(outcome.compared.colors) for outcome in outcomes),
    )
    return " ".join((f"{name:<28}", *(f"{figure:>8}" for figure in figures)))


def _kinds(refusals: Sequence[tuple[Outcome, list[tuple[str, str]]]]) -> Iterator[str]:
    count: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for outcome, found in refusals:
        count.update({kind for kind, _ in found})
        for kind, text in found:
            examples.setdefault(kind, f"{outcome.clone} {outcome.commit[:8]}: {text}")
    for kind, number in count.most_common():
        yield f"{number:>5}  {kind}\n         {examples[kind]}"


def main(argv: Sequence[str] | None = None) -> None:
    """Find, draw, run, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clones", nargs="+", type=Path, metavar="CLONE")
    parser.add_argument("--most", type=int, default=5, help="changes of each clone (default: 5)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--commits", type=Path, metavar="FILE", help="only these, one to a line, instead of a draw")
    parser.add_argument("--decide", action="store_true", help="answer what is asked as people did")
    parser.add_argument("--furthest", action="store_true", help="`--cascade` alone, which marks what nobody can tell")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write everything that was seen")
    args = parser.parse_args(argv)
    wanted: list[str] = []
    if args.commits is not None:
        lines = (line.split() for line in args.commits.read_text(encoding="utf-8").splitlines())
        wanted = [words[0] for words in lines if words and not words[0].startswith("#")]
        if not wanted:
            parser.error(f"{args.commits} names no commits")
    outcomes = []
    for path in args.clones:
        clone = Clone(path.resolve())
        if clone.git("rev-parse", "HEAD") is None:
            parser.error(f"{path} is no git clone with a history")
        for change in list(changes(clone, wanted)) if wanted else drawn(clone, args.most, args.seed):
            outcomes.append(tried(change, decide=args.decide, cascade=() if args.furthest else ("all",)))
            print(f"{clone.name} {change.commit[:8]}  {outcomes[-1].verdict}  {change.subject[:60]}", flush=True)
    print("\n".join(("", *table(outcomes))))
    ids = [outcome.commit for outcome in outcomes]
    for commit in wanted:
        if not any(one.startswith(commit) for one in ids):
            print(f"Not found, or no change of this kind: {commit}")
    if args.json is not None:
        rows = [asdict(outcome) for outcome in outcomes]
        args.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
