"""Tell a run in plain text that reads well at 80 columns; survivors are the product and come last."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.plan import MutationPlan
from troth.analysis.mutate.result import MutantVerdict, Result
from troth.analysis.mutate.score import ScoreTally, tally, tally_by
from troth.analysis.mutate.source.excerpt import excerpt

__all__ = ["render", "render_list"]

_WIDTH = 80

_APART = {
    MutantVerdict.BROKEN: "not planted: the changed file would not parse",
    MutantVerdict.CRASHED: "the checker crashed or ran out of time on it",
    MutantVerdict.UNREACHED: "no test reaches it",
    MutantVerdict.HUNG: "the tests did not end",
}

_WARNINGS = (
    "A lost coroutine leaves a warning when it is collected. Tests that turn warnings into errors "
    "(`pytest -W error`) may catch more of these."
)


def render(plan: MutationPlan, results: Mapping[str, Result], *, by: str, label: str) -> str:
    """The whole report; `by` is `checker` or `tests`."""
    judged = [mutant for mutant in plan.mutants if mutant.key in results]
    lines = [*_head(plan, judged, label), ""]
    lines += [*_summary(tally(results.values()), by), ""]
    shapes = tuple(dict.fromkeys(shape for operator in plan.operators.values() for shape in operator.shapes))
    for title, groups in (
        ("by shape", tally_by("shape", shapes, judged, results)),
        ("by operator", tally_by("operator", (), judged, results)),
    ):
        if len(groups) > 1:
            lines += [*_table(title, groups, by), ""]
    for verdict, why in _APART.items():
        lines += _short_list(why, [mutant for mutant in judged if results[mutant.key].verdict is verdict], results)
    elsewhere = [mutant for mutant in judged if results[mutant.key].verdict is MutantVerdict.ELSEWHERE]
    lines += _short_list("reported elsewhere in the function, not on the line", elsewhere, results)
    survivors = [mutant for mutant in judged if results[mutant.key].verdict is MutantVerdict.SURVIVED]
    if survivors:
        lines += [f"survivors ({len(survivors)})", ""]
        for number, mutant in enumerate(survivors, 1):
            lines += [*_survivor(number, plan, mutant, results[mutant.key], by), ""]
        if by == "tests" and "-W error" not in label:
            lines += textwrap.wrap(_WARNINGS, _WIDTH)
    return "\n".join(lines).rstrip() + "\n"


def render_list(plan: MutationPlan) -> str:
    """The mutants that would be planted, each with its change."""
    lines = [*_head(plan, plan.mutants, ""), ""]
    for number, mutant in enumerate(plan.mutants, 1):
        lines += [_title(number, mutant), *_change(plan, mutant), ""]
    return "\n".join(lines).rstrip() + "\n"


def _head(plan: MutationPlan, mutants: Sequence[Mutant], label: str) -> Iterator[str]:
    files = f"{len({mutant.path for mutant in mutants})} of {_files(len(plan.layout.chosen))}"
    yield _fit(
        f"{len(mutants)} {'mutant' if len(mutants) == 1 else 'mutants'} in {files}, "
        f"of {plan.possible} possible (seed {plan.seed})"
    )
    if len(plan.mutants) < min(plan.n, plan.possible):
        yield "at most one mutant is planted in each outermost function"
    if len(mutants) < len(plan.mutants):
        yield f"interrupted: {len(plan.mutants) - len(mutants)} more were not measured"
    if label:
        yield _fit(f"scored: {label}")
    if plan.left_out:
        yield f"left out, because they cannot be read: {len(plan.left_out)}"
        yield from (_fit(f"  {path}: {why}") for path, why in plan.left_out.items())


def _files(count: int) -> str:
    return f"{count} file" if count == 1 else f"{count} files"


def _summary(whole: ScoreTally, by: str) -> Iterator[str]:
    names = {
        MutantVerdict.CAUGHT: "caught on the line" if by == "checker" else "caught",
        MutantVerdict.ELSEWHERE: "elsewhere in the function",
        MutantVerdict.SURVIVED: "survived",
    }
    for verdict, name in names.items():
        count = whole.verdicts.get(verdict, 0)
        if by == "checker" or verdict is not MutantVerdict.ELSEWHERE:
            yield f"  {name:<28}{count:>5}{_percent(count, whole.n)}"
    for verdict in _APART:
        if count := whole.verdicts.get(verdict, 0):
            yield f"  {verdict + ' (not counted)':<28}{count:>5}"


def _table(title: str, groups: Mapping[str, ScoreTally], by: str) -> Iterator[str]:
    second = "in the function" if by == "checker" else ""
    yield f"{title:<22}{'n':>5}  {'on the line' if by == 'checker' else 'caught':>13}  {second:>16}".rstrip()
    for name, group in groups.items():
        row = f"  {name:<20}{group.n:>5}  {group.caught:>5}{_percent(group.caught, group.n)}"
        yield row + (f"  {group.in_function:>8}{_percent(group.in_function, group.n)}" if by == "checker" else "")


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:>6.0f} %" if whole else "       -"


def _short_list(why: str, mutants: Sequence[Mutant], results: Mapping[str, Result]) -> Iterator[str]:
    if not mutants:
        return
    yield f"{why} ({len(mutants)})"
    for mutant in mutants:
        yield _fit(f"  {mutant.path}:{mutant.line}  {mutant.shape}  {mutant.subject}")
        for message in results[mutant.key].said[:1]:
            yield _fit(f"      {' '.join(message.split())}")
    yield ""


def _survivor(number: int, plan: MutationPlan, mutant: Mutant, result: Result, by: str) -> Iterator[str]:
    yield _title(number, mutant)
    yield from _change(plan, mutant)
    for message in result.said:
        yield _fit(f"    reported there, of another kind: {' '.join(message.split())}")
    operator = plan.operators[mutant.operator]
    advice = (operator.needs if by == "checker" else operator.cures)[mutant.shape].format(subject=mutant.subject)
    yield from _wrapped("would catch it: ", advice)


def _title(number: int, mutant: Mutant) -> str:
    return _fit(f"{number:>3}. {mutant.path}:{mutant.line}  {mutant.operator}, {mutant.shape}, in {mutant.function}")


def _change(plan: MutationPlan, mutant: Mutant) -> Iterator[str]:
    for row in excerpt(mutant, plan.project.sources):
        yield _fit(f"    {row.expandtabs(4)}")


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=f"    {head}", subsequent_indent="      ")


def _fit(line: str) -> str:
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"
