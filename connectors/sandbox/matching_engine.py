"""The sandbox's matching engine: present prices, and the fills of orders.

Orders trade on the path of local daily bars with the costs of the simulated market (engine.simulation.fill_models), so
an order that waits for the open fills exactly as in a backtest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_UP, Decimal
from typing import Any

from connectors.sandbox.book import Book, Figures
from connectors.sandbox.faults import Faults
from connectors.sandbox.market import SandboxMarket, latest_session, session_open
from connectors.sandbox.orders import SandboxOrder
from connectors.sandbox.protocol import stable_id, stamp, texts
from engine.domain.decimal_text import plain
from engine.domain.execution import ExecutionRules
from engine.domain.market import Symbol, from_nano
from engine.domain.order import Fill, Side
from engine.domain.portfolio import CENT, EXACT, SHARE_STEP, ZERO, Portfolio
from engine.simulation.fill_models import FillModel

_ENDED_AT = {
    "canceled": "canceled_at",
    "expired": "expired_at",
    "rejected": "failed_at",
    "replaced": "replaced_at",
}
"""Field of an order with the time of its end, by status."""
REST_AFTER = timedelta(minutes=1)
"""Delay of the rest of an order after a partial fill."""


FEES_ENTERED = time(6, tzinfo=UTC)
"""Time of the day after a crypto trade at which its fee is entered."""


def fee_entered_at(values: dict[str, Any]) -> datetime:
    """The time at which a fee is entered in the account's history."""
    return datetime.combine(date.fromisoformat(values["date"]) + timedelta(days=1), FEES_ENTERED)


