"""The luck in a result: how it compares with random traders, with the market, and with the best of all looks at its
window. What cannot be had is null, and `notes` say why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import date
from itertools import groupby
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np

from engine.account.track_record import symbol_track, track_of
from engine.conventions.luck import (
    TRADERS,
    against_market,
    best_by_chance,
    deflated_sharpe,
    minimum_track_record,
    percentile,
    probabilistic_sharpe,
    random_traders,
    value_at_risk,
)
from engine.conventions.metrics import FEWEST, METRICS, Floats, simple_returns, total_return
from engine.domain.market import Symbol
from engine.domain.run import RunPart
from engine.domain.text import counted
from engine.journal.database import open_read_only
from engine.reports.documents.row_json import Row
from engine.reports.performance import Measure
from engine.settings import places


def luck(run_part: RunPart, measure: Measure, held: RunPart | None, cost: float) -> Row:
    """The luck of a part of a run but for the count of trials. `held` is buy and hold over the same sessions, `cost`
    of a trade is a fraction of its amount."""
    track = track_of(run_part, measure.periods_per_year, benchmark=held, risk_free=measure.risk_free)
    returns = simple_returns(track.equity)
    returns = np.empty(0) if returns is None else returns
    market = None if track.benchmark is None else simple_returns(track.benchmark)
    market = np.empty(0) if market is None or len(market) != len(returns) else market
    excess, periods = returns - track.risk_free / track.periods_per_year, track.periods_per_year
    exposure = METRICS["desk"](track)["exposure"] if len(market) else None
    found = against_market(returns[: len(market)], market, exposure, periods, track.risk_free)
    random = None if held is None or not len(market) else _random(run_part, measure, held, cost)
    low, high = found.excess_interval
    made = {
        "trials": None,
        "psr": probabilistic_sharpe(excess),
        "deflated_sharpe": None,
        "minimum_track_record": minimum_track_record(excess),
        "random": random,
        "excess_per_year": None if found.excess is None else {"value": found.excess, "low": low, "high": high},
        "beta": found.beta,
        "alpha": found.alpha,
        "information_ratio": found.information_ratio,
        "value_at_risk": value_at_risk(returns),
        "worst_month": _worst_month(run_part, returns),
        "sentence": None,
    }
    return {**made, "notes": list(_notes(made, len(returns)))}


def with_trials(luck: Mapping[str, Any], returns: Sequence[float], trials: int, periods: int, risk_free: float) -> Row:
    """Luck with the looks at its window by now."""
    excess = np.array(returns) - risk_free / periods
    deflated = deflated_sharpe(excess, trials, periods)
    return {**luck, "trials": trials, "deflated_sharpe": deflated, "sentence": _sentence(luck["random"], trials)}


def trials_on(symbols: Sequence[Symbol], first: date, last: date) -> int:
    """The number of different looks, by any process of this machine, at windows that share a symbol with this one and
    overlap by more than half of the shorter one. Raises as opening a journal does."""
    index = places.trial_index()
    if not index.exists():
        return 0
    with closing(open_read_only(index)) as connection:
        rows = connection.execute(
            "SELECT DISTINCT spec_hash, symbols, first, last FROM looks WHERE first <= ? AND last >= ?",
            (last.isoformat(), first.isoformat()),
        ).fetchall()
    wanted = set(symbols)
    return len(
        {
            row["spec_hash"]
            for row in rows
            if wanted.intersection(json.loads(row["symbols"]))
            and _overlap(first, last, date.fromisoformat(row["first"]), date.fromisoformat(row["last"]))
        }
    )


def _overlap(first: date, last: date, other_first: date, other_last: date) -> bool:
    """True where two windows share more than half of the shorter one's days."""
    shared = (min(last, other_last) - max(first, other_first)).days + 1
    return 2 * shared > min((last - first).days, (other_last - other_first).days) + 1


def _random(run_part: RunPart, measure: Measure, held: RunPart, cost: float) -> Row | None:
    """Random traders with the run's turnover and exposure; None of a run that held nothing or lost everything."""
    track = track_of(run_part, measure.periods_per_year)
    grown = total_return(track.equity)
    if grown is None or not run_part.fills or (track.equity <= 0).any():
        return None
    long, short = _exposures(run_part)
    others = random_traders(
        [_moves(held, symbol, measure) for symbol in measure.symbols],
        long=long,
        short=short,
        turnover=track.traded / float(track.equity[1:].mean()),
        cost=cost,
    )
    low, middle, high = (float(value) for value in np.percentile(others, (5, 50, 95)))
    return {"traders": TRADERS, "percentile": percentile(grown, others), "p5": low, "p50": middle, "p95": high}


def _exposures(run_part: RunPart) -> tuple[float, float]:
    """The mean shares of the value that are held long and short at the closes."""
    long = short = 0.0
    for point in run_part.equity:
        for symbol, position in point.portfolio.positions.items():
            share = float(position.quantity * point.prices[symbol] / point.value) / len(run_part.equity)
            long, short = long + max(share, 0.0), short + max(-share, 0.0)
    return long, short


def _moves(held: RunPart, symbol: Symbol, measure: Measure) -> Floats:
    """The daily returns of a symbol, dividends included, as buy and hold had them; 0 where it did not hold it."""
    track = symbol_track(held, symbol, held.initial_value, measure.periods_of(symbol))
    assert track.invested is not None
    earned = np.diff(track.equity)
    before = np.concatenate([[0.0], track.invested[:-1]])
    paid = np.where(before > 0, before, track.invested - earned)
    return np.divide(earned, paid, out=np.zeros(len(earned)), where=paid > 0)


def _worst_month(run_part: RunPart, returns: Floats) -> Row | None:
    months = monthly([point.session.isoformat() for point in run_part.equity], returns.tolist())
    worst = min(months, key=itemgetter(1), default=None)
    return None if worst is None else {"month": worst[0], "return": worst[1]}


def monthly(sessions: Sequence[str], returns: Sequence[float]) -> Iterator[tuple[str, float]]:
    """The return of each month (YYYY-MM) that the sessions (ISO dates) lie in, as a fraction."""
    for month, days in groupby(zip(sessions, returns, strict=False), key=lambda one: one[0][:7]):
        yield month, prod(1 + change for _, change in days) - 1


def _notes(found: Mapping[str, Any], sessions: int) -> Iterator[str]:
    """Reasons for what is null."""
    if sessions < FEWEST:
        yield f"value at risk and intervals take {FEWEST} sessions; there are {sessions}"
    if found["psr"] is None:
        yield "no Sharpe ratio: the value never moved"
    elif found["minimum_track_record"] is None:
        yield "no minimum track record: the Sharpe ratio is not above 0"
    if found["beta"] is None:
        yield "no beta and alpha: there is no buy and hold that moved over these sessions"
    if found["random"] is None:
        yield "no random traders: there is no buy and hold, or the run never traded"


def _sentence(random: Mapping[str, Any] | None, trials: int) -> str:
    than = "" if random is None else f"better than {random['percentile']:.0f} % of random traders; "
    if trials < 2:
        return f"{than}the first look at this window"
    chance = f"{best_by_chance(trials):.2f}"
    return f"{than}after {counted(trials, 'look')} at this window chance alone gives a Sharpe of {chance}"
