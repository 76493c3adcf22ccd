"""The golden record: every finding is as it was recorded, and a difference is seen and shown."""

import json

import pytest

from tools.same.__main__ import main
from tools.same.awaits import awaits_in, choose, without
from tools.same.difference import differences
from tools.same.programs import GOLDEN, KINDS, record_programs
from tools.same.record import read, write


@pytest.mark.parametrize("kind", KINDS)
def test_every_finding_is_as_recorded(kind):
    """Code, place, confidence, message, reasons and edits. Where a change is meant: `python -m tools.same record`."""
    golden = [row for row in read(GOLDEN) if row["in"].startswith(f"{kind}/")]
    assert golden
    assert differences(golden, list(record_programs([kind]))) == []


def test_the_record_names_no_module_and_no_folder_of_this_machine():
    """Modules move, and the record stays the same."""
    text = GOLDEN.read_text(encoding="utf-8")
    assert "troth.analysis" not in text
    assert "src/troth" not in text
    assert "/nowhere" not in text


PROGRAM = {"in": "p", "digest": "1"}
FINDING = {
    "in": "p",
    "code": "TR101",
    "path": "a.py",
    "line": 3,
    "column": 5,
    "message": "lost",
    "confidence": "certain",
    "fix": {"edits": [["a.py", 1, 1, "await "]]},
}
SECOND = {**FINDING, "line": 9}


@pytest.mark.parametrize(
    ("golden", "current", "shown"),
    [
        pytest.param([PROGRAM, FINDING], [PROGRAM, FINDING], [], id="the same"),
        pytest.param([PROGRAM, FINDING], [PROGRAM], ["p: - a.py:3:5 TR101: lost (certain)"], id="a finding is gone"),
        pytest.param([PROGRAM], [PROGRAM, FINDING], ["p: + a.py:3:5 TR101: lost (certain)"], id="a new finding"),
        pytest.param(
            [PROGRAM, FINDING],
            [PROGRAM, FINDING, FINDING],
            ["p: + a.py:3:5 TR101: lost (certain)"],
            id="a finding comes twice",
        ),
        pytest.param(
            [PROGRAM, FINDING],
            [PROGRAM, {**FINDING, "confidence": "likely"}],
            ['p: ~ a.py:3:5 TR101\n      confidence: "certain"\n                → "likely"'],
            id="another confidence",
        ),
        pytest.param(
            [PROGRAM, FINDING],
            [PROGRAM, {**FINDING, "fix": None}],
            ['p: ~ a.py:3:5 TR101\n      fix: {"edits": [["a.py", 1, 1, "await "]]}\n         → null'],
            id="no fix any more",
        ),
        pytest.param(
            [PROGRAM, FINDING, SECOND],
            [PROGRAM, SECOND, FINDING],
            ["p: the same findings in another order"],
            id="another order",
        ),
        pytest.param(
            [PROGRAM],
            [{**PROGRAM, "digest": "2"}],
            ['p: ~ the text of the program\n      digest: "1"\n            → "2"'],
            id="another program",
        ),
        pytest.param([], [PROGRAM, FINDING], ["p: not in the record"], id="a program that was not recorded"),
        pytest.param([PROGRAM, FINDING], [], ["p: gone"], id="a program that is gone"),
    ],
)
def test_what_is_shown_of_a_difference(golden, current, shown):
    """Each difference is a line that says which program, which place and what changed."""
    assert differences(golden, current) == shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("async def f():\n    await g()\n", "async def f():\n    g()\n", id="a statement"),
        pytest.param("async def f():\n    é = await g(await h())\n", "async def f():\n    é = g(h())\n", id="nested"),
        pytest.param("async def f():\n    await(g())\r\n", "async def f():\n    (g())\r\n", id="without a blank"),
        pytest.param("async def f(task):\n    await task\n", None, id="not a call"),
        pytest.param("await g()\n", None, id="not in a function"),
        pytest.param('async def f():\n    f"{await g()}"\n', None, id="in an f-string"),
        pytest.param("async def f(:\n    await g()\n", None, id="not Python"),
    ],
)
def test_awaits_are_removed(text, expected):
    """Nothing but the word goes, and no line moves."""
    data = text.encode()
    assert without(data, awaits_in("a.py", data)).decode() == (text if expected is None else expected)


def test_one_await_of_each_function_is_chosen():
    """The same ones every time."""
    functions = "".join(f"async def f{n}():\n    await g()\n    await h()\n" for n in range(9)).encode()
    awaits = awaits_in("a.py", functions)
    chosen = choose(awaits, 5)
    assert len(awaits) == 18
    assert len({place.function for place in chosen}) == 5
    assert choose(reversed(awaits), 5) == chosen


@pytest.fixture
def trees(tmp_path):
    project = tmp_path / "trees" / "shop"
    project.mkdir(parents=True)
    (project / "pyproject.toml").write_text("[project]\nname = 'shop'\n", encoding="utf-8")
    source = "async def save(): ...\n\n\nasync def main():\n    await save()\n\n\nasync def lost():\n    save()\n"
    (project / "shop.py").write_text(source, encoding="utf-8")
    return tmp_path / "trees"


def test_a_folder_of_projects(trees, capsys):
    """They are recorded beside the folder, with awaits removed; a difference is exit code 1, nothing to compare with 2."""
    options = ["--trees", str(trees)]
    golden = trees.with_name("golden-trees.jsonl")
    assert main(["compare", *options]) == 2
    assert main(["record", *options]) == 0
    assert "1 of 1 removed awaits" in capsys.readouterr().out
    assert main(["compare", *options]) == 0
    rows = read(golden)
    assert {"in": "planted/shop/1", "await": "shop.py:5", "found by": ["TR101 certain"]} in rows
    assert [row["line"] for row in rows if row["in"] == "reported/shop" and "code" in row] == [9]
    write(golden, [json.loads(json.dumps(row).replace('"certain"', '"likely"')) for row in rows])
    capsys.readouterr()
    assert main(["compare", *options]) == 1
    assert 'confidence: "likely"\n                → "certain"' in capsys.readouterr().out
