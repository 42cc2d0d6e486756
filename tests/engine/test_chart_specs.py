"""The charts hold what they say, at the sessions they say, and nothing from later."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.chart import IndicatorTable
from engine.domain.decision import Action
from engine.domain.market import Bar, PriceHistory
from engine.market.chart_specs import TABLE_ROWS, indicator_table, kline_chart, signal_chart, trading_chart

FIRST = date(2023, 1, 2)


def last_row(table: IndicatorTable) -> dict[str, float | None]:
    return dict(zip(table.columns, table.rows[-1], strict=True))


def history(closes: list[float], volume: Decimal | None = Decimal(1000)) -> PriceHistory:
    """Bars whose range is one above and one below the close."""
    days = [FIRST + timedelta(days=n) for n in range(len(closes))]
    rows = []
    for day, close in zip(days, closes, strict=True):
        price = Decimal(str(close))
        rows.append(
            Bar(session=day, open=price, high=price + 1, low=price - 1, close=price, adj_close=None, volume=volume)
        )
    return PriceHistory.of("MSFT", rows)


CLOSES = st.lists(st.floats(2, 1000).map(lambda x: round(x, 2)), min_size=1, max_size=130)


@given(CLOSES, st.integers(1, 80))
def test_every_series_covers_the_sessions_shown(closes: list[float], show: int) -> None:
    chart = kline_chart("MSFT", history(closes), show)
    shown = min(show, len(closes))
    assert chart.kind == "kline" and len(chart.sessions) == shown
    assert chart.sessions[-1] == (FIRST + timedelta(days=len(closes) - 1)).isoformat()
    assert chart.candles is not None
    assert list(chart.candles.close) == closes[-shown:]
    series = [line.values for line in chart.lines] + [line.values for p in chart.panels for line in p.lines]
    series += [panel.bars for panel in chart.panels if panel.bars]
    assert {len(values) for values in series} == {shown}
    assert [panel.name for panel in chart.panels] == ["Volume", "RSI 14", "MACD", "KDJ"]


@given(CLOSES, st.lists(st.floats(2, 1000), min_size=1, max_size=20), st.integers(1, 60))
def test_later_bars_change_nothing_that_was_shown_before(closes: list[float], later: list[float], show: int) -> None:
    short = history(closes)
    long = history(closes + [round(x, 2) for x in later])
    assert kline_chart("MSFT", long.slice(0, len(closes)), show) == kline_chart("MSFT", short, show)
    before = kline_chart("MSFT", short, len(closes))
    after = kline_chart("MSFT", long, len(long))
    for old, new in zip(before.lines, after.lines, strict=True):
        assert new.values[: len(closes)] == old.values


def test_indicators_are_computed_over_all_bars_and_shown_for_the_last() -> None:
    bars = history([100 + n for n in range(70)])
    chart = kline_chart("MSFT", bars, 10)
    lines = {line.role: line.values for line in chart.lines}
    assert lines["long"][-1] == pytest.approx(169 - 24.5)
    assert lines["short"][0] == pytest.approx(160 - 4.5)
    assert None not in lines["long"]
    assert lines["upper"][-1] - lines["middle"][-1] == pytest.approx(2 * (399 / 12) ** 0.5)
    (rsi,) = chart.panels[1].lines
    assert rsi.values[-1] == pytest.approx(100)


def test_what_is_not_yet_defined_is_none_and_never_a_number() -> None:
    chart = kline_chart("MSFT", history([100.0] * 12, volume=None), 60)
    lines = {line.role: line.values for line in chart.lines}
    assert lines["short"][:9] == (None,) * 9 and lines["short"][9] == 100
    assert lines["long"] == (None,) * 12
    assert chart.panels[0].bars == (None,) * 12
    assert len(chart.fingerprint()) == 64


def test_the_table_names_the_latest_values_and_tells_the_last_rows() -> None:
    bars = history([100 + n / 4 for n in range(90)])
    table = indicator_table(bars)
    assert len(table.rows) == len(table.sessions) == TABLE_ROWS
    assert last_row(table)["close"] == 122.25
    assert last_row(table)["SMA 50"] == pytest.approx(122.25 - 24.5 / 4)
    heading, *rows = table.text.splitlines()
    assert heading.startswith("session | open | high | low | close | volume | SMA 10")
    assert len(rows) == TABLE_ROWS and rows[-1].startswith(
        f"{table.sessions[-1]} | 122.25 | 123.25 | 121.25 | 122.25 | 1000"
    )
    assert {row.count("|") for row in (heading, *rows)} == {len(table.columns)}


def test_a_short_history_has_a_table_with_gaps() -> None:
    table = indicator_table(history([5.0]))
    assert last_row(table)["SMA 10"] is None and last_row(table)["close"] == 5
    assert " | - | " in table.text
    assert indicator_table(history([])).rows == ()


def test_signals_mark_buys_and_sells_inside_the_window_only() -> None:
    bars = history([100.0, 101.0, 102.0, 103.0, 104.0])
    days = [FIRST + timedelta(days=n) for n in range(5)]
    signals = [
        (days[4], Action.SELL),
        (days[3], Action.HOLD),
        (days[2], Action.BUY),
        (days[0], Action.BUY),
        (days[3], Action.ABSTAIN),
        (FIRST - timedelta(days=9), Action.SELL),
        (FIRST + timedelta(days=99), Action.BUY),
    ]
    chart = signal_chart("MSFT", bars, 3, signals)
    assert chart.kind == "signals" and chart.lines[0].values == (102, 103, 104)
    assert [(m.index, m.side, m.price) for m in chart.markers] == [(0, "BUY", 102), (2, "SELL", 104)]


def test_the_trading_chart_shows_trades_and_the_return_at_their_sessions() -> None:
    bars = history([100.0, 101.0, 102.0, 103.0, 104.0])
    days = [FIRST + timedelta(days=n) for n in range(5)]
    returns = [
        (days[0], Decimal("0.5")),
        (days[2], Decimal("-0.0125")),
        (days[4], Decimal("0.02")),
        (FIRST + timedelta(days=99), Decimal(1)),
    ]
    signals = [(days[0], Action.SELL), (days[3], Action.BUY), (days[4], Action.HOLD)]
    chart = trading_chart("MSFT", bars, 4, signals, returns)
    assert chart.kind == "trading" and chart.sessions == tuple(day.isoformat() for day in days[1:])
    assert chart.lines[0].values == (101, 102, 103, 104)
    assert [(m.index, m.side, m.price) for m in chart.markers] == [(2, "BUY", 103)]
    (panel,) = chart.panels
    assert panel.lines[0].values == (None, -1.25, None, 2.0)
    signs = signal_chart("MSFT", bars, 4, signals)
    assert (chart.lines, chart.markers) == (signs.lines, signs.markers)


def test_a_trading_chart_of_nothing_is_empty() -> None:
    chart = trading_chart("MSFT", history([5.0]), 30, (), ())
    assert chart.markers == () and chart.panels[0].lines[0].values == (None,)
