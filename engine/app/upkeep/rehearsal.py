"""A rehearsal: the backtest and the arena that a preset names, played and held against its bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from engine.app.arena.arena import arena_forecast, run_arena
from engine.app.arena.record import REHEARSED, ArenaSpec
from engine.app.bench.forecast import Estimate, Forecast, paid_forecast
from engine.app.bench.jobs import Job
from engine.app.desk.certificate import keep_certificate, subject_of
from engine.app.models.models import desk_preset
from engine.app.research.backtest import run_backtest
from engine.app.research.run_spec import Stop, new_run_id
from engine.conventions.catalog import convention
from engine.domain.decision import Action
from engine.domain.run import RunSpec
from engine.errors import Interrupted, UsageError
from engine.preset import Bounds, Preset
from engine.reports.documents.rehearsal import rehearsal_bound, rehearsal_figure
from engine.reports.documents.row_json import Row
from engine.reports.performance import Measure
from engine.services import Services

SCHEMA = 1
BOUNDS = {"min_return": "return", "max_drawdown": "drawdown", "max_abstentions": "abstentions"}
"""The figure that each bound is of."""


@dataclass(frozen=True, slots=True)
class PlannedRehearsal:
    """The parts of a rehearsal that a preset names."""

    preset: Preset
    backtest: RunSpec | None
    arena: ArenaSpec | None


def planned_rehearsal(services: Services) -> PlannedRehearsal:
    """The rehearsal of the desk's preset, on the desk's data. Raises UsageError for a preset that has none."""
    preset, name = desk_preset(services), new_run_id("rehearsal", services.clock.now())
    wanted = preset.rehearsal
    if wanted is None:
        raise UsageError(f"the preset {preset.name} has no [rehearsal]: it trades an account without one")
    backtest = arena = None
    if wanted.backtest is not None:
        part = wanted.backtest
        backtest = RunSpec(
            symbols=part.symbols or services.symbols,
            first=part.first,
            last=part.last,
            warm_up_from=part.warm_up_from,
            preset=services.config.desk.preset,
            data=services.data,
            convention=part.convention,
            seed=services.config.desk.seed,
            run=name,
        )
    if wanted.arena is not None:
        rules = wanted.arena
        arena = ArenaSpec(
            run=f"{name}-arena",
            preset=rules.market,
            agents=rules.agents,
            days=rules.days,
            seed=rules.seed,
            rehearsed=services.config.desk.preset,
        )
    return PlannedRehearsal(preset, backtest, arena)


def rehearsal_forecast(services: Services, planned: PlannedRehearsal) -> Forecast | None:
    """The forecast of both parts; None where nobody is asked who might charge for it."""
    parts = []
    if planned.backtest is not None:
        parts.append(paid_forecast(services, [Job(planned.backtest, None, "rehearsal")]))
    if planned.arena is not None:
        parts.append(arena_forecast(services, planned.arena))
    known = [one for one in parts if one is not None]
    models: dict[str, Estimate] = {}
    for part in known:
        for spec, estimate in part.models.items():
            models.setdefault(spec, Estimate()).add(estimate)
    return Forecast(models, len(known), title="Forecast for the rehearsal:") if known else None


def run_rehearsal(
    services: Services,
    planned: PlannedRehearsal,
    report: Callable[[str], None] = lambda text: None,
    stop: Stop = lambda: False,
) -> Row:
    """Play a rehearsal, hold it against its bounds, and keep the certificate. Raises what its parts raise, and
    Interrupted, after which nothing is kept."""
    parts, bounds = list[Row](), planned.preset.rehearsal
    assert bounds is not None  # a rehearsal was planned
    if planned.backtest is not None and bounds.backtest is not None:
        report(f"backtest {planned.backtest.first} to {planned.backtest.last}")
        parts.append(_judged("backtest", _backtest(services, planned.backtest, stop), bounds.backtest))
    if planned.arena is not None and bounds.arena is not None:
        report(f"arena {planned.arena.preset}")
        parts.append(_judged("arena", _arena(services, planned.arena, stop), bounds.arena))
    missed = [text for part in parts for text in part["missed"]]
    certificate = {
        "schema": SCHEMA,
        "desk": services.desk,
        "time": services.clock.now().isoformat(timespec="seconds"),
        **subject_of(services, planned.preset),
        "parts": parts,
        "missed": missed,
        "passed": not missed,
    }
    keep_certificate(services.desk, certificate)
    return certificate


def _backtest(services: Services, spec: RunSpec, stop: Stop) -> Row:
    report = run_backtest(services, spec, stop=stop, baselines=())
    result = report.result
    if result.interrupted:
        raise Interrupted("interrupted: nothing was certified, recorded answers will be reused")
    measure = Measure(convention("desk"), spec.symbols, report.exchange)
    metrics = measure.of_run(result.test)
    decisions = result.test.decisions
    return {
        "run": spec.run,
        "symbols": list(spec.symbols),
        "first_session": str(spec.first),
        "last_session": str(spec.last),
        "data_fingerprint": result.spec.data_fingerprint,
        "version": result.spec.version,
        "return": metrics["total_return"],
        "drawdown": metrics["max_drawdown"],
        "abstentions": sum(made.abstained for made in decisions) / len(decisions) if decisions else None,
    }


def _arena(services: Services, spec: ArenaSpec, stop: Stop) -> Row:
    document = run_arena(services, spec, stop=stop)
    if document["interrupted"]:
        raise Interrupted("interrupted: nothing was certified, recorded answers will be reused")
    own = next(one for one in document["agents"] if one["name"] == REHEARSED)
    decisions = [one for one in document["decisions"] if one["agent"] == REHEARSED]
    return {
        "run": spec.run,
        "market": document["preset"],
        "agents": spec.agents,
        "days": document["days"],
        "seed": spec.seed,
        "fingerprint": document["fingerprint"],
        "return": own["metrics"]["total_return"],
        "drawdown": _drawdown(own["equity"]),
        "abstentions": sum(one["action"] == Action.ABSTAIN for one in decisions) / len(decisions),
    }


def _drawdown(equity: list[str]) -> float:
    """The greatest fall from a peak, a fraction."""
    peak, greatest = Decimal(0), 0.0
    for value in map(Decimal, equity):
        peak = max(peak, value)
        greatest = max(greatest, float(1 - value / peak) if peak else 0.0)
    return greatest


def _judged(part: str, figures: Row, bounds: Bounds) -> Row:
    """A part with its bounds, and those that it missed in words. A figure that is not known misses its bound."""
    limits = {name: getattr(bounds, name) for name in Bounds.model_fields}
    stated = {name: float(limit) for name, limit in limits.items() if limit is not None}
    return {"part": part, **figures, "bounds": stated, "missed": list(_missed(part, figures, stated))}


def _missed(part: str, figures: Mapping[str, Any], limits: Mapping[str, float]) -> Iterator[str]:
    for bound, figure in BOUNDS.items():
        if bound not in limits:
            continue
        limit, value = limits[bound], figures[figure]
        if value is None or (value < limit if bound == "min_return" else value > limit):
            shown = "not known" if value is None else rehearsal_figure(figure, value)
            yield f"{part} {bound}: the {figure} is {shown}, {rehearsal_bound(figure, limit)} is wanted"
