"""The sandbox's exchange: prices and fills, order submission, and the passing of time.

Orders trade on the path of local daily bars with the costs of the simulated market
(engine.simulation.simulated_broker), so an order that waits for the open fills exactly as in a backtest.

The account is on margin, as a real paper account is: cash may fall below zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from typing import Any

from connectors.sandbox.book import Book, Figures
from connectors.sandbox.faults import Faults
from connectors.sandbox.market import SandboxMarket, latest_session, next_session, session_open
from connectors.sandbox.orders import SandboxOrder, Ticket, good_for
from connectors.sandbox.protocol import FIXED_FIELDS, ApiError, forbidden, invalid, stable_id, stamp, texts
from engine.domain.market import ActionKind, CorporateAction, Symbol, from_nano, is_crypto
from engine.domain.order import CENT, EXACT, SHARE_STEP, ZERO, Fill, Portfolio, Side
from engine.domain.run import CashFlow, ExecutionRules, carried_forward
from engine.domain.text import plain
from engine.simulation.simulated_broker import FillModel

REST_AFTER = timedelta(minutes=1)
"""Delay of the rest of an order after a partial fill."""
FEES_ENTERED = time(6, tzinfo=UTC)
"""Time of the day after a crypto trade at which its fee is entered."""


def fee_entered_at(values: dict[str, Any]) -> datetime:
    """The time at which a fee is entered in the account's history."""
    return datetime.combine(date.fromisoformat(values["date"]) + timedelta(days=1), FEES_ENTERED)


_MINIMUM = {False: Decimal(1), True: Decimal(10)}
"""Smallest amount of a purchase in USD, of shares and of crypto."""


