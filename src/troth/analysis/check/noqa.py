"""Find which comments for other linters speak of the very thing that a finding tells, so that it is not told again.

`# noqa: RUF006` says that somebody has seen the dropped task and means it, and `# type: ignore[unused-coroutine]` that
a coroutine is dropped on purpose. Only codes count that say the same as one of our rules, and for `blocking-call` only
those that mean the same kind of waiting. A bare `# noqa` or `# type: ignore` names nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from troth.analysis.findings import Finding
from troth.analysis.source.allow import Allow

__all__ = ["CODES", "without_acknowledged"]


class _Same(NamedTuple):
    """Rules of ours, and the kind of finding that is meant; none for all of them."""

    codes: tuple[str, ...]
    kind: str = ""

    def says(self, finding: Finding) -> bool:
        return finding.code in self.codes and self.kind in ("", finding.kind)


_NETWORK = _Same(("TR602",), "network")
_PROGRAM = _Same(("TR602", "TR606"), "subprocess")
_FILE = _Same(("TR606",), "file")
_DROPPED = ("TR101", "TR113", "TR201")  # a call whose coroutine nobody takes: plainly, in a `try`, beside its siblings
CODES: Mapping[str, _Same] = {
    "reportUnusedCoroutine": _Same(_DROPPED),  # pyright, basedpyright
    "unused-coroutine": _Same(_DROPPED),  # mypy, pyrefly
    "unused-awaitable": _Same((*_DROPPED, "TR112")),  # mypy, ty: tasks and futures as well
    "RUF006": _Same(("TR112", "TR701")),  # asyncio-dangling-task
    "ASYNC300": _Same(("TR112", "TR701")),  # create-task-no-reference
    "RUF029": _Same(("TR301",)),  # unused-async
    "ASYNC124": _Same(("TR301",)),  # async-function-could-be-sync
    "ASYNC210": _NETWORK,
    "ASYNC211": _NETWORK,
    "ASYNC212": _NETWORK,
    "ASYNC220": _PROGRAM,
    "ASYNC221": _PROGRAM,
    "ASYNC222": _PROGRAM,
    "ASYNC230": _FILE,
    "ASYNC231": _FILE,
    "ASYNC232": _FILE,
    "ASYNC240": _FILE,
    "ASYNC251": _Same(("TR602",), "sleep"),
}


def without_acknowledged(findings: Iterable[Finding], comments: Sequence[Allow]) -> tuple[list[Finding], list[Finding]]:
    """Part findings into those that are news, and those that a comment for another linter stands beside."""
    by_path: dict[str, list[Allow]] = {}
    for comment in comments:
        if comment.codes:
            by_path.setdefault(comment.span.path, []).append(comment)
    news: list[Finding] = []
    acknowledged: list[Finding] = []
    for finding in findings:
        file_comments = by_path.get(finding.span.path, ())
        is_known = any(_speaks_of(comment, finding) and comment.covers(finding) for comment in file_comments)
        (acknowledged if is_known else news).append(finding)
    return news, acknowledged


def _speaks_of(comment: Allow, finding: Finding) -> bool:
    return any(same.says(finding) for code in comment.codes if (same := CODES.get(code)) is not None)
