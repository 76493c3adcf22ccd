"""Knows how to write down one place of a file as a mutant."""

import ast
from collections import Counter
from collections.abc import Iterable, Sequence

from troth.analysis.findings import Edit
from troth.analysis.mutate.module import Module, Outermost
from troth.analysis.mutate.mutant import Mutant

__all__ = ["Places"]


class Places:
    """Numbers the places that one operator finds in the functions of one file."""

    def __init__(self, module: Module, operator: str) -> None:
        self._module = module
        self._operator = operator
        self._seen: Counter[str] = Counter()

    def mutant(
        self,
        node: ast.expr | ast.stmt,
        shape: str,
        edits: Sequence[Edit],
        *,
        subject: str,
        also: Iterable[Outermost] = (),
    ) -> Mutant:
        """The mutant that `edits` make, to be reported at `node`; `also` are further functions the edits change.

        A finding is "on the line" on the lines of `node` and on the first line of its statement, where some checkers
        report what is wrong in the middle of it.
        """
        module, home = self._module, self._module.homes[node]
        self._seen[home.name] += 1
        start = module.start(node)
        first = module.start(module.statement(node))
        return Mutant(
            operator=self._operator,
            path=module.path,
            function=home.name,
            ordinal=self._seen[home.name],
            shape=shape,
            line=node.lineno,
            subject=" ".join(subject.split()),
            edits=tuple(sorted(edits)),
            marks=((first, first), (start, module.end(node))),
            home=(module.start(home.node), module.end(home.node)),
            touches=frozenset(f"{module.path}:{one.name}" for one in (home, *also)),
        )
