"""Rules for the immediate reflection: a recommendation from the tone of the recalled events, momentum, the position and
the risk character; in training an explanation of the move that followed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from typing import Any

from engine.agents.immediate import ImmediateView
from engine.agents.rendering import percent, signed_percent
from engine.domain.decision import LAYERS, Advice, Recollection
from engine.market.figures import MOMENTUM_SESSIONS, PriceMove
from engine.offline.decision import leaning_of, report_text
from engine.offline.memories import LayerLeaning, is_reflection, lean_by_layer, memory_sentence, tone
from engine.offline.reading import clean, ended

FULL_MOMENTUM = 0.02
"""Log return from which on momentum counts in full."""
MOMENTUM = 0.8
"""Weight of momentum beside the tone of the events; their weight is 1."""
HELD = 1.0
"""Weight of the position, as a part of the portfolio: the more is held, the more it takes to buy, and the less to
sell."""
SIDED = 0.1
"""Smallest tone at which a layer is said to take a side."""
REPORTS = 0.5
"""Weight of the own agents' reports where they take a side."""
FUND = 0.8
"""Weight of the reference fund's trade in training. Source: TradingGPT §4.2.1 [G8]."""
FUND_TRADES = 0.005
"""Smallest change of a fund's shares that is a trade."""
CITED = 3
"""Memories cited of each layer."""
_BARS: Mapping[str, tuple[float, float]] = {"risk-seeking": (0.4, 0.9), "risk-averse": (0.9, 0.4)}
"""Thresholds of a purchase and of a sale, by risk character."""
_NEUTRAL = (0.65, 0.65)


def reflect(view: ImmediateView) -> Mapping[str, Any]:
    """Answer as the class that `answer_to` names, as plain JSON."""
    layers = lean_by_layer(view.recollections)
    if view.next_move is not None:
        way = (view.next_move > 0) - (view.next_move < 0)
        return {"evidence": _evidence(layers, way), "reason": " ".join(_explanation(view, layers, way))}
    total = _total(view, layers)
    level = _level(view, total)
    way = (level > 0) - (level < 0)
    answer = {"evidence": _evidence(layers, way), "reason": " ".join(_reason(view, layers, way))}
    if view.scale == "three":
        return answer | {"action": _THREE[way]}
    confidence = _confidence(view, level, total)
    return {"signals": _signals(layers)} | answer | {"action": Advice.of_level(level).value, "confidence": confidence}


_THREE = {1: "BUY", -1: "SELL", 0: "HOLD"}


def _confidence(view: ImmediateView, level: int, total: float) -> float:
    """For a trade as far as the evidence goes beyond the threshold, for a hold as far as it stays below it."""
    bar = _bars(view)[0 if total > 0 else 1]
    beyond = min(1.0, abs(total) / (2 * bar))
    return round(beyond if level else 1 - beyond, 2)


def _level(view: ImmediateView, total: float) -> int:
    """The level of the advice, from -2 to 2: a slight change, which five levels know alone, takes half of what a whole
    trade takes, and what is not held is not sold."""
    buy, sell = _bars(view)
    way, bar = (1, buy) if total > 0 else (-1, sell)
    if way < 0 and view.shares <= 0:
        return 0
    slight = view.scale == "five" and abs(total) >= bar / 2
    return 2 * way if abs(total) >= bar else way * slight


def _bars(view: ImmediateView) -> tuple[float, float]:
    """Thresholds of a purchase and of a sale: by the risk appetite of a character, else by its words."""
    if view.traits.risk is not None:
        return _BARS.get(view.traits.risk, _NEUTRAL)
    return next((bars for risk, bars in _BARS.items() if risk in view.facts.risk), _NEUTRAL)


def _total(view: ImmediateView, layers: Sequence[LayerLeaning]) -> float:
    """The tone of the recalled events, the trend, own agents' reports and in training the reference fund's trade, less
    what is held; evidence counts as the character prefers it."""
    trend = MOMENTUM * view.traits.weight("prices") * _trend(view)
    reported = REPORTS * leaning_of(view.reports)
    return tone(layers, view.traits) + trend + reported + FUND * _fund_side(view) - HELD * float(view.weight)


def _trend(view: ImmediateView) -> float:
    """The trend of the price from -1 to 1: momentum, or for a character with a horizon the change over the longest span
    within it, which counts in full from as much as momentum does, by the root of time."""
    longest = _longest(view)
    if longest is None:
        return max(-1.0, min(1.0, (view.facts.momentum or 0.0) / FULL_MOMENTUM))
    full = FULL_MOMENTUM * sqrt(longest.horizon_days / MOMENTUM_SESSIONS)
    return max(-1.0, min(1.0, longest.change / full))


