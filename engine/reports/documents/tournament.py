"""Repeats of an arena as `paperdesk arena --repeats N --json` prints them: agents with paired differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean, stdev
from typing import Any

from engine.reports.documents.row_json import Row

SCHEMA = 1
BASELINE = 100.0
"""The score of the baseline's agents in a duel. Source: Agent Trading Arena, Table 9 [R9]."""
# fmt: off
_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
      2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)
# fmt: on
"""97.5 % quantiles of Student's distribution with 1, 2, ... degrees of freedom."""


def tournament_document(
    run: str, arenas: Sequence[Mapping[str, Any]], repeats: int, baseline: Sequence[str] = ()
) -> Row:
    """The document of all repeats that are done; `baseline` names the agents that the others are scored against."""
    names = [agent["name"] for agent in sorted(arenas[0]["agents"], key=lambda one: str(one["name"]))]
    kinds = {agent["name"]: agent["kind"] for agent in arenas[0]["agents"]}
    returns = {name: _of(arenas, name, "total_return") for name in names}
    sharpes = {name: _of(arenas, name, "sharpe") for name in names}
    ranks = [sorted(names, key=lambda name: -_or_last(returns[name][turn])) for turn in range(len(arenas))]
    agents = [
        {
            "name": name,
            "kind": kinds[name],
            "returns": returns[name],
            "mean_return": _mean(returns[name]),
            "mean_sharpe": _mean(sharpes[name]),
            "mean_rank": fmean(order.index(name) + 1 for order in ranks),
            "difference": paired(returns[name], _others(returns, name)),
            "relative": relative_scores(name, returns, sharpes, baseline),
        }
        for name in names
    ]
    pairs = [{"agents": [a, b], **paired(returns[a], returns[b])} for a, b in combinations(names, 2)]
    costs = [arena["model"]["cost"] for arena in arenas]
    return {
        "schema": SCHEMA,
        "run": run,
        "preset": arenas[0]["preset"],
        "days": arenas[0]["days"],
        "repeats": repeats,
        "runs": [{"run": one["run"], "seed": one["seed"], "fingerprint": one["fingerprint"]} for one in arenas],
        "agents": agents,
        "pairs": pairs,
        "market": {
            key: _mean([one["market"][key] for one in arenas])
            for key in ("average_trend", "difference", "index_sharpe", "volatility", "turnover", "deviation")
        },
        "model": {"calls": sum(one["model"]["calls"] for one in arenas), "cost_known": None not in costs},
        "interrupted": len(arenas) < repeats,
    }


def paired(own: Sequence[float | None], other: Sequence[float | None]) -> Row:
    """The mean difference of two rows over the repeats with its 95 % interval (Student's), and about how many repeats
    it takes to tell a difference of this size from none; None where there are too few."""
    gaps = [a - b for a, b in zip(own, other, strict=True) if a is not None and b is not None]
    mean = fmean(gaps) if gaps else None
    if mean is None or len(gaps) < 2:
        return {"mean": mean, "low": None, "high": None, "repeats_needed": None}
    spread, quantile = stdev(gaps), _T[min(len(gaps) - 1, len(_T)) - 1]
    half = quantile * spread / math.sqrt(len(gaps))
    needed = max(2, math.ceil((1.96 * spread / mean) ** 2)) if mean else None
    return {"mean": mean, "low": mean - half, "high": mean + half, "repeats_needed": needed}


def _of(arenas: Sequence[Mapping[str, Any]], name: str, metric: str) -> list[float | None]:
    agents = (next(agent for agent in one["agents"] if agent["name"] == name) for one in arenas)
    return [agent["metrics"][metric] for agent in agents]


def _others(returns: Mapping[str, Sequence[float | None]], name: str) -> list[float | None]:
    """The mean return of everybody else, by repeat."""
    columns = zip(*(row for other, row in returns.items() if other != name), strict=True)
    return [_mean(column) for column in columns]


def relative_scores(
    name: str,
    returns: Mapping[str, Sequence[float | None]],
    sharpes: Mapping[str, Sequence[float | None]],
    baseline: Sequence[str],
) -> Row | None:
    """Mean return and Sharpe ratio in percent of the baseline's; None without a baseline above 0 to relate them to."""
    if not baseline:
        return None
    return {key: _score(name, rows, baseline) for key, rows in (("return", returns), ("sharpe", sharpes))}


def _score(name: str, rows: Mapping[str, Sequence[float | None]], baseline: Sequence[str]) -> float | None:
    base = _mean([one for other in baseline for one in rows[other]])
    own = _mean(rows[name])
    return None if base is None or base <= 0 or own is None else BASELINE * own / base


def _or_last(value: float | None) -> float:
    """The value to rank by; one that is not known ranks last, not as 0."""
    return -math.inf if value is None else value


def _mean(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return fmean(known) if known else None
