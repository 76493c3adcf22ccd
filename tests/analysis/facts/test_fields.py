"""The names of the places in a node say what the grammar of facts says."""

import re

import pytest

from troth.analysis.facts import fields, model

NODE = re.compile(r"\((\"\w+\"(?: \| \"\w+\")*)((?:, [\w\[\], ]+?)?)\)")
# Places that several kinds share.
SHARED = {
    "ITEMS": {"list", "tuple", "set", "and", "or", "fstr", "parts", "slice", "del"},
    "VALUE": {"await", "not", "yieldfrom", "star", "expr", "yield", "return", "raise"},
    "TEST": {"if", "while", "ifexp", "assert"},
    "BODY": {"if", "while", "ifexp"},
    "ORELSE": {"if", "while", "ifexp"},
}


def grammar():
    """The places of each kind of node, as the module that describes them says."""
    places = {}
    for kinds, rest in NODE.findall(model.__doc__):
        names = [name.strip(" []") for name in rest.replace("[,", ",").split(",") if name.strip(" []")]
        for kind in re.findall(r"\w+", kinds):
            places[kind] = ["kind", *names]
    return places


def test_the_grammar_is_read():
    """The tests below see each kind."""
    assert len(grammar()) > 40
    assert grammar()["call"] == ["kind", "func", "args", "keywords", "at"]
    assert grammar()["const"] == ["kind", "type", "value"]


@pytest.mark.parametrize("name", [name for name in fields.__all__ if name not in {"KIND", "AT", *SHARED}])
def test_a_place_of_one_kind(name):
    """`CALL_ARGS` is where `args` stands in a `call`."""
    kind, _, place = name.lower().partition("_")
    assert grammar()[kind][getattr(fields, name)] == place


@pytest.mark.parametrize("name", SHARED)
def test_a_place_of_several_kinds(name):
    """Each of them has it there."""
    places = {kind: grammar()[kind][getattr(fields, name)] for kind in SHARED[name]}
    words = {"ITEMS": {"items", "values", "targets"}, "TEST": {"test"}, "BODY": {"body"}, "ORELSE": {"orelse"}}
    assert set(places.values()) <= words.get(name, {"value"})
