"""Rows of the Ops screen: checks, models, runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from engine.reports import amounts
from engine.reports.documents.operations import ModelCalls, ModelRate, Operations
from engine.reports.documents.set_up import Finding
from engine.reports.table import Cell, Column, count, warn_ink
from tui.widgets.table import Row, rows_of

METER = 10
"""Cells of the day's budget."""
_STATES: Mapping[str, Cell] = {"ok": Cell("ok", "up"), "note": Cell("note", "warn"), "fail": Cell("FAIL", "down")}
CHECKS = (
    Column("", lambda one: _STATES[one.state], max_width=4),
    Column("AREA", "area", ink="muted", max_width=12, drop_order=1),
    Column("CHECK", "name", ink="strong", max_width=22),
    Column("FOUND", "detail", stretch=True, min_width=12),
)
MODELS = (
    Column("MODEL", "model", ink="strong", max_width=24),
    Column("AGENT", "agent", max_width=24),
    Column("CALLS", "calls", count),
    Column("KEPT", "recorded", count, "muted", drop_order=4),
    Column("FAILED", "failed", count, warn_ink, drop_order=2),
    Column("SILENT", "abstained", count, warn_ink, drop_order=3),
    Column("TOKENS", "tokens", count, drop_order=1),
    Column("COST", lambda one: _cost(one.cost), str),
    Column("SEC", "latency", "{:.1f}".format, "muted", drop_order=2),
)
RUNS = (
    Column("STARTED", lambda one: f"{one.started:%m-%d %H:%M:%S}"),
    Column("KIND", "kind", max_width=10, drop_order=1),
    Column("SESSION", "session"),
    Column("TOOK", "took", lambda took: amounts.minutes(took.total_seconds()), "muted", drop_order=2),
    Column("ENDED", "outcome", ink=lambda outcome: "text" if outcome == "done" else "warn", max_width=12),
    Column("EXIT", "exit_code", str, "muted", drop_order=2),
    Column("COST", "cost", amounts.cost, "muted", drop_order=3),
    Column("BY", "trigger", ink="muted", max_width=8, drop_order=4),
    Column("DETAIL", "detail", ink="muted", stretch=True, min_width=10, drop_order=4),
)
RATES = (
    MODELS[0],
    Column("REQUESTS/MIN", "requests", count),
    Column("TOKENS/MIN", "tokens", count),
    Column("429 TODAY", "limited", count, warn_ink),
    Column("PAID TODAY", form=str, stretch=True, min_width=10),
)


def checks(findings: Sequence[Finding]) -> list[Row]:
    """A row per check, failures first."""
    order = ("fail", "note", "ok")
    ranked = sorted(findings, key=lambda one: order.index(one.state))
    return rows_of(CHECKS, ranked, lambda one: f"{one.area}|{one.name}")


def models(calls: Sequence[ModelCalls]) -> list[Row]:
    """A row per model and agent."""
    return rows_of(MODELS, calls, lambda one: f"{one.model}|{one.agent}")


def rates(operations: Operations) -> list[Row]:
    """A row per model that was asked today."""
    paid: dict[str, list[Decimal | None]] = {}
    for one in operations.today:
        paid.setdefault(one.model, []).append(one.cost)
    return [_rate(one, paid.get(one.model, [])) for one in operations.rates]


def _rate(one: ModelRate, paid: Sequence[Decimal | None]) -> Row:
    known = [cost for cost in paid if cost is not None]
    cost = _cost(sum(known, Decimal(0)) if len(known) == len(paid) else None)
    return Row(one.model, (*(column.cell(one) for column in RATES[:-1]), cost))


def _cost(dollars: Decimal | None) -> Cell:
    return Cell(amounts.cost(dollars), order=dollars)


def budget_meter(spent: Decimal | None, limit: Decimal | None, figure: str, *, plain: bool) -> str:
    """The cost of today's calls of the day's budget, `figure` in words: `$1.20, 24% of today's $5.00 ▰▰▰▱▱▱▱▱▱▱`.
    What a narrow border cuts off is the meter."""
    if not limit:
        return figure
    budget = f"${amounts.money(limit)}"
    if spent is None:
        return f"{figure} (today's budget: {budget})"
    part = min(Decimal(1), spent / limit)
    full, empty, ends = ("#", ".", "[]") if plain else ("▰", "▱", ("", ""))
    cells = math.ceil(part * METER)
    meter = f"{ends[0]}{full * cells}{empty * (METER - cells)}{ends[1]}"
    return f"{figure}, {part:.0%} of today's {budget} {meter}"


def runs(operations: Operations) -> list[Row]:
    """A row per run, the latest first. A desk has one run at work at most, and that is its latest."""
    ends = ("no end", *["killed"] * len(operations.runs))
    ended = (replace(one, outcome=one.outcome or end) for one, end in zip(operations.runs, ends, strict=False))
    return rows_of(RUNS, ended, lambda one: one.id)


def last_by_cron(operations: Operations) -> str:
    """The latest run that cron started, as `last by cron 2026-11-25 00:00 UTC, done`; empty without one."""
    found = operations.by_cron
    return "" if found is None else f"last by cron {found.started:%Y-%m-%d %H:%M} UTC, {found.outcome or 'no end'}"
