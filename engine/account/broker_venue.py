"""A desk's account at a broker: reconciled with the journal before anything else, then traded in.

The claim of a desk on an account at a broker: an account serves one desk, which a file of its own names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

from engine.account.activity import less_fees
from engine.account.booking import Booking
from engine.account.reconciliation import Reconciler, ReconciliationReport, journal_snapshot
from engine.domain.brokerage import Asset, BrokerAccount, BrokerOrder, Difference
from engine.domain.market import Symbol, is_crypto
from engine.domain.order import EXACT, SHARE_STEP, ZERO, Order, OrderUpdate, Portfolio, Side
from engine.domain.run import EquityPoint, carried_forward
from engine.errors import ConfigError, CredentialsRefused
from engine.execution.limits import ONE, whole_share_cost
from engine.execution.venue import BuyingPower, OrderTerms, SettledSession, Settlement
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.ports import Broker
from engine.settings import places

LEAST_CRYPTO_ORDER = Decimal(10)
"""The smallest amount of an order in crypto."""


@dataclass(eq=False)
class BrokerVenue:
    """A desk's market behind a Broker (Venue).

    broker: the account, its orders and its exchange
    reconciler: compares it with the journal
    booking: writes its reports
    journal, reader: the desk's journal, to write and to read
    prices: the last closes that the desk decides on, in the quote currency
    claim: receives the account's id before anything rests on it; raises ConfigError where another desk has it
    desk: name of the desk
    currency: of the desk's symbols
    patience: for how long a difference in cash waits for its entry in the account's history
    """

    real_time = True

    broker: Broker
    reconciler: Reconciler
    booking: Booking
    _: KW_ONLY
    journal: JournalWriter
    reader: JournalReader
    prices: Callable[[Symbol], Decimal]
    claim: Callable[[str], None]
    desk: str
    patience: timedelta
    currency: str = "USD"
    books: EquityPoint | None = field(init=False)
    buying_power: BuyingPower = field(init=False)

    def __post_init__(self) -> None:
        self.books = journal_snapshot(self.reader).books
        self.buying_power = BuyingPower(ZERO)
        self._assets: dict[Symbol, Asset | None] = {}
        self._shorting = True
        self._fees_taken: tuple[Difference, ...] = ()

    @property
    def portfolio(self) -> Portfolio:
        """The books with everything later, less fees that are taken and not entered yet, but for shares that a split
        has changed since: decisions rest on the prices of the books' session."""
        snapshot = journal_snapshot(self.reader)
        if snapshot.books is None:
            return Portfolio(ZERO)
        flows = [replace(flow, quantity=ZERO) for flow in snapshot.flows]
        later = carried_forward(snapshot.books.portfolio, snapshot.fills, flows, snapshot.adoptions)
        return less_fees(later, self._fees_taken)

    async def settle(self, session: date) -> Settlement:
        """Reconcile the account with the journal and close the books. Raises BooksDisagree where they do not agree,
        EntryAwaited where an entry of the account's history may still explain it, CredentialsRefused for an account
        that may not trade, ConfigError for another desk's or another account."""
        report = await self.reconciler.reconcile()
        if report.account.blocked:
            raise CredentialsRefused(
                f"the broker's account {report.account.id} cannot trade: {report.account.blocked}; ask the broker"
            )
        if report.account.currency != self.currency:
            raise ConfigError(
                f"the broker's account is in {report.account.currency}, and the desk trades in {self.currency}: use an "
                "account in that currency, or other symbols"
            )
        self.claim(report.account.id)
        self.booking.orders(report, session)
        self.booking.require_agreement(report, self.desk, self.patience)
        self._fees_taken = report.expected
        # After the differences: a stranger's order may have no price.
        self._update_buying_power(report.account, report.open_orders)
        played = self._book(report, session)
        self.booking.close(played)
        self.books = played[-1].after if played else journal_snapshot(self.reader).books
        return Settlement.of(played, report.account.remarks)

    async def whole_shares(self, symbols: Iterable[Symbol]) -> frozenset[Symbol]:
        """The symbols that the broker does not split into parts."""
        assets = [(symbol, await self._asset(symbol)) for symbol in symbols]
        return frozenset(symbol for symbol, asset in assets if asset is not None and not asset.fractionable)

    async def terms(self, symbols: Iterable[Symbol]) -> Mapping[Symbol, OrderTerms]:
        """The orders that the broker takes of symbols, by what it says of each and of the account."""
        assets = [(symbol, await self._asset(symbol)) for symbol in symbols]
        return {symbol: self._terms(asset) for symbol, asset in assets if asset is not None}

    def _terms(self, asset: Asset) -> OrderTerms:
        coin = is_crypto(asset.symbol)
        no_short = ""
        if coin:
            no_short = "coins are never sold short"
        elif not self._shorting:
            no_short = "the account may not sell short"
        elif not asset.shortable or not asset.easy_to_borrow:
            why = "it is hard to borrow" if asset.shortable else "it is not shortable"
            no_short = f"the broker does not sell {asset.symbol} short: {why}"
        return OrderTerms(
            step=max(SHARE_STEP if asset.fractionable else ONE, asset.increment or ZERO),
            least_quantity=asset.least or ZERO,
            least_amount=LEAST_CRYPTO_ORDER if coin else ZERO,
            no_short=no_short,
        )

    async def restriction(self, symbol: Symbol) -> str:
        """The reason why nobody can trade a symbol at the broker; empty where it is traded."""
        asset = await self._asset(symbol)
        if asset is None:
            return f"the broker does not list {symbol}"
        status = "" if asset.status.lower() in ("", "active") else f" (it is {asset.status})"
        return "" if asset.tradable else f"the broker lets nobody trade {symbol}{status}"

    async def refresh(self) -> BuyingPower:
        """The account's buying power at this moment."""
        self._update_buying_power(await self.broker.account(), await self.broker.open_orders())
        return self.buying_power

    async def place(self, order: Order) -> OrderUpdate:
        """Submit an order, once."""
        return await self.broker.place(order)

    async def lookup(self, order_id: str) -> OrderUpdate | None:
        """The state of an order at the broker."""
        theirs = await self.broker.lookup(order_id)
        if theirs is None:
            return None
        self.journal.broker_order(order_id, theirs.broker_id)
        return OrderUpdate(order_id, theirs.state, theirs.filled_quantity, theirs.detail)

    def _book(self, report: ReconciliationReport, session: date) -> Sequence[SettledSession]:
        if report.journal.books is None:
            self.booking.opened(report, session)
            return ()
        self.booking.book(report)
        return self.booking.due(report.journal.books, session)

    async def _asset(self, symbol: Symbol) -> Asset | None:
        if symbol not in self._assets:
            self._assets[symbol] = await self.broker.asset(symbol)
        return self._assets[symbol]

    def _update_buying_power(self, account: BrokerAccount, open_orders: Iterable[BrokerOrder]) -> None:
        reserved, queued = ZERO, dict[Symbol, Decimal]()
        for order in open_orders:
            if order.side is Side.BUY:
                reserved += self._may_take(order)
            elif order.quantity is not None:
                queued[order.symbol] = queued.get(order.symbol, ZERO) + order.quantity - order.filled_quantity
        held = {symbol: position.quantity for symbol, position in account.positions.items()}
        self._shorting = account.shorting
        self.buying_power = BuyingPower(
            account.cash, reserved, held, queued, shares=account.buying_power, crypto=account.crypto_power
        )

    def _may_take(self, order: BrokerOrder) -> Decimal:
        """Cash that the rest of an open buy may still take."""
        if order.notional is not None:
            spent = EXACT.multiply(order.filled_quantity, order.filled_average_price or ZERO)
            return max(order.notional - spent, ZERO)
        return whole_share_cost((order.quantity or ZERO) - order.filled_quantity, self.prices(order.symbol))


def claim_account(path: Path, desk: str, account: str) -> None:
    """Note that a desk trades in an account, for good. Raises ConfigError where another desk does: each would take
    the other's orders for a stranger's."""
    try:
        places.make_folder(path.parent)
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(desk)
            return
        except FileExistsError:
            holder = path.read_text(encoding="utf-8").strip()
        if not holder:  # whoever made it was killed before it wrote its name
            path.write_text(desk, encoding="utf-8")
            return
    except OSError as error:
        raise places.unusable(path, error) from error
    if holder != desk:
        raise ConfigError(
            f"the account {account} already serves the desk {holder}, and {desk} needs its own: use other keys, "
            f"or delete {path} if {holder} is gone permanently"
        )
