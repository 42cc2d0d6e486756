"""A compact replay of the papers' markets in floats, independent of the simulated broker, for tests to lean on.

It trades one symbol as a convention says and returns the track record that the metrics take.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np

from engine.conventions.catalog import Convention
from engine.conventions.metrics import Track
from engine.domain.market import LISTED, Bar, PriceHistory
from engine.domain.run import PriceBasis
from engine.strategies.strategy import Signal, Strategy

SPY_DIVIDENDS = {
    date(2020, 3, 20): Decimal("1.40556"),
    date(2020, 6, 19): Decimal("1.36625"),
    date(2020, 9, 18): Decimal("1.33926"),
}
"""Ex-dates and amounts in the window of InvestorBench's table 4, for which SPY's adj_close is blank."""


def load(folder: Path, symbol: str) -> PriceHistory:
    """A symbol's bars from the folder of real prices."""

    def known(text: str) -> Decimal | None:
        return Decimal(text) if text else None

    with (folder / "prices" / f"{symbol}.csv").open() as file:
        bars = [
            Bar(
                session=date.fromisoformat(row["date"]),
                **{name: Decimal(row[name]) for name in ("open", "high", "low", "close")},
                adj_close=known(row["adj_close"]),
                volume=known(row["volume"]),
            )
            for row in csv.DictReader(file)
        ]
    if symbol == "SPY":
        bars = _reinvested(bars)
    return PriceHistory.of(symbol, bars)


def _reinvested(bars: list[Bar]) -> list[Bar]:
    """Bars whose blank adj_close is filled backwards from the known dividends."""
    factor, adjusted = Decimal(1), []
    for before, bar in zip([bars[0], *bars[:-1]][::-1], bars[::-1], strict=True):
        close = bar.close * factor
        adjusted.append(
            Bar(
                session=bar.session,
                open=bar.open,
                high=bar.high,
                low=bar.low,
                close=bar.close,
                adj_close=close,
                volume=bar.volume,
            )
        )
        if bar.session in SPY_DIVIDENDS:
            factor *= 1 - SPY_DIVIDENDS[bar.session] / before.close
    return adjusted[::-1]


@dataclass(frozen=True)
class Replayed:
    """The track record of a replay and the trades in it: (row of the window, shares, negative when sold)."""

    track: Track
    trades: list[tuple[int, float]]


def replay(history: PriceHistory, strategy: Strategy, rules: Convention, first: date, last: date) -> Replayed:
    """Trades a window as a paper does: decided and filled at the same close, all in or all out, long only."""
    start, stop = history.index(first), history.rows_through(last)
    assert start is not None
    signals = strategy.signals(history)
    prices = np.array(history.adj_close) / 1e9
    if rules.price_basis is PriceBasis.REBASED:
        prices = prices * history.close[stop - 1] / history.adj_close[stop - 1]
    cash, held, trades = float(rules.starting_cash), 0.0, []
    fee = float(rules.execution.commission_rate)
    equity, sides = [cash], []
    rows = range(start, stop - rules.bars_dropped_for(history.symbol))
    for row in rows:
        price, signal = prices[row], signals[row]
        if signal == Signal.OUT and held:
            trades.append((row - start, -held))
            cash, held = cash + held * price * (1 - fee), 0.0
        elif signal > 0 and (not held or (signal == Signal.LONG and rules.adds_to_positions)):
            bought = cash / price / (1 + fee)
            bought = bought if rules.execution.fractional else float(math.floor(bought))
            cash, held = cash - bought * price * (1 + fee), held + bought
            if bought:
                trades.append((row - start, bought))
        equity.append(cash + held * price)
        sides.append(1.0 if held else 0.0)
    window = prices[rows.start : rows.stop]
    periods = rules.periods_per_year(history.symbol, LISTED.of(history.symbol))
    return Replayed(
        Track(equity=np.array(equity), periods_per_year=periods, prices=window, positions=np.array(sides)), trades
    )
