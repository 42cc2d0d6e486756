"""The desk's value at each close beside the broker's: told, never taken over, and no reason to stop.

Cash and positions are the same on both sides, or the desk is halted (comparing.py); what is left is prices. Ours are
the raw closes of the data folder, the broker's its own last trades at its own moment, so the two values of a session
differ by what those prices differ: another feed, an auction, a coin that is valued at the close of the shares. What
rounding alone explains is not told: the broker writes its value, and may count every position and the cash, in whole
cents, half a cent away each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from engine.domain.portfolio import CENT
from engine.domain.run import EquityPoint


@dataclass(frozen=True, slots=True)
class CloseComparison:
    """One close: value in the quote currency by the journal and by the broker, and how many positions were held."""

    session: date
    journal: Decimal
    broker: Decimal
    held: int

    @property
    def difference(self) -> Decimal:
        """The broker's value less the journal's."""
        return self.broker - self.journal

    @property
    def differs(self) -> bool:
        """True for more than rounding: half a cent for each position, for the cash, for the sum, and for our value
        shown in cents."""
        return abs(self.difference) > CENT * (self.held + 3) / 2


def beside(points: Iterable[EquityPoint], theirs: Mapping[date, Decimal]) -> tuple[CloseComparison, ...]:
    """The closes that both sides know."""
    return tuple(
        CloseComparison(point.session, point.value, theirs[point.session], len(point.portfolio.positions))
        for point in points
        if point.session in theirs
    )
