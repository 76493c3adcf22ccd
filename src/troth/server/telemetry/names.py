"""Every name that Troth gives to spans, attributes and metrics, in one table.

They are our own. The conventions for generative AI have been renamed more than once, and a dashboard that was built on
last year's names shows nothing today; a name here changes only with a line in the changelog.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

__all__ = ["METRICS", "Attribute", "Metric", "SpanName"]


class SpanName(StrEnum):
    """The spans.

    REQUEST   one request over HTTP
    RUN       one run of a workflow, from its begin, or from where a process went on with it
    STEP      one step of a run, with all its attempts
    TURN      one run of a conversation: what the agent does until it has nothing left to say
    TOOL      one call of a tool by an agent, from the asking to the answer
    DELIVERY  one attempt to post a delivery to a receiver of webhooks
    KILL      one kill of an agent in a session
    """

    REQUEST = "troth.request"
    RUN = "troth.run"
    STEP = "troth.step"
    TURN = "troth.turn"
    TOOL = "troth.tool"
    DELIVERY = "troth.delivery"
    KILL = "troth.kill"


class Attribute(StrEnum):
    """The attributes of spans. The two `CONTENT` ones hold what people and agents say: off unless asked for."""

    METHOD = "http.request.method"
    ROUTE = "http.route"
    STATUS = "http.response.status_code"
    RUN = "troth.run.id"
    RUN_STATE = "troth.run.state"
    IS_JOINED = "troth.run.joined"
    STEP = "troth.step.name"
    STEP_STATE = "troth.step.state"
    ATTEMPTS = "troth.step.attempts"
    CONVERSATION = "troth.conversation.id"
    AGENT = "troth.agent.name"
    OUTCOME = "troth.turn.outcome"
    INPUT_TOKENS = "troth.usage.input_tokens"
    OUTPUT_TOKENS = "troth.usage.output_tokens"
    TOOL = "troth.tool.name"
    TOOL_CALL = "troth.tool.call_id"
    DELIVERY = "troth.delivery.id"
    CHANNEL = "troth.channel.name"
    ATTEMPT = "troth.delivery.attempt"
    RECEIPT = "troth.delivery.outcome"
    SESSION = "troth.session.id"
    TERMINATED = "troth.kill.terminated"
    CONTENT_IN = "troth.content.input"
    CONTENT_OUT = "troth.content.output"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name in Prometheus, its name in OpenTelemetry, what it counts."""

    prometheus: str
    otel: str
    kind: Literal["counter", "gauge"]
    help: str
    label: str | None = None


METRICS: dict[str, Metric] = {
    "runs": Metric("troth_runs", "troth.runs", "gauge", "Runs in the store, by their state.", "state"),
    "begun": Metric(
        "troth_begun_total", "troth.begun", "counter", "Work that was started through a server, by kind.", "kind"
    ),
    "turns_open": Metric(
        "troth_turns_open", "troth.turns.open", "gauge", "Turns that were accepted and have not ended."
    ),
    "streams": Metric("troth_server_streams", "troth.server.streams.sse", "gauge", "Streams open in this process."),
    "closing": Metric(
        "troth_server_closing", "troth.server.closing", "gauge", "Whether this process is shutting down."
    ),
    "promises": Metric("troth_promises", "troth.promises", "gauge", "Promises in the store, by their state.", "state"),
    "promised": Metric(
        "troth_deliveries_promised_total", "troth.deliveries.promised", "counter", "Deliveries that were promised."
    ),
    "delivered": Metric(
        "troth_deliveries_delivered_total",
        "troth.deliveries.delivered",
        "counter",
        "Deliveries that reached a receiver.",
    ),
    "expired": Metric(
        "troth_deliveries_expired_total",
        "troth.deliveries.expired",
        "counter",
        "Deliveries whose retention ended first.",
    ),
    "dead": Metric(
        "troth_deliveries_dead", "troth.deliveries.dead", "gauge", "Deliveries that were given up, and can be replayed."
    ),
    "owed": Metric(
        "troth_deliveries_owed",
        "troth.deliveries.owed",
        "gauge",
        "Deliveries that are pending, and work under way whose end will be reported.",
    ),
    "turns": Metric(
        "troth_turns_total", "troth.turns", "counter", "Runs of conversations that ended, by their outcome.", "outcome"
    ),
    "messages": Metric(
        "troth_messages_total", "troth.messages", "counter", "Messages in conversations, by who said them.", "role"
    ),
    "input_tokens": Metric("troth_input_tokens_total", "troth.tokens.input", "counter", "Tokens that models read."),
    "output_tokens": Metric("troth_output_tokens_total", "troth.tokens.output", "counter", "Tokens that models wrote."),
}
