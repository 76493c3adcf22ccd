"""How often does a change of color go through? `python -m bench.recolor.random_functions TREE … [--count 25]`.

From each tree sync functions and methods outside tests are drawn at random (the same ones every time), and for each
the plan of `troth recolor TARGET --to async --cascade all` is made. What Python itself calls (`__init__`) is not drawn.
Printed are the share that goes through, and what stands in the way of the others, by count and with an example; with
`--check` the changed tree is parsed and checked as well, as the command does before it writes. With `--back`, all that
became async is made sync again in the changed tree: every file should be what it was, byte for byte.
"""

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from troth.analysis.check import CheckRequest, check, prepare
from troth.analysis.findings import Finding
from troth.analysis.project.project import Project
from troth.analysis.project.test_files import is_test
from troth.analysis.recolor.check_plan import awaiting_lost, not_in, rewritten, split_blocking
from troth.analysis.recolor.plan import Plan
from troth.analysis.recolor.project.workspace import RecolorWorkspace, Subject, read_workspace
from troth.analysis.recolor.reach.boundary import Boundary
from troth.analysis.recolor.recolor import marking_of
from troth.analysis.recolor.to_async import plan_async
from troth.analysis.recolor.to_sync import plan_sync
from troth.analysis.semantics import Program
from troth.analysis.semantics.symbols import Function
from troth.errors import InternalError


def drawn(program: Program, count: int, seed: int) -> list[Function]:
    """Sync functions that a user can name, in a random order that stays the same."""
    found = []
    for module in program.own_modules():
        if is_test(module.path) or not module.path.endswith(".py") or module.path.endswith("setup.py"):
            continue
        for index in range(1, len(module.facts.functions)):
            function = module.function(index)
            is_special = function.name.startswith("__") and function.name.endswith("__")
            if not function.is_async and function.parent is None and not is_special:
                found.append(function)
    found.sort(key=lambda one: (one.place, one.qualname))
    random.Random(seed).shuffle(found)
    return found[:count]


def reasons(plan: Plan) -> Iterator[tuple[str, str]]:
    """What stands in the way: a kind, and the place with its words."""
    for waits in plan.unable:
        yield f"unable: {kind_of(waits.why)}", f"{waits.function.place[0]}:{waits.line} {waits.why}"
    for problem in plan.problems:
        yield kind_of(problem.why), f"{problem.path}:{problem.line} {problem.text}: {problem.why}"
    for site in plan.unknown:
        if site.tree.view.kind in {"code", "notebook"}:
            yield "unknown receiver", f"{site.path}:{site.line} {site.text}"


def kind_of(why: str) -> str:
    """A reason without its names and places, so that reasons can be counted."""
    tidy = re.sub(r"\([^()]*:\d+\)|at \S+:\d+|\(line \d+\)", "", why)
    return re.sub(r"`[^`]*`", "…", tidy).strip()


