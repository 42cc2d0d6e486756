"""A backtest of agents or of a rule strategy: its data loaded, played beside its baselines, kept in a journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from engine import places
from engine.app.agent_run import AgentRun, play
from engine.app.briefing import preset_of, settled
from engine.app.look_index import count_result
from engine.app.market_data import load_run
from engine.app.models import build_models
from engine.app.run_spec import check_spec, with_costs
from engine.domain.run import LookKind, Result, RunKind, RunOutcome, RunSpec
from engine.errors import PaperdeskError
from engine.journal.entries import RunEntry
from engine.journal.writer import JournalWriter
from engine.lab.backtest import windows
from engine.lab.rule_backtest import run_strategy
from engine.lab.window import desk_calendar_of
from engine.market.as_of import Market
from engine.messages.events import Noticed, Publish, RunFinished, RunStarted
from engine.reports.report import Report
from engine.reports.stored import keep
from engine.services import Services

BASELINES = ("buy-and-hold", "equal-weight", "macd", "kdj-rsi", "z-score", "random", "cash")
"""The strategies that stand beside every result."""

Stop = Callable[[], bool]
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
    kind: LookKind = LookKind.BACKTEST,
) -> Report:
    """Run a backtest and its `baselines` and keep the run's journal. `publish` hears every event, `stop` is asked
    before each session, `on_baseline` gets each baseline before the run begins; `market` is the run's where it is
    loaded already. It is counted as a look of a `kind` at its window.

    Raises UsageError, DataError, ConfigError and CredentialsRefused before anything is kept.
    """
    check_spec(spec, services.clock.now())
    spec = settled(services, spec)
    preset = preset_of(spec)
    models = None if preset is None else build_models(services, preset, spec.model)
    market = asyncio.run(load_run(services, spec)) if market is None else market
    windows(spec, desk_calendar_of(market, spec.symbols))
    beside: dict[str, Result] = {}
    for name in baselines:
        rule = replace(spec, preset=None, strategy=name, params=(), model=None, without=(), warm_up_from=None)
        beside[name] = run_strategy(rule, market, *with_costs(rule, services.config))
        on_baseline(name, beside[name])
    agents = None
    if preset is not None and models is not None:
        agents = AgentRun(services=services, spec=spec, preset=preset, models=models, market=market)
    label = "a rule strategy" if models is None else models.label
    with JournalWriter(places.run_journal(spec.run), batched=True) as journal:
        _begin(services, spec, market, label, () if preset is None else preset.questions, journal, publish)
        try:
            if agents is None:
                result = run_strategy(spec, market, *with_costs(spec, services.config))
            else:
                result = asyncio.run(_play(agents, journal, publish, stop))
        except BaseException as error:
            _fail(services, spec, error, journal, publish)
            raise
        report = Report(result, beside, label, services.config.metrics.risk_free)
        keep(journal, report)
        journal.backtest_result(spec.run, result, services.clock.now())
    count_result(kind, result, services.clock.now())
    _end(services, spec, result, publish)
    return report


async def _play(agents: AgentRun, journal: JournalWriter, publish: Publish, stop: Stop) -> Result:
    try:
        return await play(agents, journal, publish=publish, stop=stop)
    finally:
        await agents.models.aclose()


def _begin(
    services: Services,
    spec: RunSpec,
    market: Market,
    label: str,
    steps: Sequence[str],
    journal: JournalWriter,
    publish: Publish,
) -> None:
    name, now = spec.preset or spec.strategy or "", services.clock.now()
    calendar = desk_calendar_of(market, spec.symbols)
    journal.run_started(
        RunEntry(
            id=spec.run,
            kind=RunKind.BACKTEST,
            name=name,
            started=now,
            label=label,
            spec=spec,
            symbols=spec.symbols,
        )
    )
    publish(
        RunStarted(
            run=spec.run,
            time=now,
            kind=RunKind.BACKTEST,
            name=name,
            label=label,
            symbols=spec.symbols,
            first=spec.first,
            last=spec.last,
            sessions=len(calendar.sessions(spec.warm_up_from or spec.first, spec.last)),
            steps=tuple(steps),
        )
    )


def _fail(services: Services, spec: RunSpec, error: BaseException, journal: JournalWriter, publish: Publish) -> None:
    now = services.clock.now()
    outcome = RunOutcome.FAILED if isinstance(error, Exception) else RunOutcome.INTERRUPTED
    detail = str(error) if isinstance(error, PaperdeskError) else type(error).__name__
    journal.run_finished(spec.run, outcome, now, detail=detail)
    publish(RunFinished(spec.run, now, outcome, None, detail))


def _end(services: Services, spec: RunSpec, result: Result, publish: Publish) -> None:
    now, equity = services.clock.now(), result.test.equity
    for note in result.notes:
        publish(Noticed(spec.run, now, "info", note))
    value = equity[-1].value if equity else result.test.initial_value
    outcome = RunOutcome.INTERRUPTED if result.interrupted else RunOutcome.DONE
    publish(RunFinished(spec.run, now, outcome, value, ""))
