"""A player that decides once a morning, as a desk does, and sends in every round of the day what is still missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Protocol

from engine.arena.chat import ChatMessage
from engine.arena.market import Market
from engine.arena.public_data import PublicData
from engine.arena.seat_account import SeatAccount
from engine.arena.targets import SeatDecision, toward
from engine.arena.values import Refusal
from engine.arena.view import MarketView, Wish


class Decider(Protocol):
    """The part of a seat that decides: a preset of the cycle, or a rule strategy of backtests."""

    async def decide(self, day: int, data: PublicData, account: SeatAccount) -> Sequence[SeatDecision]:
        """Decide on the stocks of a morning; one that is left out stays as it is."""


@dataclass(slots=True)
class DecidedPlayer:
    """A player whose orders lead to the shares that its decider wants (Player). It does not talk.

    decided: its decisions, oldest first.
    """

    name: str
    decider: Decider
    window: int = 2
    decided: list[SeatDecision] = field(default_factory=list)
    _targets: Mapping[str, int] = field(default_factory=dict)
    _market: Market | None = None
    _record: tuple[PublicData, SeatAccount] | None = None

    async def chat(self, market: Market) -> tuple[str, bool | None]:
        """Nothing."""
        return "", None

    async def prepare(self, market: Market, messages: Sequence[ChatMessage]) -> None:
        """Read what the morning brought, and decide."""
        if self._record is None:
            self._record = PublicData(market), SeatAccount(market, self.name)
            self._market = market
        data, account = self._record
        data.add_morning(market, messages)
        made = await self.decider.decide(market.day, data, account)
        self.decided += made
        self._targets = {one.stock: market.ledger.shares(self.name, one.stock) + one.shares for one in made}

    async def orders(self, view: MarketView) -> Iterable[Wish]:
        """The orders that lead to what was decided."""
        return self._missing(view)

    def _missing(self, view: MarketView) -> Iterator[Wish]:
        """The orders on the view's prices, counted when they arrive: those of the round before may have traded until
        then, and nothing is ordered twice."""
        assert self._market is not None
        ledger = self._market.ledger
        shares = {stock.name: ledger.shares(self.name, stock.name) for stock in view.stocks}
        now = replace(view, shares=shares, cash=ledger.cash(self.name))
        yield from toward(now, self._targets, self._market.rules.cost_rate)

    def answered(self, wish: Wish, refusal: Refusal | None) -> None:
        """Nothing: what did not trade is sent again in the next round."""

    async def reflect(self, market: Market, day_return: Decimal, average: Decimal) -> None:
        """Close the books of the day."""
        if self._record is not None and market.day <= market.rules.days:
            data, account = self._record
            data.add_close(market)
            account.close(market)
