"""Sign an attempt as Standard Webhooks 1.0 says, with every secret that counts at the moment."""

import base64
import binascii
import secrets as randomness
from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import quote

from standardwebhooks.webhooks import Webhook

from troth.errors import MisuseError

__all__ = ["check_secret", "headers_for", "message_id", "new_secret"]

_PREFIX = "whsec_"


def new_secret() -> str:
    """A secret of 32 random bytes, as receivers are given it."""
    return _PREFIX + base64.b64encode(randomness.token_bytes(32)).decode()


def check_secret(secret: object) -> str:
    """The secret, if it can be used; its content is never told."""
    advice = "`whsec_` and 24 to 64 random bytes in base64. Leave it out to have one made."
    if not isinstance(secret, str) or not secret.startswith(_PREFIX):
        raise MisuseError(f"A webhook's secret begins with `whsec_`.\nNothing was registered. Give {advice}")
    try:
        size = len(base64.b64decode(secret.removeprefix(_PREFIX), validate=True))
    except (binascii.Error, ValueError):
        raise MisuseError(
            f"A webhook's secret is base64 after `whsec_`.\nNothing was registered. Give {advice}"
        ) from None
    if not 24 <= size <= 64:
        raise MisuseError(f"A webhook's secret has {size} bytes.\nNothing was registered. Give {advice}")
    return secret


def message_id(delivery_id: str) -> str:
    """The delivery's id as a header can carry it, and without the dot that parts what is signed.

    Ids that Troth makes stay as they are. One that a program chose may have anything in it.
    """
    return quote(delivery_id, safe="").replace(".", "%2E")


def headers_for(delivery_id: str, body: str, secrets: Sequence[str], now: float) -> dict[str, str]:
    """The three headers of one attempt: two signatures while a secret is being rotated."""
    sent_at = datetime.fromtimestamp(int(now), tz=UTC)
    identity = message_id(delivery_id)
    return {
        "webhook-id": identity,
        "webhook-timestamp": str(int(now)),
        "webhook-signature": " ".join(Webhook(secret).sign(identity, sent_at, body) for secret in secrets),
    }
