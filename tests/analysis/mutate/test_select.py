"""Which mutants are taken: the same ones everywhere, one per function, fair to the shapes."""

from collections import Counter

import pytest

from troth.analysis.mutate.operators import all_operators
from troth.analysis.mutate.select import candidates, select
from troth.analysis.mutate.source.module import SourceModule
from troth.analysis.mutate.source.project import MutatedProject
from troth.analysis.mutate.source.text import decode


def project_of(**files):
    sources = {f"{name}.py": decode(f"{name}.py", text.encode()) for name, text in files.items()}
    return MutatedProject(sources, {})


MANY = "".join(
    f"async def f{n}():\n    await a()\n    x = await b()\n    if await c():\n        return await d(await e())\n"
    for n in range(40)
)

GOLDEN = [
    "drop-await:m.py:f2:1",
    "drop-await:m.py:f12:2",
    "drop-await:m.py:f15:5",
    "drop-await:m.py:f31:3",
    "drop-await:m.py:f38:4",
]


def taken(n, seed, **files):
    operators = [all_operators()["drop-await"]]
    return select(candidates(project_of(**files), operators)[0], n=n, seed=seed)


def test_same_seed_same_tree_same_mutants():
    """The choice is written down here, so that it is the same on every system and Python version."""
    assert [mutant.place for mutant in taken(5, 7, m=MANY)] == GOLDEN


def test_another_seed_takes_others():
    """The seed decides."""
    assert {mutant.place for mutant in taken(10, 7, m=MANY)} != {mutant.place for mutant in taken(10, 8, m=MANY)}


def test_lines_that_move_do_not_change_the_choice():
    """What is above a function has no say in which of its places is taken."""
    moved = "# a comment\nx = 1\n\n" + MANY
    assert [one.place for one in taken(20, 7, m=MANY)] == [one.place for one in taken(20, 7, m=moved)]


def test_at_most_one_per_outermost_function():
    """Methods count as functions; functions inside functions belong to the outer one."""
    nested = (
        "class A:\n    async def m(self):\n        await a()\n        await b()\n"
        "async def f():\n    async def g():\n        await c()\n    await g()\n"
    )
    found = taken(100, 7, m=nested)
    assert sorted(mutant.function for mutant in found) == ["A.m", "f"]


def test_every_shape_gets_its_turn():
    """Of forty functions with all five shapes each, twenty mutants are four of each shape."""
    assert set(Counter(mutant.shape for mutant in taken(20, 7, m=MANY)).values()) == {4}


def test_a_shape_that_runs_out_leaves_its_turns_to_others():
    """Two conditions are all there are, and eight mutants were asked for."""
    scarce = "".join(f"async def g{n}():\n    await a()\n" for n in range(20))
    scarce += "".join(f"async def h{n}():\n    if await a(): pass\n" for n in range(2))
    assert Counter(mutant.shape for mutant in taken(8, 7, m=scarce)) == {"bare": 6, "condition": 2}


def test_operators_take_turns():
    """With several operators each has its share, still one mutant per function."""
    operators = [all_operators()[name] for name in ("drop-await", "swallow")]
    found = select(candidates(project_of(m=MANY), operators)[0], n=20, seed=7)
    assert Counter(mutant.operator for mutant in found) == {"drop-await": 10, "swallow": 10}
    assert len({mutant.function for mutant in found}) == 20


@pytest.mark.parametrize("name", all_operators())
def test_keys_are_unique(name):
    """No two places share a key, also where a function is defined twice."""
    twice = MANY + MANY
    found = list(all_operators()[name].find(SourceModule(decode("m.py", twice.encode())), project_of(m=twice)))
    assert len({mutant.key for mutant in found}) == len(found)


def test_files_that_cannot_be_parsed_are_told():
    """A broken file gives no mutants, takes none from the others, and is not passed over in silence."""
    project = project_of(good="async def f():\n    await g()\n", bad="async def f(:\n", plain="not python at all\n")
    found, left_out = candidates(project, [all_operators()["drop-await"]])
    assert [mutant.path for mutant in found] == ["good.py"]
    assert list(left_out) == ["bad.py"]
