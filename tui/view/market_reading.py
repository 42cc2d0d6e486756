"""The market as it is read for the Desk, beside the screen: quotes and charts of what is known at a moment."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from engine.domain.market import AROUND_THE_CLOCK, NANO, ActionKind
from engine.domain.run import TradingMode
from engine.market.trading_hours import session_to_decide
from tui.charts.chart_data import ChartData
from tui.charts.symbol_chart import daily_chart, grouped, marked_chart
from tui.view.market_view import DAYS, MarketView, Quote

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from engine.domain.decision import Decision
    from engine.domain.market import Symbol
    from engine.domain.order import Fill
    from engine.market.as_of import Market
    from engine.ports import Calendar
    from engine.reports.documents.control_state import ControlState
    from engine.reports.documents.records import Records
    from engine.session.schedule import Schedule

CHART_BARS = 520
"""Bars of a chart: two years, and what its averages need."""


def market_view(
    market: Market,
    symbols: Sequence[Symbol],
    now: datetime,
    fills: Sequence[Fill] = (),
    decisions: Sequence[Decision] = (),
) -> MarketView:
    """Quotes and charts of what is known at `now` (UTC); fills and decisions become marks on the charts. Takes tens of
    milliseconds: never on a screen's loop."""
    known = market.at(now)
    filled = grouped((fill.symbol, fill) for fill in fills)
    made = grouped((decision.key.symbol, decision) for decision in decisions)
    quotes: list[Quote] = []
    charts: dict[str, ChartData] = {}
    for symbol in symbols:
        if symbol not in market.histories or not known.count(symbol):
            quotes.append(Quote(symbol, None, None))
            charts[symbol] = ChartData(title=f"{symbol} 1D")
            continue
        bars = known.bars(symbol, CHART_BARS)
        change = bars.close[-1] / bars.close[-2] - 1 if len(bars) > 1 else None
        low, high = (Decimal(column[-1]) / NANO for column in (bars.low, bars.high))
        closes = tuple(price / NANO for price in bars.close[-DAYS:])
        quotes.append(Quote(symbol, known.close(symbol), change, bars.session(-1), closes=closes, low=low, high=high))
        traded = ((bars.index(fill.session), fill) for fill in filled.get(symbol, ()))
        decided = ((bars.index(one.key.session), one) for one in made.get(symbol, ()))
        charts[symbol] = marked_chart(daily_chart(bars), traded, decided).data
    splits = {
        symbol: tuple(action.ex_date for action in actions or () if action.kind is ActionKind.SPLIT)
        for symbol, actions in market.actions.items()
    }
    calendars = [market.calendars[symbol] for symbol in symbols if symbol in market.calendars]
    return MarketView(tuple(quotes), charts, exchange_of(calendars), known, splits)


def exchange_of(calendars: Sequence[Calendar]) -> Calendar | None:
    """The calendar that a desk's sessions go by: the exchange's where any symbol trades on one; None without any."""
    return next((one for one in calendars if one.name != AROUND_THE_CLOCK), calendars[0] if calendars else None)


def last_to_decide(calendar: Calendar, symbols: Iterable[Symbol], now: datetime) -> date:
    """The session that a run at a moment decides for."""
    return session_to_decide(calendar, symbols, None, now)


def next_run_at(calendar: Calendar, schedule: Schedule, now: datetime) -> datetime:
    """The time of the next run of a schedule. Raises MissingData where the calendar ends."""
    from engine.session.schedule import next_run

    return next_run(calendar, schedule, now).at


def controls_at(
    records: Records,
    *,
    mode: TradingMode,
    calendar: Calendar | None,
    symbols: Sequence[Symbol],
    now: datetime,
    real_time: bool = False,
) -> ControlState:
    """The controls as records have them; `calendar` is the exchange's, None where every symbol trades around the
    clock, `now` is UTC. Raises what JournalReader raises."""
    from engine.execution.controls import OrderTimes
    from engine.market.trading_hours import AroundTheClock
    from engine.reports.documents.controls import control_state

    return control_state(
        records.reader,
        asks=mode is TradingMode.ASK,
        times=OrderTimes(calendar or AroundTheClock(), symbols, real_time),
        now=now,
    )
