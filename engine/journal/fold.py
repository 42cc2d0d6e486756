"""Fold a desk's journal into its present state: read once, passed on as a value.

State is never stored: an order's state is its last transition, the books are the last close that was written. Whoever
needs several of these reads them here in one transaction, so that they fit together while another process writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from engine.domain.decision import Decision, Outcome
from engine.domain.order import Fill, is_final
from engine.domain.run import Adoption, CashFlow, EquityPoint
from engine.journal.entries import BoundAccount, OrderEntry, RunEntry
from engine.journal.reader import JournalReader


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalState:
    """A journal's records folded, each sequence in the order in which it was written; empty for a desk that never ran.

    account: the account at a broker that the desk trades in, None on the simulated market.
    runs: every run with its present outcome.
    equity: the books at each close.
    decisions: every decision; a later cycle of a session overtakes an earlier one.
    outcomes: what decisions earned, as far as it is known.
    orders: every order in its present state.
    fills: every trade.
    cash_flows: cash, or shares, that moved without a trade.
    adoptions: differences in which a person took the broker's side.
    sent: ids of the orders that were ever submitted, or were about to be.
    broker_orders: our order ids by the broker's.
    activities: the account activity that is booked, or known and nobody's: time (UTC) by the broker's id.
    """

    account: BoundAccount | None = None
    runs: tuple[RunEntry, ...] = ()
    equity: tuple[EquityPoint, ...] = ()
    decisions: tuple[Decision, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    orders: tuple[OrderEntry, ...] = ()
    fills: tuple[Fill, ...] = ()
    cash_flows: tuple[CashFlow, ...] = ()
    adoptions: tuple[Adoption, ...] = ()
    sent: frozenset[str] = frozenset()
    broker_orders: Mapping[str, str] = field(default_factory=dict)
    activities: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def books(self) -> EquityPoint | None:
        """The books at the last close, None before the first."""
        return self.equity[-1] if self.equity else None

    @property
    def open_orders(self) -> tuple[OrderEntry, ...]:
        """Orders that something can follow: meant, submitted, unknown or at work."""
        return tuple(entry for entry in self.orders if not is_final(entry.order.state))

    def decisions_of(self, run: str) -> tuple[Decision, ...]:
        """The decisions of one run, empty before it has decided."""
        return tuple(decision for decision in self.decisions if decision.key.run == run)

    def orders_of(self, run: str) -> tuple[OrderEntry, ...]:
        """The orders that one run meant to trade, in their present state."""
        return tuple(entry for entry in self.orders if entry.run == run)


def fold(reader: JournalReader) -> JournalState:
    """Read everything that a run of a desk rests on, in one transaction."""
    with reader.snapshot():
        return JournalState(
            account=reader.account(),
            runs=reader.runs(),
            equity=reader.equity(),
            decisions=reader.decisions(),
            outcomes=reader.outcomes(),
            orders=reader.orders(),
            fills=reader.fills(),
            cash_flows=reader.cash_flows(),
            adoptions=reader.adoptions(),
            sent=reader.orders_sent(),
            broker_orders=reader.broker_orders(),
            activities=reader.activities(),
        )


def state_of(path: Path) -> JournalState:
    """Fold the journal at `path`; a desk without one has an empty state. Raises what JournalReader raises."""
    if not path.exists():
        return JournalState()
    with JournalReader(path) as reader:
        return fold(reader)
