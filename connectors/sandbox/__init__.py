"""The sandbox: a local paper broker that speaks Alpaca's protocol, for trying paper trading and for tests."""

from __future__ import annotations

from connectors.sandbox.local_broker import LocalBroker, SandboxSettings
from connectors.sandbox.market import MarketData
from connectors.sandbox.server import SandboxServer
from connectors.sandbox.wire import Refusal, Request

__all__ = ["LocalBroker", "MarketData", "Refusal", "Request", "SandboxServer", "SandboxSettings"]
