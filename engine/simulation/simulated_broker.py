"""A market that has already happened, as a broker: orders fill at its prices, by its rules, in exact books.

A session's life: orders decided after the close of t are submitted; `open_session` books what shorts cost overnight,
applies corporate actions with their ex-date, buys back shorts that the book can no longer carry, and fills at the open;
`close_session` fills at the close where the rules say so, sells what stopped trading for good, and marks the book.
Nothing here waits: what drives it decides when a session passes.

The cost and the size of trades: slippage, fees, share steps and the volume cap of a market's rules.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal
from math import isnan
from typing import NamedTuple

from engine.domain.market import ActionKind, CorporateAction, PriceHistory, Symbol, from_nano
from engine.domain.order import (
    EXACT,
    SHARE_STEP,
    ZERO,
    Fill,
    Order,
    OrderState,
    OrderUpdate,
    Portfolio,
    Side,
    closing_order_id,
)
from engine.domain.run import CashFlow, EquityPoint, ExecutionRules, FillAt
from engine.errors import InvariantBroken, MissingData, UsageError
from engine.market.price_faults import is_untraded

DIVIDEND = "dividend"
CASH_IN_LIEU = "cash in lieu"
STOPPED_TRADING = "stopped trading, sold at the last close"
"""The reason of the fill that closes a position whose symbol stops trading inside the window."""
BORROW_COST = "borrow cost"
FORCED_COVER = "forced cover: at the close before, short positions were worth more than the equity or the cash"
"""The reason of the fill that buys back a short position which nobody decided to buy back."""
DAYS_PER_YEAR = 365

Actions = Mapping[Symbol, Sequence[CorporateAction] | None]


class MarketActivity(NamedTuple):
    """The fills, cash flows and order updates of an open or a close, each in order."""

    fills: tuple[Fill, ...] = ()
    cash_flows: tuple[CashFlow, ...] = ()
    updates: tuple[OrderUpdate, ...] = ()


_NOTHING = MarketActivity()


class _Tape:
    """A symbol's bars with the row that the market has reached."""

    __slots__ = ("close", "final_row", "history", "open", "row", "sessions")

    def __init__(self, history: PriceHistory, last: date | None) -> None:
        self.history = history
        self.sessions, self.open, self.close = history.sessions, history.open, history.close
        self.row = -1
        stops = last is not None and len(history) > 0 and history.session(-1) < last
        self.final_row = len(history) - 1 if stops else None

    def seek(self, ordinal: int) -> int:
        """Move to the last bar at or before a session and return its row, -1 where there is none yet."""
        row = self.row
        if row < 0 or self.sessions[row] != ordinal:
            row += 1
            if row == len(self.sessions) or self.sessions[row] != ordinal:
                row = bisect_right(self.sessions, ordinal) - 1
            self.row = row
        return row

    def has_bar(self, ordinal: int) -> bool:
        """True where there is a bar for a session, which becomes the row reached."""
        row = self.seek(ordinal)
        return row >= 0 and self.sessions[row] == ordinal

    def trades(self, ordinal: int) -> bool:
        """True where something was traded in a session, whose bar becomes the row reached."""
        return self.has_bar(ordinal) and not is_untraded(self.history, self.row)


