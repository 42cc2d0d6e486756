"""The books of a desk or a backtest as values: what is held and what it earned, trades, orders, cash, and the curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal

from engine.domain.market import Symbol
from engine.domain.order import Fill, Order, Side
from engine.domain.run import CashFlow, EquityPoint
from engine.errors import MissingData
from engine.journal.reader import JournalReader
from engine.market.as_of import MarketAsOf
from engine.reports.documents.account import booked_since, closes, measured_closes
from engine.reports.documents.records import Records
from engine.reports.performance import BENCHMARK

OWN = "desk"
"""The name of the records' own curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Shares of a symbol at the last close, in the quote currency.

    symbol: what is held.
    quantity: shares, negative where short.
    cost: average price paid, None where not known.
    price: at the last close.
    before: at the close before, in the same shares; None where it was not held then.
    share: of the portfolio's value, a fraction.
    """

    symbol: Symbol
    quantity: Decimal
    cost: Decimal | None
    price: Decimal
    before: Decimal | None
    share: float

    @property
    def today(self) -> Decimal | None:
        """Profit of the last session on the shares that are held."""
        return None if self.before is None else self.quantity * (self.price - self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlotterRow:
    """An order with what came of it, or trades that nobody decided, as of a symbol that ends.

    order: None for such trades.
    ended: the reason that the order came to nothing, empty where none was given.
    fills: its trades.
    sent: when it was sent, UTC; None where it was not, or that is not recorded.
    price: average of its trades; None without one.
    slippage: basis points by which that is worse than the open of the session; None where that is not known.
    profit: of its trades at the last close, less fees: what a purchase gained and a sale spared. With dividends and
        splits since; None where the prices are not known.
    """

    order: Order | None = None
    ended: str = ""
    fills: Sequence[Fill] = ()
    sent: datetime | None = None
    price: Decimal | None = None
    slippage: float | None = None
    profit: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """Everything that the books of some records hold.

    sessions: of the closes, in order.
    values: of the account at each close.
    curves: fractions of growth by name, one for each close: the account's own first, without deposits and withdrawals,
        then what it is compared with; None before a symbol's first bar.
    falls: the fraction from the highest growth at each close, not positive.
    invested: the fraction of the value that is in positions at each close, above 1 with borrowed cash.
    cash, positions: at the last close, with what was booked since.
    blotter: every order in its present state with its trades, the latest first.
    flows: cash that moved without a trade, the latest first.
    """

    sessions: Sequence[date] = ()
    values: Sequence[Decimal] = ()
    curves: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    falls: Sequence[float] = ()
    invested: Sequence[float] = ()
    cash: Decimal = Decimal(0)
    positions: Sequence[Position] = ()
    blotter: Sequence[BlotterRow] = ()
    flows: Sequence[CashFlow] = ()


def book_of(
    records: Records,
    market: MarketAsOf | None,
    symbols: Sequence[Symbol],
    fund: tuple[Symbol, MarketAsOf] | None = None,
    held: Mapping[date, float] | None = None,
) -> Book:
    """Read the books. `market` gives what they are compared with: the symbols bought in equal parts and held, and an
    index fund with its own prices. They are bought where the account begins: at a desk's first close, at the open of a
    backtest's first session. `held` is the growth by session of a buy and hold that was simulated with the records,
    shown in the place of that of `market`. Raises what JournalReader raises."""
    reader, points = records.reader, sorted(closes(records), key=lambda point: point.session)
    if reader is None:
        return Book()
    rows, _ = measured_closes(records, points)
    sessions = [point.session for point in points]
    since = booked_since(records, points[-1] if points else None)
    present = points if since is None else [*points, since.books]
    run, part = records.world, records.part
    beside = _beside(market, symbols, fund, sessions, at_open=run is not None)
    if BENCHMARK in beside and held:
        beside[BENCHMARK] = [held.get(session) for session in sessions]
    return Book(
        sessions=sessions,
        values=[point.value for point in points],
        curves={OWN: [float(row.growth) for row in rows], **beside},
        falls=[float(row.fall) for row in rows],
        invested=[float(1 - point.portfolio.cash / point.value) if point.value else 0.0 for point in points],
        cash=present[-1].portfolio.cash if points else Decimal(0),
        positions=_positions(present),
        blotter=_blotter(reader, run, part if run else None, market, sessions[-1] if sessions else date.max),
        flows=reader.cash_flows(run, part if run else None)[::-1],
    )


def _blotter(
    reader: JournalReader, run: str | None, part: str | None, market: MarketAsOf | None, until: date
) -> list[BlotterRow]:
    by_order: dict[str, list[Fill]] = {}
    for fill in reader.fills(run, part=part):
        by_order.setdefault(fill.order_id, []).append(fill)
    sent, rows = reader.times_sent(), []
    for entry in reader.orders(run)[::-1]:
        order, fills = entry.order, by_order.pop(entry.order.id, [])
        rows.append(_traded(BlotterRow(order=order, ended=entry.ended, sent=sent.get(order.id)), fills, market, until))
    undecided = [_traded(BlotterRow(), [fill], market, until) for fills in by_order.values() for fill in fills]
    return sorted((*undecided, *rows), key=_day, reverse=True)


def _day(row: BlotterRow) -> date:
    return row.fills[0].session if row.order is None else row.order.session


def _traded(row: BlotterRow, fills: Sequence[Fill], market: MarketAsOf | None, until: date) -> BlotterRow:
    """A row with its trades."""
    shares = sum((fill.quantity for fill in fills), Decimal(0))
    if not shares:
        return row
    price = sum((fill.price * fill.quantity for fill in fills), Decimal(0)) / shares
    row = replace(row, fills=fills, price=price)
    known = [_open_and_last(market, fill, until) for fill in fills] if market is not None else []
    prices = [one for one in known if one is not None]
    if len(prices) < len(fills):
        return row
    sign = 1 if fills[0].side is Side.BUY else -1
    pairs = list(zip(fills, prices, strict=True))
    opened = sum((fill.quantity * first for fill, (first, _) in pairs), Decimal(0)) / shares
    profit = sum((sign * fill.quantity * (last - fill.price) - fill.fee for fill, (_, last) in pairs), Decimal(0))
    return replace(row, slippage=float(sign * (price / opened - 1) * 10_000), profit=profit)


def _open_and_last(market: MarketAsOf, fill: Fill, until: date) -> tuple[Decimal, Decimal] | None:
    """The open of a trade's session, and the last close `until` a session in the shares of the trade's; None where one
    is missing."""
    try:
        bars = market.adjusted(fill.symbol, market.count(fill.symbol))
        close = market.close_of(fill.symbol, fill.session)
    except (MissingData, KeyError):
        return None
    place = bars.index(fill.session)
    if place is None or not bars.open[place]:
        return None
    of_close = close / Decimal(bars.close[place])
    last = max(place, bars.rows_through(until) - 1)
    return Decimal(bars.open[place]) * of_close, Decimal(bars.close[last]) * of_close


def _positions(points: Sequence[EquityPoint]) -> list[Position]:
    if not points:
        return []
    last, earlier = points[-1], points[-2] if len(points) > 1 else None
    found = []
    for symbol, held in sorted(last.portfolio.positions.items()):
        kept = None if earlier is None else earlier.portfolio.positions.get(symbol)
        same = kept is not None and kept.quantity == held.quantity
        found.append(
            Position(
                symbol=symbol,
                quantity=held.quantity,
                cost=held.average_cost,
                price=last.prices[symbol],
                before=earlier.prices.get(symbol) if earlier is not None and same else None,
                share=float(held.quantity * last.prices[symbol] / last.value) if last.value else 0.0,
            )
        )
    return found


def _beside(
    market: MarketAsOf | None,
    symbols: Sequence[Symbol],
    fund: tuple[Symbol, MarketAsOf] | None,
    sessions: Sequence[date],
    *,
    at_open: bool,
) -> dict[str, list[float | None]]:
    """The growth of the symbols bought in equal parts in the first session, at its open or close, and of an index
    fund."""
    if market is None or not sessions:
        return {}
    grown = (_growth(market, symbol, sessions, at_open) for symbol in symbols)
    held = [curve for curve in grown if curve]
    found: dict[str, list[float | None]] = {}
    if held:
        found[BENCHMARK] = [sum(row) / len(row) for row in zip(*held, strict=True)]
    if fund is not None and (curve := _growth(fund[1], fund[0], sessions, at_open)):
        found[fund[0]] = list(curve)
    return found


def _growth(market: MarketAsOf, symbol: Symbol, sessions: Sequence[date], at_open: bool) -> list[float]:
    """The growth since the first session at adjusted prices, one for each; empty where that has no bar."""
    try:
        bars = market.adjusted(symbol, market.count(symbol))
    except (MissingData, KeyError):
        return []
    by_session = {bars.session(place): float(bars.close[place]) for place in range(len(bars))}
    begun = bars.index(sessions[0])
    if begun is None:
        return []
    first = float(bars.open[begun] if at_open else bars.close[begun])
    last, grown = first, []
    for session in sessions:
        last = by_session.get(session, last)
        grown.append(last / first)
    return grown
