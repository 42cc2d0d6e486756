"""The market of an arena: it checks and matches orders, and opens and closes the day.

Everything that happens is an event in `trades` and `flows`; accounts are in the ledger alone. What a trade moves is
booked by its settlement, what comes from outside by its flows.

Settlement: what open orders reserve, what a buyer can pay, and trades as they are booked in the ledger.

Flows of money and shares from outside the market: the beginning, income, shocks, dividends, interest, fees.

A stock as the market lists it: its shares, its book, its prices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random

from engine.arena.book import CENT, WORLD, ZERO, Book, Ledger, Resting, cents, clearing_price
from engine.arena.rules import ArenaRules, Seat, Shock, StockRules
from engine.arena.values import Flow, FlowKind, Order, Refusal, Trade
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


class Settlement:
    """The books of trades: `trades` holds every one, the ledger the accounts."""

    def __init__(self, rules: ArenaRules, ledger: Ledger) -> None:
        self.trades: list[Trade] = []
        self._rules, self._ledger = rules, ledger
        self._covered: dict[int, int] = {}
        self._paid: dict[tuple[str, str], Decimal] = {}

    def endow(self, agent: str, stock: str, amount: Decimal) -> None:
        """Count the shares of the beginning as paid with `amount`."""
        self._paid[agent, stock] = amount

    def average_cost(self, agent: str, stock: str) -> Decimal:
        """Average cost of an agent's shares; 0 where it has none."""
        held = self._ledger.shares(agent, stock)
        return self._paid[agent, stock] / held if held else ZERO

    def shortage(
        self, agent: str, listing: Listing, side: Side, quantity: int, limit: Decimal | None
    ) -> Refusal | None:
        """The reason why an agent's free cash or shares do not cover an order; None where they do."""
        # Algorithm 1 refuses an order that would use all of it.
        spare = 1 if self._rules.checks == "printed" else 0
        if side is Side.SELL:
            held = self._ledger.free_shares(agent, listing.rules.name)
            return Refusal.NO_SHARES if held < quantity + spare else None
        free = self._ledger.free_cash(agent)
        if limit is None:
            return None if free > 0 else Refusal.NO_CASH
        needed = self._with_cost(limit * quantity) + spare * CENT
        return Refusal.NO_CASH if free < needed else None

    def reserve(self, order: Order, quantity: int) -> None:
        """Reserve what `quantity` shares of an order need; 0 releases all of it. An order without a limit reserves
        nothing: it trades at once or not at all."""
        if order.limit is None:
            return
        before = self._covered.pop(order.id, 0)
        if quantity:
            self._covered[order.id] = quantity
        if order.side is Side.SELL:
            self._ledger.reserve_shares(order.agent, order.stock, quantity - before)
            return
        change = self._with_cost(order.limit * quantity) - self._with_cost(order.limit * before)
        self._ledger.reserve_cash(order.agent, change)

    def impact(self, listing: Listing, deal: Decimal, quantity: int) -> Decimal:
        """The reference price after a deal, within the daily cap."""
        moved = self._rules.moved(listing.reference, deal, quantity, listing.shares)
        return self._rules.capped(moved, listing.closes[-1])

    def payable(self, buy: Order, listing: Listing, deal: Decimal, most: int) -> int:
        """Shares that the buyer can pay: all that a limit covers, less where the price passes it or there is none."""
        quantity = most
        while quantity:
            over = self._price(listing, deal, quantity) - (buy.limit or ZERO)
            if over <= 0:
                break
            spare = max(ZERO, self._ledger.free_cash(buy.agent) - (CENT if buy.limit else ZERO))
            possible = int(spare / (over * (1 + self._rules.cost_rate)))
            if possible >= quantity:
                break
            # The price after the impact depends on the quantity.
            quantity = possible
        return quantity

    def settle(
        self,
        buy: Order,
        sell: Order,
        listing: Listing,
        quantity: int,
        deal: Decimal,
        *,
        day: int,
        round: int,
        maker: str = "",
    ) -> None:
        """Book a trade that the buyer can pay, and move the reference price."""
        price = self._price(listing, deal, quantity)
        listing.reference = self.impact(listing, deal, quantity)
        listing.today.append((price, quantity))
        cost = self._cost(price * quantity)
        for order in (buy, sell):
            self.reserve(order, self._covered.get(order.id, 0) - quantity)
        self._paid[sell.agent, sell.stock] -= self.average_cost(sell.agent, sell.stock) * quantity
        self._paid[buy.agent, buy.stock] += price * quantity
        self._ledger.pay(buy.agent, sell.agent, price * quantity)
        self._ledger.deliver(sell.agent, buy.agent, listing.rules.name, quantity)
        for agent in (buy.agent, sell.agent):
            self._ledger.pay(agent, WORLD, cost)
        over = ZERO if buy.limit is None else max(ZERO, price - buy.limit)
        under = ZERO if sell.limit is None else max(ZERO, sell.limit - price)
        self.trades.append(
            Trade(
                day=day,
                round=round,
                stock=listing.rules.name,
                buyer=buy.agent,
                seller=sell.agent,
                quantity=quantity,
                price=price,
                reference=listing.reference,
                cost_buyer=cost,
                cost_seller=cost,
                maker=maker,
                excess=(over + under) * quantity,
            )
        )

    def _price(self, listing: Listing, deal: Decimal, quantity: int) -> Decimal:
        if self._rules.settle == "deal":
            return deal
        return self.impact(listing, deal, quantity).quantize(self._rules.tick)

    def _cost(self, value: Decimal) -> Decimal:
        # Rounded down, so that the costs of parts never pass what was reserved for the whole.
        return cents(value * self._rules.cost_rate)

    def _with_cost(self, value: Decimal) -> Decimal:
        return value + self._cost(value)


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


@dataclass(slots=True, kw_only=True)
class Listing:
    """A stock in the market.

    shares: in circulation.
    reference: the price that wealth is measured at; moved by trades.
    dividends: what may be paid a share, changed by shocks.
    past: closes from before the arena, made up by the seed; the last of them is the first price.
    closes: the first price, and reference prices at the end of each day.
    today: prices and quantities of the day's trades, until the next day opens.
    """

    rules: StockRules
    shares: int
    reference: Decimal
    dividends: tuple[Decimal, ...]
    book: Book = field(default_factory=Book)
    past: tuple[Decimal, ...] = ()
    closes: list[Decimal] = field(default_factory=list)
    today: list[tuple[Decimal, int]] = field(default_factory=list)