class Tree:
    """A tree that is read once, and looked at after each change."""

    def __init__(self, path: Path, count: int, seed: int, boundary: Boundary, *, properties: bool) -> None:
        self.boundary = boundary
        self.properties = properties
        self.prepared = prepare(CheckRequest(cwd=path, paths=(str(path),), cache=False))
        self.project: Project = self.prepared.scope.project
        chosen: list[Function] = []

        def about(program: Program) -> Subject:
            chosen[:] = drawn(program, count, seed)
            return Subject(frozenset(one.name for one in chosen), {})

        self.workspace: RecolorWorkspace = read_workspace(self.project, about)
        self.functions = [self.workspace.program.module(one.module.path).function(one.index) for one in chosen]
        self._before: list[Finding] | None = None

    def plan(self, function: Function) -> Plan:
        """The plan with all callers."""
        target = f"{function.module.path}:{function.qualname}"
        marking = marking_of(self.workspace)
        return plan_async(
            self.workspace, target, [function], "all", self.boundary, marking=marking, properties=self.properties
        )

    def back(self, plan: Plan) -> list[str]:
        """What is not as before once all that became async in the plan is sync again."""
        there = {change.path: change for change in rewritten(self.project.root, plan.edits)}
        overlay = {path: change.after for path, change in there.items()}
        changed = {(one.module.path, one.qualname) for one in (*plan.definitions, *plan.followers)}
        names = frozenset(name.rpartition(".")[2] for _, name in changed)
        workspace = read_workspace(self.project, lambda _program: Subject(names, {}), overlay=overlay)
        functions = [
            module.function(index)
            for module in workspace.program.own_modules()
            for index, facts in enumerate(module.facts.functions)
            if index and (module.path, facts.qualname) in changed and module.function(index).is_async
        ]
        returning = plan_sync(workspace, "all of it", functions, "none")
        stopped = [f"back: {text}" for _, text in reasons(returning)]
        if stopped:
            return stopped
        after = {change.path: change.after for change in rewritten(self.project.root, returning.edits, overlay)}
        return [
            f"back: {path} is not as it was"
            for path, change in there.items()
            if after.get(path, change.after) != change.before
        ]

    def fresh(self, plan: Plan) -> list[str]:
        """What is wrong with the tree after the change."""
        try:
            changes = rewritten(self.project.root, plan.edits)
        except InternalError as error:
            return [f"does not parse: {error}"]
        if self._before is None:
            self._before = self._look({})
        after = self._look({change.path: change.after for change in changes})
        changes, lost = awaiting_lost(plan, changes, after)
        if lost:
            after = self._look({change.path: change.after for change in changes})
        fresh, _ = split_blocking(plan, not_in(self._before, after))
        return [f"{one.code} {one.span.path}:{one.span.line} {one.message}" for one in fresh]

    def _look(self, overlay: Mapping[str, bytes]) -> list[Finding]:
        return list(check(self.prepared._replace(overlay={**self.prepared.overlay, **overlay})).findings)


def main() -> None:
    """Draw, plan, count, print."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="+", type=Path, metavar="TREE")
    parser.add_argument("--count", type=int, default=25)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--boundary", choices=("auto",), help="run it wherever a caller has to stay plain")
    parser.add_argument("--properties", action="store_true", help="a property becomes a method")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--back", action="store_true", help="and sync again")
    parser.add_argument("--details", type=Path, metavar="FILE", help="write a line of JSON for each function")
    args = parser.parse_args()
    boundary = Boundary(runner="bridge.run", is_auto=True) if args.boundary else Boundary()
    why: Counter[str] = Counter()
    examples: dict[str, str] = {}
    through = total = 0
    returned: Counter[bool] = Counter()
    rows = []
    for path in args.trees:
        started = time.process_time()
        tree = Tree(path.resolve(), args.count, args.seed, boundary, properties=args.properties)
        here = 0
        for function in tree.functions:
            plan = tree.plan(function)
            found = list(reasons(plan))
            if not found and args.back:
                not_back = tree.back(plan)
                returned[bool(not_back)] += 1
                if not_back:
                    print(f"  {function.module.path}:{function.qualname}: {not_back[0]}")
            if not found and args.check:
                found = [("found after the change", one) for one in tree.fresh(plan)]
            here += not found
            for kind in {kind for kind, _ in found}:
                why[kind] += 1
            for kind, text in found:
                examples.setdefault(kind, f"{path.name}: {text}")
            name = f"{function.module.path}:{function.qualname}"
            row = {
                "tree": path.name, "function": name, "edits": len(plan.edits), "followers": len(plan.followers),
                "why": [text for _, text in found],
            }  # fmt: skip
            rows.append(row)
        through, total = through + here, total + len(tree.functions)
        seconds = time.process_time() - started
        print(f"{path.name:<24} {here:>3} of {len(tree.functions):>3} through, {seconds:.0f} s CPU")
    print(f"{'all':<24} {through:>3} of {total:>3} through ({100 * through / max(total, 1):.0f} %)")
    if args.back:
        print(f"{'there and back':<24} {returned[False]:>3} of {returned.total():>3} as they were")
    for kind, number in why.most_common():
        print(f"{number:>5}  {kind}\n         {examples[kind]}")
    if args.details is not None:
        args.details.write_text("".join(f"{json.dumps(one)}\n" for one in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
