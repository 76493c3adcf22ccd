"""Decide which fields of OpenAI's requests are kept, which are hints, and which promise what nobody here would keep.

A hint (`temperature`, `seed`) may be without effect: an agent decides by itself how it asks its model. A field that
promises a certain answer (`max_tokens`, `tools`) is refused, unless it asks for what there is anyway.
"""

from collections.abc import Mapping
from typing import Any

from troth.server.errors import ApiError

__all__ = ["CHAT", "RESPONSES", "check_extra"]

_ANYTHING = object()

_HINTS = dict.fromkeys(
    (
        "frequency_penalty",
        "presence_penalty",
        "prompt_cache_key",
        "prompt_cache_retention",
        "reasoning",
        "reasoning_effort",
        "safety_identifier",
        "seed",
        "temperature",
        "top_p",
        "user",
        "verbosity",
        "parallel_tool_calls",
    ),
    _ANYTHING,
)

_OWN_TOOLS = "An agent has its own tools, and calls them itself."
_WHOLE = "An agent answers until it has nothing left to say; its length cannot be limited from outside."

# field: (values that ask for nothing special, why anything else is refused)
_REFUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "tools": (([],), _OWN_TOOLS),
    "functions": (([],), _OWN_TOOLS),
    "tool_choice": (("none", "auto"), _OWN_TOOLS),
    "function_call": (("none", "auto"), _OWN_TOOLS),
    "max_tool_calls": ((), _OWN_TOOLS),
    "max_tokens": ((), _WHOLE),
    "max_completion_tokens": ((), _WHOLE),
    "max_output_tokens": ((), _WHOLE),
    "stop": (([],), _WHOLE),
    "n": ((1,), "An agent gives one answer."),
    "logprobs": ((False,), "An agent does not tell probabilities."),
    "top_logprobs": ((0,), "An agent does not tell probabilities."),
    "logit_bias": (({},), "An agent's model cannot be biased from outside."),
    "response_format": (({"type": "text"},), "An agent answers with text, in no promised format."),
    "text": (({}, {"format": {"type": "text"}}), "An agent answers with text, in no promised format."),
    "modalities": ((["text"],), "An agent answers with text."),
    "audio": ((), "An agent answers with text."),
    "prediction": ((), "An agent takes no predictions."),
    "web_search_options": ((), _OWN_TOOLS),
    "service_tier": (("auto", "default"), "There is one tier."),
    "include": (([],), "Nothing can be added to the answer."),
    "prompt": ((), "There are no stored prompts here."),
    "truncation": (("disabled",), "An agent decides by itself what it tells its model."),
    "context_management": (([],), "An agent decides by itself what it tells its model."),
}

CHAT = {"store": ((False,), "A chat completion cannot be asked for again; `responses` can."), "metadata": (({},), "")}
RESPONSES = {"store": ((True,), "Every response is kept: that is what makes it survive a crash.")}


def check_extra(extra: Mapping[str, Any] | None, own: Mapping[str, tuple[tuple[Any, ...], str]]) -> None:
    """Refuse what would be promised and not kept. None stands for a field that was left out."""
    for name, value in (extra or {}).items():
        if value is None or name in _HINTS:
            continue
        rule = own.get(name) or _REFUSED.get(name)
        if rule is None:
            raise ApiError(
                400,
                "unknown_field",
                f"The field `{name}` is not known here, so nothing was done.",
                param=name,
                advice="Leave it out. What a field promises and nobody keeps is refused, not ignored.",
            )
        harmless, why = rule
        if not any(value == neutral and type(value) is type(neutral) for neutral in harmless):
            message = f"The field `{name}` cannot be kept here, so nothing was done. {why}".rstrip()
            raise ApiError(400, "unsupported_parameter", message, param=name, advice="Omit it.")
