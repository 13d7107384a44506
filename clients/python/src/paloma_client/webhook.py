"""Where a webhook's request comes from."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Mapping, Sequence

from .types import AnyEvent


class WebhookVerificationError(Exception):
    """The request was not signed with any of the secrets, or too long ago."""


def verify_webhook(
    body: bytes, headers: Mapping[str, str], secrets: str | Sequence[str], *, tolerance: float = 300
) -> AnyEvent:
    """Returns the event of a request that was signed with one of the secrets.

    body: the bytes as they arrived. secrets: one, or two during a rotation. tolerance: seconds that the timestamp of
    Standard Webhooks may be away; a request without these headers is judged by `x-webhook-signature` alone.
    Raises WebhookVerificationError.
    """
    given = {name.lower(): value for name, value in headers.items()}
    keys = [secrets] if isinstance(secrets, str) else list(secrets)
    if not (_standard(body, given, keys, tolerance) if "webhook-signature" in given else _plain(body, given, keys)):
        raise WebhookVerificationError("no signature of this request is valid")
    event: AnyEvent = json.loads(body)
    return event


def _standard(body: bytes, given: Mapping[str, str], secrets: Sequence[str], tolerance: float) -> bool:
    timestamp = given.get("webhook-timestamp", "")
    if not (timestamp.isascii() and timestamp.isdigit()) or abs(time.time() - int(timestamp)) > tolerance:
        return False
    signed = f"{given.get('webhook-id', '')}.{timestamp}.".encode() + body
    expected = [
        b"v1," + base64.b64encode(hmac.digest(base64.b64decode(secret.removeprefix("whsec_")), signed, "sha256"))
        for secret in secrets
    ]
    return _any_equal(given["webhook-signature"].split(" "), expected)


def _plain(body: bytes, given: Mapping[str, str], secrets: Sequence[str]) -> bool:
    names = ("x-webhook-signature", "x-webhook-signature-previous")
    expected = [hmac.new(secret.encode(), body, "sha256").hexdigest().encode() for secret in secrets]
    return _any_equal([given[name] for name in names if name in given], expected)


def _any_equal(signatures: Sequence[str], expected: Sequence[bytes]) -> bool:
    return any(hmac.compare_digest(one.encode(), other) for one in signatures for other in expected)
