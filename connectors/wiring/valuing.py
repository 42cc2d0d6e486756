"""The broker's own values of the configured desk's account, for a person who looks at the desk's."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal

from connectors.wiring.broker import open_broker
from engine.config import Config

ATTEMPTS = 2
"""A look waits for nobody."""


async def broker_values(config: Config, first: date, last: date) -> Mapping[date, Decimal]:
    """The account's value at each close from the first session to the last, as far as the broker has it. Raises
    ConfigError for a desk that is configured for the simulated market, and what the broker raises."""
    broker = open_broker(config, attempts=ATTEMPTS)
    try:
        return await broker.equity_history(first, last)
    finally:
        await broker.aclose()
