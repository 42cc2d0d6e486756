"""A backtest of agents or of a rule strategy: its data loaded, played beside its baselines, kept in a journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from engine.app.records.desk_journal import run_lock
from engine.app.records.trial_index import check_trial_index, count_result
from engine.app.research.market_data import load_run
from engine.app.research.run_spec import Stop, all_params, check_spec, preset_of, settled, user_code, with_costs
from engine.conventions.catalog import convention
from engine.domain.run import Result, RunKind, RunOutcome, RunSpec, TrialKind
from engine.errors import PaperdeskError, UsageError
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.lab.rule_backtest import Shared, run_strategy
from engine.lab.window import desk_calendar_of, on_convention, windows
from engine.market.as_of import Market, data_fingerprint
from engine.market.trading_hours import decision_time
from engine.messages.events import Noticed, Publish, RunFinished
from engine.ports import Calendar
from engine.reports.documents.records import LIGHT
from engine.reports.performance import Measure, Report, unmeasured
from engine.reports.stored import journal_of, store_document
from engine.services import Services
from engine.session.beginning import begin_run
from engine.settings import places
from engine.settings.user_code import code_hash

if TYPE_CHECKING:
    from engine.app.models.models import ModelSet
    from engine.app.research.agent_run import FirstPart
    from engine.preset import Preset

BASELINES = ("buy-and-hold", "equal-weight", "macd", "kdj-rsi", "z-score", "cash")
"""The strategies that every result is compared with, beside random traders (engine.reports.documents.luck)."""

NEVER_TRADED = "the run never traded: its figures are those of cash"
FROM_SESSION = (
    "the strategy was handed over by a Python session: its code is not kept, so the run can be neither repeated nor "
    "audited; name it as FILE.py:NAME for that"
)

OnBaseline = Callable[[str, Result], None]


def run_backtest(
    services: Services,
    spec: RunSpec,
    publish: Publish = lambda event: None,
    stop: Stop = lambda: False,
    *,
    on_baseline: OnBaseline = lambda name, result: None,
    market: Market | None = None,
    baselines: Sequence[str] = BASELINES,
    kind: TrialKind = TrialKind.BACKTEST,
    first_part: FirstPart | None = None,
    report: Callable[[str], None] = lambda text: None,
    light: bool = False,
) -> Report:
    """Run a backtest and its `baselines` and keep the run's journal. `publish` hears every event, `stop` is asked
    before each session, `on_baseline` gets each baseline before the run begins; `market` is the run's where it is
    loaded already. It is counted as a trial of a `kind` on its window. A run that was stopped goes on from its
    `first_part`; `report` hears how far a strategy's training is. A light one has no baselines, and keeps its document
    and nothing else.

    Raises UsageError, DataError, ConfigError, CredentialsRefused, and TryAgainLater where another process plays the
    run, before anything is kept.
    """
    check_spec(spec, services.clock.now())
    check_trial_index()
    prepared = _prepared(services, spec, market)
    spec = prepared.spec
    light = light or (first_part is not None and LIGHT in first_part.run.extra)
    marked = {LIGHT: True} if light else {}
    beside = {} if light else _baselines(services, prepared, baselines, on_baseline)
    label = "a rule strategy" if prepared.models is None else prepared.models.label
    label = label if first_part is None else first_part.label(label)
    with run_lock(spec.run), _journal(spec.run, first_part) as journal:
        started = services.clock.now() if first_part is None else first_part.run.started
        _begin(journal, publish, prepared, label, started, extra=marked)
        try:
            kept = None if light else journal
            same = next((one for one in beside.values() if one.spec == spec), None)
            result = same or _played(services, prepared, kept, publish, stop, first_part=first_part, report=report)
        except BaseException as error:
            outcome = RunOutcome.FAILED if isinstance(error, Exception) else RunOutcome.INTERRUPTED
            detail = str(error) if isinstance(error, PaperdeskError) else type(error).__name__
            use = None
            if prepared.models is not None:
                from engine.app.research.agent_run import use_so_far

                use = use_so_far(services, prepared.models, journal, spec.run)
            journal.run_finished(spec.run, outcome, services.clock.now(), detail=detail, model=use, extra=marked)
            publish(RunFinished(spec.run, services.clock.now(), outcome, None, detail))
            raise
        extra = {**result.extra, "code": code_hash(user_code(spec)), **marked}
        result = replace(result, notes=(*result.notes, *_notes(services, prepared, result)), extra=extra)
        made = Report(result, beside, label, services.config.metrics.risk_free, services.config.exchanges)
        store_document(journal, made, light=light)
        now = services.clock.now()
        count_result(kind, result, now)  # first: one that is done is not played again, and would never be counted
        journal.backtest_result(spec.run, result, now, light=light)
    _publish_end(publish, result, now)
    return made


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A run whose settings, models and data are there; a rule strategy has neither preset nor models. Its baselines
    share the windows of the data."""

    spec: RunSpec
    preset: Preset | None
    models: ModelSet | None
    market: Market
    calendar: Calendar
    shared: Shared = field(default_factory=dict)


