"""One cycle's occasion, what it comes to, and what the desk has lived through before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

from engine.domain.decision import Decision, DecisionKey, Opinion, Outcome, Proposal
from engine.domain.market import PriceHistory, Symbol
from engine.domain.order import Order
from engine.domain.portfolio import ZERO, Portfolio
from engine.domain.recollection import Recollection
from engine.execution.sizing import PositionContext
from engine.market.as_of import MarketAsOf


@dataclass(slots=True)
class TradingHistory:
    """What the desk has lived through: decisions and outcomes by symbol and owner, oldest first. It outlives the
    warm-up."""

    outcomes: dict[tuple[Symbol, str], list[Outcome]] = field(default_factory=dict)
    decisions: dict[tuple[Symbol, str, date], Decision] = field(default_factory=dict)

    def of(self, symbol: Symbol, owner: str, last: int) -> tuple[Outcome, ...]:
        """The last outcomes of a symbol, at most so many."""
        return tuple(self.outcomes.get((symbol, owner), ())[-last:])

    def reason(self, outcome: Outcome) -> str:
        """The reason that a decision gave at the time; empty where it is not known."""
        decision = self.decisions.get((outcome.symbol, outcome.owner, outcome.decision_session))
        return "" if decision is None else decision.reason

    def decided(self, decisions: Sequence[Decision]) -> None:
        """Adds decisions as they are made."""
        for decision in decisions:
            self.decisions[decision.key.symbol, decision.key.owner, decision.key.session] = decision

    def remember(self, rows: Sequence[Outcome]) -> None:
        """Adds what a session came to."""
        for row in rows:
            self.outcomes.setdefault((row.symbol, row.owner), []).append(row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One cycle's occasion: the session whose data is read, the market as it is known, the books at its close.

    `step` counts sessions on the desk's calendar, within one the part that has passed: the time of memory. `prices` are
    those of the moment, where a cycle within a session has asked for them; else the last close counts. `training` is
    the warm-up, in which reflections may see the moves that are known by `hindsight_until`, when the last session of
    the warm-up is decided on; decisions never do. `taken` is cash that the orders of symbols before these have taken in
    the same batch, where only a part of it is decided: it counts for the limits, and no agent sees it. Of
    `whole_shares` no parts are traded. `books` are the owners' portfolios where each keeps a book of its own, empty
    where the desk has one book only; `portfolio` is the desk's total.
    """

    run: str
    desk: str
    session: date
    number: int
    symbols: tuple[Symbol, ...]
    market: MarketAsOf
    news_after: datetime
    portfolio: Portfolio
    value: Decimal
    notebook: TradingHistory
    reserved: Decimal = ZERO
    queued: Mapping[Symbol, Decimal] = field(default_factory=dict)
    step: float = 0
    hindsight_until: datetime | None = None
    taken: Decimal = ZERO
    whole_shares: frozenset[Symbol] = frozenset()
    books: Mapping[str, Portfolio] = field(default_factory=dict)
    prices: Mapping[Symbol, Decimal] = field(default_factory=dict)

    def price(self, symbol: Symbol) -> Decimal:
        """What a symbol costs: by the market of the moment where that is known, else by its last close."""
        return self.prices[symbol] if symbol in self.prices else self.market.close(symbol)

    @property
    def within_session(self) -> bool:
        """Whether the market of the next session is open already: the cycle after the close is the first."""
        return self.number > 1

    @property
    def training(self) -> bool:
        """Whether reflections may look ahead."""
        return self.hindsight_until is not None


@dataclass(frozen=True, slots=True)
class CycleResult:
    """The decisions of a cycle, the orders for the next open, the owners' opinions as each was before they were
    combined, and the memories that each opinion was given, by the opinion's key."""

    decisions: tuple[Decision, ...]
    orders: tuple[Order, ...]
    opinions: tuple[Opinion, ...] = ()
    recollections: Mapping[DecisionKey, tuple[Recollection, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Observed:
    """One symbol as one owner finds it: the bars that can be seen, and what the desk has in it."""

    turn: Turn
    symbol: Symbol
    owner: str
    bars: PriceHistory
    standing: PositionContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Formed:
    """An opinion as it is formed: with the memories that it rests on, the figures that it made up, and all memories
    that it was given."""

    symbol: Symbol
    owner: str
    proposal: Proposal
    standing: PositionContext
    evidence: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()
    recollections: tuple[Recollection, ...] = ()
