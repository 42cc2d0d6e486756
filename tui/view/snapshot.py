"""Everything that screens show at one moment, as a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.reports.documents.control_state import ControlState
from tui.view.state import DeskState

if TYPE_CHECKING:
    from engine.messages.commands import PlaceOrder
    from tui.view.backtest_run import BacktestState
    from tui.view.desk_port import OpenedDesk, Source
    from tui.view.live_view import LiveView
    from tui.view.market_view import MarketView

PAST = "the past is read-only: \\ returns to the present"
"""The answer to a command while a recorded history is shown."""


OPENING = "opening the desk"


class Retry(StrEnum):
    """A way to try again what failed."""

    OPEN = "open the desk"
    REOPEN = "restart the app to reload configuration and keys"
    RUN_CYCLE = "run the cycle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that screens show, at one moment.

    desk: the latest run, the books and the log.
    controls: halt, pause and open orders.
    market: None until the desk is open.
    live: the feed; None where there is none.
    opened: the desk's settings and its port for questions; None until it is open.
    now: the moment that is shown, UTC; None until the desk is open.
    place: the place in a recorded history that is shown; None for the present.
    busy: True while a cycle is asked for or under way, also where it waits at a pause.
    starting: True from the request for a cycle until its run begins.
    trouble: an error to show; empty for none.
    retry: the way to try again what failed; None where there is none.
    own_orders: orders of the operator's own that can still be taken back.
    cycle_seconds: since the running cycle was asked for, or began; None without one.
    backtests: those of this session of the app, oldest first.
    sources: the desk's journal, once it is open, and those of finished backtests; in a recorded history that
        history alone, up to the place.
    note: a few words about the present beside a recorded history; empty for nothing.
    """

    desk: DeskState = field(default_factory=DeskState)
    controls: ControlState = field(default_factory=ControlState)
    market: MarketView | None = None
    live: LiveView | None = None
    opened: OpenedDesk | None = None
    now: datetime | None = None
    place: Place | None = None
    busy: bool = False
    starting: bool = False
    trouble: str = ""
    retry: Retry | None = None
    own_orders: tuple[PlaceOrder, ...] = ()
    cycle_seconds: float | None = None
    backtests: tuple[BacktestState, ...] = ()
    sources: tuple[Source, ...] = ()
    note: str = ""

    @property
    def unopened(self) -> str:
        """The text of a pane that has nothing to show before the desk is open; empty once it is."""
        if self.opened is not None:
            return ""
        return "the desk is not open" if self.trouble else OPENING

    @property
    def newer_close(self) -> date | None:
        """The session of the latest price where the books are valued at the close of an earlier one, else None."""
        books, quotes = self.desk.books, () if self.market is None else self.market.quotes
        if books is None or books.live is not None or books.since is not None:
            return None
        latest = max((one.session for one in quotes if one.session is not None), default=books.session)
        return latest if latest > books.session else None


def active_contexts(view: Snapshot) -> frozenset[str]:
    """The circumstances that keys depend on, as their table names them."""
    found = {"running": any(one.running for one in view.backtests)}
    if view.place is not None:
        found["past"] = True
    else:
        found["present"] = True
        found["orders"] = bool(view.controls.waiting)
        found["sent"] = bool(view.controls.sent)
        found["answered"] = bool(view.own_orders) or any(one.undoable for one in view.controls.orders)
        found["demo"] = view.opened is not None and view.opened.moves_on
    return frozenset(name for name, holds in found.items() if holds)


def first_cycle_hint(view: Snapshot) -> str:
    """The key that runs the first cycle; empty in the past, where none does."""
    if view.place is not None:
        return ""
    return f":\npress {'n' if 'demo' in active_contexts(view) else 'r'} to run the first cycle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in a recorded history.

    name: the history's.
    number: of the point, from 1.
    count: of all points.
    session: the session that is shown.
    text: the event of the point, in a few words.
    speed: the factor at which the history is being played; 0 while it stands.
    """

    name: str
    number: int
    count: int
    session: date | None
    text: str
    speed: int = 0
