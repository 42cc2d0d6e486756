"""The backtest's form: from fields of text to the specification of a run, with a complaint for every wrong field."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import cache

from engine.domain.run import RunSpec


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its label on the screen, and the grey text in it while it is empty."""

    id: str
    label: str
    hint: str = ""


FIELDS = (
    Field("symbols", "Symbols", "A,B,C"),
    Field("first", "From", "2025-01-02"),
    Field("last", "To", "2025-06-30"),
    Field("warm_up_from", "Warm-up from", "none"),
    Field("decides", "Decides", "preset or strategy"),
    Field("model", "Model", "as configured"),
    Field("cash", "Cash", "as configured"),
)


@cache
def deciders() -> tuple[Sequence[str], Sequence[str]]:
    """The names of all presets and of all strategies; loads the strategies."""
    from engine.preset import preset_names
    from engine.strategies.catalog import strategy_names

    return preset_names(), strategy_names()


def values_of(spec: RunSpec) -> dict[str, str]:
    """The fields' texts for a specification."""
    return {
        "symbols": ",".join(spec.symbols),
        "first": spec.first.isoformat(),
        "last": spec.last.isoformat(),
        "warm_up_from": "" if spec.warm_up_from is None else spec.warm_up_from.isoformat(),
        "decides": spec.preset or spec.strategy or "",
        "model": spec.model or "",
        "cash": "" if spec.cash is None else f"{spec.cash:f}",
    }


def arguments_of(spec: RunSpec) -> tuple[str, ...]:
    """The command line that runs the backtest of a form; what the form has no field for is the proposal's, which the
    command has as well."""
    texts = values_of(spec)
    flags = {
        "--strategy" if spec.strategy else "--preset": texts["decides"],
        "--symbols": texts["symbols"],
        "--from": texts["first"],
        "--to": texts["last"],
        "--warm-up-from": texts["warm_up_from"],
        "--model": texts["model"],
        "--cash": texts["cash"],
    }
    return ("backtest", *(part for flag, text in flags.items() if text for part in (flag, text)))


def filled(
    values: Mapping[str, str],
    proposal: RunSpec,
    today: date,
    presets: Collection[str],
    strategies: Collection[str],
) -> tuple[RunSpec | None, Mapping[str, str]]:
    """Read a form: the specification of a run, or complaints by field; fields that it does not have (data, convention,
    seed, costs) are the proposal's."""
    texts = {field.id: values.get(field.id, "").strip() for field in FIELDS}
    wrong: dict[str, str] = {}
    symbols = tuple(part.strip().upper() for part in texts["symbols"].split(",") if part.strip())
    if not symbols:
        wrong["symbols"] = "name at least one symbol"
    elif len(set(symbols)) < len(symbols):
        wrong["symbols"] = f"{next(s for s in symbols if symbols.count(s) > 1)} appears twice"
    first, last = _day("first", texts, wrong), _day("last", texts, wrong)
    warm_up = _day("warm_up_from", texts, wrong) if texts["warm_up_from"] else None
    if last is not None and last > today:
        wrong["last"] = f"is in the future; today is {today}"
    if first is not None and last is not None and first > last:
        wrong["first"] = "is after the last day"
    if warm_up is not None and first is not None and warm_up >= first:
        wrong["warm_up_from"] = "must be before the first day"
    preset, strategy = _decider(texts["decides"], presets, strategies, wrong)
    if strategy is not None and texts["model"]:
        wrong["model"] = "a strategy uses no model; leave it empty"
    cash = _cash(texts["cash"], wrong)
    if wrong or first is None or last is None:
        return None, wrong
    spec = replace(
        proposal,
        symbols=symbols,
        first=first,
        last=last,
        # Rules learn nothing: a strategy has no warm-up.
        warm_up_from=None if strategy else warm_up,
        preset=preset,
        strategy=strategy,
        params=proposal.params if strategy == proposal.strategy else (),
        without=proposal.without if preset == proposal.preset else (),
        model=texts["model"] or None,
        cash=cash,
    )
    return spec, {}


def _day(field: str, texts: Mapping[str, str], wrong: dict[str, str]) -> date | None:
    try:
        return date.fromisoformat(texts[field])
    except ValueError:
        wrong[field] = "write a day as 2025-01-31"
        return None


def _decider(
    name: str, presets: Collection[str], strategies: Collection[str], wrong: dict[str, str]
) -> tuple[str | None, str | None]:
    if name in strategies:
        return None, name
    if name in presets or name.endswith(".toml"):
        return name, None
    near = difflib.get_close_matches(name, [*presets, *strategies], 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join([*presets, *strategies])}"
    wrong["decides"] = f"no such preset or strategy; {hint}" if name else "name a preset or a strategy"
    return None, None


def _cash(text: str, wrong: dict[str, str]) -> Decimal | None:
    if not text:
        return None
    try:
        cash = Decimal(text.replace(",", ""))
    except InvalidOperation:
        cash = Decimal("NaN")
    if not cash.is_finite() or cash <= 0:
        wrong["cash"] = "write an amount above zero, such as 100000"
        return None
    return cash
