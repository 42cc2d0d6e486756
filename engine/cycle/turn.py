"""The input of one cycle, its result, and the trading history that the owners look back on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from operator import attrgetter

from engine.domain.decision import Debate, Decision, DecisionKey, Opinion, Outcome, Recollection
from engine.domain.market import Symbol
from engine.domain.order import ZERO, Order, Portfolio
from engine.execution.venue import BuyingPower, OrderTerms
from engine.market.as_of import MarketAsOf


@dataclass(frozen=True, slots=True)
class TradingHistory:
    """The opinions of every owner and what came of them, oldest outcome first. It outlives the warm-up, whose feedback
    goes on; the record that agents read begins with the first decision of the test (`since`), as its books do: what
    training earned, by actions that the next move set, is no record of theirs.

    An opinion or a decision of a later cycle takes the place of one of the same session: a session's outcome is that of
    its last.
    """

    outcomes: Mapping[tuple[Symbol, str], tuple[Outcome, ...]] = field(default_factory=dict)
    opinions: Mapping[tuple[Symbol, str, date], Opinion] = field(default_factory=dict)
    decisions: Mapping[tuple[Symbol, str, date], Decision] = field(default_factory=dict)
    since: date = date.min

    def record(self, symbol: Symbol, owner: str) -> tuple[Outcome, ...]:
        """The outcomes of an owner in a symbol, of the test once it has begun."""
        rows = self.outcomes.get((symbol, owner), ())
        return rows[self._trained(rows) :]

    def of(self, symbol: Symbol, owner: str, last: int) -> tuple[Outcome, ...]:
        """The last outcomes of an owner in a symbol, at most `last`."""
        return self.record(symbol, owner)[-last:]

    def earlier(self, session: date) -> Mapping[tuple[Symbol, str], tuple[Outcome, ...]]:
        """The outcomes of the part, training or test, that a decision's session belongs to: the cumulative return of
        one does not go over into the other."""
        test = session >= self.since
        parts = {key: self._trained(rows) for key, rows in self.outcomes.items()}
        return {key: rows[parts[key] :] if test else rows[: parts[key]] for key, rows in self.outcomes.items()}

    def _trained(self, rows: Sequence[Outcome]) -> int:
        """The number of rows that are of decisions in training; they come first."""
        return bisect_left(rows, self.since, key=attrgetter("decision_session"))

    def opinion(self, outcome: Outcome) -> Opinion | None:
        """The opinion that an outcome is of; None where it is not known."""
        return self.opinions.get((outcome.symbol, outcome.owner, outcome.decision_session))

    def decision(self, outcome: Outcome) -> Decision | None:
        """The decision that an outcome is of; None of an opinion that was combined with others."""
        return self.decisions.get((outcome.symbol, outcome.owner, outcome.decision_session))

    def with_opinions(self, opinions: Iterable[Opinion], decisions: Iterable[Decision] = ()) -> TradingHistory:
        """The history with a cycle's opinions and decisions added."""
        return replace(
            self,
            opinions={**self.opinions, **{(one.key.symbol, one.key.owner, one.key.session): one for one in opinions}},
            decisions={**self.decisions, **{(o.key.symbol, o.key.owner, o.key.session): o for o in decisions}},
        )

    def with_outcomes(self, rows: Iterable[Outcome]) -> TradingHistory:
        """The history with outcomes added that became known."""
        outcomes = dict(self.outcomes)
        for row in rows:
            outcomes[row.symbol, row.owner] = (*outcomes.get((row.symbol, row.owner), ()), row)
        return replace(self, outcomes=outcomes)


@dataclass(frozen=True, slots=True)
class OpenOrders:
    """The claims of open orders on a book: cash that buys may still take (quote currency), and shares that sales may
    still take."""

    cash: Decimal = ZERO
    shares: Mapping[Symbol, Decimal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The input of one cycle. Amounts are in the quote currency.

    run: id of the run.
    desk: name of the desk, which order ids begin with.
    session: the last completed session, whose data is read.
    number: 1 for the cycle after the close; those within the next session count on.
    symbols: the batch, in the order in which limits apply.
    universe: all symbols of the run; a part of them is decided where one is decided again.
    market: all data as it was known at the moment of the decision.
    news_after: news up to here was read by earlier cycles, UTC.
    portfolio: the desk's cash and positions, all books together.
    value: of the portfolio.
    history: opinions and outcomes so far.
    reserved: cash that open buys of the desk may still take.
    queued: shares that open sales of the desk may still take.
    books: portfolio by owner where each owner keeps a book; empty where the desk has one book only.
    open_orders: claims on each owner's book.
    step: time of memory: sessions counted on the desk's calendar, within one the part that has passed.
    hindsight_until: in training, reflections may see moves that are known by then, UTC; decisions never do.
    taken: cash by book (the empty name: the desk's only book) that orders of symbols before these have taken in the
        same batch, where a part of it is decided: it counts for the limits, and no agent sees it.
    whole_shares: symbols of which no part of a share is traded.
    terms: the orders that the venue takes, by symbol; any of one that is left out.
    power: the venue's own limits of what can be bought; None for none.
    prices: of the moment, where a cycle within a session has asked for them; else the last close counts.
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
    history: TradingHistory
    reserved: Decimal = ZERO
    queued: Mapping[Symbol, Decimal] = field(default_factory=dict)
    books: Mapping[str, Portfolio] = field(default_factory=dict)
    open_orders: Mapping[str, OpenOrders] = field(default_factory=dict)
    universe: tuple[Symbol, ...] = ()
    step: float = 0
    hindsight_until: datetime | None = None
    taken: Mapping[str, Decimal] = field(default_factory=dict)
    whole_shares: frozenset[Symbol] = frozenset()
    terms: Mapping[Symbol, OrderTerms] = field(default_factory=dict)
    power: BuyingPower | None = None
    prices: Mapping[Symbol, Decimal] = field(default_factory=dict)

    def price(self, symbol: Symbol) -> Decimal:
        """The price of the moment where it is known, else the last close."""
        return self.prices[symbol] if symbol in self.prices else self.market.close(symbol)

    @property
    def within_session(self) -> bool:
        """True where the market of the next session is open already."""
        return self.number > 1

    @property
    def training(self) -> bool:
        """True where reflections may look ahead."""
        return self.hindsight_until is not None


@dataclass(frozen=True, slots=True)
class CycleResult:
    """The decisions of a cycle, the orders for the next open, the owners' opinions as each was before they were
    combined, the memories that each opinion was given, by the opinion's key, and the debates that were held."""

    decisions: tuple[Decision, ...]
    orders: tuple[Order, ...]
    opinions: tuple[Opinion, ...] = ()
    recollections: Mapping[DecisionKey, tuple[Recollection, ...]] = field(default_factory=dict)
    debates: tuple[Debate, ...] = ()

    @property
    def combined(self) -> tuple[Opinion, ...]:
        """The opinions that were combined with others': no decision is their owner's own."""
        decided = {made.key for made in self.decisions}
        return tuple(opinion for opinion in self.opinions if opinion.key not in decided)
