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
_WHOLE = "The length of an agent's answer cannot be limited by a request."

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
    "n": ((1,), "An agent returns one answer."),
    "logprobs": ((False,), "An agent returns no probabilities."),
    "top_logprobs": ((0,), "An agent returns no probabilities."),
    "logit_bias": (({},), "The model of an agent cannot be biased by a request."),
    "response_format": (({"type": "text"},), "An agent answers with text, without a guaranteed format."),
    "text": (({}, {"format": {"type": "text"}}), "An agent answers with text, without a guaranteed format."),
    "modalities": ((["text"],), "An agent answers with text."),
    "audio": ((), "An agent answers with text."),
    "prediction": ((), "An agent takes no predictions."),
    "web_search_options": ((), _OWN_TOOLS),
    "service_tier": (("auto", "default"), "There is only one service tier."),
    "include": (([],), "No additional data can be included in the answer."),
    "prompt": ((), "There are no stored prompts here."),
    "truncation": (("disabled",), "An agent decides which parameters it sends to its model."),
    "context_management": (([],), "An agent decides which parameters it sends to its model."),
}

CHAT = {"store": ((False,), "A chat completion is not stored; use `responses` for that."), "metadata": (({},), "")}
RESPONSES = {"store": ((True,), "Every response is stored, so that it survives a crash.")}


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
                f"The field `{name}` is not supported, so nothing was done.",
                param=name,
                advice="Omit it. Fields that the server does not support are refused, not ignored.",
            )
        harmless, why = rule
        if not any(value == neutral and type(value) is type(neutral) for neutral in harmless):
            message = f"The field `{name}` is not supported, so nothing was done. {why}".rstrip()
            raise ApiError(400, "unsupported_parameter", message, param=name, advice="Omit it.")
