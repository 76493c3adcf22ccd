"""Texts after the changes of a client."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from troth.analysis.source.lines import decode
from troth.lsp.protocol.positions import Positions, split, units
from troth.lsp.sessions.documents import Document, file_of

TEXTS = st.text(alphabet="ab\n\r\x0c\u2028ü\U0001f600", max_size=30)


@settings(max_examples=300, deadline=None)
@given(st.data(), TEXTS, st.sampled_from(["utf-8", "utf-16", "utf-32"]))
def test_a_change_is_what_it_says(data, text, encoding):
    """A change by positions is the same change of the text, whatever ends its lines."""
    document = Document("file:///a.py", 1, split(text), encoding)
    for _ in range(4):
        whole = document.text
        positions = Positions(split(whole), encoding)
        ends = sorted(data.draw(st.integers(0, len(whole))) for _ in range(2))
        start, end = (positions.position(one) for one in ends)
        # A place between the two parts of a line end has no position of its own; it means the end of its line.
        first, last = positions.offset(start), positions.offset(end)
        new = data.draw(TEXTS)
        document.change([types.TextDocumentContentChangePartial(types.Range(start, end), new)], 2)
        assert document.text == whole[:first] + new + whole[last:]
        assert document.lines == split(document.text)


@pytest.mark.parametrize(
    ("text", "encoding", "size"),
    [("aü\U0001f600", "utf-8", 7), ("aü\U0001f600", "utf-16", 4), ("aü\U0001f600", "utf-32", 3)],
)
def test_units(text, encoding, size):
    """Each encoding counts in its own way."""
    assert units(text, encoding) == size


@pytest.mark.parametrize("coding", ["latin-1", "ascii", "cp1252", "utf-7", "big5", "u8", "klingon"])
@pytest.mark.parametrize("text", ["x = 'plain'", "x = 'é'", "x = 'é€\U0001f600'"])
def test_a_coding_that_lacks_a_letter(coding, text):
    """What is looked at has every letter at its place: only the name of the coding may be another one."""
    whole = f"# -*- coding: {coding} -*-\n{text}\n"
    document = Document("file:///a.py", 1, split(whole), "utf-32")
    looked_at = decode(document.data)
    assert len(looked_at) == len(whole)
    assert looked_at.partition("\n")[2] == f"{text}\n"


@pytest.mark.parametrize("uri", ["untitled:a.py", "file://[no/a.py", "file:///a%00b.py", "", "a.py", "git:/a.py"])
def test_what_has_no_file(uri):
    """No address of a file, and none that could be one."""
    assert file_of(uri) is None
