"""A cycle of the configured desk within a session: at a broker, where time and prices go on between two closes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal

from connectors.wiring.desk_run import run_at
from connectors.wiring.services import services
from engine import places
from engine.app.desk_account import desk_account
from engine.app.desk_lock import desk_lock
from engine.app.desk_runner import Publish
from engine.app.desk_session import Finished, session_to_run
from engine.config import Config
from engine.domain.market import Symbol
from engine.domain.run import RunKind, RunOutcome
from engine.errors import ConfigError, MissingData, NetworkError, StaleData, TryAgainLater
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.upgrade import bring_up_to_date
from engine.market.live_prices import LivePrices
from engine.messages.events import Noticed
from engine.ports import Clock, LanguageModel
from engine.session.desk_context import DeskRunResult, run_id

NEEDS_PRICES = "a cycle within the session needs live prices, and the desk's broker gives none"


async def run_desk_cycle(
    config: Config,
    session: date,
    number: int,
    publish: Publish = lambda event: None,
    machine: Clock | None = None,
    through: Callable[[LanguageModel], LanguageModel] = lambda model: model,
    heard: LivePrices | None = None,
) -> DeskRunResult | Finished:
    """Cycle `number` within the session after `session`, whose own cycle has to be decided. Prices are asked for; where
    that fails, those that were `heard` count. Raises as `run_desk_day` does, StaleData where that session is not open.
    """
    desk, prices = config.desk.name, heard or LivePrices()
    given = services(config, machine)
    if given.broker is None:
        raise ConfigError(NEEDS_PRICES)
    async with desk_account(given, given.broker) as account:
        clock = account.clock
        feed = given.broker.open_feed(clock)
        if feed is None:
            raise ConfigError(NEEDS_PRICES)

        async def ask(symbols: Sequence[Symbol]) -> Mapping[Symbol, Decimal]:
            try:
                for one in await feed.latest(symbols):
                    prices.update(one)
            except (NetworkError, TryAgainLater, MissingData) as error:
                text = f"prices cannot be asked for, those that were heard count: {error}"
                publish(Noticed(run_id(desk, session, number), clock.now(), "warning", text))
            return prices.prices(symbols, clock.now())

        calendar, latest = session_to_run(given, None, clock.now())
        if latest != session:
            raise StaleData(f"the session after {session} is over: no cycle within it")
        with desk_lock(desk):
            bring_up_to_date(places.desk_journal(desk))
            identity = run_id(desk, session, number)
            if any(run.id == identity and run.outcome is RunOutcome.DONE for run in _runs_within(config, session)):
                return Finished(identity, session)
            return await run_at(given, calendar, session, publish, clock, through, account, number, ask)


def is_decided(config: Config, session: date) -> bool:
    """Whether the desk has decided on a session's close."""
    try:
        with JournalReader(places.desk_journal(config.desk.name)) as reader:
            return bool(reader.decisions(run_id(config.desk.name, session)))
    except MissingData:
        return False


def cut_short(config: Config, session: date) -> int | None:
    """The number of the session's latest cycle, where that was killed before it came to its end."""
    runs = _runs_within(config, session)
    return runs[-1].cycle if runs and runs[-1].outcome is None else None


def _runs_within(config: Config, session: date) -> Sequence[RunEntry]:
    try:
        with JournalReader(places.desk_journal(config.desk.name)) as reader:
            return [run for run in reader.runs(RunKind.INTRADAY) if run.session == session]
    except MissingData:
        return ()
