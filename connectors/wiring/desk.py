"""A desk of one's own: its daily run, and what an app may ask of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import date

from connectors.wiring.desk_run import run_at
from connectors.wiring.runs import default_spec
from connectors.wiring.services import services
from engine import places
from engine.app.desk_account import DeskAccount, desk_account, desk_clock
from engine.app.desk_lock import desk_lock
from engine.app.desk_runner import Gate, Gated, Publish, TakeTurn
from engine.app.desk_session import Finished, done_before, session_to_run
from engine.app.market_data import held_symbols, load_desk
from engine.app.models import build_models
from engine.config import Config
from engine.domain.live import FeedMessage
from engine.errors import CredentialsRefused
from engine.journal.upgrade import bring_up_to_date, older_version
from engine.market.as_of import Market
from engine.messages.events import Noticed
from engine.ports import Clock, LanguageModel, LiveFeed
from engine.preset import load_preset
from engine.services import Services
from engine.session.desk_context import DeskRunResult


async def run_desk_day(
    config: Config,
    asked: date | None = None,
    publish: Publish = lambda event: None,
    wall: Clock | None = None,
    through: Callable[[LanguageModel], LanguageModel] = lambda model: model,
) -> DeskRunResult | Finished:
    """One daily run of the configured desk for a session; `through` wraps every model that is asked, `wall` is this
    machine's clock. Raises UsageError, DataError, ConfigError, NetworkError, TryAgainLater, CredentialsRefused and
    DeskHalted; what was done before stays done."""
    given = services(config, wall)
    if given.broker is None:
        session_to_run(given, asked, given.clock.now())
        with desk_lock(given.desk):
            return await _run_once(given, asked, publish, given.clock, through, None)
    done = None if given.goes_by_broker else done_before(given, asked, given.clock.now())
    if done is not None:
        return done  # without asking the broker
    # The lock comes first: a broker that does not answer must not keep a second run from hearing of the first.
    with desk_lock(given.desk):
        async with desk_account(given, given.broker) as account:
            return await _run_once(given, asked, publish, account.clock, through, account)


async def _run_once(
    given: Services,
    asked: date | None,
    publish: Publish,
    clock: Clock,
    through: Callable[[LanguageModel], LanguageModel],
    account: DeskAccount | None,
) -> DeskRunResult | Finished:
    """One run, by whoever holds the desk's lock."""
    calendar, session = session_to_run(given, asked, clock.now())
    bring_up_to_date(places.desk_journal(given.desk))
    done = done_before(given, asked, clock.now())
    return done or await run_at(given, calendar, session, publish, clock, through, account)


class OpenDesk:
    """The configured desk for an app (DeskServices): its data, its journal and its cycle."""

    def __init__(self, config: Config) -> None:
        """Brings the journal up to date where an older program wrote it: all that the app shows reads it. Raises
        UsageError or ConfigError for a desk that could not run, TryAgainLater where an older journal is in use."""
        given = services(config)
        self._config = config
        self._services = given
        self.desk = given.desk
        self.symbols = given.symbols
        preset = load_preset(config.desk.preset)
        self.label, self.steps = build_models(given, preset).label, preset.questions
        self.journal = places.desk_journal(config.desk.name)
        if older_version(self.journal) is not None:
            with desk_lock(self.desk):
                bring_up_to_date(self.journal)
        self.clock: Clock = desk_clock(given)
        self.feed: LiveFeed | None = None
        with suppress(CredentialsRefused):  # a desk can be looked at without keys; whoever trades is told
            self.feed = None if given.broker is None else given.broker.open_feed(self.clock)
        self.watches = config.watch.in_app
        self.mode = config.broker.mode
        self.default_backtest = default_spec(config)

    async def market(self) -> Market:
        """All data of the desk's symbols through the last completed session."""
        _, session = session_to_run(self._services, None, self.clock.now())
        return await load_desk(self._services, session, held_symbols(self.desk))

    async def run_cycle(self, publish: Publish, gate: Gate) -> None:
        """One daily run for the last completed session; a finished one is noticed and left alone."""
        done = await run_desk_day(
            self._config, publish=publish, wall=self.clock, through=lambda model: Gated(model, gate)
        )
        if isinstance(done, Finished):
            text = f"{done.session} is decided already; the next cycle follows its next session"
            publish(Noticed(done.run, self.clock.now(), "info", text))

    async def watch(self, publish: Publish, hear: Callable[[FeedMessage], None], take_turn: TakeTurn) -> None:
        """Runs the desk's cycles when they are due, and follows the feed, until it is cancelled."""
        from connectors.wiring.watching import DeskWatch, Through  # it drives what stands here

        async def turn(work: Callable[[Through], Awaitable[None]]) -> None:
            await take_turn(lambda gate: work(lambda model: Gated(model, gate)))

        await DeskWatch(self._config, publish, hear, turn).run()

    async def hand_over(self, publish: Publish) -> None:
        """Goes on with the run that meant the orders on which a word was said."""
        from connectors.wiring.approved import hand_over_approved  # it drives what stands here

        await hand_over_approved(self._config, publish, self.clock)
