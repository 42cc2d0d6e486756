"""The price of a moment out of quotes and trades: fresh ones, narrow ones, in whatever order they come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from engine.domain.live import Headline, LastTrade, Quote
from engine.market.live_prices import FRESH, LivePrices

NOW = datetime(2024, 3, 4, 15, 30, tzinfo=UTC)


def quote(bid: str, ask: str, ago: float = 1) -> Quote:
    return Quote("AAA", Decimal(bid), Decimal(ask), NOW - timedelta(seconds=ago))


def trade(price: str, ago: float = 1) -> LastTrade:
    return LastTrade("AAA", Decimal(price), NOW - timedelta(seconds=ago))


def price(*heard: Quote | LastTrade | Headline) -> Decimal | None:
    prices = LivePrices()
    for one in heard:
        prices.update(one)
    return prices.price("AAA", NOW)


def test_the_middle_of_a_quote_comes_before_a_trade() -> None:
    assert price(trade("9"), quote("10.00", "10.01")) == Decimal("10.005")
    assert price(trade("9")) == Decimal(9)
    assert price(Headline(("AAA",), "news", "", NOW)) is None


def test_what_is_old_or_wide_says_nothing() -> None:
    late = FRESH.total_seconds() + 1
    assert price(quote("10", "10.02", late), trade("9")) == Decimal(9)
    assert price(quote("10", "10.02", late), trade("9", late)) is None
    assert price(quote("5", "15"), trade("9")) == Decimal(9)


def test_what_comes_late_does_not_turn_the_price_back() -> None:
    assert price(quote("10", "10.02", 1), quote("20", "20.02", 5)) == Decimal("10.01")
    assert price(trade("10", 1), trade("20", 5)) == Decimal(10)
