"""Flows of money and shares from outside the market: the beginning, income, shocks, dividends, interest, fees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from random import Random

from engine.arena.ledger import WORLD, ZERO, Ledger, cents
from engine.arena.listing import Listing
from engine.arena.rules import ArenaRules, Seat, Shock, StockRules
from engine.arena.values import Flow, FlowKind


class OutsideFlows:
    """Flows between agents and the world, each booked in the ledger and kept in `flows`.

    seed: draws dividends and deals shares that do not divide.
    """

    def __init__(self, rules: ArenaRules, agents: Sequence[str], seed: int, ledger: Ledger) -> None:
        self.flows: list[Flow] = []
        self._rules, self._agents, self._seed, self._ledger = rules, tuple(agents), seed, ledger

    def deal_cash(self) -> None:
        """Give every agent the cash of its seat."""
        for agent, seat in zip(self._agents, self._seats(), strict=True):
            self._book(1, agent, FlowKind.INITIAL, seat.cash)

    def deal_shares(self, stock: StockRules) -> Mapping[str, int]:
        """Give every agent its shares of a stock; returns them by agent."""
        held = self._dealt(stock, [seat.shares.get(stock.name, 0) for seat in self._seats()])
        for agent, quantity in held.items():
            self._book(1, agent, FlowKind.INITIAL, ZERO, stock=stock.name, shares=quantity)
        return held

    def open_day(self, day: int, listings: Mapping[str, Listing]) -> None:
        """Pay the income and apply the shocks of a day."""
        for agent in self._agents:
            self._book(day, agent, FlowKind.INCOME, self._rules.income)
        for shock in self._rules.shocks:
            if shock.day == day:
                self._shake(shock, listings)

    def pay_holders(self, day: int, listings: Mapping[str, Listing]) -> None:
        """Pay the dividends of a day, then interest on cash."""
        for name, listing in listings.items():
            paid = Random(f"{self._seed} {name} {day}").choice(listing.dividends)
            for agent in self._agents:
                self._book(day, agent, FlowKind.DIVIDEND, cents(paid * self._ledger.shares(agent, name)), stock=name)
        for agent in self._agents:
            self._book(day, agent, FlowKind.INTEREST, cents(self._ledger.cash(agent) * self._rules.interest))

    def charge_fee(self, day: int, agent: str, wealth: Decimal) -> None:
        """Charge the fee on an agent's wealth, as far as its cash goes."""
        fee = min(cents(wealth * self._rules.fee_rate), self._ledger.cash(agent))
        self._book(day, agent, FlowKind.FEE, -fee)

    def buy_back(self, day: int, listings: Mapping[str, Listing]) -> None:
        """Buy all shares back where the rules say so."""
        price = self._rules.buy_back
        if price is None:
            return
        for name in listings:
            for agent in self._agents:
                held = self._ledger.shares(agent, name)
                if held:
                    self._book(day, agent, FlowKind.BUY_BACK, cents(price * held), stock=name, shares=-held)

    def _seats(self) -> Sequence[Seat]:
        return [self._rules.seats[place % len(self._rules.seats)] for place in range(len(self._agents))]

    def _dealt(self, stock: StockRules, named: Sequence[int]) -> Mapping[str, int]:
        if stock.shares is None:
            return dict(zip(self._agents, named, strict=True))
        each, over = divmod(stock.shares, len(self._agents))
        lucky = set(Random(f"{self._seed} {stock.name}").sample(sorted(self._agents), over))
        return {agent: each + (agent in lucky) for agent in self._agents}

    def _shake(self, shock: Shock, listings: Mapping[str, Listing]) -> None:
        if shock.kind == "liquidity":
            for agent in self._agents:
                change = cents(self._ledger.cash(agent) * (shock.factor - 1))
                self._book(shock.day, agent, FlowKind.SHOCK, change)
            return
        for name, listing in listings.items():
            if shock.stock in {None, name}:
                listing.dividends = tuple(one * shock.factor for one in listing.dividends)

    def _book(
        self, day: int, agent: str, kind: FlowKind, amount: Decimal, *, stock: str | None = None, shares: int = 0
    ) -> None:
        """Book and keep a flow between an agent and the world; a flow of nothing is none, but at the beginning."""
        if not (amount or shares or kind is FlowKind.INITIAL):
            return
        self._ledger.pay(*((WORLD, agent) if amount >= 0 else (agent, WORLD)), abs(amount))
        if stock is not None and shares:
            self._ledger.deliver(*((WORLD, agent) if shares > 0 else (agent, WORLD)), stock, abs(shares))
        self.flows.append(Flow(day=day, agent=agent, kind=kind, amount=amount, stock=stock, shares=shares))
