"""The market of a desk's run: its data, the symbols that are left out, and the venue that takes its orders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal

from engine.account.broker_venue import BrokerVenue
from engine.account.claim import claim_account
from engine.app.desk.context import DeskAccount, DeskContext, check_calendar, check_one_currency, refuse_bound
from engine.app.desk.price_check import off_prices
from engine.app.desk.refresh import refresh
from engine.app.desk.settings import desk_spec
from engine.app.research.market_data import held_symbols, load_desk
from engine.app.research.run_spec import with_costs
from engine.domain.execution import ExecutionRules
from engine.domain.market import Symbol
from engine.execution.frozen_symbols import FrozenSymbol, freeze, frozen_error, frozen_when_closed, late_actions
from engine.execution.venue import Venue
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.market.as_of import Market
from engine.market.price_faults import PriceFault
from engine.market.trading_hours import decision_time
from engine.messages.events import Noticed, Publish
from engine.session.recorder import DeskRecorder
from engine.session.simulated_venue import DeskVenue
from engine.settings import places
from engine.simulation.simulated_broker import Actions


async def load_market(context: DeskContext, run: str, warn: Publish) -> tuple[Market, tuple[PriceFault, ...]]:
    """Everything that is known of the symbols that the desk decides on or holds, brought up to date where its broker
    brings data and held against the broker's closes, and the faults of what did not come. Raises as the
    runs of run_kinds do."""
    services, config = context.services, context.services.config
    held = held_symbols(context.journal.reader)
    if context.journal.reader is not None:
        check_one_currency(services, context.journal.reader, held)
    late: tuple[PriceFault, ...] = ()
    if context.account is not None:
        await check_calendar(context.account.broker, context.calendar, context.session)
        if config.data.refresh and services.broker is not None and services.broker.registration.brings_data:
            late = await refresh(services, (*services.symbols, *held), context.session, context.clock, warn, run=run)
    market = await load_desk(services, context.session, held, [one.symbol for one in late])
    if context.account is None:
        return market, late
    faulty = {one.symbol for one in (*late, *market.faults) if one.session <= context.session}
    off = await off_prices(
        context, market, faulty, lambda text: warn(Noticed(run, context.clock.now(), "warning", text))
    )
    return replace(market, faults=(*market.faults, *off)), late


def refuse_frozen(context: DeskContext, faults: Iterable[PriceFault]) -> None:
    """Raises MalformedData where the data of the one symbol that is to be decided contradicts itself, or did not come:
    nothing is written, so that it can be decided once that is mended."""
    whys = {one.symbol: one.text for one in faults if one.symbol == context.only and one.session <= context.session}
    if whys:
        raise frozen_error(whys)


def desk_market(
    context: DeskContext, run: str, market: Market, late: Sequence[PriceFault], warn: Publish
) -> DeskMarket:
    """The market of a run without the symbols whose data contradicts itself, or did not come, each of which is warned
    of and written down."""
    journal, reader = context.journal.writer, context.journal.reader
    assert reader is not None  # the writer has created the journal
    frozen = freeze(journal, reader, run, context.session, (*late, *market.faults))
    for one in frozen:
        warn(Noticed(run, context.clock.now(), "warning", one.why if one.halted else f"frozen: {one.why}"))
    left = _without(market, frozen, context)
    return DeskMarket(context=context, run=run, market=left, frozen=frozen, journal=journal, reader=reader)


def _without(market: Market, frozen: Sequence[FrozenSymbol], context: DeskContext) -> Market:
    """The market in which frozen symbols have ended; one that was not traded has its bar, over which its orders wait.
    At a broker, where a split may have reached the position, the lower one of the last close and the one from before
    counts: an order of the others must not rest on money that is not there."""
    ends: dict[Symbol, date] = {}
    for one in frozen:
        history = market.histories.get(one.symbol)
        if history is None or (one.halted and history.index(context.session) is not None):
            continue
        first = next((fault.session for fault in market.faults if fault.symbol == one.symbol), context.session)
        end = one.since or first - timedelta(days=1)
        rows, last = history.rows_through(end), history.rows_through(context.session)
        fallen = context.account is not None and rows > 0 and history.close[last - 1] < history.close[rows - 1]
        ends[one.symbol] = context.session if not rows or fallen else end
    return market.ended(ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskMarket:
    """The market of one run.

    context: the desk and the session.
    run: id of the run.
    market: data of the symbols that are decided or held.
    frozen: the symbols among them that are left out.
    journal, reader: the desk's journal, to write and to read.
    """

    context: DeskContext
    run: str
    market: Market
    frozen: tuple[FrozenSymbol, ...]
    journal: JournalWriter
    reader: JournalReader

    def recorder(self, bars: int) -> DeskRecorder:
        """The recorder of the run; of the market it keeps the last `bars` bars of a symbol."""
        context = self.context
        return DeskRecorder(
            self.journal,
            self.run,
            context.desk,
            context.clock,
            reader=self.reader,
            market=self.market,
            bars=bars,
        )

    def venue(self, recorder: DeskRecorder) -> Venue:
        """The account at the broker, or the simulated market."""
        context, market = self.context, self.market
        if context.account is not None:
            return self._broker_venue(context.account)
        refuse_bound(self.reader, context.desk)
        rules, cash = self.rules()
        return DeskVenue(
            rules,
            market.histories,
            self._due_actions(),
            calendar=context.calendar,
            recorder=recorder,
            reader=self.reader,
            clock=context.clock,
            cash=cash,
        )

    def _due_actions(self) -> Actions:
        """Corporate actions, with those that came due while a symbol was frozen that no longer is."""
        left_out, points = {one.symbol for one in self.frozen}, self.reader.equity()
        if not points:
            return self.market.actions
        closed = points[-1].session
        # What was not traded went through its actions on their days.
        before = [one for one in frozen_when_closed(self.reader, closed) if not one.halted]
        return late_actions(self.market.actions, [one for one in before if one.symbol not in left_out], closed)

    def rules(self) -> tuple[ExecutionRules, Decimal]:
        """The rules of the simulated market as configured, and the cash that a desk begins with."""
        return with_costs(desk_spec(self.context), self.context.services.config)

    def _broker_venue(self, account: DeskAccount) -> BrokerVenue:
        context, market, desk = self.context, self.market, self.context.desk
        return BrokerVenue(
            account.broker,
            context.reconciler(account),
            context.booking(account, self.run, market),
            journal=self.journal,
            reader=self.reader,
            prices=market.at(decision_time(context.calendar, context.session)).close,
            claim=lambda identity: claim_account(places.account_file(identity), desk, identity),
            desk=desk,
            currency=context.services.config.exchanges.of_portfolio(context.services.symbols).currency,
            patience=timedelta(hours=context.services.config.broker.late_entry_hours),
        )
