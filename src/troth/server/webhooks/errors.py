"""What can be wrong with a receiver of webhooks."""

from troth.errors import MisuseError

__all__ = ["TakenError", "UnknownWebhookError", "WebhookRefusedError"]


class WebhookRefusedError(MisuseError):
    """The address cannot be used. Nothing was registered."""


class TakenError(MisuseError):
    """Another receiver is told of the same things already. Nothing was registered."""


class UnknownWebhookError(MisuseError):
    """There is no such receiver, or it belongs to somebody else."""
