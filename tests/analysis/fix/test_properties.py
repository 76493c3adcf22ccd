"""What holds for every repair: once is enough, nothing else changes, and what was taken out comes back."""

import io
import tokenize
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from troth.analysis.edits.apply import apply
from troth.analysis.fix.settle import Settled, settle
from troth.analysis.mutate.operators.drop_await import find
from troth.analysis.mutate.source.module import SourceModule
from troth.analysis.mutate.source.project import MutatedProject as Planted
from troth.analysis.mutate.source.text import decode
from troth.analysis.pipeline import analyse
from troth.analysis.project.project import Project
from troth.analysis.rules import all_rules
from troth.analysis.source.syntax import problem_in

BAD = [
    pytest.param(rule.code, case.bad, id=f"{rule.code}-{case.name}")
    for rule in all_rules()
    for case in rule.cases
    if case.fixed is not None
]


def settled(folder: Path, files: dict[str, str], code: str = "") -> Settled:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(text.encode())
    project = Project(folder, tuple(sorted(files)))

    def look(overlay):
        return analyse(project, overlay=overlay, on_request={code}).findings

    return settle(folder, look, lambda one: one.fix is not None)


def after(result: Settled, files: dict[str, str]) -> dict[str, str]:
    return {**files, **{change.path: change.after.decode() for change in result.changes}}


@pytest.mark.parametrize(("code", "bad"), BAD)
def test_once_is_enough(tmp_path, code, bad):
    """What `fix` leaves behind, `fix` leaves alone; it parses, and no finding is there that was not there before."""
    files = {"case.py": bad} if isinstance(bad, str) else dict(bad)
    first = settled(tmp_path / "first", files, code)
    fixed = after(first, files)
    assert fixed != files
    assert not first.refused
    assert not first.aftermath
    assert all(problem_in(path, text.encode()) is None for path, text in fixed.items())
    assert not settled(tmp_path / "again", fixed, code).changes


STORE = """\
class Row:
    def __init__(self, n): self.n, self.rows = n, [n]
class Store:
    async def load(self, key="é") -> Row: return Row(1)
    async def save(self, row, *more) -> bool: return True
    async def keys(self) -> list[str]: return []
"""
LINES = st.sampled_from(
    [
        "await store.save(1)",
        "await  store.save(  1  ,)  # é, and blanks",
        "row = await store.load()\nprint(row.n)",
        "print((await store.load()).n, (await store.keys())[0])",
        "if not await store.save(1): print('ü')",
        "while await store.save(1) and n: n = 0",
        "print(len(await store.keys()), [await store.load(k) for k in await store.keys()][0].n)",
        "print({k: (await store.load(k)).n for k in 'ab' if await store.save(k)})",
        "ok = 1 if await store.save(1) else 2",
        "print(-(await store.load()).n ** 2, 'x' + (await store.keys())[0])",
        "await store.save(\n    1,  # one\n    *[2],\n)",
        "for k in await store.keys(): print(k)",
        "a, *b = await store.keys()",
        "assert await store.save(1), 'no'",
        'print(f\'{n!r:>3}\', """two\n  lines""")',
        "if (ok := await store.save(1)): print(ok)",
    ]
)


def program(lines: list[str], end: str, *, nested: bool) -> str:
    head = "from store import Store\n\n\nasync def main(store: Store, n=1):\n"
    body = "\n".join(lines) or "pass"
    indent = "    "
    if nested:
        head += "    with open('x') as file:\n"
        indent = "\t  "
        head = head.replace("    with", "\twith")
    return head.replace("\n", end) + "".join(f"{indent}{line}{end}" for line in body.split("\n"))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(LINES, min_size=1, max_size=6), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.data())
def test_what_was_taken_out_comes_back(tmp_path_factory, lines, end, nested, data):
    """An await that `troth mutate` takes out is put back to the byte; only tokens are added, and none is lost."""
    folder = tmp_path_factory.mktemp("planted")
    original = program(lines, end, nested=nested)
    mutants = list(find(SourceModule(decode("app.py", original.encode())), Planted({}, {})))
    mutants = [one for one in mutants if "await  " not in original[one.edits[0].start : one.edits[0].end]]
    if not mutants:
        return
    mutant = data.draw(st.sampled_from(mutants))
    planted = apply(original, mutant.edits)
    files = {"app.py": planted, "store.py": STORE}
    result = settled(folder, files)
    fixed = after(result, files)["app.py"]
    if not result.before:  # what the value is handed to is not known: nothing is said, so nothing is changed
        assert fixed == planted
        return
    assert fixed == original
    assert is_part_of(tokens(planted), tokens(fixed))


def tokens(text: str) -> list[tuple[int, str]]:
    kept = tokenize.generate_tokens(io.StringIO(text, newline="").readline)
    return [(one.type, one.string) for one in kept]


def is_part_of(some: list[tuple[int, str]], whole: list[tuple[int, str]]) -> bool:
    rest = iter(whole)
    return all(one in rest for one in some)
