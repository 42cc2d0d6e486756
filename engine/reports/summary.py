"""A result's document as sentences and table cells, the same for every format that a person reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from math import ceil
from typing import Any

from engine.conventions.catalog import convention
from engine.domain.decision import Action
from engine.domain.order import ZERO
from engine.domain.text import counted
from engine.reports.amounts import money, number, percent, portion, quantity, ratio
from engine.reports.documents.row_json import breakdowns, cutoff_words, use_words
from engine.reports.settings_text import costs_text, key_title, version_text

DISCLAIMER = "Paper money. Not investment advice."
NOTHING = "–"
"""Content of a cell whose figure is not defined."""

_TITLES = {
    "total_return": ("Total return", "Return"),
    "cagr": ("CAGR", "CAGR"),
    "volatility": ("Annualized volatility", "Vol"),
    "sharpe": ("Sharpe ratio", "Sharpe"),
    "sortino": ("Sortino ratio", "Sortino"),
    "calmar": ("Calmar ratio", "Calmar"),
    "max_drawdown": ("Max drawdown", "MaxDD"),
    "win_rate": ("Hit rate", "Hit"),
    "turnover": ("Annualized turnover", "Turnover"),
    "exposure": ("Exposure", "Exposure"),
    "excess_return": ("Excess over buy and hold", "Excess"),
    "net_of_model_cost": ("Return net of model cost", "Net"),
}
_SIGNED = frozenset({"total_return", "cagr", "net_of_model_cost"})
_SHARES = _SIGNED | {"volatility", "win_rate", "exposure"}
"""Fractions of the `desk` convention that people read in percent."""
_INTERVALS = {"sharpe": ("sharpe_low", "sharpe_high"), "excess_return": ("excess_low", "excess_high")}
_BOUNDS = {bound: name for name, bounds in _INTERVALS.items() for bound in bounds}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """One metric as text: `interval` is empty where there is none, `beside` has a cell for every baseline."""

    name: str
    title: str
    short: str
    own: str
    interval: str
    beside: tuple[str, ...]


def name_of(document: Mapping[str, Any]) -> str:
    """The preset or strategy that ran."""
    return str(document.get("preset") or document.get("strategy"))


def window_of(part: Mapping[str, Any]) -> str:
    """First to last session of a document or of its warm-up, with their number."""
    count = part["sessions"]
    if not count:
        return "no session"
    return f"{part['first_session']} to {part['last_session']}, {count} session{'s' if count > 1 else ''}"


def decided_by(document: Mapping[str, Any]) -> str:
    """The preset or strategy that decided, with its model: rules are never taken for a model."""
    kind = "preset" if "preset" in document else "strategy"
    spec = document["model"]["spec"] if document["model"] else ""
    label = ", ".join(part for part in (spec, document["label"]) if part)
    return f"{kind} {name_of(document)}" + (f" ({label})" if label else "") + cutoff_words(document["model"])


def facts(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The settings of a run, as pairs of a name and a value."""
    settings, warm_up = document["settings"], document["warm_up"]
    yield "Decided by", decided_by(document)
    dropped = settings.get("dropped_sessions")  # a desk has none
    left_out = f"; requested to {settings['to']}, the convention drops the last {dropped}" if dropped else ""
    yield "Window", window_of(document) + left_out
    if warm_up is not None:
        made = ", ".join(counted(len(warm_up[f"{name}s"]), name) for name in ("decision", "trade"))
        yield "Warm-up", f"{window_of(warm_up)}, {made}, then fresh books"
    yield "Symbols", ", ".join(document["symbols"])
    yield "Data", settings["data"]
    yield "Convention", f"{document['convention']}: {convention(document['convention']).title}"
    yield "Costs", costs_text(settings)
    yield "Version", version_text(settings)
    if settings["params"]:
        yield "Parameters", ", ".join(f"{key_title(key)} {value}" for key, value in settings["params"].items())
    if settings["without"]:
        yield "Without", ", ".join(settings["without"])
    if document["interrupted"]:
        yield "Interrupted", "partial: only the sessions above were run"


