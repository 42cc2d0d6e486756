"""The arena's public record as market data of the cycle: prices as bars, chat and notices as news.

A day of the arena is a session of a calendar without weekends, under a date of its own. Nothing of a day is visible
before its close but what is told in its morning: notices, and the messages that the seat may read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from decimal import Decimal

from engine.agents.rendering import money
from engine.arena.market import Listing, Market
from engine.arena.players import ChatMessage
from engine.arena.values import FlowKind
from engine.domain.market import COLUMNS, ActionKind, Bar, CorporateAction, NewsItem, PriceHistory, Symbol
from engine.market import as_of
from engine.market.trading_hours import AroundTheClock, decision_time

FIRST_DAY = date(2001, 1, 1)
"""The date of day 1. Days from before the arena have dates before it, and steps of memory are not negative."""


def session_of(day: int) -> date:
    """The session under which a day of the arena is read."""
    return FIRST_DAY + timedelta(days=day - 1)


class PublicData:
    """Market data of one seat, which grow with the days of the arena.

    market: bars, dividends and news so far.
    """

    def __init__(self, arena: Market) -> None:
        self.calendar = AroundTheClock()
        self._histories = {name: _past(name, listing) for name, listing in arena.listings.items()}
        self._actions: dict[Symbol, list[CorporateAction]] = {name: [] for name in self._histories}
        self._news: dict[Symbol, list[NewsItem]] = {name: [] for name in self._histories}
        self.market = as_of.Market(
            histories=self._histories,
            actions=self._actions,
            news=self._news,
            filings=dict.fromkeys(self._histories, ()),
            calendars=dict.fromkeys(self._histories, self.calendar),
        )

    def add_morning(self, arena: Market, messages: Iterable[ChatMessage]) -> None:
        """Add the notices of the day and the messages that the seat reads."""
        for name, listing in arena.listings.items():
            for source, text in (*_notices(arena, listing), *((one.agent, one.text) for one in messages)):
                self._news[name].append(self._item(arena.day, name, source, text))

    def add_close(self, arena: Market) -> None:
        """Add the bars and the dividends of the day that has closed."""
        day = arena.day - 1
        for name, listing in arena.listings.items():
            _append(self._histories[name], _bar(day, listing))
        for flow in arena.flows:
            if flow.kind is FlowKind.DIVIDEND and flow.day == day and flow.stock is not None:
                self._add_dividend(day, flow.stock, flow.amount / arena.ledger.shares(flow.agent, flow.stock))

    def _add_dividend(self, day: int, stock: Symbol, amount: Decimal) -> None:
        known = self._actions[stock]
        if not known or known[-1].ex_date != session_of(day + 1):
            known.append(CorporateAction(stock, session_of(day + 1), ActionKind.DIVIDEND, amount))

    def _item(self, day: int, stock: Symbol, source: str, text: str) -> NewsItem:
        return NewsItem(
            id=f"{stock}-{day}-{len(self._news[stock])}",
            symbol=stock,
            date=session_of(day),
            available_at=decision_time(self.calendar, session_of(day - 1)),
            summary=text,
            source=source,
        )


def _notices(arena: Market, listing: Listing) -> Iterator[tuple[str, str]]:
    """The notices of a morning about a stock, each with its source."""
    dividend = sum(listing.dividends, Decimal(0)) / len(listing.dividends)
    text = f"{listing.rules.name} is expected to pay {money(dividend)} a share at the close of every day."
    value = arena.rules.fundamental_value(listing.rules, arena.day)
    if value is not None:
        text += f" All that a share still pays is expected to be worth {money(value)}."
    yield "the market", text
    yield from (("the market", one) for one in arena.rules.news(arena.day))


def _past(name: Symbol, listing: Listing) -> PriceHistory:
    """Bars of the days before the arena, whose closes alone are known."""
    bars, before = [], listing.past[0]
    for number, close in enumerate(listing.past):
        session = session_of(number + 1 - len(listing.past))
        high, low = max(before, close), min(before, close)
        bars.append(Bar(session=session, open=before, high=high, low=low, close=close, volume=Decimal(0)))
        before = close
    return PriceHistory.of(name, bars)


def _bar(day: int, listing: Listing) -> Bar:
    """The bar of a day that has closed; one without trades is its reference price."""
    prices = [*(price for price, _ in listing.today), listing.closes[-1]]
    volume = Decimal(sum(quantity for _, quantity in listing.today))
    return Bar(
        session=session_of(day),
        open=prices[0],
        high=max(prices),
        low=min(prices),
        close=prices[-1],
        volume=volume,
    )


def _append(history: PriceHistory, bar: Bar) -> None:
    row = PriceHistory.of(history.symbol, (bar,))
    for column in COLUMNS:
        getattr(history, column).extend(getattr(row, column))
