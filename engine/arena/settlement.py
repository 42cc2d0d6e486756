"""Settlement: what open orders reserve, what a buyer can pay, and trades as they are booked in the ledger."""

from __future__ import annotations

from decimal import Decimal

from engine.arena.ledger import CENT, WORLD, ZERO, Ledger, cents
from engine.arena.listing import Listing
from engine.arena.rules import ArenaRules
from engine.arena.values import Order, Refusal, Trade
from engine.domain.order import Side


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
        """The price that a deal settles at."""
        if self._rules.settle == "deal":
            return deal
        return self.impact(listing, deal, quantity).quantize(self._rules.tick)

    def _cost(self, value: Decimal) -> Decimal:
        # Rounded down, so that the costs of parts never pass what was reserved for the whole.
        return cents(value * self._rules.cost_rate)

    def _with_cost(self, value: Decimal) -> Decimal:
        return value + self._cost(value)