class MatchingEngine:
    """Prices and fills at the moment `now`. Changes are in memory until `commit` writes them and publishes the trade
    updates."""

    def __init__(
        self, market: SandboxMarket, book: Book, rules: ExecutionRules, now: datetime, crypto_fee: Decimal = ZERO
    ) -> None:
        """Continue with the faults in the book."""
        self.market = market
        self.book = book
        self.faults = Faults(book.facts.get("faults", []), book.facts.get("next_fault", 1))
        market.renamed = self.faults.renamed()
        self.now = now
        self.on_update: Callable[[dict[str, Any]], None] = lambda update: None
        self._model = FillModel(rules)
        self._crypto_fee = crypto_fee
        self._updates: list[dict[str, Any]] = []

    # Prices

    def horizon(self, symbol: Symbol) -> datetime:
        """Time up to which a symbol's market is visible: now, or its halt."""
        since = self.faults.halted_since(symbol)
        return self.now if since is None else min(self.now, since)

    def price(self, symbol: Symbol) -> Decimal:
        """The last price of a symbol; zero before its first bar."""
        price = self.market.price(symbol, self.horizon(symbol))
        return ZERO if price is None else from_nano(price)

    def quote(self, symbol: Symbol) -> tuple[Decimal, Decimal]:
        """Bid and ask: the prices of a sell and of a buy order now."""
        price = self.price(symbol)
        return self._model.price(price, Side.SELL), self._model.price(price, Side.BUY)

    def figures(self) -> Figures:
        """Figures of the account now."""
        symbols = {*self.book.portfolio.positions, *(order.symbol for order in self.book.open_orders())}
        return self.book.figures({symbol: self.price(symbol) for symbol in symbols})

    def is_tradable(self, symbol: Symbol) -> bool:
        """True where orders in a symbol are accepted."""
        untradable = self.faults.active("untradable", symbol) or self.market.has_stopped(symbol, self.now)
        return not untradable and self.price(symbol) > 0

    def is_halted(self, symbol: Symbol) -> bool:
        """True while trading in a symbol is halted."""
        return self.faults.halted_since(symbol) is not None

    def trades_now(self, order: SandboxOrder) -> bool:
        """True where an order can match at this moment."""
        if order.time_in_force == "cls" or self.is_halted(order.symbol):
            return False
        session = session_open(self.market.calendar(order.symbol), self.now)
        return session is not None and self.market.path(order.symbol, session) is not None

    # Fills

    def match(self, order: SandboxOrder) -> None:
        """Match an order for the first time."""
        order.status = "new"
        self.report("new", order)
        quoted, limit = self.price(order.symbol), order.limit_price
        if limit is None or (quoted <= limit if order.side is Side.BUY else quoted >= limit):
            self.fill(order, quoted)
        if order.is_open and order.time_in_force in ("ioc", "fok"):
            self.end(order, "canceled")

    def match_limit(self, order: SandboxOrder, before: datetime) -> None:
        """Fill a waiting limit order where the path since a moment has reached its price."""
        session = latest_session(self.market.calendar(order.symbol), self.now)
        path = self.market.path(order.symbol, session)
        if path is None or self.is_halted(order.symbol) or self.now <= path.opens or before >= path.closes:
            return
        seen, limit = path.candle(before, self.now), order.limit_price or ZERO
        if from_nano(seen.low) <= limit if order.side is Side.BUY else from_nano(seen.high) >= limit:
            self.fill(order, limit)

    def fill(self, order: SandboxOrder, quoted: Decimal) -> None:
        """Fill the remainder of an order at a price, or the part that a fault allows.

        An order below the smallest quantity is rejected.
        """
        price = self._model.price(quoted, order.side)
        if order.limit_price is not None:
            price = (min if order.side is Side.BUY else max)(price, order.limit_price)
        whole = quantity = self._requested(order, price)
        if order.part is not None:
            quantity, order.part = self._model.rounded_down(EXACT.multiply(whole, order.part)), None
            if order.rest == "fill":
                order.rest_due = self.now + REST_AFTER
        if not quantity:
            if not whole:
                self.end(order, "rejected")
            return
        shorts = order.side is Side.SELL and self.book.portfolio.quantity(order.symbol) <= 0
        fee = self._model.fee(quantity, price)
        self.book.portfolio = self.book.portfolio.filled(
            Fill(
                order_id=order.id,
                symbol=order.symbol,
                side=order.side,
                session=self.now.date(),
                quantity=quantity,
                price=price,
                fee=fee,
            )
        )
        order.filled_qty += quantity
        order.cost = EXACT.fma(quantity, price, order.cost)
        done = quantity == whole
        order.status = "filled" if done else "partially_filled"
        order.filled_at = self.now
        self._record(order, quantity, price, "sell_short" if shorts else order.side.value.lower())
        self._charge(order, quantity, price, fee)
        self.report("fill" if done else "partial_fill", order, quantity, price)
        if not done and order.rest == "cancel":
            self.end(order, "canceled")

    def end(self, order: SandboxOrder, status: str) -> None:
        """Make an order final now: canceled, expired, rejected or replaced."""
        setattr(order, _ENDED_AT[status], self.now)
        order.status, order.rest_due = status, None
        self.report(status, order)

    def _requested(self, order: SandboxOrder, price: Decimal) -> Decimal:
        if order.qty is not None:
            return order.remaining
        budget = (order.notional or ZERO) - order.cost
        if order.side is Side.BUY:
            return self._model.affordable(budget, price)
        return self._model.rounded_down(EXACT.divide(budget, price))

    def _record(self, order: SandboxOrder, quantity: Decimal, price: Decimal, side: str) -> None:
        filled = order.status == "filled"
        values = {
            "transaction_time": self.now,
            "type": "fill" if filled else "partial_fill",
            "price": price,
            "qty": quantity,
            "side": side,
            "symbol": self.market.listing(order.symbol).wire,
            "leaves_qty": ZERO if filled else order.remaining,
            "order_id": order.id,
            "cum_qty": order.filled_qty,
            "order_status": order.status,
        }
        self.book.record("FILL", self.now, texts(values))

    def _charge(self, order: SandboxOrder, quantity: Decimal, price: Decimal, fee: Decimal) -> None:
        """Enter the commission of a fill, and take the fee of a crypto trade."""
        listing = self.market.listing(order.symbol)
        if listing.crypto and self._crypto_fee:
            self._take_crypto_fee(order, quantity, price)
        if not fee:
            return
        description = f"fee of a trade in {listing.wire}"
        values = {"symbol": listing.compact, "net_amount": plain(-fee), "description": description}
        self.book.record("CFEE" if listing.crypto else "FEE", self.now, values)

    def _take_crypto_fee(self, order: SandboxOrder, quantity: Decimal, price: Decimal) -> None:
        """Take the fee of a trade in what it brings; the account's history has it on the day after."""
        book, listing, buys = self.book, self.market.listing(order.symbol), order.side is Side.BUY
        charged = (quantity if buys else EXACT.multiply(quantity, price)) * self._crypto_fee
        charged = charged.quantize(SHARE_STEP if buys else CENT, ROUND_UP)
        held = dict(book.portfolio.positions)
        if buys:
            held[order.symbol] = replace(held[order.symbol], quantity=held[order.symbol].quantity - charged)
        book.portfolio = Portfolio(book.portfolio.cash - (ZERO if buys else charged), held)
        values = {
            "date": self.now.date().isoformat(),
            "symbol": listing.compact,
            "qty": plain(-charged if buys else ZERO),
            "price": plain(price),
            "net_amount": plain(ZERO if buys else -charged),
            "description": f"Coin Pair Transaction Fee ({'Non USD' if buys else 'USD'})",
        }
        book.facts["fees_due"] = [*self._fees_due, values]

    def enter_fees(self) -> None:
        """Enter the fees that are due by now in the account's history."""
        due = [values for values in self._fees_due if fee_entered_at(values) <= self.now]
        for values in due:
            self.book.record("CFEE", self.now, values)
        self.book.facts["fees_due"] = [values for values in self._fees_due if values not in due]

    @property
    def _fees_due(self) -> list[dict[str, Any]]:
        fees: list[dict[str, Any]] = self.book.facts.get("fees_due", [])
        return fees

    # Trade updates

    def report(
        self, event: str, order: SandboxOrder, quantity: Decimal | None = None, price: Decimal | None = None
    ) -> None:
        """Queue a trade update for an order."""
        order.updated_at = self.now
        self.book.mark_changed(order)
        update: dict[str, Any] = {
            "event": event,
            "execution_id": stable_id("execution", order.id, event, plain(order.filled_qty), self.now),
            "timestamp": stamp(self.now),
            "order": order.json(self.market.listing(order.symbol)),
        }
        if quantity is not None and price is not None:
            update |= {"qty": plain(quantity), "price": plain(price)}
            update["position_qty"] = plain(self.book.portfolio.quantity(order.symbol))
        self._updates.append(update)

    def commit(self) -> None:
        """Write all changes, then publish the queued updates."""
        self.book.facts["now"] = self.now.isoformat()
        self.book.commit()
        updates, self._updates = self._updates, []
        for update in updates:
            self.on_update(update)
