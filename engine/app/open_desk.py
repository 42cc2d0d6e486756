"""The configured desk for an app: its data, journal and runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from engine.app.desk import demo_history
from engine.app.desk.booking_queue import book_fills
from engine.app.desk.certificate import RehearsalCheck
from engine.app.desk.context import Finished, desk_clock, desk_context
from engine.app.desk.demo_history import DemoTime, is_demo
from engine.app.desk.notification import (
    NO_CLOCK_TO_MOVE,
    CycleRequest,
    CycleRunner,
    move_broker_on,
    run_here,
    unless_changed,
)
from engine.app.desk.run import submit_approved
from engine.app.desk.watch import DeskWatch, TakeTurn, desk_schedule
from engine.app.memory import select_memory
from engine.app.models.models import Gate, agent_models, build_models
from engine.app.orders.approvals import limited_edit
from engine.app.orders.own_orders import cancel_orders, order_ticket, place_order
from engine.app.records.desk_journal import DeskJournal
from engine.app.research.market_data import bring_closes, bring_prices, held_symbols, known_closes, load_desk, load_run
from engine.app.research.run_spec import cost_settings, default_spec, new_run_id, with_costs
from engine.app.runs import Wanted, export_run, named_runs, stored_runs
from engine.app.upkeep.watchlists import SymbolIndex
from engine.clock import SyncedClock
from engine.domain.chart import ChartSpec
from engine.domain.live import FeedMessage, MinuteBar
from engine.domain.market import Symbol
from engine.domain.model_call import ModelKind
from engine.domain.order import OrderSize
from engine.domain.run import RunSpec
from engine.errors import NO_DESK_SYMBOLS, CredentialsRefused, MissingData, PaperdeskError, TryAgainLater, UsageError
from engine.journal.database import refuse_unreadable
from engine.market.as_of import Market, MarketAsOf, last_opened
from engine.messages.commands import (
    Edit,
    MemoryChange,
    PlaceOrder,
)
from engine.messages.events import Noticed, Publish
from engine.ports import Clock, LiveFeed
from engine.preset import Preset, load_preset
from engine.reports.documents.memory import MemoryFilter, lifeline_document, list_document
from engine.reports.documents.order_effect import Ticket
from engine.reports.documents.records import Records
from engine.reports.documents.row_json import Row
from engine.reports.documents.runs import StoredKind
from engine.reports.documents.set_up import Finding
from engine.reports.settings_text import costs_text, short_costs
from engine.services import Services
from engine.settings import places

BRINGS_AGAIN = timedelta(minutes=1)
"""Time after which the prices of a watched symbol are asked for again where a close is missing."""


class OpenDesk:
    """The configured desk for an app.

    desk: its name.
    symbols: in the order in which they are decided.
    label: the label of the model that decides, such as `rules, not a language model`.
    changed: says what has changed in the configuration since the desk was opened, so that no cycle runs; empty for
        nothing.
    knows_prices: True where the price of every model that its agents ask is known.
    lacks_key: says which key its models lack, so that no cycle can run; empty for none.
    steps: the questions that its agents are asked about a symbol, in order, by their names in events.
    journal: the journal's file, which is not there before the first run.
    clock: this machine's, the broker's, or a demo desk's own.
    is_demo: True on the simulated market with the demo market's data, where time goes on by sessions as it is asked to.
    follows_broker: True where the clock is a local broker's, which may be moved at any time.
    moves_on: True where `next_session` does something.
    real_time: True where orders go to a broker, whose market is open or not.
    feed: live prices and news; None where there are none.
    books_fills: True where what the account does is booked as soon as the feed says so.
    watches: True where its cycles run on a schedule while it is open.
    schedule: that schedule; None where it waits for a key.
    usd_per_day: the limit of what models may cost in a day (UTC).
    mode: auto, ask or observe.
    default_backtest: the backtest that the form proposes.
    default_costs: fills, slippage and commission of that backtest, in a few words.
    costs: those of the desk's own orders.
    rehearsal: says why the desk may not trade its account before a rehearsal.
    session_minutes: bars of a minute, where the broker has them.
    symbol_index: every symbol that the desk knows of.
    benchmark: the index fund that the account is compared with; None where the data has none, and before `market`.
    undo_seconds: for so long an answer on an order can be undone before it is carried out.
    notify: True where orders that wait are announced outside of the screen.
    """

    def __init__(
        self,
        services: Services,
        *,
        read_only: bool = False,
        run_cycle: CycleRunner = run_here,
        changed: Callable[[], str] = lambda: "",
    ) -> None:
        """Fetch the prices of a new account; a demo desk that was never opened begins with its history. With
        `read_only` no cycle runs on a schedule; `run_cycle` runs every cycle. Raises UsageError or ConfigError for a
        desk that could not run with any key, MissingData without prices, and as `refuse_unreadable` and MarketFetch
        do."""
        if not services.symbols:
            raise UsageError(NO_DESK_SYMBOLS)
        config, preset = services.config, load_preset(services.config.desk.preset)
        self._services, self._read_only, self.changed = services, read_only, changed
        # A scheduled cycle is tried again: the configuration may be put back, or half written.
        self._run_cycle = unless_changed(run_cycle, changed, TryAgainLater)
        self.desk, self.symbols, self.mode = services.desk, services.symbols, config.broker.mode
        self.label, self.lacks_key = _label_of_models(services, preset)
        asked = [one for one in agent_models(services, services.models.prices()) if one.active]
        self.knows_prices = all(one.price is not None or one.spec.kind is ModelKind.OFFLINE for one in asked)
        self.steps = preset.questions
        self.journal = places.desk_journal(services.desk)
        refuse_unreadable(self.journal)
        demo_history.begin(services)
        self.is_demo = is_demo(services)
        self._demo = DemoTime(services) if self.is_demo else None
        self.clock: Clock = self._demo or desk_clock(services)
        service = services.broker
        self.follows_broker = service is not None and services.goes_by_broker and service.settings.is_local
        self.moves_on = self.is_demo or self.follows_broker
        self._broker_moves_on = False
        """True until a local broker's clock is moved on for the next cycle."""
        self.feed: LiveFeed | None = None
        with suppress(CredentialsRefused):  # a desk can be shown without keys; a run that trades refuses
            self.feed = None if services.broker is None else services.broker.open_feed(self.clock)
        self.real_time = service is not None
        self.books_fills = service is not None and not read_only
        self.watches = config.watch.in_app and not read_only
        self.schedule = desk_schedule(services) if self.watches else None
        self.usd_per_day = config.budget.usd_per_day
        bring_prices(services)
        self.default_backtest = default_spec(services)
        self.default_costs = short_costs(cost_settings(services, self.default_backtest))
        self.costs = self.default_costs if services.broker is None else short_costs({"fills": None})
        self.rehearsal = RehearsalCheck(services)
        self.session_minutes = SessionMinutes(services)
        self.symbol_index = SymbolIndex(services)
        self.benchmark: Symbol | None = None
        self._loaded: tuple[tuple[date, tuple[Symbol, ...]], Market] | None = None
        """The prices that were read last, with the session and the symbols that are held."""
        self._brought: dict[Symbol, datetime] = {}
        """When prices of symbols that the desk does not trade were asked for last."""
        self._bringing = threading.Lock()
        self.undo_seconds, self.notify = config.app.undo_seconds, config.app.notify

    def costs_of(self, spec: RunSpec) -> str:
        """Fills, costs and cash that a backtest would have. Raises UsageError for a convention or a preset that there
        is not."""
        return costs_text(cost_settings(self._services, spec))

    def cash_of(self, spec: RunSpec) -> Decimal:
        """The money that a backtest would begin with. Raises UsageError for a convention that there is not."""
        return with_costs(spec, self._services.config)[1]

    def findings(self) -> tuple[Finding, ...]:
        """The checks of `paperdesk doctor` that ask no service; takes seconds."""
        from engine.app.upkeep.doctor import desk_findings

        return tuple(desk_findings(self._by_clock(), connect=False))

    async def sync(self) -> None:
        """Set the desk's clock by the broker's where that is the desk's time: a local broker's is moved by hand."""
        service = self._services.broker
        theirs = await asyncio.to_thread(service.time) if service is not None and self.follows_broker else None
        if theirs is not None and isinstance(self.clock, SyncedClock):
            self.clock.sync(theirs)

    async def market(self) -> Market:
        """The prices of the desk's symbols through the last completed session; read anew at every call, but for those
        of the demo market, which are the same for a session."""
        self.benchmark = await self.symbol_index.benchmark()
        with DeskJournal(self.desk) as journal:
            if self._demo is not None:
                self._demo.follow(journal.reader)
            context = desk_context(self._by_clock(), journal)
            held = held_symbols(journal.reader)
        wanted = context.session, tuple(held)
        if self._loaded is None or self._loaded[0] != wanted or not self.is_demo:
            self._loaded = wanted, await load_desk(self._services, context.session, held, prices_only=True)
        return self._loaded[1]

    async def bring_closes(self) -> int | None:
        """Fetch the closes of completed sessions that the prices which were read lack; return how many bars came, None
        where none is missing. Raises as MarketFetch does."""
        if self._loaded is None or self._read_only:
            return None
        market = self._loaded[1]
        return await bring_closes(self._services, market, market.histories, self.clock.now())

    def bring_watched(self, symbols: Sequence[Symbol], now: datetime) -> bool:
        """Fetch the prices of symbols that the desk does not trade up to `now` (UTC), where they lack a close, each at
        most once a minute; True where any were asked for lately. Raises as MarketFetch does; the others are fetched all
        the same."""
        if self._read_only:
            return False
        fault = None
        with self._bringing:  # who comes meanwhile waits for what is fetched
            market = self.symbol_index.market(symbols, now)
            for symbol in [one for one in symbols if not self._brought_lately(one, now)]:
                try:
                    if asyncio.run(bring_closes(self._services, market, (symbol,), now)) is not None:
                        self._brought[symbol] = now
                except (PaperdeskError, OSError) as error:
                    self._brought[symbol], fault = now, error
        if fault is not None:
            raise fault
        return any(self._brought_lately(one, now) for one in symbols)

    def _brought_lately(self, symbol: Symbol, now: datetime) -> bool:
        return symbol in self._brought and now - self._brought[symbol] < BRINGS_AGAIN

    def memories(self, run: str | None, session: date | None, *, undecided: bool = False) -> Row:
        """The memories of the desk, or of a backtest, alive at a session's end (None: now), or while it was decided.
        Raises MissingData where nothing is remembered, and what opening a memory raises."""
        selected = select_memory(self._services, run)
        if selected.missing:
            raise MissingData(selected.missing)
        chosen, today = MemoryFilter(session=session, undecided=undecided), self.clock.now().date()
        with selected.stored.opened() as memory:
            return list_document(selected.head, memory, selected.stored.calendar, chosen, today=today)

    def lifeline(self, run: str | None, memory_id: str) -> Row:
        """Every change of a memory. Raises as `memories` does."""
        selected = select_memory(self._services, run)
        with selected.stored.opened() as memory:
            return lifeline_document(selected.head, memory, selected.stored.calendar, memory_id)

    def export(self, run: str, folder: Path) -> Sequence[str]:
        """Write a backtest as a new folder; return the names of its files. Raises as `export_run` does."""
        return export_run(self._services, named_runs(stored_runs(Wanted(kind=StoredKind.BACKTEST)), [run])[0], folder)

    def change_memory(self, memory_id: str, change: MemoryChange, reason: str) -> Row:
        """Pin a memory of the desk, forget it, or take that back. Raises as the use case does."""
        from engine.app.orders.memory_control import change_memory

        return change_memory(self._services, memory_id, change, reason=reason, now=self.clock.now())

    def paint(self, chart: ChartSpec) -> bytes:
        """A chart as the PNG that a model is shown; takes a second."""
        return asyncio.run(self._services.open_painter().paint(chart))

    def backtest_id(self) -> str:
        """An id for a backtest that begins now, by this machine's clock also where the desk has one of its own."""
        return new_run_id("backtest", self._services.clock.now())

    async def run_market(self, spec: RunSpec) -> Market:
        """All data of a backtest's window. Raises what the source raises."""
        return await load_run(self._services, spec)

    def closes(self, records: Records, symbols: Sequence[Symbol]) -> MarketAsOf | None:
        """The prices of symbols up to the last close of some records, as `paperdesk why` counts them."""
        return known_closes(self._services, records, symbols)

    def compare_books(self, records: Records) -> Row:
        """The books of its owners beside each other. Raises as `compare_books` does."""
        from engine.app.model_comparison import compare_books  # with what plays studies: few desks keep books

        return compare_books(self._services, records)

    def next_session(self) -> str:
        """Have the next cycle decide what is due, else go on to the next session of a demo desk or of a local broker's
        first; return the reason why that cannot be, or an empty text. Raises what JournalReader raises."""
        if self._demo is not None:
            with DeskJournal(self.desk) as journal:
                self._demo.go_on(journal.reader)
        self._broker_moves_on = self.follows_broker
        return "" if self.moves_on else NO_CLOCK_TO_MOVE

    async def run_cycle(self, publish: Publish, gate: Gate, only: Symbol | None = None) -> None:
        """Run the desk for the last completed session, with `only` for one symbol alone, and publish everything from
        RunStarted to RunFinished; `gate` is awaited before every question to a model. What is already decided is
        noticed and left alone. Raises PaperdeskError."""
        if self._broker_moves_on:
            self._broker_moves_on = False
            await asyncio.to_thread(move_broker_on, self._services)
            await self.sync()
        request = CycleRequest(only=only, session=None if self._demo is None else self._demo.session)
        done = await self._run_cycle(self._by_clock(), request, publish, gate)
        if isinstance(done, Finished):
            what = str(done.session) if only is None else f"{only} on the close of {done.session}"
            follows = "n runs the next session" if self.moves_on else "the next cycle follows its next session"
            publish(Noticed(done.run, self.clock.now(), "info", f"{what} is already decided; {follows}"))

    async def watch(self, publish: Publish, on_message: Callable[[FeedMessage], None], take_turn: TakeTurn) -> None:
        """Run cycles when they are due, each in its turn, and follow the feed, until it is cancelled. Raises
        PaperdeskError for what only a person can mend."""
        await DeskWatch(self._services, publish, on_message, take_turn, self._run_cycle).run()

    def edit(self, order_id: str, size: OrderSize) -> Edit:
        """The edit that gives an open order another size. Raises as `limited_edit` does."""
        return limited_edit(self._services, order_id, size)

    def ticket(self, wanted: PlaceOrder, live: Decimal | None) -> Ticket:
        """An order of the operator's own before it is given, at a live price where there is one. Raises as
        `order_ticket` does."""
        return order_ticket(self._by_clock(), wanted, live)

    async def place(self, wanted: PlaceOrder, publish: Publish) -> Ticket:
        """Place an order of the operator's own. Raises as `place_order` does."""
        return await place_order(self._by_clock(), wanted, publish)

    async def cancel(self, order_id: str, publish: Publish) -> str:
        """Cancel an order that was sent; return in words what it came to. Raises as `cancel_orders` does, UsageError
        where it is not canceled, and the error that kept that from being booked, after a notice of what is known."""
        canceled = await cancel_orders(self._by_clock(), [order_id], publish)
        (done,) = canceled.orders
        text = f"{done.order.side} {done.order.symbol}: {done.state}"
        if canceled.error is not None:
            publish(Noticed("", self.clock.now(), "warning", text))
            raise canceled.error
        if done.refused:
            raise UsageError(text)
        return text

    async def submit(self, publish: Publish) -> None:
        """Send the orders that the journal has as approved, and end those that are vetoed or too late; nothing where
        the desk is only read. Raises PaperdeskError, TryAgainLater where a run is at work."""
        if not self._read_only:
            await submit_approved(self._by_clock(), publish)

    async def book(self, publish: Publish) -> bool:
        """Book what the account has done with the desk's orders. Raises as `book_fills` does."""
        return await book_fills(self._by_clock(), publish)

    def _by_clock(self) -> Services:
        """The services by the desk's clock."""
        return replace(self._services, clock=self.clock)


