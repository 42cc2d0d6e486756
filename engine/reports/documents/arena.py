"""An arena as `paperdesk arena --json` prints it: accounts, trades, flows and messages that anyone can add up."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from statistics import fmean

from engine.arena.chat import Strategy
from engine.arena.listing import Listing
from engine.arena.market import Market
from engine.arena.metrics import Figures, agent_figures, market_figures, most_volatile
from engine.arena.play import Table
from engine.arena.targets import SeatDecision
from engine.arena.values import Flow
from engine.domain.decimal_text import money, plain
from engine.domain.run import ModelUse
from engine.reports.documents.row_json import Row, model_use
from engine.reports.documents.tournament import relative_scores

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
        "books": [{**asdict(one), "side": one.side.value, "price": money(one.price)} for one in report.table.books],
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
            {
                "day": one.day,
                "round": one.round,
                "stock": one.stock,
                "buyer": one.buyer,
                "seller": one.seller,
                "quantity": one.quantity,
                "price": money(one.price),
                "cost_buyer": money(one.cost_buyer),
                "cost_seller": money(one.cost_seller),
                "maker": one.maker or None,
            }
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
        "messages": [
            {"id": one.id, "day": one.day, "agent": one.agent, "to": list(one.to), "text": one.text, "truth": one.truth}
            for one in report.table.messages
        ],
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
