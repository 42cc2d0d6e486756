"""A desk that the app has opened: its data, its journal and its runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from engine import places
from engine.app.desk_context import Finished, desk_clock, desk_context
from engine.app.desk_journal import DeskJournal, desk_lock
from engine.app.desk_runner import Gate, Gated, TakeTurn
from engine.app.desk_watch import DeskWatch
from engine.app.market_data import held_symbols, load_desk
from engine.app.models import Through, build_models
from engine.app.run_spec import default_spec
from engine.app.runs import run_daily, submit_approved
from engine.domain.live import FeedMessage
from engine.errors import CredentialsRefused
from engine.journal.database import older_version
from engine.journal.store import bring_up_to_date
from engine.market.as_of import Market
from engine.messages.events import Noticed, Publish
from engine.ports import Clock, LiveFeed
from engine.preset import load_preset
from engine.services import Services


class OpenDesk:
    """The configured desk for an app.

    desk: its name.
    symbols: in the order in which they are decided.
    label: the label of the model that decides, such as `rules, not a language model`.
    steps: the questions that its agents are asked about a symbol, in order, by their names in events.
    journal: the journal's file, which is not there before the first run.
    clock: this machine's, or the broker's.
    feed: live prices and news; None where there are none.
    watches: True where its cycles run on a schedule while it is open.
    mode: auto, ask or observe.
    default_backtest: the backtest that the form proposes.
    """

    def __init__(self, services: Services) -> None:
        """Bring the journal up to date where an older program wrote it: all that the app shows reads it. Raises
        UsageError or ConfigError for a desk that could not run, TryAgainLater where an older journal is in use."""
        config, preset = services.config, load_preset(services.config.desk.preset)
        self._services = services
        self.desk, self.symbols, self.mode = services.desk, services.symbols, config.broker.mode
        self.label, self.steps = build_models(services, preset).label, preset.questions
        self.journal = places.desk_journal(services.desk)
        if older_version(self.journal) is not None:
            with desk_lock(self.desk):
                bring_up_to_date(self.journal)
        self.clock: Clock = desk_clock(services)
        self.feed: LiveFeed | None = None
        with suppress(CredentialsRefused):  # a desk can be looked at without keys; whoever trades is told
            self.feed = None if services.broker is None else services.broker.open_feed(self.clock)
        self.watches = config.watch.in_app
        self.default_backtest = default_spec(services)

    async def market(self) -> Market:
        """All data of the desk's symbols through the last completed session; read anew at every call."""
        with DeskJournal(self.desk) as journal:
            context = desk_context(self._by_clock(), journal)
            held = held_symbols(journal.reader)
        return await load_desk(self._services, context.session, held)

    async def run_cycle(self, publish: Publish, gate: Gate) -> None:
        """Run the desk for the last completed session, and publish everything from RunStarted to RunFinished; `gate`
        is awaited before every question to a model. A finished session is noticed and left alone. Raises
        PaperdeskError."""
        done = await run_daily(self._by_clock(), publish=publish, through=lambda model: Gated(model, gate))
        if isinstance(done, Finished):
            text = f"{done.session} is decided already; the next cycle follows its next session"
            publish(Noticed(done.run, self.clock.now(), "info", text))

    async def watch(self, publish: Publish, on_message: Callable[[FeedMessage], None], take_turn: TakeTurn) -> None:
        """Run cycles when they are due, each in its turn, and follow the feed, until it is cancelled. Raises
        PaperdeskError for what only a person can mend."""

        async def turn(work: Callable[[Through], Awaitable[None]]) -> None:
            await take_turn(lambda gate: work(lambda model: Gated(model, gate)))

        await DeskWatch(self._services, publish, on_message, turn).run()

    async def submit(self, publish: Publish) -> None:
        """Send the orders that the journal has as approved, and end those that are vetoed or too late. Raises
        PaperdeskError, TryAgainLater where a run is at work."""
        await submit_approved(self._by_clock(), publish)

    def _by_clock(self) -> Services:
        """The services by the desk's clock."""
        return replace(self._services, clock=self.clock)
