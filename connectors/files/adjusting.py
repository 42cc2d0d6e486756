"""Computes adj_close from closes as traded and corporate actions: the last bar as it is, earlier ones scaled."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import ROUND_HALF_EVEN, Context, Decimal

from engine.domain.market import NANO, UNKNOWN, ActionKind, CorporateAction

_WIDE = Context(prec=40, rounding=ROUND_HALF_EVEN)
_ONE = Decimal(1)


def adjusted_closes(
    sessions: Sequence[int], closes: Sequence[int], actions: Iterable[CorporateAction], untold: Iterable[date] = ()
) -> array[int]:
    """Adjusted closes in nano-units for session ordinals and their closes.

    Before a split closes are divided by its ratio, before a dividend multiplied by 1 - dividend / close of the
    session before: so their ratios are what a holder gained who put dividends back in. `untold` are ex-dates of what
    changed the worth of a share without being either: everything before the last of them is UNKNOWN.
    """
    due: dict[int, list[CorporateAction]] = {}
    for action in sorted(actions, key=lambda one: one.kind):  # a dividend counts per share of before the split
        due.setdefault(bisect_left(sessions, action.ex_date.toordinal()), []).append(action)
    breaks = (bisect_left(sessions, day.toordinal()) for day in untold)
    unknown_before = max((row for row in breaks if row < len(sessions)), default=0)
    found = array("q", [UNKNOWN]) * len(sessions)
    factor = _ONE
    for row in range(len(sessions) - 1, unknown_before - 1, -1):
        adjusted = _WIDE.multiply(Decimal(closes[row]), factor)
        found[row] = max(1, int(adjusted.to_integral_value(ROUND_HALF_EVEN)))
        if row == 0:
            break
        for action in due.get(row, ()):
            if action.kind is ActionKind.SPLIT:
                factor = _WIDE.divide(factor, action.value)
            else:
                paid = _WIDE.divide(_WIDE.multiply(action.value, Decimal(NANO)), Decimal(closes[row - 1]))
                factor = _WIDE.multiply(factor, _ONE - paid)
        if factor <= 0:
            break  # more was paid than the share was worth: what is before has no adjusted price
    return found


def continued(kept: Mapping[int, int], computed: Sequence[int]) -> array[int]:
    """Adjusted closes that go on from somebody else's: the kept ones (by row) as they are, the others with the ratios
    of the computed ones to the nearest kept row before them, or where there is none after them."""
    found = array("q")
    anchor = min(kept)
    for row, nano in enumerate(computed):
        if row in kept:
            anchor = row
            found.append(kept[row])
        elif UNKNOWN in (nano, kept[anchor], computed[anchor]):
            found.append(UNKNOWN)
        else:
            scaled = _WIDE.divide(_WIDE.multiply(Decimal(nano), Decimal(kept[anchor])), Decimal(computed[anchor]))
            found.append(max(1, int(scaled.to_integral_value(ROUND_HALF_EVEN))))
    return found