def _prepared(services: Services, spec: RunSpec, market: Market | None) -> _Prepared:
    spec = settled(services, spec)
    preset = preset_of(spec)
    models = None
    if market is None and spec.options.mask:  # which is made of the market
        market = asyncio.run(load_run(services, spec))
    if preset is not None:
        from engine.app.models.mask import mask_of
        from engine.app.models.models import build_models

        mask = None if market is None else mask_of(spec, on_convention(spec, market))
        models = build_models(services, preset, spec.model, recorded=spec.models, mask=mask)
    market = asyncio.run(load_run(services, spec)) if market is None else market
    calendar = desk_calendar_of(market, spec.symbols)
    _, sessions = windows(spec, calendar)
    fingerprint = data_fingerprint(market, decision_time(calendar, sessions[-1]))
    return _Prepared(replace(spec, data_fingerprint=fingerprint), preset, models, market, calendar)


def _baselines(
    services: Services, prepared: _Prepared, names: Sequence[str], on_baseline: OnBaseline
) -> dict[str, Result]:
    """The rules that the run is compared with, over its window by its costs."""
    plain = replace(
        prepared.spec, preset=None, params=(), model=None, models=(), without=(), warm_up_from=None, preset_text=None
    )
    found = {}
    for name in names:
        rule = replace(plain, strategy=name)
        rule = replace(rule, params=all_params(rule))
        costs = with_costs(rule, services.config)
        found[name] = run_strategy(rule, prepared.market, *costs, shared=prepared.shared)
        on_baseline(name, found[name])
    return found


def _begin(
    journal: JournalWriter,
    publish: Publish,
    prepared: _Prepared,
    label: str,
    started: datetime,
    *,
    extra: Mapping[str, bool],
) -> None:
    spec, preset = prepared.spec, prepared.preset
    begin_run(
        journal,
        publish,
        RunEntry(
            id=spec.run,
            kind=RunKind.BACKTEST,
            name=spec.preset or spec.strategy or "",
            started=started,
            label=label,
            spec=spec,
            symbols=spec.symbols,
            extra=extra,
        ),
        window=(spec.first, spec.last),
        sessions=len(prepared.calendar.sessions(spec.warm_up_from or spec.first, spec.last)),
        steps=() if preset is None else preset.questions,
    )


def _played(
    services: Services,
    prepared: _Prepared,
    journal: JournalWriter | None,
    publish: Publish,
    stop: Stop,
    *,
    first_part: FirstPart | None,
    report: Callable[[str], None],
) -> Result:
    spec, preset, models = prepared.spec, prepared.preset, prepared.models
    if preset is None or models is None:
        costs = with_costs(spec, services.config)
        return run_strategy(spec, prepared.market, *costs, report=report, shared=prepared.shared, stop=stop)
    from engine.app.research.agent_run import AgentRun, play

    agents = AgentRun(
        services=services,
        spec=spec,
        preset=preset,
        models=models,
        market=prepared.market,
        publish=publish,
        stop=stop,
        first_part=first_part,
        report=report,
    )
    return asyncio.run(play(agents, journal))


def _notes(services: Services, prepared: _Prepared, result: Result) -> Iterator[str]:
    """Notes on what a result means, beside those of the run itself."""
    if result.test.equity and not result.test.fills:
        yield NEVER_TRADED
    known, exchanges = convention(prepared.spec.convention), services.config.exchanges
    measure = Measure(known, prepared.spec.symbols, exchanges.of_portfolio(prepared.spec.symbols))
    if known.measured == "decisions" and (note := unmeasured(known, measure.of_run(result.test))):
        yield note
    if (prepared.spec.strategy or "").startswith("<"):
        yield FROM_SESSION
    if prepared.preset is not None:
        from engine.app.models.models import model_notes

        yield from model_notes(services, prepared.preset, prepared.spec)


def _publish_end(publish: Publish, result: Result, now: datetime) -> None:
    run, equity = result.spec.run, result.test.equity
    for note in result.notes:
        publish(Noticed(run, now, "info", note))
    value = equity[-1].value if equity else result.test.initial_value
    outcome = RunOutcome.INTERRUPTED if result.interrupted else RunOutcome.DONE
    publish(RunFinished(run, now, outcome, value, ""))


def _journal(run: str, first_part: FirstPart | None) -> AbstractContextManager[JournalWriter]:
    if first_part is None:
        return JournalWriter(places.run_journal(run), batched=True)
    from engine.app.research.agent_run import resumed_journal

    return resumed_journal(first_part)


def recorded_spec(run: str) -> RunSpec:
    """The description of a backtest, with every setting that its journal has. Raises MissingData where there is no such
    run, UsageError for one that is no backtest."""
    with JournalReader(journal_of(run)) as reader:
        spec = reader.run(run).spec
    if spec is None:
        raise UsageError(f"{run} is not a backtest: only backtests can be repeated")
    return spec
