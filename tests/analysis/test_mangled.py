"""What reads text by itself, beside the parser, does not fail on any text."""

import json
import random

import pytest

from troth.analysis.log_lookup.mentions import mentions
from troth.analysis.project.globs import parse
from troth.analysis.source.allow import allows_in
from troth.analysis.source.definitions import definitions_in
from troth.analysis.source.notebook import code_cells, read_notebook

SOURCE = b"""\
# -*- coding: utf-8 -*-
class Store:
    @property
    async def save(self): '\xc3\xa9 \\d'
x = [  # troth: allow TR101, unawaited-coroutine for a reason
    f(),
]
def g():
\tif f(  # troth: allow
    ): pass
"""
NOTEBOOK = json.dumps({"cells": [{"cell_type": "code", "source": "%m\nx = !ls\nf()  # troth: allow TR101"}]}).encode()
LOG = b"""\
a.py:3: RuntimeWarning: coroutine 'a' was never awaited
Object allocated at (most recent call last):
  File "x", lineno 5
Task was destroyed but it is pending!
task: <Task pending name='T' coro=<w() running at a.py:3>>
{"kind": "coroutine", "name": "x", "file": "a.py", "line": 3}
"""
IGNORE = b"*.py\n!a/\n[a-z]/**/x\n\\#b\n[!a]*\n"
READERS = {
    "comments": (SOURCE, lambda data: allows_in("a.py", data)),
    "definitions": (SOURCE, definitions_in),
    "notebook": (NOTEBOOK, lambda data: read_notebook(data) if code_cells(data) else None),
    "comments in a notebook": (NOTEBOOK, lambda data: allows_in("a.ipynb", data)),
    "log": (LOG, lambda data: mentions(data.decode(errors="replace").splitlines())),
    "patterns": (IGNORE, lambda data: parse(data.decode("latin-1").splitlines(), (".py",)).hides("a/b/c.py")),
}


def mangled(data: bytes, chance: random.Random) -> bytes:
    text = bytearray(data)
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(text)) if text else 0
        match chance.randrange(4):
            case 0:
                del text[at : at + chance.randint(1, 60)]
            case 1:
                text[at:at] = bytes(chance.choices(b"\0\xff\n\r\f\"'#\\{[(\t\xe2", k=chance.randint(1, 5)))
            case 2:
                text[at:] = text[at:] + text[:at]
            case 3 if text:
                text[at] = chance.randrange(256)
    return bytes(text)


@pytest.mark.parametrize("name", READERS)
def test_no_text_makes_a_reader_fail(name):
    """Cut, doubled, turned round, with bytes that nobody writes: there is an answer, and no warning either."""
    data, read = READERS[name]
    chance = random.Random(7)
    for _ in range(400):
        read(mangled(data, chance))
