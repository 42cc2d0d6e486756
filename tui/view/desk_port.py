"""The opened desk as screens know it: its settings as values, a port for what they ask of it, and the journals that
documents are read from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from datetime import datetime
    from decimal import Decimal

    from engine.domain.chart import ChartSpec
    from engine.domain.live import MinuteBar
    from engine.domain.market import KnownSymbol
    from engine.domain.run import RunSpec, TradingMode
    from engine.journal.point_in_time import Within
    from engine.messages.commands import PlaceOrder, ResizeOrder
    from engine.reports.documents.decisions import ClosesOf
    from engine.reports.documents.order_effect import Ticket
    from engine.reports.documents.records import Records
    from engine.reports.documents.runs import StoredKind, StoredRun
    from engine.reports.documents.set_up import Finding
    from engine.session.schedule import Schedule
    from tui.view.market_view import MarketView

T = TypeVar("T")
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """A journal to read documents from: the desk's, or with `run` a backtest's.

    version: grows whenever there may be something new.
    at: the event of a desk, or the session of a backtest or a point within it, up to which it is read; None for all of
        it.
    """

    name: str
    journal: Path
    run: str | None = None
    version: int = 0
    at: int | date | Within | None = None

    @property
    def decisions(self) -> int | None:
        """The number of decisions of its last session that it has, at a point within one; None for all of them."""
        return None if self.at is None or isinstance(self.at, int | date) else self.at.decisions

    def read(self, document: Callable[[Records], T]) -> T:
        """Return a document of the journal, which is closed again. Raises what JournalReader raises, MissingData for a
        point that the journal does not have."""
        from engine.reports.documents.records import records_at, records_in

        with records_in(self.journal, self.name, self.run) as records:
            if self.at is None:
                return document(records)
            with records_at(records, self.at) as earlier:
                return document(earlier)


class DeskPort(Protocol):
    """Questions of screens, which read files, ask services and take seconds: they are asked in a worker. The answers
    are values and documents; each raises a PaperdeskError where there is none."""

    async def read(self, source: Source, document: Callable[[Records, ClosesOf], T]) -> T:
        """A document of a journal, made of its records and of the closes that followed."""

    async def runs(self, kind: StoredKind) -> Sequence[StoredRun]:
        """The stored runs of a kind, the latest first; one that cannot be read says why."""

    async def run(self, run: str, *others: str) -> Document:
        """The document of a stored backtest or arena; with `others` that of their comparison with the first."""

    async def memory(
        self, run: str | None, session: date | None = None, *, undecided: bool = False, one: str = ""
    ) -> Document:
        """The memories of the desk, or of a backtest, alive at a session's end (None: now), or while it was decided;
        with the id of `one` every change of that."""

    async def checks(self) -> Sequence[Finding]:
        """The findings of `paperdesk doctor` that ask no service."""

    async def symbols(self) -> Sequence[KnownSymbol]:
        """Every symbol that the desk knows of."""

    async def prices(self, symbols: Sequence[str], now: datetime, *, fetch: bool = False) -> MarketView | None:
        """Quotes and charts, at a moment, of symbols that the desk does not trade; with `fetch` after a request for
        what they lack, None where nothing came."""

    async def minutes(self, symbol: str, now: datetime) -> Sequence[MinuteBar]:
        """The minutes of the session that is open, or was last, as far as the feed has come."""

    async def forecast(self, wanted: PlaceOrder | ResizeOrder) -> Ticket | None:
        """An order of the operator's own before it is given, at the price of the feed where that has one; None for an
        edit that the limits allow. Raises UsageError, with the reason, for what cannot be done."""

    async def paint(self, chart: ChartSpec) -> bytes:
        """A chart as the PNG that a model is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedDesk:
    """An opened desk.

    ask: answers questions, in a recorded history as of then.
    name, symbols: its name, and its symbols in the order in which they are decided.
    mode: auto, ask or observe.
    label: the label of the model that decides, such as `rules, not a language model`.
    knows_prices: True where the price of every model that its agents ask is known.
    usd_per_day: the limit of what models may cost in a day (UTC).
    costs: fills, slippage and commission of its own orders, in a few words.
    default_backtest, default_costs: the backtest that the form proposes, and its costs.
    schedule: of the cycles that an open app runs; None where it waits for a key.
    is_demo: True on the simulated market with the demo market's data.
    moves_on: True where it can be told to go on to its next session.
    undo_seconds: for so long an answer on an order can be undone before it is carried out.
    notify: True where orders that wait are announced outside of the screen.
    benchmark: the index fund that the account is compared with; None where the data has none.
    unrehearsed: the reason why it may not trade its account before a rehearsal; empty where it may.
    """

    ask: DeskPort
    name: str
    symbols: tuple[str, ...]
    mode: TradingMode
    label: str
    knows_prices: bool
    usd_per_day: Decimal
    costs: str
    default_backtest: RunSpec
    default_costs: str
    schedule: Schedule | None
    is_demo: bool
    moves_on: bool
    undo_seconds: float
    notify: bool
    benchmark: str | None
    unrehearsed: str
