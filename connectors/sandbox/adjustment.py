"""Adjustment of bars as requested: raw, for splits, for dividends, or for both."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from engine.domain.market import NANO, UNKNOWN, ActionKind, CorporateAction, PriceHistory

ADJUSTMENTS = ("raw", "split", "dividend", "all")


@dataclass(frozen=True, slots=True)
class Scale:
    """Factors of a bar's prices and of its volume."""

    price: Fraction = Fraction(1)
    volume: Fraction = Fraction(1)


def scales(history: PriceHistory, rows: int, actions: Iterable[CorporateAction] | None, adjustment: str) -> list[Scale]:
    """The scale of each of the first `rows` bars, so that the last of them is as traded.

    Where corporate actions are unknown, dividends are taken from adj_close, as far back as that is known; prices then
    have the splits already.
    """
    if adjustment == "raw" or not rows:
        return [Scale()] * rows
    if actions is None:
        return _by_adjusted_close(history, rows) if adjustment != "split" else [Scale()] * rows
    result = [Scale()] * rows
    scale = Scale()
    due: dict[int, list[CorporateAction]] = {}
    for action in actions:
        due.setdefault(bisect_left(history.sessions, action.ex_date.toordinal(), hi=rows), []).append(action)
    for row in range(rows - 1, -1, -1):
        result[row] = scale
        for action in due.get(row, ()) if row else ():
            scale = _before(scale, action, adjustment, Fraction(history.close[row - 1], NANO))
    return result


def _before(scale: Scale, action: CorporateAction, adjustment: str, close: Fraction) -> Scale:
    """The scale before an action; `close` is the last one before it."""
    value = Fraction(action.value)
    if action.kind is ActionKind.SPLIT:
        return Scale(scale.price / value, scale.volume * value) if adjustment in ("split", "all") else scale
    return Scale(scale.price * (1 - value / close), scale.volume) if adjustment in ("dividend", "all") else scale


def _by_adjusted_close(history: PriceHistory, rows: int) -> list[Scale]:
    last = history.adj_close[rows - 1]
    if last == UNKNOWN:
        return [Scale()] * rows
    end = Fraction(history.close[rows - 1], last)
    return [
        Scale() if adjusted == UNKNOWN else Scale(Fraction(adjusted, close) * end)
        for adjusted, close in zip(history.adj_close[:rows], history.close[:rows], strict=True)
    ]
