"""Rows of one table tested together: the best of many looks better than it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np

from engine.conventions.families import discoveries, family
from engine.conventions.luck import deflated_sharpe, probabilistic_sharpe
from engine.conventions.metrics import Floats
from engine.domain.market import is_crypto
from engine.reports.documents.luck import trials_on
from engine.reports.documents.row_json import Row
from engine.reports.performance import BENCHMARK


def table_families(curves: Sequence[Mapping[str, Any]]) -> list[Row]:
    """By table and symbol: every row with a whole curve (cumulative returns by session) against buy and hold, the best
    of them against chance, and each row's discoveries over the symbols of its table."""
    found = list(filter(None, map(_of_symbol, curves)))
    for table, row in dict.fromkeys((one["table"], row["row"]) for one in found for row in one["rows"]):
        own = [each for one in found if one["table"] == table for each in one["rows"] if each["row"] == row]
        for each, counts in zip(own, discoveries([each["p"] for each in own]), strict=True):
            each["discovery"] = counts
    return found


def _of_symbol(curves: Mapping[str, Any]) -> Row | None:
    whole = {name: _returns(points) for name, points in curves["rows"].items() if None not in points}
    held = whole.pop(BENCHMARK, None)
    if held is None or not whole:
        return None
    tested = family(np.array([returns - held for returns in whole.values()]))
    if tested is None:
        return None
    symbol, sessions = curves["symbol"], curves["sessions"]
    trials = trials_on((symbol,), date.fromisoformat(sessions[0]), date.fromisoformat(sessions[-1]))
    periods = 365 if is_crypto(symbol) else 252
    luck = (
        {"psr": probabilistic_sharpe(one), "deflated_sharpe": deflated_sharpe(one, trials, periods)}
        for one in whole.values()
    )
    together = zip(whole, tested.single, tested.adjusted, luck, strict=True)
    rows = [{"row": name, "p": p, "adjusted": adjusted, **more} for name, p, adjusted, more in together]
    head = {"table": curves["table"], "symbol": symbol, "sessions": len(sessions), "trials": trials}
    return {**head, "superior": tested.superior, "rows": rows}


def _returns(growth: Sequence[float]) -> Floats:
    """Daily returns from the cumulative ones."""
    levels = np.concatenate([[1.0], 1 + np.array(growth)])
    return np.asarray(levels[1:] / levels[:-1] - 1)
