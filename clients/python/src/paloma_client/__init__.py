"""Client of Paloma, a self-hosted WhatsApp gateway."""

from .client import Paloma
from .errors import EventGapError, PalomaError
from .webhook import WebhookVerificationError, verify_webhook

__all__ = ["EventGapError", "Paloma", "PalomaError", "WebhookVerificationError", "verify_webhook"]
