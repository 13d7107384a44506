"""Client of Paloma, a self-hosted WhatsApp gateway."""

from .client import Paloma
from .errors import PalomaError
from .webhook import WebhookVerificationError, verify_webhook

__all__ = ["Paloma", "PalomaError", "WebhookVerificationError", "verify_webhook"]
