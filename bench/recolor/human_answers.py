"""Read a change that people made: which functions became async, what they decided there, and which calls they await."""

import ast
import copy
import re
import subprocess
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Answer", "Clone", "Comparison", "Definition", "People", "compare", "definitions", "paths_of", "single"]

Node = ast.FunctionDef | ast.AsyncFunctionDef

_RUNS_A_LOOP = re.compile(
    r"asyncio\.run\(|run_until_complete|run_coroutine_threadsafe|async_to_sync|bridge\.run|anyio\.run|create_task"
    r"|ensure_future|run_async|run_sync"
)
_DECIDED_BY = re.compile(r"decided by\s+(\S.*): (.*)")


class Definition(NamedTuple):
    """A function as it is written; `is_local` where it stands in another function."""

    node: Node
    is_local: bool

    @property
    def is_async(self) -> bool:
        """Whether it is an `async def`."""
        return isinstance(self.node, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Clone:
    """A git clone, bare or not."""

    path: Path

    @property
    def name(self) -> str:
        """What the clone is called in the output."""
        inner = self.path.name in {"repo", ".git"}
        return (self.path.parent if inner else self.path).name.removesuffix(".git")

    def git(self, *arguments: str) -> str | None:
        """What git says, or None where it refuses."""
        command = ["git", "-C", str(self.path), *arguments]
        done = subprocess.run(command, capture_output=True, check=False)
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None

    def text(self, commit: str, path: str) -> str:
        """A file at a commit; empty where there is none."""
        return self.git("show", f"{commit}:{path}") or ""

    def changed(self, parent: str, commit: str) -> list[str]:
        """The Python files that differ."""
        names = self.git("diff", "--name-only", "--no-renames", "-z", parent, commit, "--", "*.py") or ""
        return [name for name in names.split("\0") if name]


def definitions(source: str) -> dict[str, list[Definition]]:
    """All functions of a file by their qualified names; none where this Python cannot read it."""
    try:
        with warnings.catch_warnings(action="ignore"):
            module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    functions: dict[str, list[Definition]] = {}

    def visit(node: ast.AST, prefix: str, *, is_local: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Node):
                name = f"{prefix}{child.name}"
                functions.setdefault(name, []).append(Definition(child, is_local))
                visit(child, f"{name}.", is_local=True)
            elif isinstance(child, ast.ClassDef):
                visit(child, f"{prefix}{child.name}.", is_local=is_local)
            else:
                visit(child, prefix, is_local=is_local)

    visit(module, "", is_local=False)
    return functions


def single(functions: Mapping[str, Sequence[Definition]], name: str) -> Definition | None:
    """The function of that name where there is exactly one."""
    same_name = functions.get(name, ())
    return same_name[0] if len(same_name) == 1 else None


class Answer(NamedTuple):
    """A decision; `is_theirs` where the change that people made says so.

    It does not where the function is gone, where a line stands in no function, or where only what they did not do
    would settle the place; then it is left if that can be, else what is asked for is done.
    """

    text: str
    is_theirs: bool


@dataclass
class People:
    """What people did in a commit, asked place by place."""

    clone: Clone
    commit: str
    _files: dict[str, dict[str, list[Definition]]] = field(default_factory=dict)

    def file(self, path: str) -> dict[str, list[Definition]]:
        """The functions of a file after their change."""
        if path not in self._files:
            self._files[path] = definitions(self.clone.text(self.commit, path))
        return self._files[path]

    def answers(self, plan: Mapping[str, Any] | None, errors: str) -> dict[str, Answer]:
        """An answer to all that a refused plan asks, by place."""
        answers: dict[str, Answer] = {}
        for question in (*_asked_by_plan(plan or {}), *_asked_by_check(errors)):
            theirs = self._answer(question)
            otherwise = "leave" if "leave" in question.choices else question.choices[0]
            is_theirs = theirs in question.choices
            answers.setdefault(question.place, Answer(theirs if theirs and is_theirs else otherwise, is_theirs))
        return answers

    def _answer(self, question: "_Question") -> str | None:
        """Follow where they made the function async and await that call, run where they run a loop, else leave."""
        path, _, name = (question.caller or question.place).partition(":")
        same_name = self.file(path).get(name)
        if same_name is None:
            return None
        function = same_name[-1]
        if function.is_async:
            return "leave" if question.callee and not _awaits(function.node, question.callee) else "recolor"
        runs = "boundary" in question.choices and _RUNS_A_LOOP.search(ast.unparse(function.node))
        return "boundary" if runs else "leave"


class _Question(NamedTuple):
    place: str
    choices: tuple[str, ...]
    callee: str = ""  # only where it is about one call
    caller: str = ""  # the function around a place that is a line


def _asked_by_plan(plan: Mapping[str, Any]) -> Iterator[_Question]:
    for problem in plan.get("problems", ()):
        yield from _question(problem["settled_by"])
    for site in plan.get("unknown", ()):
        if site["in"] in {"code", "notebook"}:
            caller = f"{site['path']}:{site['caller'] or '<module>'}"
            for question in _question(site["settled_by"]):
                callee = site["text"].rpartition(".")[2] if question.place == caller else site["text"]
                yield question._replace(callee=callee, caller=caller)
    for unable in plan.get("unable", ()):
        yield from _question(unable["settled_by"])


def _question(settled_by: Sequence[str]) -> Iterator[_Question]:
    if settled_by:
        place = settled_by[0].rpartition(": ")[0]
        yield _Question(place, tuple(line.rpartition(": ")[2] for line in settled_by))


def _asked_by_check(errors: str) -> Iterator[_Question]:
    """What the check of the changed tree leaves to people; it is named in the message alone."""
    for place, choices in _DECIDED_BY.findall(errors):
        yield _Question(place, tuple(choice.strip() for choice in choices.split("|")))


def _awaits(function: ast.AST, callee: str) -> bool:
    """Whether a call of `callee`, a last name or a whole expression, is awaited there."""
    for node in ast.walk(function):
        if isinstance(node, ast.Await):
            for call in ast.walk(node.value):
                if isinstance(call, ast.Call) and callee in {_last_name(call), ast.unparse(call.func)}:
                    return True
    return False


class Comparison(NamedTuple):
    """Two versions beside each other: how many calls both have, and what differs."""

    calls: int
    differing: list[str]
    colors: list[str]  # functions that are async in one of them alone


def compare(
    people: People,
    parent: str,
    tree: Path,
    paths: Collection[str],
    names: Collection[str],
    told: Collection[tuple[str, str]] = (),
) -> Comparison:
    """Whether calls of `names` are awaited in `tree` as they are after the change that people made.

    A difference is `told` where the command has named that callee in that file as a doubt, or runs it there.
    """
    result = Comparison(0, [], [])
    for path in sorted(paths):
        file = tree / path
        if not file.is_file():
            continue
        before, theirs = definitions(people.clone.text(parent, path)), people.file(path)
        ours = definitions(file.read_text(encoding="utf-8", errors="replace"))
        for name in ours.keys() & theirs.keys() & before.keys():
            mine, other = single(ours, name), single(theirs, name)
            if mine is not None and other is not None:
                here = {callee for file_path, callee in told if file_path == path}
                result = _compared(result, f"{path}:{name}", (mine, other), names, here)
    return Comparison(result.calls, sorted(result.differing), sorted(result.colors))


def _compared(
    so_far: Comparison,
    place: str,
    both: tuple[Definition, Definition],
    names: Collection[str],
    told: Collection[str],
) -> Comparison:
    mine, other = both
    ours, theirs = _calls(mine.node, names), _calls(other.node, names)
    shared = ours.keys() & theirs.keys()
    differing = [
        f"{place}: {text[:80]}: awaited here {ours[text]}, by people {theirs[text]}"
        + (" (told)" if any(text.startswith(f"{callee}(") for callee in told) else "")
        for text in shared
        if ours[text] != theirs[text]
    ]
    colors = [f"{place}: {'async' if mine.is_async else 'sync'} here"] if mine.is_async != other.is_async else []
    return Comparison(so_far.calls + len(shared), so_far.differing + differing, so_far.colors + colors)


class _WithoutAwaits(ast.NodeTransformer):
    """Two versions of a call are the same when only their awaits differ."""

    def visit_Await(self, node: ast.Await) -> ast.AST:
        value: ast.AST = self.visit(node.value)
        return value


def _calls(function: Node, names: Collection[str]) -> dict[str, list[bool]]:
    """Calls of these names by their text without awaits, and for each whether it is awaited."""
    awaited = {id(node.value) for node in _own_nodes(function) if isinstance(node, ast.Await)}
    calls: dict[str, list[bool]] = {}
    for node in _own_nodes(function):
        if isinstance(node, ast.Call) and _last_name(node) in names:
            text = ast.unparse(_WithoutAwaits().visit(copy.deepcopy(node)))
            calls.setdefault(text, []).append(id(node) in awaited)
    return calls


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """All that stands in a function, but not what stands in functions within it: those are compared by themselves."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, Node):
            yield from _own_nodes(child)


def _last_name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def paths_of(plan: Mapping[str, Any]) -> set[str]:
    """The Python files that a plan changes."""
    entries = (*plan["definitions"], *plan["followers"], *plan["calls"])
    return {entry["path"] for entry in entries if entry["path"].endswith(".py")}
