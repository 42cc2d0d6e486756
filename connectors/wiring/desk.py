"""A desk of one's own: its journal, its lock, and one daily run on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from connectors.wiring.accounts import (
    DeskAccount,
    build_venue,
    check_calendar,
    desk_account,
    desk_clock,
    refuse_bound,
)
from connectors.wiring.briefings import configured_briefing, keep_briefing
from connectors.wiring.desk_market import desk_symbols, load_desk
from connectors.wiring.fetching import refresh
from connectors.wiring.memories import desk_memory, remembers
from connectors.wiring.models import build_models
from connectors.wiring.runs import default_spec, default_symbols, with_costs
from connectors.wiring.sources import calendar_table, configured_data
from engine import places
from engine.agents.ask import AnswerRecord, Asked, Asker
from engine.assistant import Gate, Gated, Publish
from engine.clock import LiveClock
from engine.config import Config
from engine.cycle import Cycle
from engine.desk.comparing import BooksDisagree
from engine.desk.daily import run_daily
from engine.desk.day_report import keep_report
from engine.desk.schedule import DAILY
from engine.desk.setting import KIND, DailyResult, DailySetting, run_id
from engine.desk.venue import Venue
from engine.desk.within_session import Ask, run_within
from engine.domain.run import RunSpec
from engine.errors import DataError, DeskHalted, MissingData, PaperdeskError, TryAgainLater, UsageError
from engine.journal.reader import JournalReader
from engine.journal.upgrade import bring_up_to_date, older_version
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market
from engine.market.trading_hours import desk_calendar, session_to_decide
from engine.messages.events import AgentSaid, Event, Noticed, RunFinished
from engine.ports import Calendar, Clock, LanguageModel
from engine.preset import briefed, load_preset
from engine.reports import row_json
from engine.reports.model_use import Meter, answered
from engine.simulation.desk_broker import DeskBroker
from engine.simulation.recorder import JournalRecorder
from engine.simulation.window import unread_series
from memory.lancedb_store import load_library


@dataclass(frozen=True, slots=True)
class Finished:
    """A run of the session was done before: nothing was decided and nothing ordered."""

    run: str
    session: date


def session_to_run(config: Config, asked: date | None, now: datetime) -> tuple[Calendar, date]:
    """The desk's calendar and the session of a daily run: the one asked for, or the last completed one. Raises
    UsageError for a day that is no completed session, or a desk without symbols."""
    symbols = default_symbols(config)
    if not symbols:
        raise UsageError("the desk has no symbols; set desk.symbols in the configuration")
    calendar = desk_calendar(symbols, calendar_table())
    return calendar, session_to_decide(calendar, symbols, asked, now)


@contextmanager
def desk_lock(desk: str) -> Iterator[None]:
    """Holds the desk's lock. Raises TryAgainLater at once where another process holds it."""
    from filelock import FileLock, Timeout

    path = places.lock_file(desk)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise TryAgainLater(
            f"another run of the desk {desk} is at work (lock {path}); try again when it is done"
        ) from None
    try:
        yield
    finally:
        lock.release()


async def run_desk_day(
    config: Config,
    asked: date | None = None,
    publish: Publish = lambda event: None,
    wall: Clock | None = None,
    through: Callable[[LanguageModel], LanguageModel] = lambda model: model,
) -> DailyResult | Finished:
    """One daily run of the configured desk for a session; `through` wraps every model that is asked, `wall` is this
    machine's clock. Raises UsageError, DataError, ConfigError, NetworkError, TryAgainLater, CredentialsRefused and
    DeskHalted; what was done before stays done."""
    machine = wall or LiveClock()
    if config.broker.kind == "simulated":
        return await _run_once(config, asked, publish, machine, through, None)
    done = None if config.broker.clock == "broker" else _done_before(config, asked, machine.now())
    if done is not None:
        return done  # without asking the broker
    async with desk_account(config, machine) as account:
        return await _run_once(config, asked, publish, account.clock, through, account)


async def _run_once(
    config: Config,
    asked: date | None,
    publish: Publish,
    clock: Clock,
    through: Callable[[LanguageModel], LanguageModel],
    account: DeskAccount | None,
) -> DailyResult | Finished:
    calendar, session = session_to_run(config, asked, clock.now())
    with desk_lock(config.desk.name):
        bring_up_to_date(places.desk_journal(config.desk.name))
        done = _done_before(config, asked, clock.now())
        return done or await run_at(config, calendar, session, publish, clock, through, account)


def _done_before(config: Config, asked: date | None, now: datetime) -> Finished | None:
    _, session = session_to_run(config, asked, now)
    if older_version(places.desk_journal(config.desk.name)) is not None:
        return None
    done = _finished_run(places.desk_journal(config.desk.name), session)
    return None if done is None else Finished(done, session)


def _finished_run(journal: Path, session: date) -> str | None:
    """The run of a session that was done before. A journal with nothing in it is that of a first run that was killed
    before its first row; an empty file never was one, and is left for a person to see."""
    if not journal.exists():
        return None
    try:
        with JournalReader(journal) as reader:
            return reader.finished_run(session)
    except MissingData:
        if journal.stat().st_size == 0:
            raise
        return None


