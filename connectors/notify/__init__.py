"""Notifications of ended runs: a program of the user's own, a webhook."""

from __future__ import annotations

from connectors.notify.command import CommandNotifier
from connectors.notify.webhook import WebhookNotifier

__all__ = ["CommandNotifier", "WebhookNotifier"]
