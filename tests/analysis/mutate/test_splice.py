"""Edits put into a text and taken out again: bytes, lines, and where they went."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.analysis.findings import Edit
from troth.analysis.mutate.operators import all_operators
from troth.analysis.mutate.source.module import SourceModule
from troth.analysis.mutate.source.project import MutatedProject
from troth.analysis.mutate.source.splice import splice
from troth.analysis.mutate.source.text import UnreadableError, decode

PROGRAM = (
    '"""Grüße."""\nimport asyncio\nasync def g(x):\n    return {"a": x}\nasync def f(s):\n    é = await g(1)\n'
    "    await asyncio.sleep(1)\n    s.add(asyncio.create_task(g(2)))\n    if await g(3):\n        return (await g(4))['a']\n"
)
FORMS = [
    pytest.param(PROGRAM.encode(), id="UTF-8"),
    pytest.param(PROGRAM.replace("\n", "\r\n").encode(), id="Windows line ends"),
    pytest.param(PROGRAM.replace("\n", "\r").encode(), id="old Macintosh line ends"),
    pytest.param(codecs.BOM_UTF8 + PROGRAM.encode(), id="byte order mark"),
    pytest.param(codecs.BOM_UTF8 + b"async def f(): await g()\n", id="byte order mark on the line of the await"),
    pytest.param(b"# -*- coding: latin-1 -*-\n" + PROGRAM.encode("latin-1"), id="coding comment"),
    pytest.param(PROGRAM.rstrip("\n").encode(), id="no line end at the end"),
    pytest.param(PROGRAM.replace("    ", "\t").encode(), id="tabs"),
    pytest.param(b"x = '\x0c'\n\x0c\n" + PROGRAM.encode(), id="form feeds"),
]


@pytest.mark.parametrize("data", FORMS)
@pytest.mark.parametrize("name", all_operators())
def test_undoing_the_edits_gives_the_original_bytes(name, data):
    """Whatever the encoding and the line ends, a mutant differs from the file by its edits and by nothing else."""
    source = decode("m.py", data)
    assert source.encode() == data
    for mutant in all_operators()[name].find(SourceModule(source), MutatedProject({"m.py": source}, {})):
        spliced = splice(source, mutant.edits)
        spliced.after.parse()
        assert decode("m.py", spliced.after.encode()).text == spliced.after.text
        undone, shift = [], 0
        for edit in spliced.edits:
            start = edit.start + shift
            undone.append(Edit("m.py", start, start + len(edit.text), source.text[edit.start : edit.end]))
            shift += len(edit.text) - (edit.end - edit.start)
        assert splice(spliced.after, undone).after.encode() == data
        used = {ending for ending in ("\r\n", "\n", "\r") if ending in spliced.after.text.replace("\r\n", "¶")}
        assert used <= {ending for ending in ("\n", "\r") if ending in source.text.replace("\r\n", "¶")}


def test_every_operator_but_needless_async_and_callbacks_is_tried_on_every_form():
    """The program above gives the five a place each, so that the test before this one tries something."""
    source = decode("m.py", PROGRAM.encode())
    project = MutatedProject({"m.py": source}, {})
    tried = {n for n, operator in all_operators().items() if list(operator.find(SourceModule(source), project))}
    assert tried >= {"drop-await", "swallow", "compound", "drop-task", "blocking-call"}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"# coding: nowhere\n", id="unknown coding"),
        pytest.param(b"\xff\xfe\x00", id="not UTF-8"),
    ],
)
def test_what_cannot_be_read_is_refused(data):
    """A file that would not come back byte for byte is not touched at all."""
    with pytest.raises(UnreadableError):
        decode("m.py", data)


LINES = st.lists(st.text("ab \t", max_size=4), min_size=1, max_size=12)


@given(lines=LINES, added=st.lists(st.tuples(st.integers(0, 11), st.text("xy\n", max_size=5)), max_size=4))
def test_lines_are_found_again(lines, added):
    """A line that no edit touches is found from both sides: where it went, and where it came from."""
    source = decode("m.py", ("\n".join(lines) + "\n").encode())
    edits = [Edit("m.py", source.line_starts[n], source.line_starts[n], text) for n, text in added if n < len(lines)]
    spliced = splice(source, edits)
    for number in range(1, len(lines) + 1):
        start = source.line_starts[number - 1]
        if start == len(source.text) or any(edit.start == start and not edit.text.endswith("\n") for edit in edits):
            continue
        (there, *_) = spliced.lines(start, start)
        assert spliced.after.line(there) == source.line(number)
        assert spliced.original_line(there) == number