class OpenDesk:
    """The configured desk for an app (DeskServices): its data, its journal and its cycle."""

    def __init__(self, config: Config) -> None:
        """Brings the journal up to date where an older program wrote it: all that the app shows reads it. Raises
        UsageError or ConfigError for a desk that could not run, TryAgainLater where an older journal is in use."""
        self._config = config
        self.desk = config.desk.name
        self.symbols = default_symbols(config)
        preset = load_preset(config.desk.preset)
        self.label, self.steps = build_models(preset, config).label, preset.questions
        self.journal = places.desk_journal(config.desk.name)
        if older_version(self.journal) is not None:
            with desk_lock(self.desk):
                bring_up_to_date(self.journal)
        self.clock: Clock = desk_clock(config)
        self.mode = config.broker.mode
        self.default_backtest = default_spec(config)

    async def market(self) -> Market:
        """All data of the desk's symbols through the last completed session."""
        _, session = session_to_run(self._config, None, self.clock.now())
        return await load_desk(self._config, session)

    async def run_cycle(self, publish: Publish, gate: Gate) -> None:
        """One daily run for the last completed session; a finished one is noticed and left alone."""
        done = await run_desk_day(
            self._config, publish=publish, wall=self.clock, through=lambda model: Gated(model, gate)
        )
        if isinstance(done, Finished):
            text = f"{done.session} is decided already; the next cycle follows its next session"
            publish(Noticed(done.run, self.clock.now(), "info", text))

    async def hand_over(self, publish: Publish) -> None:
        """Goes on with the run that meant the orders on which a word was said."""
        from connectors.wiring.approved import hand_over_approved  # it drives what stands here

        await hand_over_approved(self._config, publish, self.clock)


async def run_at(
    config: Config,
    calendar: Calendar,
    session: date,
    publish: Publish,
    clock: Clock,
    through: Callable[[LanguageModel], LanguageModel],
    account: DeskAccount | None,
    number: int = DAILY,
    ask: Ask | None = None,
) -> DailyResult:
    """The daily run, or a cycle within the session (whose prices of the moment `ask` brings), of a desk whose lock is
    held. Raises as `run_desk_day` does."""
    desk, identity = config.desk.name, run_id(config.desk.name, session, number)
    briefing = configured_briefing(config, configured_data(config), default_symbols(config))
    preset = briefed(load_preset(config.desk.preset), briefing)
    models = build_models(preset, config)
    warned: list[Event] = []  # before the journal is open

    def warn(event: Event) -> None:
        warned.append(event)
        publish(event)

    if account is not None:
        await check_calendar(account.broker, calendar, session)
        if config.data.refresh:
            await refresh(config, desk_symbols(config), session, clock, warn, run=identity)
    market = await load_desk(config, session)
    spec = RunSpec(default_symbols(config), session, session, preset=config.desk.preset)
    rules, cash = with_costs(spec, config)
    meter = Meter(models.spec)
    with JournalWriter(places.desk_journal(desk)) as journal:
        recorder = JournalRecorder(journal, identity, desk, clock)
        keep_briefing(journal, identity, briefing)

        def tell(event: Event) -> None:
            journal.event(event)
            publish(event)

        for event in warned:
            journal.event(event)

        def heard(record: AnswerRecord) -> None:
            meter.count(record)
            recorder.heard(record, number)
            tell(answered(record, identity, clock.now()))

        def said(asked: Asked, text: str) -> None:
            publish(AgentSaid(identity, clock.now(), asked.session, asked.symbol, asked.owner, asked.step, text))

        asked_of = {agent: through(model) for agent, model in models.models.items()}
        asker = Asker(asked_of, models.settings, heard, said, insisted=models.insisted)
        venue: Venue
        if account is None:
            refuse_bound(journal.path, desk)
            venue = DeskBroker(journal, identity, desk, market, calendar, rules, cash, clock)
        else:
            venue = build_venue(config, account, journal, identity, session, market, calendar)

        def untidied(reason: str) -> None:
            tell(Noticed(identity, clock.now(), "warning", reason))

        with JournalReader(journal.path) as reader:
            begins = not reader.runs(KIND)
        for note in unread_series(preset, configured_data(config), market) if begins else ():
            tell(Noticed(identity, clock.now(), "info", note))
        if remembers(preset):
            await asyncio.to_thread(load_library)
        try:
            with desk_memory(preset, config, calendar, untidied, meter.add) as memory:
                cycle = Cycle(preset, asker, market.calendars, tell, memory)
                setting = DailySetting(
                    identity, desk, session, spec.symbols, market, calendar, cycle, preset.name, models.label, meter,
                    journal, venue, clock, tell, asyncio.sleep, config.broker.mode, config.broker.kind, number,
                )  # fmt: skip
                done = await (run_daily(setting) if ask is None else run_within(setting, ask))
            _report(desk, identity, clock, tell)
            return done
        except PaperdeskError as error:
            _failed(config, journal, identity, error, clock, tell)
            _report(desk, identity, clock, tell)
            raise
        finally:
            await models.aclose()


def _failed(
    config: Config, journal: JournalWriter, identity: str, error: PaperdeskError, clock: Clock, tell: Publish
) -> None:
    """Writes down that the run failed, or was halted because broker and journal disagree, where it had begun; a
    session that was skipped stays skipped."""
    outcome = "halted" if isinstance(error, DeskHalted) else "failed"
    differences = error.differences if isinstance(error, BooksDisagree) else ()
    extra: dict[str, Any] = {"broker": config.broker.kind, "mode": config.broker.mode}
    extra |= {"differences": [row_json.difference(one) for one in differences]} if differences else {}
    with JournalReader(journal.path) as reader:
        under_way = any(run.id == identity and run.outcome is None for run in reader.runs())
    if under_way:
        journal.run_finished(identity, outcome, clock.now(), detail=str(error), extra=extra)
        tell(RunFinished(identity, clock.now(), outcome, None, str(error)))


def _report(desk: str, identity: str, clock: Clock, tell: Publish) -> None:
    """Writes the run's report beside the journal; one that cannot be written is a warning, for it can be made again."""
    try:
        keep_report(places.desk_journal(desk), desk, identity, places.desk_reports(desk))
    except DataError as error:
        tell(Noticed(identity, clock.now(), "warning", str(error)))
