"""The market of an arena: it checks and matches orders, and opens and closes the day.

Everything that happens is an event in `trades` and `flows`; accounts are in the ledger alone. What a trade moves is
booked by `engine.arena.settlement`, what comes from outside by `engine.arena.flows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from random import Random

from engine.arena.book import Resting, clearing_price
from engine.arena.flows import OutsideFlows
from engine.arena.ledger import ZERO, Ledger, cents
from engine.arena.listing import Listing
from engine.arena.rules import ArenaRules, StockRules
from engine.arena.settlement import Settlement
from engine.arena.values import Flow, Order, Refusal, Trade
from engine.domain.order import Side


class Market:
    """A market of named agents under the rules of a preset.

    seed: draws dividends and deals shares that do not divide; orders arrive as the caller sends them.
    """

    def __init__(self, rules: ArenaRules, agents: Sequence[str], seed: int = 0) -> None:
        self.rules, self.agents, self.seed = rules, tuple(agents), seed
        self.ledger = Ledger()
        self.day, self.round, self.closed = 1, 1, False
        self.listings: dict[str, Listing] = {}
        self._settlement = Settlement(rules, self.ledger)
        self._outside = OutsideFlows(rules, agents, seed, self.ledger)
        self._orders = 0
        self._outside.deal_cash()
        for stock in rules.stocks:
            self._list(stock)

    @property
    def trades(self) -> Sequence[Trade]:
        """All trades so far, oldest first."""
        return self._settlement.trades

    @property
    def flows(self) -> Sequence[Flow]:
        """All flows from and to the outside so far, oldest first."""
        return self._outside.flows

    def wealth(self, agent: str) -> Decimal:
        """Cash and shares of an agent at reference prices."""
        shares = (self.ledger.shares(agent, name) * one.reference for name, one in self.listings.items())
        return self.ledger.cash(agent) + sum(shares, ZERO)

    def average_cost(self, agent: str, stock: str) -> Decimal:
        """Average cost of an agent's shares, those of the beginning at the first price; 0 where it has none."""
        return self._settlement.average_cost(agent, stock)

    def submit(self, agent: str, stock: str, side: Side, quantity: int, limit: Decimal | None) -> Order | Refusal:
        """Check an order and let it trade; what is left of a limit order waits in the book.

        In a call auction it waits for the end of the round. An order that is refused changes nothing, but where the
        checks are as printed: there the reference price has moved already.
        """
        refusal = self._malformed(stock, quantity, limit)
        if refusal:
            return refusal
        listing = self.listings[stock]
        if self.rules.checks == "printed" and limit is not None:
            listing.reference = self._settlement.impact(listing, limit, quantity)
            limit = listing.reference.quantize(self.rules.tick)
        refusal = self._settlement.shortage(agent, listing, side, quantity, limit)
        if refusal:
            return refusal
        self._orders += 1
        order = Order(
            id=self._orders,
            agent=agent,
            stock=stock,
            side=side,
            quantity=quantity,
            limit=limit,
            day=self.day,
            round=self.round,
        )
        self._enter(order, listing)
        return order

    def cancel(self, agent: str, order_id: int) -> bool:
        """Take an open order of an agent out of the book; False where it has none of that number."""
        for listing in self.listings.values():
            for resting in listing.book.all_orders():
                if resting.order.id == order_id and resting.order.agent == agent:
                    self._withdraw(resting, listing)
                    return True
        return False

    def open_orders(self, agent: str) -> Sequence[Resting]:
        """Open orders of an agent."""
        books = (one.book.all_orders() for one in self.listings.values())
        return tuple(resting for orders in books for resting in orders if resting.order.agent == agent)

    def end_round(self) -> None:
        """Hold the call auction of every stock where the market is not continuous: what does not trade in it goes."""
        if self.rules.auction == "call":
            for listing in self.listings.values():
                self._clear(listing)
        self.round += 1

    def open_day(self) -> None:
        """Pay the income and apply the shocks of the day."""
        self.closed = False
        for listing in self.listings.values():
            listing.today.clear()
        self._outside.open_day(self.day, self.listings)

    def close_day(self) -> None:
        """Cancel what is open, pay dividends and interest, charge the fee, keep the closes; after the last day buy all
        shares back where the rules say so."""
        for listing in self.listings.values():
            self._withdraw_all(listing)
        self._outside.pay_holders(self.day, self.listings)
        for agent in self.agents:
            self._outside.charge_fee(self.day, agent, self.wealth(agent))
        if self.day == self.rules.days:
            self._outside.buy_back(self.day, self.listings)
        for listing in self.listings.values():
            listing.closes.append(listing.reference)
        self.day, self.round, self.closed = self.day + 1, 1, True

    def _list(self, stock: StockRules) -> None:
        held = self._outside.deal_shares(stock)
        self.listings[stock.name] = Listing(
            rules=stock,
            shares=sum(held.values()),
            reference=stock.first_price,
            dividends=stock.dividends,
            past=self._past(stock),
            closes=[stock.first_price],
        )
        for agent, quantity in held.items():
            self._settlement.endow(agent, stock.name, stock.first_price * quantity)

    def _past(self, stock: StockRules) -> tuple[Decimal, ...]:
        """A random walk that ends at the first price."""
        random, price, closes = Random(f"{self.seed} {stock.name} past"), stock.first_price, list[Decimal]()
        for _ in range(self.rules.past_days):
            closes.insert(0, price)
            price = max(self.rules.tick, cents(price * (1 + Decimal(random.randint(-300, 300)) / 10_000)))
        return tuple(closes)

    def _malformed(self, stock: str, quantity: int, limit: Decimal | None) -> Refusal | None:
        if self.day > self.rules.days:
            return Refusal.CLOSED
        if stock not in self.listings:
            return Refusal.UNKNOWN_STOCK
        if quantity <= 0:
            return Refusal.BAD_QUANTITY
        if limit is None:
            return Refusal.BAD_LIMIT if self.rules.auction == "call" else None
        sound = limit.is_finite() and limit > 0 and limit % self.rules.tick == 0
        return None if sound else Refusal.BAD_LIMIT

    # Matching.

    def _enter(self, order: Order, listing: Listing) -> None:
        self._settlement.reserve(order, order.quantity)
        left = order.quantity if self.rules.auction == "call" else self._match(order, listing)
        if left and order.limit is not None:
            listing.book.add(order, order.limit, left)

    def _match(self, order: Order, listing: Listing) -> int:
        """Trade an order against the book; returns the shares that may wait in it."""
        left = order.quantity
        while left and (resting := listing.book.counterpart(order.side, order.limit)):
            if resting.order.agent == order.agent:
                # Nobody trades with itself: the older order goes.
                self._withdraw(resting, listing)
                continue
            buy, sell = (order, resting.order) if order.side is Side.BUY else (resting.order, order)
            done = self._trade(buy, sell, listing, min(left, resting.remaining), resting)
            left -= done
            if done == 0 and buy is order:
                self._settlement.reserve(order, 0)
                return 0
            if done == 0:
                self._withdraw(resting, listing)
        return left

    def _trade(self, buy: Order, sell: Order, listing: Listing, most: int, resting: Resting) -> int:
        """Trade up to `most` shares at the price of the order in the book; returns how many, 0 where the buyer cannot
        pay for one."""
        quantity = self._settlement.payable(buy, listing, resting.limit, most)
        if quantity:
            self._settle(buy, sell, listing, quantity, resting.limit, maker=resting.order.agent)
            listing.book.reduce(resting, quantity)
        return quantity

    def _clear(self, listing: Listing) -> None:
        """The call auction of a stock: all trades of the round at one price."""
        book = listing.book
        price = clearing_price(book.orders(Side.BUY), book.orders(Side.SELL), listing.reference)
        while price is not None and self._clear_best(listing, price):
            pass
        self._withdraw_all(listing)

    def _clear_best(self, listing: Listing, price: Decimal) -> bool:
        """Trade the best bid with the best ask at the auction's price; False where they do not meet."""
        bid, ask = listing.book.best(Side.BUY), listing.book.best(Side.SELL)
        if bid is None or ask is None or bid.limit < price or ask.limit > price:
            return False
        if bid.order.agent == ask.order.agent:
            self._withdraw(min(bid, ask, key=lambda one: one.order.id), listing)
            return True
        quantity = self._settlement.payable(bid.order, listing, price, min(bid.remaining, ask.remaining))
        if quantity:
            self._settle(bid.order, ask.order, listing, quantity, price)
            listing.book.reduce(ask, quantity)
            listing.book.reduce(bid, quantity)
        else:
            self._withdraw(bid, listing)
        return True

    def _settle(
        self, buy: Order, sell: Order, listing: Listing, quantity: int, deal: Decimal, *, maker: str = ""
    ) -> None:
        self._settlement.settle(buy, sell, listing, quantity, deal, day=self.day, round=self.round, maker=maker)

    def _withdraw(self, resting: Resting, listing: Listing) -> None:
        self._settlement.reserve(resting.order, 0)
        listing.book.reduce(resting, resting.remaining)

    def _withdraw_all(self, listing: Listing) -> None:
        for resting in listing.book.all_orders():
            self._withdraw(resting, listing)
