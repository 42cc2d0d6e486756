"""From the books of a run to the track record that metrics are computed of, net of deposits and withdrawals."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from itertools import pairwise

import numpy as np

from engine.account.time_weighted import is_external, measured, net_deposits
from engine.conventions.metrics import Floats, Track, floats
from engine.domain.decision import DIRECTIONS, Action
from engine.domain.market import Symbol
from engine.domain.order import ZERO
from engine.domain.run import EquityPoint, RunPart


def track_of(
    run_part: RunPart,
    periods_per_year: int,
    *,
    benchmark: RunPart | None = None,
    model_cost: Decimal | None = ZERO,
    risk_free: float = 0.0,
) -> Track:
    """The track record of one part of a run; `benchmark` is buy and hold over the same sessions.

    Where there were deposits or withdrawals, equity is the growth of the initial value by time-weighted returns, and
    every other amount is in the same proportion to it as to the value of its session. Prices and positions, which
    InvestorBench's metrics read, are there where the run is of one symbol.
    """
    points, grown = run_part.equity, _Grown(run_part)
    symbols = sorted(set[Symbol]().union(*(point.prices for point in points)))
    prices, positions = _decided(run_part, symbols[0]) if len(symbols) == 1 else (None, None)
    return Track(
        equity=grown.equity,
        periods_per_year=periods_per_year,
        risk_free=risk_free,
        invested=floats(grown.at(point.session, _invested(point)) for point in points),
        traded=float(sum((grown.at(fill.session, fill.quantity * fill.price) for fill in run_part.fills), ZERO)),
        benchmark=None if benchmark is None else _Grown(benchmark).equity,
        model_cost=None if model_cost is None else float(model_cost),
        prices=prices,
        positions=positions,
    )


def daily_returns(run_part: RunPart) -> tuple[float, ...]:
    """Returns from close to close as fractions, time-weighted; 0 after a close at which nothing was left."""
    levels = _Grown(run_part).equity.tolist()
    return tuple(after / before - 1 if before > 0 else 0.0 for before, after in pairwise(levels))


def symbol_track(run_part: RunPart, symbol: Symbol, share: Decimal, periods_per_year: int) -> Track:
    """One symbol's part of such a part as if it had begun with `share` of the initial value in cash.

    Its equity is that share plus what the symbol has earned so far: trades, fees, dividends, price changes. Shares that
    were deposited count as bought, those that were withdrawn as sold.
    """
    earned, values, invested = share, [float(share)], list[float]()
    trades = sorted((fill for fill in run_part.fills if fill.symbol == symbol), key=lambda one: one.session)
    earnings = [flow for flow in run_part.cash_flows if flow.symbol == symbol and not is_external(flow)]
    flows = sorted(earnings, key=lambda one: one.session)  # what came late is in the session that it was adopted in
    all_brought = net_deposits(run_part.equity, run_part.cash_flows, run_part.adoptions)
    brought = sorted((one for one in all_brought if one.symbol == symbol), key=lambda one: one.session)
    for point in run_part.equity:
        while trades and trades[0].session <= point.session:
            fill = trades.pop(0)
            amount = fill.quantity * fill.price
            earned += (amount if fill.side == "SELL" else -amount) - fill.fee
        while flows and flows[0].session <= point.session:
            earned += flows.pop(0).amount
        while brought and brought[0].session <= point.session:
            earned -= brought.pop(0).amount
        position = point.portfolio.positions.get(symbol)
        if position is None:
            values.append(float(earned))
            invested.append(0.0)
            continue
        held = position.quantity * point.prices.get(symbol, ZERO)
        values.append(float(earned + held))
        invested.append(float(held))
    traded = sum((f.quantity * f.price for f in run_part.fills if f.symbol == symbol), ZERO)
    prices, positions = _decided(run_part, symbol)
    return Track(
        equity=np.array(values),
        periods_per_year=periods_per_year,
        invested=np.array(invested),
        traded=float(traded),
        prices=prices,
        positions=positions,
    )


class _Grown:
    """The values of a part of a run as they would be without deposits and withdrawals."""

    def __init__(self, run_part: RunPart) -> None:
        brought = net_deposits(run_part.equity, run_part.cash_flows, run_part.adoptions)
        rows = measured(run_part.equity, brought, run_part.initial_value) if brought else []
        self._levels = {row.point.session: run_part.initial_value * row.growth for row in rows}
        self._values = {row.point.session: row.point.value for row in rows}
        values = self._levels.values() if rows else [point.value for point in run_part.equity]
        self.equity = floats([run_part.initial_value, *values])

    def at(self, session: date, amount: Decimal) -> Decimal:
        """An amount of a session in proportion; as it is without deposits and withdrawals."""
        value = self._values.get(session)
        return amount * self._levels[session] / value if value else amount


def _invested(point: EquityPoint) -> Decimal:
    """The value of all positions, shorts counted at their size."""
    total, prices = ZERO, point.prices
    for symbol, position in point.portfolio.positions.items():
        total += abs(position.quantity) * prices[symbol]
    return total


def _decided(run_part: RunPart, symbol: Symbol) -> tuple[Floats | None, Floats | None]:
    """A symbol's close at every session, and the position that was decided on at it, whatever the limits and the books
    made of it: an agent's BUY is 1, SELL -1, HOLD 0, and unchanged where it abstained; of a strategy the weight that it
    asked for. None where a close, or every decision, is not known. Source: InvestorBench A.2, equation 8 [I9]."""
    points, targets = run_part.equity, run_part.target_weights
    actions = {made.key.session: made.proposal.action for made in run_part.decisions if made.key.symbol == symbol}
    if (targets is None and not actions) or any(symbol not in point.prices for point in points):
        return None, None
    prices = floats(point.prices[symbol] for point in points)
    if targets is not None:
        return prices, floats(targets[symbol])
    sides, side = [], 0
    for point in points:
        action = actions.get(point.session, Action.HOLD)
        side = side if action is Action.ABSTAIN else DIRECTIONS.get(action, 0)
        sides.append(side)
    return prices, floats(sides)