class SimulatedBroker:
    """The synchronous core of the simulated market.

    `histories` are the prices that it trades at (on whatever basis the caller put them, see price_basis), `actions`
    the corporate actions to apply (none on an adjusted basis, which holds them already). `closed` is the last session
    that the starting books have already been through; without it they begin just before the first session opened.
    `last` is the last session of the window: a symbol whose bars end before it stops trading there, for good. Cash
    is rounded to the rules' money step. `closes`, by session, are those of every symbol that brokers of these histories
    share: where they are given, points have them, and what is not there yet is put there. Raises MissingData for a
    position without prices, UsageError for impossible rules.

    Orders are day orders: one that cannot fill in its session, or fills in part, expires. Only one whose symbol has a
    bar without a trade waits for a later session, unless another order of the symbol takes its place. Cash never goes
    below zero, except to cover a short position or to pay its dividends and what it costs to borrow. Short positions
    that are worth more than the equity at a close, or more than the cash, are bought back at the next open, whatever
    was decided.
    """

    def __init__(
        self,
        rules: ExecutionRules,
        portfolio: Portfolio,
        histories: Mapping[Symbol, PriceHistory],
        actions: Actions | None = None,
        *,
        closed: date | None = None,
        last: date | None = None,
        closes: dict[date, dict[Symbol, Decimal]] | None = None,
    ) -> None:
        self.rules = rules
        self._shared = closes
        self.fills: list[Fill] = []
        """All fills so far, in order."""
        self.cash_flows: list[CashFlow] = []
        """All cash flows so far, in order."""
        self._portfolio = replace(portfolio, money_step=rules.money_step)
        self._model = FillModel(rules)
        self._tapes = {symbol: _Tape(history, last) for symbol, history in histories.items()}
        self._actions = _by_ex_date(actions or {})
        self._next_action = 0
        self._closed = closed
        self._some_end = any(tape.final_row is not None for tape in self._tapes.values())
        self._without_shorts: Portfolio | None = None
        self._waited: dict[str, date] = {}
        self._waits: list[str] = []
        self._after: dict[str, date] = {}
        self._opened: date | None = None
        self._pending: list[Order] = []
        self._reported: dict[str, OrderUpdate] = {}
        self._updates: list[OrderUpdate] = []
        for symbol in portfolio.positions:
            if symbol not in self._tapes:
                raise MissingData(f"{symbol} is held and has no prices; import them or leave it out of the book")

    @property
    def portfolio(self) -> Portfolio:
        """Cash and positions as they are now."""
        return self._portfolio

    @property
    def symbols(self) -> frozenset[Symbol]:
        """The symbols that trade here."""
        return frozenset(self._tapes)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for a reader: the positions that were closed because their symbol stopped trading, the shorts that
        were bought back because the book could not carry them, and the orders that had to wait for a trade."""
        closed = (_note(fill) for fill in self.fills if fill.reason in (STOPPED_TRADING, FORCED_COVER))
        return (*closed, *self._waits)

    @property
    def waiting(self) -> tuple[Order, ...]:
        """The orders that wait because nothing was traded in their symbol."""
        return tuple(order for order in self._pending if self._waits_for_a_trade(order))

    def submit(self, order: Order, *, after: date | None = None) -> OrderUpdate:
        """Take an order that is intended or being submitted, sent `after` a session: by default the one that it was
        decided on. An id is taken once: a later order of the same id does nothing and gets the state of the first."""
        known = self._reported.get(order.id)
        if known is not None:
            return known
        begun = (OrderState.SUBMITTING,) if order.state is OrderState.INTENDED else ()
        if order.symbol not in self._tapes:
            return self._end(order.moved(*begun), OrderState.REJECTED, f"{order.symbol} is not traded here")
        if order.size <= 0:
            problem = "an order needs a quantity or notional above zero"
            return self._end(order.moved(*begun), OrderState.REJECTED, problem)
        self._pending.append(order.moved(*begun, OrderState.ACKNOWLEDGED))
        self._after[order.id] = after or order.session
        update = self._reported[order.id] = OrderUpdate(order.id, OrderState.ACKNOWLEDGED)
        return update

    def cancel(self, order_id: str) -> OrderUpdate | None:
        """Withdraw a pending order; None for an id that was never seen."""
        for order in self._pending:
            if order.id == order_id:
                self._pending.remove(order)
                return self._end(order, OrderState.CANCELED, "canceled on request")
        return self._reported.get(order_id)

    def update_of(self, order_id: str) -> OrderUpdate | None:
        """The state of an order, or None for an id that was never seen. The broker of docs/extending.md asks for it."""
        return self._reported.get(order_id)

    def expire_waiting(self) -> Sequence[OrderUpdate]:
        """End the orders that wait for a trade: the window is over."""
        waiting = self.waiting
        self._pending = [order for order in self._pending if order not in waiting]
        return [self._end(order, OrderState.EXPIRED, "the window ended before a trade") for order in waiting]

    def open_session(self, session: date) -> MarketActivity:
        """Book what shorts cost since the last close, apply corporate actions with an ex-date up to this session, and
        buy back shorts that the book cannot carry; then fill at the open where the rules say so."""
        if self._opened is not None or (self._closed is not None and session <= self._closed):
            raise InvariantBroken(f"{session} cannot open: {self._opened or self._closed} comes before it")
        self._updates = []
        fills, flows = len(self.fills), len(self.cash_flows)
        cannot_carry = self._carry_shorts(session)
        self._apply_actions(session)
        self._opened = session
        if cannot_carry:
            self._cover_shorts(session)
        if self._pending and self.rules.fill_at is FillAt.NEXT_OPEN:
            self._fill_pending(session)
        return self._activity_since(fills, flows)

    def close_session(self, session: date) -> tuple[EquityPoint, MarketActivity]:
        """Fill at the close where the rules say so, sell symbols that traded for the last time, and mark the book
        at the close (at the last known one where a symbol did not trade). Where orders fill at the close, as the papers
        have it, the point has the close of every symbol, held or not: decisions are measured by them."""
        if session != self._opened:
            raise InvariantBroken(f"{session} cannot close: {self._opened or 'no session'} is open")
        self._updates = []
        fills, flows = len(self.fills), len(self.cash_flows)
        if self._pending and self.rules.fill_at is FillAt.SAME_CLOSE:
            self._fill_pending(session)
        self._opened, self._closed = None, session
        self._close_out_ended(session)
        prices = self._prices(session)
        point = EquityPoint(session, self._portfolio.value(prices), self._portfolio, prices)
        return point, self._activity_since(fills, flows)

    def _activity_since(self, fills: int, flows: int) -> MarketActivity:
        if not self._updates and len(self.fills) == fills and len(self.cash_flows) == flows:
            return _NOTHING
        return MarketActivity(tuple(self.fills[fills:]), tuple(self.cash_flows[flows:]), tuple(self._updates))

    def _carry_shorts(self, session: date) -> bool:
        """Book the borrow cost of short positions since the last close, by their value at it. True where the book could
        not carry them then: they were worth more than its equity, or more than its cash."""
        book, closed = self._portfolio, self._closed
        if closed is None or book is self._without_shorts:
            return False
        if all(held.quantity > 0 for held in book.positions.values()):
            self._without_shorts = book
            return False
        prices = self._last_closes(closed)
        part = self.rules.borrow_rate * (session - closed).days / DAYS_PER_YEAR
        for symbol, held in book.positions.items():
            cost = book.money(EXACT.multiply(EXACT.multiply(-held.quantity, prices[symbol]), part))
            if cost > 0:
                self.cash_flows.append(CashFlow(session=session, symbol=symbol, kind=BORROW_COST, amount=-cost))
                self._portfolio = replace(self._portfolio, cash=self._portfolio.cash - cost)
        return book.short_value(prices) > min(book.value(prices), book.cash)

    def _cover_shorts(self, session: date) -> None:
        """Buy back every short position that trades, at the open; its own orders end, for they were decided on it."""
        for symbol, held in tuple(self._portfolio.positions.items()):
            tape = self._tapes[symbol]
            if held.quantity > 0 or not tape.trades(session.toordinal()):
                continue
            price = self._model.price(from_nano(tape.open[tape.row]), Side.BUY)
            self._book(
                Fill(
                    order_id=f"cover-{session:%Y%m%d}-{symbol}",
                    symbol=symbol,
                    side=Side.BUY,
                    session=session,
                    quantity=-held.quantity,
                    price=price,
                    fee=self._model.fee(-held.quantity, price),
                    reason=FORCED_COVER,
                )
            )
            for order in [one for one in self._pending if one.symbol == symbol]:
                self._pending.remove(order)
                self._end(order, OrderState.EXPIRED, FORCED_COVER)

    def _last_closes(self, session: date) -> dict[Symbol, Decimal]:
        """The last close of every symbol that is held."""
        closes, ordinal = dict[Symbol, Decimal](), session.toordinal()
        for symbol in self._portfolio.positions:
            tape = self._tapes[symbol]
            row = tape.seek(ordinal)
            if row < 0:
                raise MissingData(f"{symbol} is held on {session} and has no price by then; import earlier ones")
            closes[symbol] = tape.history.close_at(row)
        return closes

    def _prices(self, session: date) -> dict[Symbol, Decimal]:
        """The closes that the books of a session have."""
        if self._shared is None:
            same_close = self.rules.fill_at is FillAt.SAME_CLOSE
            return self._known_closes(session) if same_close else self._last_closes(session)
        if session not in self._shared:
            self._shared[session] = self._known_closes(session)
        return self._shared[session]

    def _known_closes(self, session: date) -> dict[Symbol, Decimal]:
        """The last close of every symbol that has traded by then."""
        ordinal, tapes = session.toordinal(), self._tapes.items()
        return {symbol: tape.history.close_at(row) for symbol, tape in tapes if (row := tape.seek(ordinal)) >= 0}

    def _close_out_ended(self, session: date) -> None:
        """Close positions whose symbol traded for the last time, once every position has a price."""
        for symbol, price in self._last_closes(session).items() if self._some_end else ():
            if self._tapes[symbol].row == self._tapes[symbol].final_row:
                self._close_out(symbol, session, price)

    def _close_out(self, symbol: Symbol, session: date, price: Decimal) -> None:
        quantity = self._portfolio.quantity(symbol)
        side = Side.SELL if quantity > 0 else Side.BUY
        self._book(
            Fill(
                order_id=closing_order_id(session, symbol),
                symbol=symbol,
                side=side,
                session=session,
                quantity=abs(quantity),
                price=price,
                reason=STOPPED_TRADING,
            )
        )

    def _book(self, fill: Fill) -> None:
        self._portfolio = self._portfolio.filled(fill)
        self.fills.append(fill)

    def _apply_actions(self, session: date) -> None:
        if self._opened is None and self._closed is None:
            # The first session: what had its ex-date before is in the books already.
            while self._next_action < len(self._actions) and self._actions[self._next_action].ex_date < session:
                self._next_action += 1
        while self._next_action < len(self._actions):
            action = self._actions[self._next_action]
            if action.ex_date > session:
                return
            self._next_action += 1
            if self._closed is not None and action.ex_date <= self._closed:
                continue
            if action.kind is ActionKind.SPLIT:
                self._split(action, session)
            else:
                self._pay_dividend(action, session)

    def _split(self, action: CorporateAction, session: date) -> None:
        symbol, ratio = action.symbol, action.value
        if symbol in self._portfolio.positions:
            price = self._price_after(action, session)
            self._portfolio, paid = self._portfolio.split(symbol, ratio, price, self._model.share_step)
            if paid:
                self.cash_flows.append(CashFlow(session=session, symbol=symbol, kind=CASH_IN_LIEU, amount=paid))
        for n, order in enumerate(self._pending):
            if order.symbol == symbol and order.quantity is not None:
                quantity = self._model.rounded_down(EXACT.multiply(order.quantity, ratio))
                self._pending[n] = replace(order, quantity=quantity)

    def _price_after(self, action: CorporateAction, session: date) -> Decimal:
        """The open of the ex-date, or the last close on its basis where the symbol does not trade that day."""
        tape = self._tapes[action.symbol]
        trades = tape.has_bar(session.toordinal())
        if tape.row < 0:
            raise MissingData(f"{action.symbol} splits on {action.ex_date} and has no price by then")
        return from_nano(tape.open[tape.row]) if trades else from_nano(tape.close[tape.row]) / action.value

    def _pay_dividend(self, action: CorporateAction, session: date) -> None:
        if action.symbol in self._portfolio.positions:
            self._portfolio, paid = self._portfolio.dividend(action.symbol, action.value)
            if paid:
                self.cash_flows.append(CashFlow(session=session, symbol=action.symbol, kind=DIVIDEND, amount=paid))

    def _fill_pending(self, session: date) -> None:
        ordinal = session.toordinal()
        at_open = self.rules.fill_at is FillAt.NEXT_OPEN
        same = self.rules.fill_at is FillAt.SAME_CLOSE
        waiting, pending, self._pending = self.waiting, self._pending, []
        replaced = {order.symbol for order in pending if order not in waiting} if waiting else ()
        for order in pending:
            waited = order in waiting
            if order.session > session or ((order.session == session) is not same and not waited):
                raise InvariantBroken(
                    f"order {order.id}, decided on {order.session}, cannot fill on {session} at the "
                    f"{self.rules.fill_at}"
                )
            tape = self._tapes[order.symbol]
            if waited and order.symbol in replaced:
                self._end(order, OrderState.EXPIRED, f"a later order of {order.symbol} took its place")
                continue
            if not tape.has_bar(ordinal):
                self._end(order, OrderState.EXPIRED, f"{order.symbol} did not trade on {session}; day orders expire")
                continue
            if is_untraded(tape.history, tape.row):
                self._waited.setdefault(order.id, session)
                self._pending.append(order)
                continue
            quoted = from_nano(tape.open[tape.row] if at_open else tape.close[tape.row])
            self._execute(order, session, tape, quoted)

    def _waits_for_a_trade(self, order: Order) -> bool:
        """True for an order that could have filled in a session that is closed."""
        if self._closed is None:
            return False
        after = self._after[order.id]
        return after < self._closed or (after == self._closed and self.rules.fill_at is FillAt.SAME_CLOSE)

    def _execute(self, order: Order, session: date, tape: _Tape, quoted: Decimal) -> None:
        model, symbol, side = self._model, order.symbol, order.side
        price = model.price(quoted, side)
        if price <= 0:
            self._end(order, OrderState.REJECTED, f"{symbol} has no price above zero on {session}")
            return
        asked = quantity = self._asked(order, price)
        if not quantity:
            self._end(order, OrderState.REJECTED, f"it does not come to the smallest quantity at {price:f}")
            return
        held, short_of = self._portfolio.quantity(symbol), ""
        if side is Side.SELL and not self.rules.allow_short and quantity > held:
            quantity, short_of = model.rounded_down(max(held, ZERO)), f"only {held:f} held"
        limit = model.volume_limit(tape.history, tape.row)
        if limit is not None and quantity > limit:
            quantity, short_of = limit, f"the volume cap allows {limit:f}"
        if not quantity:
            state = OrderState.EXPIRED if held or side is Side.BUY else OrderState.REJECTED
            self._end(order, state, short_of or "nothing held")
            return
        fee = model.fee(quantity, price)
        amount = model.amount(quantity, price)
        change = amount - fee if side is Side.SELL else -amount - fee
        covers = side is Side.BUY and held + quantity <= 0
        if change < 0 and self._portfolio.cash + change < 0 and not covers:
            self._end(order, OrderState.REJECTED, f"it needs {-change} at {price:f} and cash is {self._portfolio.cash}")
            return
        self._book(
            Fill(
                order_id=order.id,
                symbol=symbol,
                side=side,
                session=session,
                quantity=quantity,
                price=price,
                fee=fee,
                reason=order.reason,
            )
        )
        if quantity == asked:
            self._end(order, OrderState.FILLED, "", quantity)
        else:
            self._updates.append(OrderUpdate(order.id, OrderState.PARTIALLY_FILLED, quantity, short_of))
            self._end(order.moved(OrderState.PARTIALLY_FILLED), OrderState.EXPIRED, short_of, quantity)

    def _asked(self, order: Order, price: Decimal) -> Decimal:
        if order.quantity is not None:
            return self._model.rounded_down(order.quantity)
        notional = order.notional or ZERO
        if order.side is Side.BUY:
            return self._model.affordable(notional, price)
        return self._model.rounded_down(EXACT.divide(notional, price))

    def _end(self, order: Order, state: OrderState, detail: str, filled: Decimal = ZERO) -> OrderUpdate:
        update = OrderUpdate(order.id, order.after(state), filled, detail)
        if since := self._waited.pop(order.id, None):
            end = f"{state} on {self._opened}" if self._opened else str(state)
            why = f" ({detail})" if detail else ""
            self._waits.append(f"{order.symbol} was not traded on {since} (volume 0): its order waited, and {end}{why}")
        self._reported[order.id] = update
        self._updates.append(update)
        return update


def _note(fill: Fill) -> str:
    shares = f"{'bought back' if fill.side is Side.BUY else 'sold'} {fill.quantity.normalize():f}"
    if fill.reason == FORCED_COVER:
        return f"{fill.symbol}: {shares} at the open, {fill.price:f}, on {fill.session} ({FORCED_COVER})"
    return f"{fill.symbol} stopped trading: {shares} at the last close, {fill.price:f}, on {fill.session}"


def _by_ex_date(actions: Actions) -> list[CorporateAction]:
    """All actions in order of effect; on one day a split comes before a dividend, which is then per new share."""
    every: Iterable[CorporateAction] = (action for known in actions.values() for action in known or ())
    return sorted(every, key=lambda a: (a.ex_date, a.kind is ActionKind.DIVIDEND, a.symbol))


ONE = Decimal(1)
PRICE_STEP = Decimal("0.000000001")
"""Prices after slippage are rounded to this step, half to even, as all prices are kept."""
_BASIS_POINTS = Decimal(10_000)


class FillModel:
    """The costs and steps of a set of rules, computed once. Amounts and fees come back rounded to the money step,
    as the portfolio books them. Raises UsageError for rules that no market could have."""

    __slots__ = ("_buy_factor", "_free", "_rules", "_sell_factor", "_unit_rate", "share_step")

    def __init__(self, rules: ExecutionRules) -> None:
        if not 0 <= rules.slippage_bp < _BASIS_POINTS:
            raise UsageError(f"slippage of {rules.slippage_bp} bp: it lies from 0 to below 10000")
        if min(rules.commission_rate, rules.commission_per_order, rules.commission_per_share) < 0:
            raise UsageError("a commission below zero: it is a cost, give it as a positive number")
        if rules.commission_rate >= 1:
            raise UsageError(f"a commission of {rules.commission_rate}: it is a fraction (0.001 is 0.1 %)")
        if rules.volume_cap is not None and not 0 < rules.volume_cap <= 1:
            raise UsageError(f"a volume cap of {rules.volume_cap}: it is a fraction of the bar's volume")
        self._rules = rules
        slip = rules.slippage_bp / _BASIS_POINTS
        self._buy_factor, self._sell_factor = ONE + slip, ONE - slip
        self._unit_rate = ONE + rules.commission_rate
        self._free = not (rules.commission_rate or rules.commission_per_order or rules.commission_per_share)
        self.share_step = SHARE_STEP if rules.fractional else ONE
        """The smallest quantity that trades."""

    def price(self, quoted: Decimal, side: Side) -> Decimal:
        """The price per share after slippage, which is always against the trader."""
        factor = self._buy_factor if side is Side.BUY else self._sell_factor
        if factor is ONE or factor == ONE:
            return quoted
        return EXACT.multiply(quoted, factor).quantize(PRICE_STEP, ROUND_HALF_EVEN, EXACT)

    def amount(self, quantity: Decimal, price: Decimal) -> Decimal:
        """The amount of a trade without its fees."""
        return self._money(EXACT.multiply(quantity, price))

    def fee(self, quantity: Decimal, price: Decimal) -> Decimal:
        """The fee of a trade."""
        if self._free:
            return ZERO
        rules = self._rules
        by_amount = EXACT.multiply(EXACT.multiply(quantity, price), rules.commission_rate)
        by_share = EXACT.fma(quantity, rules.commission_per_share, rules.commission_per_order)
        return self._money(EXACT.add(by_amount, by_share))

    def rounded_down(self, quantity: Decimal) -> Decimal:
        """A quantity in whole share steps, never more than given."""
        return quantity.quantize(self.share_step, ROUND_DOWN, EXACT)

    def affordable(self, notional: Decimal, price: Decimal) -> Decimal:
        """The quantity (in share steps, zero where there is none) that a notional buys at `price`, which is the price
        after slippage: it never costs more than the notional, fees and every rounding included."""
        rules = self._rules
        unit = EXACT.fma(price, self._unit_rate, rules.commission_per_share)
        quantity = self._floor_of(EXACT.subtract(notional, rules.commission_per_order), unit)
        while quantity > 0:
            excess = self.amount(quantity, price) + self.fee(quantity, price) - notional
            if excess <= 0:
                return quantity
            # Amount and fee were each rounded up: give back what that is worth in shares.
            quantity = self._floor_of(EXACT.subtract(EXACT.multiply(quantity, unit), excess), unit)
        return ZERO

    def volume_limit(self, history: PriceHistory, row: int) -> Decimal | None:
        """The most shares that one order may take of a bar, or None without a cap. Raises MissingData where the cap
        needs a volume that is unknown."""
        cap = self._rules.volume_cap
        if cap is None:
            return None
        volume = history.volume[row]
        if isnan(volume):
            raise MissingData(
                f"{history.symbol} {history.session(row)}: volume is unknown, and the volume cap needs it; "
                "add it or trade without a cap"
            )
        return self.rounded_down(EXACT.multiply(Decimal(repr(volume)), cap))

    def _floor_of(self, budget: Decimal, unit: Decimal) -> Decimal:
        if budget <= 0:
            return ZERO
        return EXACT.divide(budget, unit).quantize(self.share_step, ROUND_DOWN, EXACT)

    def _money(self, amount: Decimal) -> Decimal:
        return amount.quantize(self._rules.money_step, ROUND_HALF_EVEN, EXACT)
