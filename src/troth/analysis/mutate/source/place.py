"""Write down one place of a file as a mutant."""

import ast
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence

from troth.analysis.findings import Edit
from troth.analysis.mutate.mutant import Mutant
from troth.analysis.mutate.source.module import Outermost, SourceModule

__all__ = ["NumberedPlaces"]


class NumberedPlaces:
    """Numbers the places that one operator finds in the functions of one file."""

    def __init__(self, module: SourceModule, operator: str) -> None:
        self._module = module
        self._operator = operator
        self._ordinals: Counter[str] = Counter()

    def mutant(
        self,
        node: ast.expr | ast.stmt,
        shape: str,
        edits: Sequence[Edit],
        *,
        subject: str,
        also: Iterable[Outermost] = (),
        reached_at: ast.stmt | None = None,
    ) -> Mutant:
        """The mutant that `edits` make, to be reported at `node`; `also` are further functions the edits change.

        A finding is "on the line" on the lines of `node` and on the first line of its statement, where some checkers
        report what is wrong in the middle of it. `reached_at` is the statement that runs when the mutant is reached,
        where that is not the one around `node`.
        """
        module, home = self._module, self._module.homes[node]
        self._ordinals[home.name] += 1
        start = module.start(node)
        statement = module.statement(node)
        first = module.start(statement)
        runs = reached_at or statement
        last = (node if reached_at is None else reached_at).end_lineno or runs.lineno
        return Mutant(
            operator=self._operator,
            path=module.path,
            function=home.name,
            ordinal=self._ordinals[home.name],
            shape=shape,
            line=node.lineno,
            subject=textwrap.shorten(subject, 60, placeholder="…"),
            edits=tuple(sorted(edits)),
            marks=((first, first), (start, module.end(node))),
            home=(module.start(home.node), module.end(home.node)),
            touches=frozenset(f"{module.path}:{function.name}" for function in (home, *also)),
            run_lines=(runs.lineno, last),
            probe=_probe(module, runs),
        )


def _probe(module: SourceModule, statement: ast.stmt) -> tuple[int, str]:
    """Where a further statement can stand before this one, and what has to come between the two."""
    source = module.file
    while _is_tied(module, statement):
        statement = module.statement(module.parents[statement])
    start = module.start(statement)
    if not hasattr(statement, "body") and not isinstance(statement, (ast.Try, ast.Match)):
        return start, "; "
    return start, source.newline + source.text[source.line_starts[statement.lineno - 1] : start]


def _is_tied(module: SourceModule, statement: ast.stmt) -> bool:
    """Whether nothing can stand before the statement: an `elif`, or a definition below its decorators."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return bool(statement.decorator_list)
    return isinstance(statement, ast.If) and module.file.text.startswith("elif", module.start(statement))
