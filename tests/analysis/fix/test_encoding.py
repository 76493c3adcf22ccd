"""A file is read as Python reads it and written back to the byte."""

import codecs

import pytest

from troth.analysis.source.encoding import decode
from troth.analysis.source.syntax import problem_in
from troth.cli import app


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"x = 1\n", id="plain"),
        pytest.param("é = 1\r\n".encode(), id="UTF-8 and CRLF"),
        pytest.param(codecs.BOM_UTF8 + "é = 1\n".encode(), id="byte order mark"),
        pytest.param("# -*- coding: latin-1 -*-\né = 1\n".encode("latin-1"), id="coding line"),
        pytest.param(b"", id="empty"),
        pytest.param(b"x = 1", id="no newline at the end"),
    ],
)
def test_there_and_back(data):
    """Nothing is added, dropped or translated, and the file still parses."""
    decoded = decode(data)
    assert decoded.encode(decoded.text) == data
    assert problem_in("a.py", data) is None


def test_a_file_that_does_not_parse_is_told():
    """With its path."""
    assert problem_in("a.py", b"x = (\n").startswith("a.py: ")
    assert problem_in("a.ipynb", b"{").startswith("a.ipynb: ")


def test_a_repair_that_the_encoding_cannot_write_is_left_out(tmp_path, monkeypatch, capsys):
    """The other files are repaired; this one stays as it is, and that is told."""
    text = "async def load(): ...\nasync def main():\n    load()\n"
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (tmp_path / "a.py").write_text(text)
    (tmp_path / "b.py").write_text(f"# coding: idna\n{text}")
    monkeypatch.chdir(tmp_path)
    assert app.run(["fix", "--allow-dirty"]) == 1
    assert "await load()" in (tmp_path / "a.py").read_text()
    assert (tmp_path / "b.py").read_text() == f"# coding: idna\n{text}"
    assert "is written in idna" in capsys.readouterr().err
