"""Small markets with known prices, and sandboxes over them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from connectors.sandbox import MarketData, SandboxServer, SandboxSettings
from connectors.sandbox.book import Book, Store
from connectors.sandbox.exchange import Exchange
from connectors.sandbox.market import SandboxMarket
from engine.domain.market import ActionKind, Bar, CorporateAction, NewsItem, PriceHistory
from engine.domain.run import ExecutionRules
from engine.market.trading_hours import AroundTheClock, exchange_calendar

FIRST, LAST = date(2024, 1, 2), date(2024, 3, 15)
SPLIT_ON, DIVIDEND_ON, GONE_AFTER = date(2024, 2, 5), date(2024, 2, 12), date(2024, 2, 20)
START = datetime(2024, 1, 31, 21, 5, tzinfo=UTC)
"""Five minutes after the close of a Wednesday."""
FREE = ExecutionRules(slippage_bp=Decimal(0))


def bar(day: date, base: Decimal, step: int) -> Bar:
    """Opens at base + step, falls by 1, rises by 3, closes at base + step + 0.5."""
    first = base + step
    return Bar(
        session=day,
        open=first,
        high=first + 3,
        low=first - 1,
        close=first + Decimal("0.5"),
        adj_close=None,
        volume=Decimal(1_000_000),
    )


def rising(symbol: str, days: list[date], base: Decimal) -> PriceHistory:
    return PriceHistory.of(symbol, [bar(day, base, step) for step, day in enumerate(days)])


def market_data() -> MarketData:
    """AAA, BBB (splits two for one, pays a dividend of 0.25), GONE (stops trading) and BTC-USD; each opens a dollar
    higher every session, BBB at half from its split on. News of AAA: three items a day."""
    shares, coins = exchange_calendar(), AroundTheClock()
    days, every = list(shares.sessions(FIRST, LAST)), list(coins.sessions(FIRST, LAST))
    before = [day for day in days if day < SPLIT_ON]
    halves = [bar(d, Decimal(100), n) for n, d in enumerate(before)]
    halves += [bar(d, Decimal(50), n) for n, d in enumerate(days[len(before) :], len(before))]
    news = [
        NewsItem(
            id=f"n{n}-{hour}",
            symbol="AAA",
            date=day,
            available_at=at,
            summary=f"About AAA, {n}.",
            headline=f"AAA {n}",
            published=at - timedelta(minutes=1),
            source="wire",
        )
        for n, day in enumerate(days)
        for hour in (13, 15, 22)
        for at in (datetime(day.year, day.month, day.day, hour, tzinfo=UTC),)
    ]
    return MarketData(
        histories={
            "AAA": rising("AAA", days, Decimal(10)),
            "BBB": PriceHistory.of("BBB", halves),
            "GONE": rising("GONE", [day for day in days if day <= GONE_AFTER], Decimal(20)),
            "BTC-USD": rising("BTC-USD", every, Decimal(40_000)),
        },
        actions={
            "AAA": (),
            "BBB": (
                CorporateAction("BBB", SPLIT_ON, ActionKind.SPLIT, Decimal(2)),
                CorporateAction("BBB", DIVIDEND_ON, ActionKind.DIVIDEND, Decimal("0.25")),
            ),
            "GONE": None,
            "BTC-USD": None,
        },
        news={"AAA": tuple(news)},
        calendars={"AAA": shares, "BBB": shares, "GONE": shares, "BTC-USD": coins},
        exchange=shares,
    )


def loading(data: MarketData) -> Callable[[date], Any]:
    async def load(through: date) -> MarketData:
        return data

    return load


def sandbox(**settings: Any) -> SandboxServer:
    """A sandbox over that market, without slippage unless asked for, at START."""
    return SandboxServer(loading(market_data()), SandboxSettings(**{"start": START, "rules": FREE} | settings))


def exchange(
    store: Store | None = None,
    *,
    rules: ExecutionRules = FREE,
    pay_dividends: bool = False,
    data: MarketData | None = None,
) -> Exchange:
    """The broker itself over that market, without a server."""
    book = Book(store or Store(":memory:"), Decimal(100_000))
    now = datetime.fromisoformat(book.facts.get("now", START.isoformat()))
    return Exchange(SandboxMarket(data or market_data()), book, rules, now, pay_dividends=pay_dividends)


def order(symbol: str, side: str = "buy", **fields: Any) -> dict[str, Any]:
    """The body of a request for a market order of the day."""
    body = {"symbol": symbol, "side": side, "type": "market", "time_in_force": "day"}
    return body | {name: value for name, value in fields.items() if value is not None}
