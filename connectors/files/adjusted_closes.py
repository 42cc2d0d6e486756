"""Adjusted closes from closes as traded and corporate actions: the last bar unchanged, earlier ones scaled."""

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
    sessions: Sequence[int], closes: Sequence[int], actions: Iterable[CorporateAction], unsupported: Iterable[date] = ()
) -> array[int]:
    """Adjusted closes in nano-units for session ordinals and their closes.

    Before a split closes are divided by its ratio, before a dividend multiplied by 1 - dividend / previous close: so
    their ratios are the gains of a holder who reinvests dividends. `unsupported` are ex-dates of actions that are
    neither: everything before the last of them is UNKNOWN.
    """
    due: dict[int, list[CorporateAction]] = {}
    for action in sorted(actions, key=lambda one: one.kind):  # a dividend counts per share of before the split
        due.setdefault(bisect_left(sessions, action.ex_date.toordinal()), []).append(action)
    breaks = (bisect_left(sessions, day.toordinal()) for day in unsupported)
    unknown_before = max((row for row in breaks if row < len(sessions)), default=0)
    result = array("q", [UNKNOWN]) * len(sessions)
    factor = _ONE
    for row in range(len(sessions) - 1, unknown_before - 1, -1):
        adjusted = _WIDE.multiply(Decimal(closes[row]), factor)
        result[row] = max(1, int(adjusted.to_integral_value(ROUND_HALF_EVEN)))
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
    return result


def extended_closes(stored: Mapping[int, int], computed: Sequence[int]) -> array[int]:
    """Stored adjusted closes (by row) extended with computed ones.

    A row without a stored value has the computed ratio to the nearest stored row before it, or, without one, after it.
    """
    result = array("q")
    anchor = min(stored)
    for row, nano in enumerate(computed):
        if row in stored:
            anchor = row
            result.append(stored[row])
        elif UNKNOWN in (nano, stored[anchor], computed[anchor]):
            result.append(UNKNOWN)
        else:
            scaled = _WIDE.divide(_WIDE.multiply(Decimal(nano), Decimal(stored[anchor])), Decimal(computed[anchor]))
            result.append(max(1, int(scaled.to_integral_value(ROUND_HALF_EVEN))))
    return result
