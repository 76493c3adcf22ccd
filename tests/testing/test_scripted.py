"""A model that plays from a script."""

import asyncio

import pytest

from troth.errors import MisuseError
from troth.runtime.agents.model import Message, Model, Request
from troth.testing.scripted import ScriptedModel, call

ASK = Request([Message("user", "hi")])


def test_it_is_a_model_and_plays_its_lines():
    """Texts, calls and functions of the request, in order, in both colors."""
    model = ScriptedModel(call("search", '{"city": "Rome"}'), lambda request: request.messages[0].text.upper())
    assert isinstance(model, Model)
    assert model.reply(ASK).message.calls[0].name == "search"
    assert asyncio.run(model.areply(ASK)).message.text == "HI"
    assert model.requests == [ASK, ASK]


def test_tokens_add_up_to_the_text():
    """Nothing is lost or doubled on the way."""
    heard = []
    text = "one  two one\n"
    ScriptedModel(text).reply(Request(ASK.messages, on_token=heard.append))
    assert len(heard) > 1
    assert "".join(heard) == text


def test_an_exception_is_raised():
    """How a test sees what its agent does when the model fails."""
    with pytest.raises(ConnectionError):
        ScriptedModel(ConnectionError("down")).reply(ASK)


def test_a_request_too_many():
    """A loop cannot hide behind a repeated last line."""
    model = ScriptedModel("done")
    model.reply(ASK)
    with pytest.raises(MisuseError, match="has 1 lines, and this is request 2"):
        model.reply(ASK)
