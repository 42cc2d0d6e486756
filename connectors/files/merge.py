"""Merge of a service's rows into prices/SYMBOL.csv and actions/SYMBOL.csv: new rows are added, stored ones stay.

Adjusted closes are computed from closes as traded and corporate actions: the last bar unchanged, earlier ones scaled.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import ROUND_HALF_EVEN, Context, Decimal
from math import isnan
from pathlib import Path

from connectors.files.prices import BarRow, actions_text, bar_row, history_of, prices_text, read_actions, read_rows
from engine.domain.market import NANO, UNKNOWN, ActionKind, Bar, CorporateAction, Symbol
from engine.errors import MalformedData
from engine.market.price_faults import price_faults
from engine.settings.places import write_whole

Counts = Counter[str]
"""Rows of a merge: `added` are new, `unchanged` were stored already. Of rows that differ from stored ones, `replaced`
took their place and `differing` did not. They are the fields of engine.domain.fetched.Fetched."""

_WIDE = Context(prec=40, rounding=ROUND_HALF_EVEN)
_ONE = Decimal(1)


def checked_row(symbol: Symbol, bar: Bar) -> BarRow:
    """A service's bar as a row without adj_close. Raises MalformedData for an impossible one."""
    cells = [bar.session.isoformat(), *(f"{price:f}" for price in (bar.open, bar.high, bar.low, bar.close)), ""]
    try:
        return bar_row([*cells, "" if bar.volume is None else f"{bar.volume:f}"])
    except ValueError as problem:
        reason = str(problem).partition(";")[0]
        raise MalformedData(f"the bar of {symbol} on {bar.session} cannot be: {reason}; try again later") from None


def merge_bars(
    path: Path,
    rows: Iterable[BarRow],
    actions: Iterable[CorporateAction],
    unsupported: Iterable[date],
    *,
    replace: bool,
    keep_adjusted: bool,
) -> Counts:
    """Merge raw bars into a price file in a single step, with adj_close computed from the actions; rows of the file
    that cannot be are left out. Raises MalformedData.

    adj_close is computed for the whole file, or with `keep_adjusted` for the added rows alone, as an extension of the
    stored ones.
    """
    old = {row[0]: row for row in read_rows(path).bars}
    new = {row[0]: row for row in rows}
    differing = sum(not _same(row, old[day]) for day, row in new.items() if day in old)
    raw = old | new if replace else new | old
    days = sorted(raw)
    known, closes = tuple(actions), [raw[day][4] for day in days]
    bars = [(*raw[day][:5], UNKNOWN, raw[day][6]) for day in days]
    # Where a jump has no action, one may be missing: an adj_close without it would bear witness that there is none.
    jumps = [fault.session for fault in price_faults(history_of(path.stem, bars), known)] if bars else []
    adjusted = adjusted_closes(days, closes, known, (*unsupported, *jumps))
    if keep_adjusted and old:
        adjusted = extended_closes({at: old[day][5] for at, day in enumerate(days) if day in old}, adjusted)
    text = prices_text((*raw[day][:5], nano, raw[day][6]) for day, nano in zip(days, adjusted, strict=True))
    if raw and (not path.exists() or text != prices_text(old.values())):
        write_whole(path, text)
    return _counted(len(new), len(new.keys() & old.keys()), differing, replace=replace)


def merge_actions(
    path: Path, symbol: Symbol, actions: Iterable[CorporateAction], *, replace: bool, write: bool = True
) -> tuple[Sequence[CorporateAction], Counts]:
    """Merge actions into a file in a single step; with `write` off only return the result. Raises MalformedData.

    A file without a single action is written too: it says that there were none.
    """
    old = {(one.ex_date, one.kind): one for one in read_actions(path, symbol)}
    new = {(one.ex_date, one.kind): one for one in actions}
    differing = sum(one != old[key] for key, one in new.items() if key in old)
    merged = old | new if replace else new | old
    if write and (merged != old or not path.exists()):
        write_whole(path, actions_text(merged.values()))
    return tuple(merged.values()), _counted(len(new), len(new.keys() & old.keys()), differing, replace=replace)


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
        result[row] = _scaled(closes[row], factor, _ONE)
        if row == 0:
            break
        for action in due.get(row, ()):
            if action.kind is ActionKind.SPLIT:
                factor = _WIDE.divide(factor, action.value)
            elif action.kind is ActionKind.DIVIDEND:
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
            result.append(_scaled(nano, Decimal(stored[anchor]), Decimal(computed[anchor])))
    return result


def _scaled(nano: int, by: Decimal, per: Decimal) -> int:
    scaled = _WIDE.divide(_WIDE.multiply(Decimal(nano), by), per)
    return max(1, int(scaled.to_integral_value(ROUND_HALF_EVEN)))


def _counted(new: int, shared: int, differing: int, *, replace: bool) -> Counts:
    """Counts of `new` rows, of which `shared` were stored and `differing` of those differ."""
    changed = {"replaced" if replace else "differing": differing}
    return Counter({"added": new - shared, "unchanged": shared - differing, **changed})


def _same(one: BarRow, other: BarRow) -> bool:
    return one[:5] == other[:5] and (one[6] == other[6] or (isnan(one[6]) and isnan(other[6])))
