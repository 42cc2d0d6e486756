"""Rules for the reflections on performance and on signals: trades that were right, and what was missed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from engine.agents.performance_reflection import PerformanceView
from engine.agents.signal_reflection import SignalView
from engine.agents.text import plain
from engine.domain.chart import Marker
from engine.domain.decision import Action, Outcome

LOOK_AHEAD = 5
"""Sessions after a signal by which it is judged, fewer where fewer have passed."""
NOTABLE = 3.0
"""Smallest move in percent that is mentioned."""
REMARKS = 4
SHARE_OF_GOOD, SHARE_OF_POOR = 0.6, 0.4
"""Shares of right trades from which, and up to which, they count as effective and as ineffective."""


def on_performance(view: PerformanceView) -> Mapping[str, str]:
    """Answer as a PerformanceReflection, as plain JSON."""
    return {
        "effectiveness": _effectiveness(view.outcomes),
        "key_factors": _key_factors(view.outcomes),
        "return_trend": _return_trend(view.outcomes),
    }


def _effectiveness(outcomes: Sequence[Outcome]) -> str:
    """The share of right trades: buys before a gain, sells before a loss of the rest."""
    mean = sum((o.reward for o in outcomes), Decimal(0)) / max(1, len(outcomes)) * 100
    judged = [o for o in outcomes if o.action in (Action.BUY, Action.SELL) and o.reward]
    if not judged:
        return f"No trades to judge, mean reward {mean:+.3f}%"
    right = sum((o.reward > 0) == (o.action is Action.BUY) for o in judged)
    share = right / len(judged)
    word = "Effective" if share >= SHARE_OF_GOOD else "Ineffective" if share <= SHARE_OF_POOR else "Mixed"
    return f"{word}: {right} of {len(judged)} trades right, mean reward {mean:+.3f}%"


def _key_factors(outcomes: Sequence[Outcome]) -> str:
    """The factor behind the most reward, won or lost."""
    weight: dict[str, Decimal] = defaultdict(Decimal)
    for outcome in outcomes:
        weight[factor_of(outcome)] += outcome.reward
    if not weight:
        return "Nothing named"
    name, total = max(weight.items(), key=lambda pair: (abs(pair[1]), pair[0]))
    verb = "earned" if total > 0 else "lost" if total < 0 else "moved"
    return f"{name}, which {verb} {abs(total) * 100:.3f}%"


def factor_of(outcome: Outcome) -> str:
    """The factor of an outcome's decision, in up to five words: the part before the colon."""
    return " ".join(plain(outcome.key_factors).partition(":")[0].split()[:5]) or "nothing named"


def _return_trend(outcomes: Sequence[Outcome]) -> str:
    if not outcomes:
        return "Flat: nothing happened yet"
    first, last = outcomes[0].cumulative - outcomes[0].reward, outcomes[-1].cumulative
    change = (last - first) * 100
    word = "Rising" if change > Decimal("0.05") else "Falling" if change < Decimal("-0.05") else "Flat"
    return f"{word}: cumulative {last * 100:+.2f}%, {change:+.2f} points over the term"


def on_signals(view: SignalView) -> Mapping[str, Any]:
    """Answer as a SignalReflection, as plain JSON."""
    chart = view.chart
    closes = [c for c in (chart.lines[0].values if chart.lines else ()) if c is not None]
    if len(closes) < 2 or len(closes) != len(chart.sessions):
        return {
            "trend_against_signals": "Too few closes to say.",
            "effectiveness": "Nothing to judge yet.",
            "missed": [],
        }
    return {
        "trend_against_signals": _against_trend(closes, chart.markers),
        "effectiveness": _of_signals(closes, chart.markers),
        "missed": _missed(chart.sessions, closes, chart.markers)[:REMARKS],
    }


def _against_trend(closes: Sequence[float], markers: Sequence[Marker]) -> str:
    change = _percent(closes[0], closes[-1])
    word = "rose" if change > 1 else "fell" if change < -1 else "went sideways"
    buys = [m.price for m in markers if m.side == Action.BUY]
    sells = [m.price for m in markers if m.side == Action.SELL]
    text = f"The price {word} ({change:+.2f}%) to {closes[-1]:.2f} over {len(closes)} sessions"
    text += f"; {len(buys)} buys at {sum(buys) / len(buys):.2f} on average" if buys else "; no buys"
    return text + (f", {len(sells)} sells at {sum(sells) / len(sells):.2f}." if sells else ", no sells.")


def _of_signals(closes: Sequence[float], markers: Sequence[Marker]) -> str:
    text, right_of_all, judged_of_all = [], 0, 0
    for side, name in ((Action.BUY, "buys"), (Action.SELL, "sells")):
        moves = [_after(closes, m) for m in markers if m.side == side and m.index < len(closes) - 1]
        right = sum((move > 0) == (side is Action.BUY) for move in moves)
        if moves:
            text.append(f"{right} of {len(moves)} {name} right (mean move {sum(moves) / len(moves):+.2f}%)")
        right_of_all, judged_of_all = right_of_all + right, judged_of_all + len(moves)
    if not judged_of_all:
        return "No signal is old enough to judge."
    share = right_of_all / judged_of_all
    word = "Effective" if share >= SHARE_OF_GOOD else "Ineffective" if share <= SHARE_OF_POOR else "Mixed"
    return f"{word}: {', '.join(text)}."


def _missed(sessions: Sequence[str], closes: Sequence[float], markers: Sequence[Marker]) -> list[str]:
    """The newest mistakes first, then the largest rise without a buy."""
    remarks = []
    for marker in sorted(markers, key=lambda m: -m.index):
        move = _after(closes, marker)
        if marker.side == Action.SELL and move >= NOTABLE:
            remarks.append(f"Sold too early on {sessions[marker.index]}: the price then rose {move:.2f}%.")
        elif marker.side == Action.BUY and move <= -NOTABLE:
            remarks.append(f"Bought too early on {sessions[marker.index]}: the price then fell {-move:.2f}%.")
    bought = {m.index for m in markers if m.side == Action.BUY}
    rises = [
        (_percent(closes[row], closes[row + LOOK_AHEAD]), row)
        for row in range(len(closes) - LOOK_AHEAD)
        if not bought.intersection(range(row, row + LOOK_AHEAD))
    ]
    if rises and max(rises)[0] >= NOTABLE:
        rise, row = max(rises)
        until = sessions[row + LOOK_AHEAD]
        remarks.insert(0, f"Missed a rise of {rise:.2f}% from {sessions[row]} to {until}: no buy in it.")
    return remarks


def _after(closes: Sequence[float], marker: Marker) -> float:
    """Percent that the price moved in the sessions after a marker."""
    return _percent(closes[marker.index], closes[min(marker.index + LOOK_AHEAD, len(closes) - 1)])


def _percent(before: float, after: float) -> float:
    return (after / before - 1) * 100 if before else 0.0