def _longest(view: ImmediateView) -> PriceMove | None:
    """The move over the longest span within a character's horizon, beyond that of momentum."""
    spans = [move for move in view.figures.moves if MOMENTUM_SESSIONS < move.horizon_days <= (view.traits.horizon or 0)]
    return max(spans, key=lambda move: move.horizon_days, default=None)


def _fund_side(view: ImmediateView) -> int:
    """The side of the reference fund's trade, beyond what flows in and out of a fund every day."""
    change = 0.0 if view.fund is None else view.fund.change
    return (change > FUND_TRADES) - (change < -FUND_TRADES)


def _evidence(layers: Sequence[LayerLeaning], way: int) -> Mapping[str, list[str]]:
    """The memories that support the direction; without a direction the strongest one of each layer."""
    found = {layer.layer: layer.strongest(way, CITED if way else 1) for layer in layers}
    return {layer: [memory.handle for memory in found.get(layer, ())] for layer in LAYERS}


def _signals(layers: Sequence[LayerLeaning]) -> Mapping[str, str]:
    """The signal of every layer, before prices are looked at."""
    told = {layer.layer: _layer_line(layer, 0) for layer in layers}
    return {layer: told.get(layer, "none") for layer in LAYERS}


def _reason(view: ImmediateView, layers: Sequence[LayerLeaning], way: int) -> Iterator[str]:
    advice = {1: f"Buy {view.symbol}", -1: f"Sell {view.symbol}", 0: f"Leave {view.symbol} as it is"}[way]
    against = way * view.traits.weight("prices") * _trend(view) < 0
    yield f"{advice}{', although' if against else ':'} the price {_momentum(view)}."
    nature = clean(view.facts.risk, 200).partition(":")[0]
    if nature.startswith("You are "):
        yield f"Advised as {nature.removeprefix('You are ')}."
    yield from _layer_lines(layers, way)
    if view.shares:
        worth = f"{percent(view.weight)} of the portfolio"
        yield f"The position is {view.shares:.2f} shares, {worth}, {signed_percent(view.profit)} against its cost."
    yield from map(report_text, view.reports)
    if view.fund is not None:
        yield f"The reference fund {view.fund.fund} changed its shares by {signed_percent(view.fund.change)}."
    if view.extended is not None:
        yield f"Last period: {ended(clean(view.extended.self_evaluation, 200))}"


def _explanation(view: ImmediateView, layers: Sequence[LayerLeaning], way: int) -> Iterator[str]:
    yield f"The price of {view.symbol} then {_moved(view.next_move or 0.0)}; before that it {_momentum(view)}."
    foretold = [memory for layer in layers for memory in layer.strongest(way, 1)]
    against = [memory for layer in layers for memory in layer.strongest(-way, 1)] if way else []
    if foretold and way:
        yield f"Memory spoke for it: {_quoted(foretold[0])}"
    if against:
        yield f"Memory spoke against it: {_quoted(against[0])}"
    if not foretold:
        yield "Nothing in memory spoke for it."
    elif against:
        yield "What spoke for it weighed more." if len(foretold) >= len(against) else "It went against most memories."


def _layer_lines(layers: Sequence[LayerLeaning], way: int) -> Iterator[str]:
    yield from (_layer_line(layer, way) for layer in layers)
    if not layers:
        yield "Memory holds nothing on it yet."


def _layer_line(layer: LayerLeaning, way: int) -> str:
    lean = tone([layer])
    side = "for a rise" if lean > SIDED else "for a fall" if lean < -SIDED else "neither way"
    said = layer.strongest(way, 1) or layer.strongest(0, 1)
    # A reflection quotes what was read before, and that again what was read before it.
    quoted = f": {_quoted(said[0])}" if said and not is_reflection(said[0]) else "."
    return f"The {layer.layer} memory speaks {side}{quoted}"


def _quoted(memory: Recollection) -> str:
    return f"{clean(memory.kind, 40)} of {memory.session}, {ended(memory_sentence(memory, 220))}"


def _momentum(view: ImmediateView) -> str:
    if (longest := _longest(view)) is not None:
        return f"{_moved(longest.change)} over {longest.horizon_days} sessions"
    moved = view.facts.momentum
    return "has no history yet" if moved is None else f"{_moved(moved)} over {view.facts.sessions} sessions"


def _moved(change: float) -> str:
    """`rose 1.72%`, `stood still`."""
    return f"{'rose' if change > 0 else 'fell'} {percent(abs(change))}" if change else "stood still"
