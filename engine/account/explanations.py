"""Explanations of differences between journal and account whose entry in the account's history may still come: cash
that moved, trades of the desk's orders, and splits. Any other difference in shares cannot be told from a trade by
hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_DOWN, Decimal

from engine.account.disagreement import CASH
from engine.domain.brokerage import Difference
from engine.domain.market import ActionKind, CorporateAction, Symbol
from engine.domain.portfolio import EXACT, SHARE_STEP, ZERO, Portfolio

LATE = timedelta(days=7)
"""Longest time after its ex-date at which a broker applies a split."""
Actions = Mapping[Symbol, Sequence[CorporateAction] | None]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The cause that a difference may have: shares (signed) that trades of the desk's orders moved, and shares that a
    split brought on its ex-date; cash where there are neither."""

    traded: Decimal = ZERO
    split: Decimal = ZERO
    ex_date: date | None = None

    def awaited(self, what: str) -> str:
        """The entry that is awaited of a symbol, or of cash."""
        split = f"of the split of {what} on {self.ex_date}" if self.ex_date else ""
        traded = f"of trades of the desk's orders in {what}" if self.traded else ""
        return " and ".join(filter(None, (split, traded))) or "of cash"


def explained(
    differences: Iterable[Difference],
    unbooked: Mapping[Symbol, Decimal],
    actions: Actions,
    booked: Mapping[Symbol, date],
    *,
    books: Portfolio,
    journal: Portfolio,
    closed: date,
    today: date,
) -> Mapping[str, Explanation]:
    """The explanation of each difference that has one. `unbooked` are shares of the desk's orders without an entry,
    `booked` the session of the last split that the journal has of a symbol, `books` the books that were `closed` last,
    `journal` these with everything later."""
    found: dict[str, Explanation] = {}
    for one in differences:
        traded = unbooked.get(one.what, ZERO)
        if one.amount is None:
            continue
        if one.what == CASH:
            found[CASH] = Explanation()
        elif traded == one.amount:
            found[one.what] = Explanation(traded)
        else:
            since = max(closed - LATE, booked.get(one.what, date.min))
            due = [each for each in actions.get(one.what) or () if since < each.ex_date <= today]
            held = (books.quantity(one.what), journal.quantity(one.what))
            for ours in dict.fromkeys((traded, ZERO)):
                split = next((each for each in _splits(due) if _brings(each[0], held, one.amount - ours)), None)
                if split is not None:
                    found[one.what] = Explanation(ours, one.amount - ours, split[1])
                    break
    return found


def _splits(actions: Iterable[CorporateAction]) -> Iterator[tuple[Decimal, date]]:
    """The ratio of each split, and of those up to it together, with its ex-date, the latest first."""
    splits = sorted((one for one in actions if one.kind is ActionKind.SPLIT), key=lambda one: one.ex_date)
    found, together = [], Decimal(1)
    for one in splits:
        together = EXACT.multiply(together, one.value)
        found += [(one.value, one.ex_date), (together, one.ex_date)]
    return reversed(found)


def _brings(ratio: Decimal, held: Iterable[Decimal], change: Decimal) -> bool:
    """True where a split of some shares comes to a change of them; parts of a share may be paid in cash."""
    for shares in held:
        exact = EXACT.multiply(shares, ratio)
        for step in (SHARE_STEP, Decimal(1)):
            if change and EXACT.subtract(exact.quantize(step, ROUND_DOWN, EXACT), shares) == change:
                return True
    return False
