"""Rows of the Ops screen: checks, models, runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

from engine.reports import amounts
from engine.reports.documents.operations import DeskRun, ModelCalls, ModelRate, Operations
from engine.reports.documents.set_up import Finding
from tui.plain_text import one_line
from tui.widgets.table import Cell, Column, Row

METER = 10
"""Cells of the day's budget."""
CHECKS = (
    Column(title="", max_width=4),
    Column(title="AREA", max_width=12, drop_order=1),
    Column(title="CHECK", max_width=22),
    Column(title="FOUND", stretch=True, min_width=12),
)
MODELS = (
    Column(title="MODEL", max_width=24),
    Column(title="AGENT", max_width=24),
    Column(title="CALLS", right=True),
    Column(title="KEPT", right=True, drop_order=4),
    Column(title="FAILED", right=True, drop_order=2),
    Column(title="SILENT", right=True, drop_order=3),
    Column(title="TOKENS", right=True, drop_order=1),
    Column(title="COST", right=True),
    Column(title="SEC", right=True, drop_order=2),
)
RUNS = (
    Column(title="STARTED"),
    Column(title="KIND", max_width=10, drop_order=1),
    Column(title="SESSION"),
    Column(title="TOOK", right=True, drop_order=2),
    Column(title="ENDED", max_width=12),
    Column(title="EXIT", right=True, drop_order=2),
    Column(title="COST", right=True, drop_order=3),
    Column(title="BY", max_width=8, drop_order=4),
    Column(title="DETAIL", stretch=True, min_width=10, drop_order=4),
)
RATES = (
    Column(title="MODEL", max_width=24),
    Column(title="REQUESTS/MIN", right=True),
    Column(title="TOKENS/MIN", right=True),
    Column(title="429 TODAY", right=True),
    Column(title="PAID TODAY", right=True, stretch=True, min_width=10),
)
_STATES = {"ok": Cell("ok", "up"), "note": Cell("note", "warn"), "fail": Cell("FAIL", "down")}


def checks(findings: Sequence[Finding]) -> list[Row]:
    """A row per check, failures first."""
    order = ("fail", "note", "ok")
    ranked = sorted(findings, key=lambda one: order.index(one.state))
    return [
        Row(
            f"{place}|{one.name}",
            (_STATES[one.state], Cell(one.area, "muted"), Cell(one.name, "strong"), Cell(one_line(one.detail))),
        )
        for place, one in enumerate(ranked)
    ]


def models(calls: Sequence[ModelCalls]) -> list[Row]:
    """A row per model and agent."""
    return [
        Row(
            f"{one.model}|{one.agent}",
            (
                Cell(one_line(one.model), "strong"),
                Cell(one.agent),
                Cell(f"{one.calls:,}", order=one.calls),
                Cell(f"{one.recorded:,}", "muted", one.recorded),
                Cell(f"{one.failed:,}", "warn" if one.failed else "muted", one.failed),
                Cell(f"{one.abstained:,}", "warn" if one.abstained else "muted", one.abstained),
                Cell(f"{one.tokens:,}", order=one.tokens),
                Cell(amounts.cost(one.cost), order=one.cost),
                Cell(f"{one.latency:.1f}", "muted", one.latency),
            ),
        )
        for one in calls
    ]


def rates(operations: Operations) -> list[Row]:
    """A row per model that was asked today."""
    paid: dict[str, list[Decimal | None]] = {}
    for one in operations.today:
        paid.setdefault(one.model, []).append(one.cost)
    return [_rate(one, paid.get(one.model, [])) for one in operations.rates]


def _rate(one: ModelRate, paid: list[Decimal | None]) -> Row:
    known = [cost for cost in paid if cost is not None]
    cost = sum(known, Decimal(0)) if len(known) == len(paid) else None
    return Row(
        one.model,
        (
            Cell(one_line(one.model), "strong"),
            Cell(f"{one.requests:,}", order=one.requests),
            Cell(f"{one.tokens:,}", order=one.tokens),
            Cell(f"{one.limited:,}", "warn" if one.limited else "muted", one.limited),
            Cell(amounts.cost(cost), order=cost),
        ),
    )


def budget_meter(spent: Decimal | None, limit: Decimal | None, figure: str, *, plain: bool) -> str:
    """The cost of today's calls of the day's budget, `figure` in words: `▰▰▰▱▱▱▱▱▱▱ 24% of today's $5.00 ($1.20)`."""
    if not limit:
        return figure
    budget = f"${amounts.money(limit)}"
    if spent is None:
        return f"{figure} (today's budget: {budget})"
    part = min(Decimal(1), spent / limit)
    full, empty, ends = ("#", ".", "[]") if plain else ("▰", "▱", ("", ""))
    cells = math.ceil(part * METER)
    meter = f"{ends[0]}{full * cells}{empty * (METER - cells)}{ends[1]}"
    return f"{meter} {part:.0%} of today's {budget} ({figure})"


def runs(operations: Operations) -> list[Row]:
    """A row per run, the latest first. A desk has one run at work at most, and that is its latest."""
    return [_run(one, "killed" if place else "no end") for place, one in enumerate(operations.runs)]


def last_by_cron(operations: Operations) -> str:
    """The latest run that cron started, as `last by cron 2026-11-25 00:00 UTC, done`; empty without one."""
    found = operations.by_cron
    return "" if found is None else f"last by cron {found.started:%Y-%m-%d %H:%M} UTC, {found.outcome or 'no end'}"


def _run(one: DeskRun, unfinished: str) -> Row:
    ended = one.outcome or unfinished
    took = "" if one.took is None else amounts.minutes(one.took / timedelta(seconds=1))
    return Row(
        one.id,
        (
            Cell(f"{one.started:%m-%d %H:%M:%S}", order=one.started),
            Cell(one.kind),
            Cell(str(one.session or "-")),
            Cell(took, "muted"),
            Cell(ended, "text" if ended == "done" else "warn"),
            Cell(_exit(one, unfinished), "muted", one.exit_code),
            Cell(amounts.UNKNOWN if one.cost is None else amounts.cost(one.cost), "muted"),
            Cell(one.trigger, "muted"),
            Cell(one_line(one.detail), "muted"),
        ),
    )


def _exit(one: DeskRun, unfinished: str) -> str:
    """The exit code; `-` where no command ran or has ended, or its code was not recorded."""
    if one.exit_code is not None:
        return str(one.exit_code)
    return "none" if unfinished == "killed" and not one.outcome else amounts.UNKNOWN
