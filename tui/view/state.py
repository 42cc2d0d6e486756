"""The Desk screen's content as a value, no screen in it; tui.view.desk_changes has its change by each event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.reports import amounts

if TYPE_CHECKING:
    from engine.domain.decision import Decision, Opinion
    from engine.domain.run import EquityPoint
    from engine.messages.events import AgentAnswered
    from tui.view.market_view import Quote

LOG_LINES = 400
OWNERS = "owners"
"""The name of the pane with the opinions of several owners and the decision on them, or a decision of each."""


class Progress(StrEnum):
    """The progress of a step of the cycle."""

    WAITING = "waiting"
    THINKING = "thinking"
    ANSWERED = "answered"
    ABSTAINED = "abstained"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pane:
    """One agent's answer about one symbol; `owner` is empty on a desk with one owner, `answer` None before its end."""

    step: str
    owner: str = ""
    progress: Progress = Progress.WAITING
    text: str = ""
    answer: AgentAnswered | None = None

    @property
    def name(self) -> str:
        """The step, after its owner where the desk has several."""
        return f"{self.owner}: {self.step}" if self.owner else self.step

    @property
    def over(self) -> bool:
        """True where nothing more will come."""
        return self.progress not in (Progress.WAITING, Progress.THINKING)


def action_text(made: Decision | Opinion) -> str:
    """Action and size: `BUY 7 %`, `HOLD`."""
    return f"{made.action} {amounts.size(made.size)} %" if made.size else made.action.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """The desk's books at a close, in the quote currency.

    session: the session of the close.
    point: value, cash, positions and prices, those of `live` where there are any.
    since: the latest session after it in which something was booked, as a trade; None where nothing was.
    before: the value a session before, at live prices or with what was booked `since` that at the close; None where
        not known.
    peak: the highest value so far, None where not known. Deposits and withdrawals since count as if they had been made
        before both.
    live: the session of the live prices that the books are valued at; None at the close.
    """

    session: date
    point: EquityPoint
    before: Decimal | None = None
    peak: Decimal | None = None
    live: date | None = None
    since: date | None = None

    @property
    def as_of(self) -> str:
        """The moment of the figures, in a few words."""
        if self.live is not None:
            return "live"
        return f"close of {self.session}" if self.since is None else f"as booked on {self.since}"

    def at_quotes(self, quotes: Sequence[Quote], splits: Mapping[str, Sequence[date]]) -> Books:
        """The books at live prices, where a quote is of a session after the close that they were valued at, and in the
        same shares: after a split the next run counts them anew."""
        positions, prices = self.point.portfolio.positions, self.point.prices
        later = {
            one.symbol: one.last
            for one in quotes
            if one.symbol in positions
            and one.symbol in prices
            and one.last is not None
            and one.session is not None
            and one.session > self.session
            and not any(self.session < day <= one.session for day in splits.get(one.symbol, ()))
        }
        if not later:
            return self
        earned = (positions[symbol].quantity * (price - prices[symbol]) for symbol, price in later.items())
        value = self.point.value + sum(earned, Decimal(0))
        live = max(one.session for one in quotes if one.session is not None)
        peak = None if self.peak is None else max(self.peak, value)
        before = self.point.value if self.since is None else self.before
        point = replace(self.point, value=value, prices={**prices, **later})
        return replace(self, point=point, before=before, peak=peak, live=live)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the log: level is `info`, `warning`, `error`, `decision` or `trade`; `fed`: it came over the feed."""

    time: datetime
    level: str
    text: str
    fed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeskState:
    """The latest run of a desk, its books and its log, as far as screens show them.

    run: id of the run; empty before the first.
    running: True until the run ends.
    done: True once it has done all that it had to do: a step that did not come is left out.
    symbols: those of the run, in its order.
    steps: the questions about each symbol in order, the decision last; one that does not come is shown as left out.
    session: the session that is being decided.
    at: the symbol whose step began last.
    panes: answers by symbol and owner, in the order of the steps.
    opinions: those of this run that were combined with others, by symbol and owner.
    decisions: the latest, by symbol and owner.
    books: at the last close.
    clock: the latest time of an event of the run: the one time of its log; None before the first.
    lines: the log, oldest first.
    log_from: the run that the log begins with; empty before the first.
    error: the last error that was not followed by another start; one line.
    cycle_failed: True where that is the error of a cycle, which can be asked for again.
    refusal: the reason why the operator's last command was refused; empty where it was carried out.
    cost: of the run's models so far, in USD; None as soon as that of one call is not known.
    """

    run: str = ""
    running: bool = False
    done: bool = False
    symbols: tuple[str, ...] = ()
    steps: tuple[str, ...] = ("decision",)
    session: date | None = None
    at: str = ""
    panes: Mapping[str, Mapping[str, tuple[Pane, ...]]] = field(default_factory=dict)
    opinions: Mapping[str, Mapping[str, Opinion]] = field(default_factory=dict)
    decisions: Mapping[str, Mapping[str, Decision]] = field(default_factory=dict)
    books: Books | None = None
    clock: datetime | None = None
    lines: tuple[Line, ...] = ()
    log_from: str = ""
    error: str = ""
    cycle_failed: bool = False
    refusal: str = ""
    cost: Decimal | None = Decimal(0)

    @property
    def logged(self) -> int:
        """The number of lines of the log but for errors: what is read again after each would go on failing."""
        return sum(line.level != "error" for line in self.lines)

    def panes_of(self, symbol: str) -> tuple[Pane, ...]:
        """The symbol's steps in order; before a cycle all of them wait. With several owners: each owner's, then the
        opinions with the decision on them."""
        owners = self.panes.get(symbol, {})
        if len(owners) < 2:
            return next(iter(owners.values()), self._waiting(symbol))
        panes = [replace(pane, owner=owner) for owner, steps in owners.items() for pane in steps]
        return (*panes, self._owners(symbol))

    @property
    def decided(self) -> int:
        """The number of symbols of the run about which all agents have answered."""
        return sum(
            all(panes[-1].over for panes in owners.values())
            for symbol in self.symbols
            if (owners := self.panes.get(symbol))
        )

    @property
    def answered(self) -> float:
        """The part of the run's questions that are over."""
        begun = (self.panes.get(symbol, {"": self._waiting(symbol)}) for symbol in self.symbols)
        panes = [pane for owners in begun for own in owners.values() for pane in own]
        return sum(pane.over for pane in panes) / len(panes) if panes else 0.0

    def steps_of(self, symbol: str, owner: str) -> tuple[Pane, ...]:
        """An owner's panes of a symbol."""
        return self.panes.get(symbol, {}).get(owner) or self._waiting(symbol)

    def _waiting(self, symbol: str) -> tuple[Pane, ...]:
        progress = Progress.LEFT_OUT if self.done and symbol in self.symbols else Progress.WAITING
        return tuple(Pane(step=step, progress=progress) for step in self.steps)

    def _owners(self, symbol: str) -> Pane:
        opinions, decisions = self.opinions.get(symbol, {}), self.decisions.get(symbol, {})
        made = {
            "decision" if opinions else owner: one
            for owner, one in decisions.items()
            if one.key.session == self.session
        }
        shown: Mapping[str, Decision | Opinion] = {**opinions, **made}
        text = "\n".join(f"{name}: {action_text(one)}" for name, one in shown.items())
        return Pane(step=OWNERS, progress=Progress.ANSWERED if made else Progress.WAITING, text=text)


def with_line(state: DeskState, line: Line) -> DeskState:
    """The state with one more line of the log. Lines of the feed stand among the others by their times, for each of the
    two comes later than the other at times; what a journal has stays in its order."""
    place = len(state.lines)
    while place and (before := state.lines[place - 1]).time > line.time and (line.fed or before.fed):
        place -= 1
    return replace(state, lines=(*state.lines[:place], line, *state.lines[place:])[-LOG_LINES:])