def totals(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Decisions, trades and the use of models, as pairs of a name and a value."""
    yield "Decisions", _decisions(document)
    if figures := figures_text(document):
        yield "Figures", figures
    yield "Trades", _trades(document)
    if document["model"] is not None:
        yield "Model", use_words(document["model"])
        yield from breakdowns(document["model"])


def metric_rows(document: Mapping[str, Any], *, spread: bool = False) -> list[MetricRow]:
    """The metrics of the run beside those of its baselines, in the convention's order; the return of random traders
    with their 5th and 95th percentile where there is room for the `spread`."""
    named, random = document["convention"], (document.get("luck") or {}).get("random")
    rows = []
    for name, value in document["metrics"].items():
        if name in _BOUNDS or (name == "excess_return" and document.get("luck")):
            continue  # people read the excess of `luck`, whose interval says something
        title, short = _TITLES.get(name, (name, name))
        low, high = (document["metrics"].get(bound) for bound in _INTERVALS.get(name, ("", "")))
        beside = {held: figure(named, name, one["metrics"].get(name)) for held, one in document["baselines"].items()}
        if spread and random and name == "total_return":
            beside["random"] += f" ({percent(random['p5'])} to {percent(random['p95'])})"
        row = MetricRow(
            name=name,
            title=title,
            short=short,
            own=figure(named, name, value),
            interval=_interval(named, name, low, high),
            beside=tuple(beside.values()),
        )
        rows.append(row)
    return rows


def luck_rows(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The part of chance, as pairs of a name and a value; nothing of a run without it."""
    luck = document.get("luck")
    if not luck:
        return
    if luck["sentence"]:  # nobody chose a desk among looks at its past
        yield "Luck", luck["sentence"]
    if excess := luck["excess_per_year"]:
        yield "Growth", f"{over_the_market(excess)} over buy and hold of the same exposure"
    if luck["psr"] is not None:
        needed = luck["minimum_track_record"]
        record = "" if needed is None else f"; minimum track record {counted(ceil(needed), 'session')}"
        yield "Sharpe", f"probabilistic {ratio(luck['psr'])}, deflated {ratio(luck['deflated_sharpe'])}{record}"
    if random := luck["random"]:
        shown = ", ".join(percent(random[name]) for name in ("p5", "p50", "p95"))
        yield "Random", f"{random['traders']:,} random traders return {shown} (5th, 50th, 95th percentile)"
    names = (("beta", ratio), ("alpha", percent), ("information_ratio", ratio))
    market = [f"{name.replace('_', ' ')} {form(luck[name])}" for name, form in names if luck[name] is not None]
    if market:
        yield "Market", ", ".join(market)
    loss, month = luck["value_at_risk"], luck["worst_month"]
    losses = [] if loss is None else [f"value at risk {portion(loss)} a day (95 %)"]
    losses += [] if month is None else [f"worst month {month['month']} {percent(month['return'])}"]
    if losses:
        yield "Losses", ", ".join(losses)
    yield from (("" if number else "Undefined", note) for number, note in enumerate(luck["notes"]))


def over_the_market(excess: Mapping[str, float | None]) -> str:
    """The yearly excess over the market, with its interval where there is one."""
    shown = f"{percent(excess['value'])} a year"
    low, high = excess["low"], excess["high"]
    return shown if low is None or high is None else f"{shown} (95 %: {percent(low)} to {percent(high)})"


def symbol_rows(document: Mapping[str, Any], metrics: Sequence[MetricRow]) -> Iterator[Sequence[str]]:
    """By symbol: profit, final quantity, and its figures in the order of the metrics."""
    named = document["convention"]
    for symbol, part in document["per_symbol"].items():
        figures = (figure(named, row.name, part["metrics"].get(row.name)) for row in metrics)
        yield symbol, amount(part["profit"]), quantity(Decimal(part["final_quantity"])), *figures


def action_rows(document: Mapping[str, Any]) -> list[Sequence[object]]:
    """By symbol: the number of decisions by action, and of those that the limits changed; none without decisions."""
    decisions = document["decisions"]
    by_symbol = {symbol: [one for one in decisions if one["symbol"] == symbol] for symbol in document["symbols"]}
    return [(symbol, *_counts(own).values(), _cut(own)) for symbol, own in by_symbol.items()] if decisions else []


def title_of(name: str) -> str:
    """A metric, or a bound of its interval, as a person reads it."""
    title = _TITLES.get(_BOUNDS.get(name, name), (name, name))[0]
    return title if name not in _BOUNDS else f"{title} (95 % interval, {'lower' if name.endswith('_low') else 'upper'})"


def figure(named: str, name: str, value: float | None) -> str:
    """A metric's value, or that of a bound of its interval, as a person reads it; `named` is the convention."""
    if value is None:
        return NOTHING
    name = _BOUNDS.get(name, name)
    if named == "desk":
        if name == "excess_return":
            return f"{100 * value:+.2f} points"
        if name == "max_drawdown":
            return percent(-value)  # a fall, as everywhere that people read one; the document has its size
        return percent(value) if name in _SIGNED else portion(value) if name in _SHARES else ratio(value)
    if name in convention(named).percent:
        return portion(value / 100)
    return f"{value:.4f}" if abs(value) < 0.1 else f"{value:.3f}"


def _interval(named: str, name: str, low: float | None, high: float | None) -> str:
    """Both bounds, the unit named once; empty where there is no interval."""
    if low is None or high is None:
        return ""
    return f"{figure(named, name, low).split(' ')[0]} to {figure(named, name, high)}"


def amount(text: str) -> str:
    """A decimal string as money for a person: cents, thousands set apart."""
    return money(number(text))


def change(document: Mapping[str, Any]) -> str:
    """The change of the value, in percent of the initial one."""
    initial, final = Decimal(document["initial_value"]), Decimal(document["final_value"])
    return percent(final / initial - 1) if initial else NOTHING


def _counts(decisions: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The number of decisions by action; abstentions are counted apart from HOLD."""
    counted = Counter(decision["action"] for decision in decisions)
    return {action.value: counted[action.value] for action in Action}


def _cut(decisions: Sequence[Mapping[str, Any]]) -> int:
    return sum(1 for decision in decisions if decision["cut"])


def _decisions(document: Mapping[str, Any]) -> str:
    """Counts of decisions and of those that limits changed; a strategy has none."""
    decisions = document["decisions"]
    if not decisions:
        return "none: a strategy's signals are its trades"
    counts = _counts(decisions)
    named = f"{counts['BUY']} BUY, {counts['SELL']} SELL, {counts['HOLD']} HOLD, {counts['ABSTAIN']} abstained"
    return f"{named}; {_cut(decisions)} cut by the limits"


def _trades(document: Mapping[str, Any]) -> str:
    """Number, amount and cost of the trades, and the cash that came in without one."""
    trades = document["trades"]
    traded = sum((Decimal(t["quantity"]) * Decimal(t["price"]) for t in trades), ZERO)
    fees = sum((Decimal(t["fee"]) for t in trades), ZERO)
    paid = sum((Decimal(f["amount"]) for f in document["cash_flows"]), ZERO)
    flows = f"; {paid:,.2f} of dividends and the like" if document["cash_flows"] else ""
    return f"{len(trades)} worth {traded:,.2f}, fees {fees:,.2f}{flows}"


def figures_text(document: Mapping[str, Any]) -> str:
    """The number of figures that stand in no source, by agent and model; empty where there are none."""
    count = document["unresolved_figures"]
    if not count:
        return ""
    agents = document["model"]["agents"] if document["model"] else {}  # a run that broke off knows of none
    named = [
        f"{own['unresolved_figures']:,} of {agent} ({own['model']})"
        for agent, own in agents.items()
        if own["unresolved_figures"]
    ]
    return f"{count:,} in reasons and reports not found in the inputs{': ' if named else ''}{', '.join(named)}"


def remarks(document: Mapping[str, Any]) -> Iterator[str]:
    """Remarks for a reader: notes, and items of the data that could not be used."""
    yield from document["notes"]
    for source, reasons in document["dropped"].items():
        for reason, count in reasons.items():
            yield f"dropped {count} of {source}: {reason}"


def drawdowns(values: Sequence[float]) -> list[float]:
    """The distance of each value from the highest so far, as a fraction (0 or negative)."""
    peaks = accumulate(values, max)
    return [value / peak - 1 if peak > 0 else 0.0 for value, peak in zip(values, peaks, strict=True)]
