"""Who is told when a run has ended: a program of the user's own, an address on the web."""

from __future__ import annotations

from connectors.notify.command import CommandNotifier
from connectors.notify.webhook import WebhookNotifier

__all__ = ["CommandNotifier", "WebhookNotifier"]
