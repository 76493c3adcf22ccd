"""How a run is kept as JSON, so that others can read it and an interrupted run can go on."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.plan import MutationPlan
from troth.analysis.mutate.result import MutantVerdict, Result
from troth.analysis.mutate.score import ScoreTally, tally, tally_by
from troth.analysis.mutate.source.excerpt import excerpt
from troth.errors import MisuseError

__all__ = ["identity_of", "read_record", "write_record"]

_VERSION = 1


def identity_of(plan: MutationPlan, by: str, label: str, kind: str = "") -> dict[str, object]:
    """What two runs must have in common for the verdicts of one to stand for the other."""
    return {
        "by": by,
        "command": label,
        "kind": kind,
        "seed": plan.seed,
        "n": plan.n,
        "operators": list(plan.operators),
        "paths": list(plan.layout.targets),
        "tree": plan.project.digest,
    }


def write_record(path: Path, plan: MutationPlan, identity: Mapping[str, object], results: Mapping[str, Result]) -> None:
    """Write the run as it stands; the file is replaced whole, so a reader never sees half of it."""
    content = {
        "version": _VERSION,
        "run": dict(identity),
        "complete": all(mutant.key in results for mutant in plan.mutants),
        "totals": _totals(tally(results.values())),
        "by_operator": {
            name: _totals(group) for name, group in tally_by("operator", (), plan.mutants, results).items()
        },
        "by_shape": {name: _totals(group) for name, group in tally_by("shape", (), plan.mutants, results).items()},
        "left_out": dict(plan.left_out),
        "mutants": [_row(plan, mutant, results.get(mutant.key)) for mutant in plan.mutants],
    }
    waiting = path.with_name(f".{path.name}.part")
    waiting.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    waiting.replace(path)


def read_record(path: Path, identity: Mapping[str, object]) -> dict[str, Result]:
    """The verdicts of an earlier run of the same thing; raises `MisuseError` if it was another thing."""
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        run = content["run"]
        rows = [row for row in content["mutants"] if row["verdict"] is not None]
        results = {
            row["key"]: Result(row["key"], MutantVerdict(row["verdict"]), tuple(row["said"]), row["seconds"])
            for row in rows
        }
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise MisuseError(
            f"{str(path)!r} is not the record of a run: {type(problem).__name__}: {problem}.\n"
            "Nothing was done.\nLeave out `--resume` to start again."
        ) from problem
    differing = [name for name, value in identity.items() if run.get(name) != value]
    if differing:
        differences = "; ".join(f"{name} was {run.get(name)!r} and is {identity[name]!r}" for name in differing)
        raise MisuseError(
            f"{str(path)!r} is the record of another run: {differences}.\n"
            "Nothing was done: its verdicts would not be those of this run.\n"
            "Leave out `--resume` to start again, or give the run its old settings."
        )
    return results


def _totals(group: ScoreTally) -> dict[str, object]:
    return {
        "n": group.n,
        "caught_percent": round(group.percent, 1),
        "in_function_percent": round(group.percent_in_function, 1),
        **{str(verdict): group.verdicts.get(verdict, 0) for verdict in MutantVerdict},
    }


def _row(plan: MutationPlan, mutant: Mutant, result: Result | None) -> dict[str, object]:
    operator = plan.operators[mutant.operator]
    return {
        "key": mutant.key,
        "operator": mutant.operator,
        "path": mutant.path,
        "line": mutant.line,
        "function": mutant.function,
        "shape": mutant.shape,
        "subject": mutant.subject,
        "verdict": None if result is None else str(result.verdict),
        "said": [] if result is None else list(result.said),
        "seconds": 0.0 if result is None else round(result.seconds, 3),
        "change": excerpt(mutant, plan.project.sources),
        "test_that_would_catch": operator.cures[mutant.shape].format(subject=mutant.subject),
        "check_that_would_catch": operator.needs[mutant.shape].format(subject=mutant.subject),
    }
