"""The luck in a result: how it compares with random traders, with the market, and with the best of all looks at its
window. What cannot be had is null, and `notes` say why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import groupby
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np

from engine.conventions.luck import (
    TRADERS,
    RandomTraders,
    against_market,
    best_by_chance,
    deflated_sharpe,
    minimum_track_record,
    overfitting,
    percentile,
    probabilistic_sharpe,
    value_at_risk,
)
from engine.conventions.metrics import FEWEST, METRICS, Floats, Track, simple_returns, total_return
from engine.domain.market import Symbol
from engine.domain.run import RunPart, Trial
from engine.domain.text import counted, money
from engine.journal.reader import JournalReader
from engine.reports.documents import row_json
from engine.reports.documents.row_json import Row
from engine.reports.performance import Measure
from engine.settings import places

SCHEMA = 1
"""The version of the list of trials."""


@dataclass(frozen=True, slots=True)
class Random:
    """The random traders beside a run, and the total return of each."""

    traders: RandomTraders
    returns: Floats

    def row(self, grown: float | None) -> Row:
        """The luck of a total return among theirs."""
        assert grown is not None  # there are none beside a run without one
        shares = {f"p{share}": float(self.returns[self._trader(share)]) for share in (5, 50, 95)}
        return {"traders": TRADERS, "percentile": percentile(grown, self.returns), **shares}

    def baseline(self, beside: Track, measure: Measure) -> Row:
        """The one with the median return as a baseline of the run with a record."""
        track, trades = self.traders.record(self._trader(50), beside)
        equity = [money(Decimal(f"{value:.2f}")) for value in track.equity]
        return {
            "initial_value": equity[0],
            "final_value": equity[-1],
            "metrics": measure.convention.metrics(track),
            "trades": trades,
            "equity": equity[1:],
        }

    def _trader(self, share: int) -> int:
        """The one whose return is that of a percentile."""
        return int(np.argsort(self.returns)[TRADERS * share // 100 - 1])


def luck(run_part: RunPart, track: Track, random: Random | None) -> Row:
    """The luck of a part of a run but for the count of trials; `track` is its record beside buy and hold's."""
    returns = simple_returns(track.equity)
    returns = np.empty(0) if returns is None else returns
    market = None if track.benchmark is None else simple_returns(track.benchmark)
    market = np.empty(0) if market is None or len(market) != len(returns) else market
    excess, periods = returns - track.risk_free / track.periods_per_year, track.periods_per_year
    exposure = METRICS["desk"](track)["exposure"] if len(market) else None
    found = against_market(returns[: len(market)], market, exposure, periods, track.risk_free)
    low, high = found.excess_interval
    made = {
        "trials": None,
        "psr": probabilistic_sharpe(excess),
        "deflated_sharpe": None,
        "minimum_track_record": minimum_track_record(excess),
        "random": None if random is None else random.row(total_return(track.equity)),
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
    """The number of different looks at a window, see `counted_trials`."""
    return len({trial.spec_hash for trial in counted_trials(symbols, (first, last), returns=False)})


def counted_trials(symbols: Sequence[Symbol], window: tuple[date, date] | None, *, returns: bool = True) -> list[Trial]:
    """The looks, by any process of this machine, at windows that share a symbol with these (any, where none is named)
    and overlap this window (any, where it is None) by more than half of the shorter one. Raises as opening a journal
    does."""
    if not places.trial_index().exists():
        return []
    first, last = window or (None, None)
    with JournalReader(places.trial_index()) as reader:
        found = reader.trials(first, last, returns=returns)
    wanted = set(symbols)
    return [
        trial
        for trial in found
        if (not wanted or wanted.intersection(trial.symbols))
        and (window is None or _overlap(window, (trial.first, trial.last)))
    ]


def trials_document(trials: Sequence[Trial]) -> Row:
    """Looks, the latest first; `count` is that of different ones. Returns are null of what measured none."""
    return {
        "schema": SCHEMA,
        "count": len({trial.spec_hash for trial in trials}),
        "trials": [
            {
                **row_json.fields(trial, "time", "kind", "run", "name", "symbols", "first", "last", "spec_hash"),
                "total_return": prod(1 + change for change in trial.returns) - 1 if trial.returns else None,
            }
            for trial in reversed(trials)
        ],
    }


def winner_luck(tried: Sequence[Sequence[float]], periods: int, trials: int) -> Row:
    """The luck of the first of some parameter choices, which is the best of them, by their daily returns."""
    best = np.array(tried[0])
    return {
        "trials": trials,
        "psr": probabilistic_sharpe(best),
        "deflated_sharpe": deflated_sharpe(best, trials, periods),
        "overfitting": overfitting(np.array(tried).T),
        "sentence": _sentence(None, trials),
    }


def _overlap(window: tuple[date, date], other: tuple[date, date]) -> bool:
    """True where two windows share more than half of the shorter one's days."""
    shared = (min(window[1], other[1]) - max(window[0], other[0])).days + 1
    return 2 * shared > min((last - first).days + 1 for first, last in (window, other))


def random_beside(run_part: RunPart, track: Track, held: Iterable[Track], cost: float) -> Random | None:
    """Random traders with the run's turnover and exposure; None of a run that held nothing or lost everything. `held`
    are the records of the symbols in buy and hold, `cost` of a trade is a fraction of its amount."""
    market = None if track.benchmark is None else simple_returns(track.benchmark)
    if market is None or len(market) != len(run_part.equity) or not run_part.fills:
        return None
    if total_return(track.equity) is None or (track.equity <= 0).any():
        return None
    long, short = _exposures(run_part)
    traders = RandomTraders(
        prices=[_moves(one) for one in held],
        long=long,
        short=short,
        turnover=track.traded / float(track.equity[1:].mean()),
        cost=cost,
    )
    return Random(traders, traders.returns())


def _exposures(run_part: RunPart) -> tuple[float, float]:
    """The mean shares of the value that are held long and short at the closes."""
    long = short = 0.0
    for point in run_part.equity:
        value = float(point.value)
        for symbol, position in point.portfolio.positions.items():
            held = float(position.quantity) * float(point.prices[symbol])
            share = held / value / len(run_part.equity)
            long, short = long + max(share, 0.0), short + max(-share, 0.0)
    return long, short


def _moves(track: Track) -> Floats:
    """The daily returns of a symbol, dividends included, as buy and hold had them; 0 where it did not hold it."""
    assert track.invested is not None
    earned = np.diff(track.equity)
    before = np.concatenate([[0.0], track.invested[:-1]])
    paid = np.where(before > 0, before, track.invested - earned)
    return np.divide(earned, paid, out=np.zeros(len(earned)), where=paid > 0)


def _worst_month(run_part: RunPart, returns: Floats) -> Row | None:
    months = by_period([point.session.isoformat() for point in run_part.equity], returns.tolist(), MONTH)
    worst = min(months, key=itemgetter(1), default=None)
    return None if worst is None else {"month": worst[0], "return": worst[1]}


MONTH, YEAR = 7, 4
"""Characters of an ISO date that name the month and the year."""


def by_period(sessions: Sequence[str], returns: Sequence[float], period: int) -> Iterator[tuple[str, float]]:
    """The return, as a fraction, of each MONTH or YEAR that the sessions (ISO dates) lie in."""
    for name, days in groupby(zip(sessions, returns, strict=False), key=lambda one: one[0][:period]):
        yield name, prod(1 + change for _, change in days) - 1


def _notes(found: Mapping[str, Any], sessions: int) -> Iterator[str]:
    """Reasons for what is null."""
    if sessions < FEWEST:
        yield f"value at risk and intervals take {FEWEST} sessions; there are {sessions}"
    if found["psr"] is None:
        yield "no Sharpe ratio: the value never moved"
    elif found["minimum_track_record"] is None:
        yield "no minimum track record: the Sharpe ratio is not above 0"
    if found["beta"] is None:
        yield "no beta and alpha: buy and hold was not played (a light run plays none), or never moved"
    if found["random"] is None:
        yield "no random traders: buy and hold was not played (a light run plays none), or the run never traded"


def _sentence(random: Mapping[str, Any] | None, trials: int) -> str:
    than = "" if random is None else f"better than {random['percentile']:.0f} % of random traders; "
    if trials < 2:
        return f"{than}the first look at this window"
    chance = f"{best_by_chance(trials):.2f}"
    return f"{than}after {counted(trials, 'look')} at this window chance alone gives a Sharpe of {chance}"