def _label_of_models(services: Services, preset: Preset) -> tuple[str, str]:
    """The label of a desk's models, and the error of a key that one of them lacks; empty for none."""
    try:
        return build_models(services, preset).label, ""
    except CredentialsRefused as error:
        return build_models(services, preset, keys_on_demand=True).label, str(error)


NONE = "no bars within the day here: they need live data, of a paper account or the sandbox"


class SessionMinutes:
    """Bars of a minute, requested once a minute at most."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._kept: dict[Symbol, tuple[datetime, Sequence[MinuteBar]]] = {}

    @property
    def available(self) -> bool:
        """True for a desk at a broker that brings data."""
        return self._services.broker is not None and self._services.broker.registration.brings_data

    def bars(self, symbol: Symbol, now: datetime) -> Sequence[MinuteBar]:
        """The bars from the open of the session up to `now`, by the broker's time, as it had them at the beginning of
        this minute; takes a request. Raises MissingData for a desk without live data, and before the first trade of
        the session, and what the service raises."""
        if not self.available:
            raise MissingData(NONE)
        minute = now.replace(second=0, microsecond=0)
        kept = self._kept.get(symbol)
        if kept is None or kept[0] != minute:
            calendar = self._services.calendar_for(symbol)
            begins = calendar.opens_at(last_opened(calendar, now))
            kept = self._kept[symbol] = minute, asyncio.run(self._requested(symbol, begins, now))
        if not kept[1]:
            raise MissingData("no trade in this session yet")
        return kept[1]

    async def _requested(self, symbol: Symbol, first: datetime, last: datetime) -> Sequence[MinuteBar]:
        source = None if self._services.broker is None else self._services.broker.open_data()
        assert source is not None
        async with aclosing(source) as service:
            return await service.minutes(symbol, first, last)
