"""A repair in a notebook changes the characters of the code and no other byte of the JSON."""

import json

import pytest

from troth.cli import app

CELLS = [
    {"cell_type": "markdown", "source": ["# f()\n"]},
    {"cell_type": "code", "source": ["%load_ext x\n", "async def f(s): ...\n"], "outputs": [{"text": ["f('a')"]}]},
    {"cell_type": "code", "source": "s = '😀é\"\\t'; r = f('😀\"')\nprint(r.x)\n!ls"},
    {"cell_type": "code", "source": ["f('\"é')"]},
    {"cell_type": "code", "source": ["def g():\n", "    f('plain')\n"]},
]


def written(cells, **how):
    return json.dumps({"cells": cells, "metadata": {"b": 1, "a": "\u2028"}, "nbformat": 4}, **how)


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"indent": 1}, id="as Jupyter writes it"),
        pytest.param({"indent": 1, "ensure_ascii": False}, id="not escaped"),
        pytest.param({"separators": (",", ":")}, id="on one line"),
    ],
)
def test_only_the_code_changes(tmp_path, monkeypatch, how):
    """Escapes, order, spacing and outputs stay; a top-level `await` is right in a cell, none in a plain `def`."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    before = written(CELLS, **how)
    (tmp_path / "a.ipynb").write_bytes(before.encode())
    monkeypatch.chdir(tmp_path)
    assert app.run(["fix"]) == 1
    after = json.loads(json.dumps(CELLS))
    after[2]["source"] = after[2]["source"].replace("r = f(", "r = await f(")
    after[3]["source"] = [after[3]["source"][0].replace("f(", "await f(")]
    assert (tmp_path / "a.ipynb").read_bytes() == written(after, **how).encode()
    assert app.run(["fix"]) == 1
    assert (tmp_path / "a.ipynb").read_bytes() == written(after, **how).encode()


def test_a_notebook_in_another_encoding_is_reported_and_left_alone(tmp_path, monkeypatch, capsys):
    """JSON may be UTF-16 as well: what is lost there is told, without a repair."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    data = written([{"cell_type": "code", "source": ["async def f(): ...\n", "f()"]}]).encode("utf-16")
    (tmp_path / "a.ipynb").write_bytes(data)
    monkeypatch.chdir(tmp_path)
    assert app.run(["check", "--output-format", "json"]) == 1
    assert [(row["code"], row["fix"]) for row in json.loads(capsys.readouterr().out)["findings"]] == [("TR101", None)]
    assert app.run(["fix"]) == 1
    assert (tmp_path / "a.ipynb").read_bytes() == data
