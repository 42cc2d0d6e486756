"""An arena, and repeats of one, as `paperdesk arena --json` prints them: accounts, trades, flows and messages that
anyone can add up, and agents with paired differences."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from itertools import combinations
from statistics import fmean, stdev
from typing import Any

from engine.arena.decided_player import SeatDecision
from engine.arena.market import Listing, Market
from engine.arena.play import Figures, Table, agent_figures, market_figures, most_volatile
from engine.arena.players import Strategy
from engine.arena.values import Flow
from engine.domain.run import ModelUse
from engine.domain.text import money, plain
from engine.reports.documents.row_json import Row, fields, model_use

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaReport:
    """An arena that was played, to its end or to a day.

    run: its id.
    preset: the market's.
    seed: of everything that is drawn.
    table: market, messages and wealth.
    kinds: by agent, its rule, its preset or its model.
    strategies: by agent, its strategy library.
    abstentions: by agent, counts by question.
    decisions: by agent, of presets and strategies at the table.
    notes: remarks on seats.
    use: calls and cost of models.
    interrupted: True where days are missing.
    baseline: agents that the others are scored against.
    """

    run: str
    preset: str
    seed: int
    table: Table
    kinds: Mapping[str, str]
    strategies: Mapping[str, Sequence[Strategy]]
    abstentions: Mapping[str, Mapping[str, int]]
    decisions: Mapping[str, Sequence[SeatDecision]]
    notes: Sequence[str]
    use: ModelUse
    interrupted: bool
    baseline: Sequence[str] = ()


_COSTS = ("price", "cost_buyer", "cost_seller")


def arena_document(report: ArenaReport) -> Row:
    """The document of an arena."""
    market = report.table.market
    whole = market_figures(market)
    trend, volatile = whole["average_trend"], most_volatile(market)
    figures = {agent: agent_figures(row, trend) for agent, row in report.table.wealth.items()}
    returns = [total for one in figures.values() if (total := one["total_return"]) is not None]
    tape = _tape(report)
    return {
        "schema": SCHEMA,
        "run": report.run,
        "preset": report.preset,
        "seed": report.seed,
        "days": market.day - 1,
        "agents": [_agent(report, name, figures) for name in market.agents],
        "stocks": [_stock(market, name, listing) for name, listing in market.listings.items()],
        **tape,
        "decisions": [
            {**asdict(one), "agent": name, "size": plain(one.size)}
            for name, made in report.decisions.items()
            for one in made
        ],
        "notes": list(report.notes),
        "books": [fields(one) for one in report.table.books],
        "market": {
            **whole,
            "difference": fmean(returns) - trend if returns and trend is not None else None,
            "most_volatile": None if volatile is None else {"stock": volatile[0], "trend": volatile[1]},
            "excess": money(sum((one.excess for one in market.trades), Decimal(0))),
        },
        "model": model_use(report.use),
        "interrupted": report.interrupted,
        "fingerprint": hashlib.sha256(json.dumps(tape, sort_keys=True).encode()).hexdigest(),
    }


def _tape(report: ArenaReport) -> Row:
    """Everything that happened; its hash is the arena's fingerprint."""
    market = report.table.market
    return {
        "trades": [
            {**fields(one, "day", "round", "stock", "buyer", "seller", "quantity", *_COSTS), "maker": one.maker or None}
            for one in market.trades
        ],
        "flows": [_flow(one) for one in market.flows],
        "prices": [
            {
                "day": day,
                "stock": name,
                "close": money(close),
                "fundamental": _optional(market.rules.fundamental_value(listing.rules, day)),
            }
            for name, listing in market.listings.items()
            for day, close in enumerate(listing.closes[1:], 1)
        ],
        "messages": [fields(one, "id", "day", "agent", "to", "text", "truth") for one in report.table.messages],
    }


def _agent(report: ArenaReport, name: str, figures: Mapping[str, Figures]) -> Row:
    """An agent; `figures` are those of all, which it is scored against."""
    market, wealth = report.table.market, report.table.wealth[name]
    returns, sharpes = ({agent: [one[key]] for agent, one in figures.items()} for key in ("total_return", "sharpe"))
    return {
        "name": name,
        "kind": report.kinds[name],
        "cash": money(market.ledger.cash(name)),
        "holdings": {stock: market.ledger.shares(name, stock) for stock in market.listings},
        "wealth": money(wealth[-1]),
        "metrics": dict(figures[name]),
        "relative": relative_scores(name, returns, sharpes, report.baseline),
        "equity": [money(one) for one in wealth],
        "refused": dict(report.table.refused.get(name, {})),
        "abstentions": dict(report.abstentions.get(name, {})),
        "strategies": [asdict(one) for one in report.strategies.get(name, ())],
    }


def _stock(market: Market, name: str, listing: Listing) -> Row:
    return {
        "name": name,
        "shares": listing.shares,
        "first_price": money(listing.rules.first_price),
        "last_price": money(listing.reference),
        "fundamental": _optional(market.rules.fundamental_value(listing.rules, max(1, market.day - 1))),
    }


def _flow(flow: Flow) -> Row:
    amount = money(flow.amount) if flow.amount else "0"
    row: Row = {"day": flow.day, "agent": flow.agent, "kind": flow.kind, "amount": amount}
    if flow.stock is not None:  # a dividend moves no shares: whoever adds up those of every stock finds a 0
        row |= {"stock": flow.stock, "shares": flow.shares}
    return row


def _optional(amount: Decimal | None) -> str | None:
    return None if amount is None else money(amount)


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