class Exchange:
    """Prices, fills and orders at the moment `now`, and the passing of time. Changes are in memory until `commit`
    writes them and publishes the trade updates.

    `on_step` gets every step of the clock, after the books are on disk; all changes are written at once.
    """

    def __init__(
        self,
        market: SandboxMarket,
        book: Book,
        rules: ExecutionRules,
        now: datetime,
        *,
        pay_dividends: bool = False,
        crypto_fee: Decimal = ZERO,
    ) -> None:
        """Open the account if the books are new, else continue with the faults in the book."""
        self.market = market
        self.book = book
        self.faults = Faults(book.facts.get("faults", []), book.facts.get("next_fault", 1))
        market.renamed = self.faults.renamed()
        self.now = now
        self.on_update: Callable[[dict[str, Any]], None] = lambda update: None
        self.on_step: Callable[[datetime, datetime], None] = lambda before, after: None
        self._model = FillModel(rules)
        self._pay_dividends = pay_dividends
        self._crypto_fee = crypto_fee
        self._updates: list[dict[str, Any]] = []
        if book.is_new:
            book.facts |= {
                "account": stable_id("account", now),
                "created": stamp(now),
                "actions_through": latest_session(market.exchange, now).isoformat(),
            }
        self.commit()

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
        setattr(order, "failed_at" if status == "rejected" else f"{status}_at", self.now)
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

    # Orders

    def submit(self, ticket: Ticket, replaces: SandboxOrder | None = None) -> dict[str, Any]:
        """Submit an order; the answer is its state on arrival, so one that fills at once is still pending in it.

        Raises ApiError.
        """
        listing = self.market.listing(ticket.symbol)
        if ticket.client_order_id in self.book.by_client_id:
            raise invalid("client_order_id must be unique")
        self._check_account()
        if not self.is_tradable(ticket.symbol):
            raise invalid(f"asset {listing.wire} is not tradable")
        self._check_asset(ticket)
        intent = self._intent(ticket, replaces)
        fault = self.faults.for_order(listing.wire, ticket.side.value.lower())
        if fault is not None and fault.kind == "refuse":
            raise forbidden(fault.message or "order refused")
        order = self._new_order(ticket, intent)
        if replaces is not None:
            order.replaces, replaces.replaced_by = replaces.id, order.id
            self.end(replaces, "replaced")
        if fault is not None and fault.kind == "partial_fill":
            order.part, order.rest = fault.fraction, fault.then
        self.book.add(order)
        self.report(order.status, order)
        answer = order.json(listing)
        if fault is not None and fault.kind == "reject":
            self.end(order, "rejected")
        elif self.trades_now(order):
            self.match(order)
        self.commit()
        return answer

    def cancel(self, order: SandboxOrder) -> None:
        """Cancel an order. Raises ApiError for a final one."""
        if not order.is_open:
            raise ApiError(422, 42210000, f'order is already in "{order.status}" state')
        self.end(order, "canceled")
        self.commit()

    def transfer(self, amount: Decimal, symbol: Symbol = "", *, moved: bool = True, entry: bool = True) -> None:
        """Deposit cash, or shares of a symbol, or withdraw them: themselves, their entry in the history, or both."""
        book = self.book
        if moved and symbol:
            shares = CashFlow(session=self.now.date(), symbol=symbol, kind="", amount=ZERO, quantity=amount)
            book.portfolio = carried_forward(book.portfolio, flows=[shares])
        elif moved:
            book.portfolio = replace(book.portfolio, cash=book.portfolio.cash + amount)
        if entry and symbol:
            listing = self.market.listing(symbol)
            self.book.record("JNLS", self.now, {"symbol": listing.wire, "qty": plain(amount), "net_amount": "0"})
        elif entry:
            self.book.record("CSD" if amount > 0 else "CSW", self.now, {"net_amount": plain(amount)})
        self.commit()

    def resume(self) -> None:
        """Match orders that a fault kept from the market."""
        self._match_waiting(opening=False)
        self.commit()

    def _new_order(self, ticket: Ticket, intent: str) -> SandboxOrder:
        seq = len(self.book.orders) + 1
        order_id = stable_id("order", self.book.facts["account"], seq)
        waits = session_open(self.market.calendar(ticket.symbol), self.now) is None
        values = asdict(ticket) | {"client_order_id": ticket.client_order_id or stable_id("client", order_id)}
        return SandboxOrder(
            **values,
            seq=seq,
            id=order_id,
            created_at=self.now,
            updated_at=self.now,
            status="accepted" if waits or ticket.time_in_force in ("opg", "cls") else "pending_new",
            intent=intent,
            session=good_for(ticket, self.market, self.now),
        )

    # Checks against the account

    def _check_account(self) -> None:
        """Raise ApiError where the account must not trade."""
        for kind in ("account_blocked", "trading_blocked"):
            if self.faults.active(kind):
                raise forbidden(f"account is not allowed to trade: {kind.replace('_', ' ')}")
        if self.book.configurations["suspend_trade"]:
            raise forbidden("new orders are rejected by user request")

    def _check_asset(self, ticket: Ticket) -> None:
        """Raise ApiError for a quantity or a limit price that the asset does not take."""
        fixed = FIXED_FIELDS["crypto asset"] if is_crypto(ticket.symbol) else {}
        said, qty = fixed | self._terms("asset", ticket.symbol), ticket.qty
        names = ("min_trade_increment", "min_order_size", "price_increment")
        step, least, tick = (Decimal(str(said.get(name, 0))) for name in names)
        if qty is not None and step and qty % step:
            raise invalid(f"qty increment must be {step}")
        if ticket.limit_price is not None and tick and ticket.limit_price % tick:
            raise invalid(f"invalid limit_price {ticket.limit_price}. price increment must be {tick}")
        if qty is not None and qty < least:
            raise forbidden(f"qty must be >= minimal qty of order {least}")
        if said.get("fractionable") is False and (qty is None or qty != qty.to_integral_value()):
            raise forbidden(f'asset "{self.market.listing(ticket.symbol).wire}" is not fractionable')

    def _terms(self, kind: str, symbol: Symbol = "*") -> dict[str, Any]:
        """Changed fields of the account or an asset that orders are held to; a null holds none to anything."""
        return {name: value for name, value in self.faults.changed(kind, symbol).items() if value is not None}

    def _power(self, *, coins: bool) -> Decimal:
        """The amount for which shares, or coins, can be bought."""
        account, name = self.figures(), "non_marginable_buying_power" if coins else "buying_power"
        return Decimal(self._terms("account").get(name, getattr(account, name)))

    def _intent(self, ticket: Ticket, replaces: SandboxOrder | None) -> str:
        """Check cash or shares, net of all open orders but the replaced one; return the order's intent.

        Raises ApiError.
        """
        symbol = ticket.symbol
        for other in self.book.open_orders(symbol):
            if other.side is not ticket.side and other is not replaces:
                raise forbidden(
                    "potential wash trade detected. use complex orders",
                    existing_order_id=other.id,
                    reject_reason="opposite side market/stop order exists",
                )
        bid, ask = self.quote(symbol)
        price = ticket.limit_price or (ask if ticket.side is Side.BUY else bid)
        freed = ZERO if replaces is None else replaces.remaining
        if ticket.side is Side.SELL:
            return self._sale_intent(ticket, price, freed)
        cost = ticket.notional or EXACT.multiply(ticket.qty or ZERO, price)
        crypto, held = is_crypto(symbol), self.book.portfolio.quantity(symbol)
        if cost < _MINIMUM[crypto]:
            raise forbidden(f"cost basis must be >= minimal amount of order {_MINIMUM[crypto]}")
        if held < 0:
            cost = max(ZERO, cost + EXACT.multiply(held, price))
        if replaces is not None:
            freed = EXACT.multiply(freed, replaces.limit_price or ask)
        _check_power(self._power(coins=crypto) + freed, cost)
        return "buy_to_close" if held < 0 else "buy_to_open"

    def _sale_intent(self, ticket: Ticket, price: Decimal, freed: Decimal) -> str:
        listing, held = self.market.listing(ticket.symbol), self.book.portfolio.quantity(ticket.symbol)
        quantity = ticket.qty or EXACT.divide(ticket.notional or ZERO, price)
        taken = self.book.held_for_orders(ticket.symbol, price) - freed
        free = max(ZERO, max(held, ZERO) - taken)
        if quantity <= free:
            return "sell_to_close"
        said = self._terms("asset", ticket.symbol)
        shorts = held <= 0 and not listing.crypto and not self.book.configurations["no_shorting"]
        shorts = shorts and self._terms("account").get("shorting_enabled", True)
        if shorts and not (said.get("shortable", True) and said.get("easy_to_borrow", True)):
            raise forbidden(f'asset "{listing.wire}" cannot be sold short')
        if not shorts or ticket.qty is None or quantity != quantity.to_integral_value():
            raise forbidden(
                f"insufficient qty available for order (requested: {plain(quantity)}, available: {plain(free)})",
                available=plain(free),
                existing_qty=plain(held),
                held_for_orders=plain(taken),
                symbol=listing.compact,
            )
        _check_power(self._power(coins=False), EXACT.multiply(quantity, price))
        return "sell_to_open"

    # Time

    def advance(self, to: datetime) -> None:
        """Advance the clock; every open and close on the way happens at its time.

        Raises ApiError for a time in the past, or one beyond the data.
        """
        if to < self.now:
            raise invalid(f"the clock stands at {stamp(self.now)} and does not go back to {stamp(to)}")
        last, calendar = self.market.last_session, self.market.exchange
        if last is not None:
            end = calendar.opens_at(next_session(calendar, datetime.combine(last, time(23, 59), UTC)))
            if to >= end:
                raise invalid(f"the data ends on {last}: the clock cannot pass the next open after it")
        while (event := self._next_event()) <= to:
            self._step(event)
        if to > self.now:
            self._step(to)

    def _next_event(self) -> datetime:
        """The next time at which something may happen by itself."""
        calendar = self.market.exchange
        today = session_open(calendar, self.now)
        moments = [calendar.opens_at(next_session(calendar, self.now))]
        if today is not None:
            moments.append(calendar.closes_at(today))
        midnight = datetime.combine(self.now.date() + timedelta(days=1), time(0), UTC)
        moments += map(fee_entered_at, self.book.facts.get("fees_due", []))
        for order in self.book.open_orders():
            if order.rest_due is not None and not self.is_halted(order.symbol):
                moments.append(max(order.rest_due, self.now))
            if self.market.listing(order.symbol).crypto:
                moments.append(midnight)
        return min(moments)

    def _step(self, to: datetime) -> None:
        calendar = self.market.exchange
        before, self.now = self.now, to
        self.enter_fees()
        for order in self.book.open_orders():
            if order.limit_price is not None and order.status in ("new", "partially_filled"):
                self.match_limit(order, before)
        for order in self.book.open_orders():
            if order.rest_due is not None and order.rest_due <= to and not self.is_halted(order.symbol):
                order.rest_due = None
                self.fill(order, self.price(order.symbol))
        session = latest_session(calendar, to)
        opening = calendar.opens_at(session) == to
        if opening:
            self._apply_actions(session)
        self._match_waiting(opening=opening)
        if before < calendar.closes_at(session) <= to:
            self._close(session)
        self.commit()
        self.on_step(before, to)

    def _match_waiting(self, *, opening: bool) -> None:
        for order in self.book.open_orders():
            if order.status in ("accepted", "pending_new") and self.trades_now(order):
                self.match(order)
            if opening and order.time_in_force == "opg" and order.is_open:
                self.end(order, "expired")

    def _close(self, session: date) -> None:
        for order in self.book.open_orders():
            if order.session != session.isoformat():
                continue
            trades = self.market.path(order.symbol, session) is not None and not self.is_halted(order.symbol)
            if order.time_in_force == "cls" and trades:
                self.match(order)
            if order.is_open:
                self.end(order, "expired")
        self.book.record_close(session, self.figures().equity)

    # Corporate actions

    def _apply_actions(self, session: date) -> None:
        """Apply the actions with an ex-date after the last processed session and up to this one, at its open."""
        through = date.fromisoformat(self.book.facts["actions_through"])
        for symbol in self.market.symbols:
            for action in self.market.actions(symbol, session):
                if action.ex_date > through and action.kind is ActionKind.SPLIT:
                    self._split(action)
                elif action.ex_date > through and self._pay_dividends:
                    self._pay(action)
        self.book.facts["actions_through"] = session.isoformat()

    def _split(self, action: CorporateAction) -> None:
        """Apply the ratio to positions and to open orders (FINRA rule 5330)."""
        symbol, ratio, book = action.symbol, action.value, self.book
        before = book.portfolio.quantity(symbol)
        if before:
            book.portfolio, paid = book.portfolio.split(symbol, ratio, self.price(symbol))
            self._record_action("SPLIT", action, paid, book.portfolio.quantity(symbol) - before)
        for order in book.open_orders(symbol):
            if order.qty is not None:
                order.qty = _whole(EXACT.multiply(order.qty, ratio))
                order.filled_qty = _whole(EXACT.multiply(order.filled_qty, ratio))
            if order.limit_price is not None:
                order.limit_price = _whole(EXACT.divide(order.limit_price, ratio))
            book.mark_changed(order)

    def _pay(self, action: CorporateAction) -> None:
        held = self.book.portfolio.quantity(action.symbol)
        self.book.portfolio, paid = self.book.portfolio.dividend(action.symbol, action.value)
        if paid:
            self._record_action("DIV", action, paid, held)

    def _record_action(self, kind: str, action: CorporateAction, amount: Decimal, quantity: Decimal) -> None:
        values = {
            "net_amount": plain(amount),
            "symbol": self.market.listing(action.symbol).wire,
            "qty": plain(quantity),
            "description": f"{action.kind.value} of {plain(action.value)}, ex {action.ex_date}",
        }
        if kind == "DIV":
            values["per_share_amount"] = plain(action.value)
        self.book.record(kind, self.now, values)


def _check_power(power: Decimal, cost: Decimal) -> None:
    if cost > power:
        raise forbidden("insufficient buying power", buying_power=plain(power), cost_basis=plain(cost))


def _whole(number: Decimal) -> Decimal:
    return number.quantize(SHARE_STEP, ROUND_DOWN, EXACT)
