"""The market as an agent of the arena sees it before it decides, and the orders that it may ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from engine.arena.market import Listing, Market
from engine.domain.order import Side


class Wish(NamedTuple):
    """An order that an agent wants to send; a limit of None trades at any price."""

    stock: str
    side: Side
    quantity: int
    limit: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StockView:
    """A stock as every agent sees it.

    price: the reference price now.
    closes: of the days before, after the close also of the day itself, the newest last; those from before the arena are
      made up.
    previous: the close of the day before.
    dividend: expected, a share and day.
    fundamental: value of a share, where the preset tells it.
    bid, ask: the best open limits; None where there is none.
    today: prices and quantities of the day's trades, oldest first.
    """

    name: str
    price: Decimal
    closes: Sequence[Decimal]
    previous: Decimal
    dividend: Decimal
    fundamental: Decimal | None
    bid: Decimal | None
    ask: Decimal | None
    today: Sequence[tuple[Decimal, int]]

    @property
    def change(self) -> Decimal:
        """The move of the price since the close of the day before."""
        return self.price / self.previous - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketView:
    """The market as one agent sees it: public prices and its own account, nothing of the others'.

    day, round: both count from 1.
    days: length of the arena.
    tick: smallest step of a limit.
    cash, shares: all that it has: its open orders are cancelled when its next ones arrive.
    costs: by stock, what a share cost it on average.
    wealth: cash and shares at reference prices.
    news: shocks of the day.
    """

    agent: str
    day: int
    days: int
    round: int
    tick: Decimal
    cash: Decimal
    shares: Mapping[str, int]
    costs: Mapping[str, Decimal]
    wealth: Decimal
    news: Sequence[str]
    stocks: Sequence[StockView]


def view_of(market: Market, agent: str, window: int = 20) -> MarketView:
    """The market as `agent` sees it now, with the closes of the last `window` days."""
    ledger = market.ledger
    day = market.day - market.closed
    return MarketView(
        agent=agent,
        day=day,
        days=market.rules.days,
        round=market.round,
        tick=market.rules.tick,
        cash=ledger.cash(agent),
        shares={name: ledger.shares(agent, name) for name in market.listings},
        costs={name: market.average_cost(agent, name) for name in market.listings},
        wealth=market.wealth(agent),
        news=market.rules.news(day),
        stocks=tuple(_stock(market, listing, window) for listing in market.listings.values()),
    )


def _stock(market: Market, listing: Listing, window: int) -> StockView:
    bid, ask = listing.book.best(Side.BUY), listing.book.best(Side.SELL)
    return StockView(
        name=listing.rules.name,
        price=listing.reference,
        closes=(*listing.past[:-1], *listing.closes)[-window:],
        previous=listing.closes[-2 if market.closed else -1],
        dividend=sum(listing.dividends, Decimal(0)) / len(listing.dividends),
        fundamental=market.rules.fundamental_value(listing.rules, market.day),
        bid=bid.limit if bid else None,
        ask=ask.limit if ask else None,
        today=tuple(listing.today),
    )
