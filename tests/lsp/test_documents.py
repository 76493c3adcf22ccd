"""Texts after the changes of a client."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from troth.lsp.protocol.positions import Positions, split, units
from troth.lsp.sessions.documents import Document

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
