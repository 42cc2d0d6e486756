"""The fund that holds every company of the demo market in equal parts, dividends included."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from connectors.demo.listings import Listing
from connectors.demo.price_path import PricePath
from engine.domain.market import NANO, UNKNOWN, ActionKind, PriceHistory

_CENT = 10_000_000


def fund_history(listing: Listing, holdings: Sequence[PricePath]) -> PriceHistory:
    """Bars of a fund that is rebalanced every session; all holdings have the same sessions.

    High and low are half way between the move of open and close and the mean of the holdings' own, since these do not
    reach their extremes together.
    """
    sessions = holdings[0].history.sessions
    columns = (array("q"), array("q"), array("q"), array("q"))
    per_share = [_conversions(path) for path in holdings]
    level = listing.price * _CENT
    for row in range(len(sessions)):
        open_, high, low, close = _mean_moves(holdings, per_share, row)
        prices = [level * move // NANO for move in (open_, close)]
        top, bottom = max(prices), min(prices)
        high_, low_ = (top + max(level * high // NANO, top)) // 2, (bottom + min(level * low // NANO, bottom)) // 2
        for column, price in zip(columns, (prices[0], high_, low_, prices[1]), strict=True):
            column.append((price + _CENT // 2) // _CENT * _CENT)
        level = prices[1]
    volume = array("d", (sum(path.history.volume[row] for path in holdings) * 3 // 10 for row in range(len(sessions))))
    return PriceHistory(
        symbol=listing.symbol,
        sessions=sessions,
        **dict(zip(("open", "high", "low", "close"), columns, strict=True)),
        adj_close=array("q", [UNKNOWN]) * len(sessions),
        volume=volume,
    )


def _mean_moves(
    holdings: Sequence[PricePath], per_share: Sequence[dict[int, tuple[int, int, int]]], row: int
) -> tuple[int, int, int, int]:
    """Open, high, low and close over the close before, in billionths, averaged."""
    sums = [0, 0, 0, 0]
    for path, conversions in zip(holdings, per_share, strict=True):
        history = path.history
        before = history.close[row - 1] if row else history.open[0]
        new, old, paid = conversions.get(history.sessions[row], (1, 1, 0))
        for place, column in enumerate((history.open, history.high, history.low, history.close)):
            sums[place] += (column[row] * new // old + paid) * NANO // before
    open_, high, low, close = (total // len(holdings) for total in sums)
    return open_, high, low, close


def _conversions(path: PricePath) -> dict[int, tuple[int, int, int]]:
    """By ex-date: new shares, for old ones, and nano-units of cash for one old share."""
    conversions: dict[int, tuple[int, int, int]] = {}
    for action in path.actions:
        day = action.ex_date.toordinal()
        new, old, paid = conversions.get(day, (1, 1, 0))
        if action.kind is ActionKind.SPLIT:
            by, per = action.value.as_integer_ratio()
            new, old = new * by, old * per
        else:
            paid += int(action.value * NANO)
        conversions[day] = new, old, paid
    return conversions
