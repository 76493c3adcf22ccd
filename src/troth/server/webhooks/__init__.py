"""Webhooks: a channel that posts deliveries to an address, signed as Standard Webhooks 1.0."""

from troth.server.webhooks.channel import OVER_THREE_DAYS, WebhookChannel
from troth.server.webhooks.endpoint import Endpoint
from troth.server.webhooks.errors import TakenError, UnknownWebhookError, WebhookRefusedError
from troth.server.webhooks.webhooks import ANYBODY, Receiver, Webhooks

__all__ = [
    "ANYBODY",
    "OVER_THREE_DAYS",
    "Endpoint",
    "Receiver",
    "TakenError",
    "UnknownWebhookError",
    "WebhookChannel",
    "WebhookRefusedError",
    "Webhooks",
]
