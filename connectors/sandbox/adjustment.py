"""Puts bars on the scale that a request asks for: as traded, adjusted for splits, for dividends, or for both."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from engine.domain.market import NANO, UNKNOWN, ActionKind, CorporateAction, PriceHistory

ADJUSTMENTS = ("raw", "split", "dividend", "all")


@dataclass(frozen=True, slots=True)
class Scale:
    """What a bar's prices are multiplied by, and its volume."""

    price: Fraction = Fraction(1)
    volume: Fraction = Fraction(1)


def scales(history: PriceHistory, rows: int, actions: Iterable[CorporateAction] | None, adjustment: str) -> list[Scale]:
    """The scale of each of the first `rows` bars, so that the last of them is as traded.

    Where corporate actions are not known, dividends are taken from adj_close, as far back as that is known; splits
    are then in the prices already.
    """
    if adjustment == "raw" or not rows:
        return [Scale()] * rows
    if actions is None:
        return _by_adjusted_close(history, rows) if adjustment != "split" else [Scale()] * rows
    found = [Scale()] * rows
    price, volume = Fraction(1), Fraction(1)
    due: dict[int, list[CorporateAction]] = {}
    for action in actions:
        due.setdefault(bisect_left(history.sessions, action.ex_date.toordinal(), hi=rows), []).append(action)
    for row in range(rows - 1, -1, -1):
        found[row] = Scale(price, volume)
        for action in due.get(row, ()) if row else ():
            if action.kind is ActionKind.SPLIT:
                if adjustment in ("split", "all"):
                    price, volume = price / Fraction(action.value), volume * Fraction(action.value)
            elif adjustment in ("dividend", "all"):
                price *= 1 - Fraction(action.value) / Fraction(history.close[row - 1], NANO)
    return found


def _by_adjusted_close(history: PriceHistory, rows: int) -> list[Scale]:
    last = history.adj_close[rows - 1]
    if last == UNKNOWN:
        return [Scale()] * rows
    end = Fraction(history.close[rows - 1], last)
    return [
        Scale() if adjusted == UNKNOWN else Scale(Fraction(adjusted, close) * end)
        for adjusted, close in zip(history.adj_close[:rows], history.close[:rows], strict=True)
    ]
