"""Orders that wait for an operator: their effect on the portfolio, and an edit under the limits of the desk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from functools import partial

from engine.account.reconciliation import journal_snapshot
from engine.app.research.market_data import known_closes
from engine.domain.market import Symbol
from engine.domain.order import Order, OrderSize, Side
from engine.domain.portfolio import Portfolio
from engine.errors import MissingData, UsageError
from engine.execution.controls import OrderTimes
from engine.execution.limits import Price, buying_power, cash_floor, edit_of, short_excess, shortfall
from engine.journal.reader import JournalReader
from engine.market.point_in_time import MarketAsOf
from engine.messages.commands import Edit
from engine.preset import load_preset
from engine.reports.documents.order_effect import OrderEffect, order_effect
from engine.reports.documents.records import Records, records_in
from engine.services import Services
from engine.session.owner_books import has_books
from engine.settings import places


def limited_edit(services: Services, order_id: str, size: OrderSize) -> Edit:
    """The edit that gives an open order another size, by the books and at the prices that the desk decided on, beside
    its other open orders. The account is asked again before the order is sent. Raises UsageError for a size that the
    limits do not allow, and where owners keep books of their own, MissingData for an order that is not open."""
    preset = load_preset(services.config.desk.preset)
    if has_books(preset):
        raise UsageError(
            f"the owners of {preset.name} keep books of their own, and an order is the net of theirs: veto it, or let "
            "it be sent as it is"
        )
    with records_in(places.desk_journal(services.desk), services.desk) as records:
        orders = {entry.order.id: entry.order for entry in records.required.orders(open_only=True)}
        if order_id not in orders:
            raise MissingData(f"the desk {services.desk} has no open order {order_id}")
        order, portfolio = orders.pop(order_id), journal_snapshot(records.required).portfolio()
        price = last_prices(services, records, portfolio)
        edit = edit_of(order, size, price(order.symbol))
        edited, power = edit.applied(order), buying_power(portfolio, orders.values(), price)
        lacking = shortfall(
            edited,
            power,
            price(order.symbol),
            floor=cash_floor(portfolio, price, preset.sizing.cash_floor),
            allow_short=preset.sizing.allow_short,
        )
        if order.side is Side.SELL and preset.sizing.allow_short:
            lacking = lacking or short_excess(edited, power, portfolio, price)
    if lacking:
        raise UsageError(f"{order.symbol} keeps its size: {lacking}")
    return edit


def order_times(services: Services) -> OrderTimes:
    """When orders of the configured desk can be sent, and when they fill."""
    return OrderTimes(services.desk_calendar(services.symbols), services.symbols, services.broker is not None)


def order_effects(services: Services, now: datetime | None, orders: Iterable[Order]) -> Mapping[str, OrderEffect]:
    """The effects of open orders on the portfolio by order id, at the prices that the desk decided on, if they are sent
    at a moment (UTC; None: not known); an order whose symbol has no price is left out. Raises what the journal
    raises."""
    times = order_times(services)
    with records_in(places.desk_journal(services.desk), services.desk) as records:
        snapshot = journal_snapshot(records.required)
        assert snapshot.books is not None  # a desk with orders has books
        portfolio, session = snapshot.portfolio(), snapshot.books.session
        price = last_prices(services, records, portfolio)
        value = portfolio.value({symbol: price(symbol) for symbol in portfolio.positions})
        others = [entry.order for entry in records.required.orders(open_only=True)]
        found = {}
        for order in orders:
            with suppress(MissingData):
                fills = None if now is None else times.fills_at(order, now)
                found[order.id] = order_effect(
                    order, price, session, portfolio=portfolio, value=value, others=others, fills_at=fills
                )
        return found


def last_prices(services: Services, records: Records, portfolio: Portfolio, *symbols: Symbol) -> Price:
    """The last closes of some symbols, of those of open orders and of what a portfolio holds, as the books have them or
    the market."""
    reader = records.required
    orders = [entry.order.symbol for entry in reader.orders(open_only=True)]
    wanted = tuple(dict.fromkeys((*symbols, *orders, *portfolio.positions)))
    return partial(_price, reader, known_closes(services, records, wanted))


def _price(reader: JournalReader, market: MarketAsOf | None, symbol: Symbol) -> Decimal:
    """The last close of a symbol by the market, or by the books."""
    if market is not None and market.count(symbol):
        return market.close(symbol)
    priced = [one.price for one in reader.holdings(symbol=symbol) if one.price is not None]
    if not priced:
        raise MissingData(f"{symbol} has no price that an order of it could be sized by")
    return priced[-1]
