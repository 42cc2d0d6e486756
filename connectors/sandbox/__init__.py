"""The sandbox: a local paper broker with Alpaca's protocol, for trying paper trading and for tests."""

from __future__ import annotations

from connectors.sandbox.local_broker import LocalBroker, SandboxSettings
from connectors.sandbox.market import MarketData
from connectors.sandbox.protocol import ApiError, Request
from connectors.sandbox.server import SandboxServer

__all__ = ["ApiError", "LocalBroker", "MarketData", "Request", "SandboxServer", "SandboxSettings"]
