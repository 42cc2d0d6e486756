"""Rules for the low-level reflection: known events linked to the moves of the price, and a lesson that names both.

Rules for the chart agent: MACD crossover, KDJ with RSI as filter, price between the Bollinger bands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.agents.chart import ChartView
from engine.agents.intelligence import MarketIntelligence
from engine.agents.news import NewsDigest
from engine.agents.reflections import LowLevelView
from engine.agents.rendering import percent, signed_percent
from engine.domain.chart import ChartSpec, Line, Series
from engine.domain.text import counted
from engine.market.figures import HORIZONS, PriceMove
from engine.offline.memories import memory_sentence
from engine.offline.reading import clean, ended, main_sentence, names_of, read, salient_words

NOTABLE = 0.001
"""A change below this is no move."""
QUOTED = 300
"""Characters of an event that are quoted."""
_NAMED = 3
"""Weight that naming the company adds when the item to quote is chosen: feeds are full of other companies' news."""
_TERMS = ("short", "medium", "long")
_SIGNS = {"positive": 1, "negative": -1, "neutral": 0, "bullish": 1, "bearish": -1}
_ADVICE: Mapping[tuple[int, int], str] = {
    (1, 1): "when news of this kind carries the price, go with it",
    (1, -1): "when good news alone does not carry the price, wait until the price confirms it",
    (-1, -1): "when news of this kind weighs on the price, hold less of it at once",
    (-1, 1): "when the price shrugs such news off, do not sell on it alone",
}
_NO_MOVE = "when the price waits for more, do nothing on this alone"


@dataclass(frozen=True, slots=True)
class _Event:
    """The events of a horizon: the balance of its items by weight, and the sentence and weight of the one that is
    quoted."""

    balance: int = 0
    quote: str = ""
    weight: int = 0


def reflect(view: LowLevelView) -> Mapping[str, str]:
    """Answer as a LowLevelReflection, as plain JSON."""
    events = {term: _event(view, term) for term in _TERMS}
    reading = read_chart(ChartView(view.symbol, view.session, view.owner, view.chart, view.table))
    states = {
        "short": reading["macd"]["trend"],
        "medium": reading["kdj_rsi"]["trend"],
        "long": (reading["bollinger"] or reading["macd"])["trend"],
    }
    answer = {
        f"{term}_term": _analysis(view, span, events[term], states[term])
        for term, span in zip(_TERMS, HORIZONS, strict=True)
    }
    main = _main_move(view)
    # Memories are no events of today: a lesson about them would quote lessons that quote lessons.
    event = max(
        (_reported(view, term) for term in _TERMS), key=lambda one: (one.weight, abs(one.balance), bool(one.quote))
    )
    words = salient_words((event.quote, states["long"]), 10, (view.symbol,))
    direction = _verb(main.change if main else 0.0)
    return answer | {
        "lesson": _lesson(view, event, states["long"], main),
        "query": " ".join((view.symbol, *words, direction)),
    }


def _event(view: LowLevelView, term: str) -> _Event:
    """Today's event of a horizon; for the long one, where there is none, that of the past."""
    event = _reported(view, term)
    if not event.quote and view.past is not None and term == "long":
        past = read(view.past.summary)
        return _Event(past.side, main_sentence(past, QUOTED))
    return event


def _reported(view: LowLevelView, term: str) -> _Event:
    report = view.intelligence
    if isinstance(report, MarketIntelligence):
        items = [item for item in report.received if item.concerns_company and item.horizon == term]
        if items:
            balance = sum(_SIGNS[item.effect] * item.weight for item in items)
            sided = [item for item in items if _SIGNS[item.effect] * balance > 0] or items
            # Of those that weigh alike the one that names the company is about it for sure.
            names = names_of(view.symbol, (item.summary for item in items))
            named = [bool(names and names.search(item.summary)) for item in sided]
            main, _ = max(zip(sided, named, strict=True), key=lambda one: one[0].weight + _NAMED * one[1])
            return _Event(balance, clean(main.summary, QUOTED), main.weight)
    if isinstance(report, NewsDigest) and term == "short":
        balance = _SIGNS[report.sentiment]
        side = report.positive if balance > 0 else report.negative if balance < 0 else report.summary
        return _Event(balance, clean((side or report.summary)[0], QUOTED))
    return _Event()


def _analysis(view: LowLevelView, span: int, event: _Event, state: str) -> str:
    moves = [move for move in view.moves if move.horizon_days == span]
    if not moves:
        return f"There are too few sessions for a move over {counted(span, 'session')}; the chart says: {state}."
    moved = "; ".join(_move_text(move) for move in moves)
    way = _way(next((move for move in moves if move.hindsight), moves[-1]).change)
    if not event.balance:
        why = "without news"
        if event.quote:
            why = f"on news that takes no side ({event.quote})"
    elif not way:
        why = f"the {_side(event)} news did not move it: {event.quote}"
    elif (event.balance > 0) == (way > 0):
        why = f"in line with the {_side(event)} news: {event.quote}"
    else:
        why = f"despite the {_side(event)} news, which was known already or weighed less: {event.quote}"
    earlier = _earlier(view) if span == HORIZONS[-1] else ""
    return f"The price {moved}, {ended(why)} The chart says: {state}.{earlier}"


def _earlier(view: LowLevelView) -> str:
    for memory in (lesson for lessons in view.lessons[-1:] for lesson in lessons[:1]):
        lesson = memory_sentence(memory, 160)
        return f" A lesson of {memory.session} said: {ended(lesson)}" if lesson else ""
    return ""


def _lesson(view: LowLevelView, event: _Event, state: str, main: PriceMove | None) -> str:
    """The advice first, then the case, so that a cut text keeps the advice."""
    quoted = event.quote.replace('"', "'")
    case = f'had "{quoted}"' if quoted else "had no news of weight"
    case += f' and the chart said "{state}"'
    if main is None:
        return f"There is no move to learn from yet: on {view.session} {view.symbol} {case}."
    advice = _advice(event, state, _way(main.change))
    return f"{advice[0].upper()}{advice[1:]}: on {view.session} {view.symbol} {case}; the price {_move_text(main)}."


def _advice(event: _Event, state: str, way: int) -> str:
    """The advice after a move: by the side of the news, or without one by the trend of the chart."""
    side = (event.balance > 0) - (event.balance < 0)
    if side or not way:
        return _ADVICE.get((side, way), _NO_MOVE)
    news = "on news that takes no side" if event.quote else "without news"
    moves = f"when the price {'rises' if way > 0 else 'falls'} {news}"
    trend = ("uptrend" in state.lower()) - ("downtrend" in state.lower())
    if not trend:
        return f"{moves} or a trend, do nothing on either alone"
    return f"{moves}, follow the chart" if trend == way else f"{moves} and against the chart, wait until the two agree"


def _main_move(view: LowLevelView) -> PriceMove | None:
    """The move to learn from: of those that followed, where training shows them, the largest for its horizon."""
    moves: Sequence[PriceMove] = [move for move in view.moves if move.hindsight] or view.moves
    return max(moves, key=lambda move: abs(move.change) / move.horizon_days**0.5, default=None)


def _move_text(move: PriceMove) -> str:
    then = "then " if move.hindsight else ""
    return f"{then}{_moved(move.change)} over {counted(move.horizon_days, 'session')}"


def _moved(change: float) -> str:
    """`rose 1.72%`, `stood still (+0.04%)`."""
    return f"{_verb(change)} {percent(abs(change))}" if _way(change) else f"{_verb(change)} ({signed_percent(change)})"


def _verb(change: float) -> str:
    return {1: "rose", -1: "fell", 0: "stood still"}[_way(change)]


def _way(change: float) -> int:
    return (change > NOTABLE) - (change < -NOTABLE)


def _side(event: _Event) -> str:
    return "good" if event.balance > 0 else "bad"


FRESH = 3
"""Sessions for which a crossover counts as fresh."""
_SIDES = {
    **dict.fromkeys(("Buy", "Oversold dip", "Uptrend", "Strong uptrend", "Recovery"), "bullish"),
    **dict.fromkeys(("Sell", "Overbought", "Downtrend", "Strong downtrend", "Pullback"), "bearish"),
}
TOO_FEW = {"trend": "Too few sessions to say", "signal": "No signal"}


def read_chart(view: ChartView) -> Mapping[str, Any]:
    """A ChartReading of the view, as plain JSON."""
    chart = view.chart
    bollinger = _bollinger(chart)
    return {
        "macd": _sided(_macd(chart)),
        "kdj_rsi": _sided(_kdj_rsi(chart)),
        "bollinger": None if bollinger is None else _sided(bollinger),
    }


def _sided(reading: Mapping[str, str]) -> Mapping[str, str]:
    """A reading with the side of its signal, which begins with what it advises, or with the trend that goes on."""
    return {**reading, "side": _SIDES.get(reading["signal"].partition(":")[0], "neutral")}


def _macd(chart: ChartSpec) -> Mapping[str, str]:
    line, signal = _tail(_line(chart, "MACD", "fast")), _tail(_line(chart, "MACD", "signal"))
    if len(line) < 2:
        return TOO_FEW
    gaps = [a - b for a, b in zip(line, signal, strict=True)]
    above = gaps[-1] > 0
    side, gap = "above" if above else "below", "widening" if abs(gaps[-1]) > abs(gaps[-2]) else "narrowing"
    word = ("Uptrend" if line[-1] > 0 else "Recovery") if above else ("Pullback" if line[-1] > 0 else "Downtrend")
    trend = f"{word}: MACD {_price(line[-1])} is {side} its signal line, gap {gap}"
    ago = _crossed_ago(gaps)
    if ago is None:
        return {"trend": trend, "signal": f"{word}: MACD stays {side} its signal line"}
    when = "this session" if ago == 0 else f"{counted(ago, 'session')} ago"
    return {"trend": trend, "signal": f"{'Buy' if above else 'Sell'}: MACD crossed {side} its signal line {when}"}


def _kdj_rsi(chart: ChartSpec) -> Mapping[str, str]:
    k, d = _tail(_line(chart, "KDJ", "k")), _tail(_line(chart, "KDJ", "d"))
    rsi = _tail(_line(chart, "RSI 14", "line"))
    if len(k) < 2 or len(d) < 2 or not rsi:
        return TOO_FEW
    strength = rsi[-1]
    mood = "bullish" if strength >= 50 else "bearish"
    mood = "overbought" if strength >= 70 else "oversold" if strength <= 30 else mood
    trend = f"RSI at {strength:.1f} is {mood}, K {k[-1]:.1f} {'above' if k[-1] > d[-1] else 'below'} D {d[-1]:.1f}"
    ago = _crossed_ago([a - b for a, b in zip(k, d, strict=True)])
    if ago is None:
        return {"trend": trend, "signal": "No new crossover of K and D"}
    up = k[-1] > d[-1]
    if up and min(k[-1], d[-1]) < 50 and strength < 60:
        signal = f"Buy: K crossed above D with RSI at {strength:.1f}"
    elif not up and max(k[-1], d[-1]) > 70 and strength > 60:
        signal = f"Sell: K crossed below D with RSI at {strength:.1f}"
    else:
        signal = "K crossed D, but RSI does not confirm"
    return {"trend": trend, "signal": signal}


def _bollinger(chart: ChartSpec) -> Mapping[str, str] | None:
    by_role = {line.role: _tail(line.values) for line in chart.lines}
    lower, upper, short, long = (by_role.get(role, []) for role in ("lower", "upper", "short", "long"))
    if not chart.candles or not lower or not short:
        return None
    close = chart.candles.close[-1]
    width = upper[-1] - lower[-1]
    place = (close - lower[-1]) / width if width else 0.5
    trend = _trend(close, short, long)
    return {"trend": trend, "signal": _reversion(place, lower[-1], upper[-1], trend.partition(":")[0])}


def _trend(close: float, short: Sequence[float], long: Sequence[float]) -> str:
    """The trend by the two moving averages, the longer one's slope over five sessions included."""
    if not long:
        return (
            "Uptrend: close above the 10-session average"
            if close > short[-1]
            else "Downtrend: close below the 10-session average"
        )
    rising = long[-1] > long[max(-6, -len(long))]
    if close > short[-1] > long[-1] and rising:
        return "Strong uptrend: close above the rising 10- and 50-session averages"
    if close > long[-1]:
        both = "Uptrend: close above the 10- and 50-session averages"
        return both if close > short[-1] else "Uptrend: close above the 50-session average, below the 10-session one"
    if rising and close > 0.97 * long[-1]:
        return "Mixed: close just below the rising 50-session average"
    both = "Strong downtrend: close below the 10- and 50-session averages"
    return both if close < short[-1] else "Downtrend: close below the 50-session average"


def _reversion(place: float, lower: float, upper: float, trend: str) -> str:
    if place >= 0.97:
        return f"Overbought: the close is at the upper Bollinger band, {_price(upper)}"
    if place <= 0.15:
        return f"Oversold dip: the close is near the lower band, {_price(lower)}"
    return f"{trend}: the close has room between the Bollinger bands"


def _crossed_ago(gaps: Sequence[float]) -> int | None:
    """Sessions since the sign last changed, where that is fresh."""
    for ago in range(min(FRESH, len(gaps) - 1)):
        if (gaps[-1 - ago] > 0) != (gaps[-2 - ago] > 0):
            return ago
    return None


def _line(chart: ChartSpec, panel: str, role: str) -> Series:
    lines: dict[tuple[str, str], Line] = {(p.name, line.role): line for p in chart.panels for line in p.lines}
    found = lines.get((panel, role))
    return () if found is None else found.values


def _tail(values: Series, count: int = 10) -> list[float]:
    """The last defined values, oldest first; empty where the very last is undefined."""
    if not values or values[-1] is None:
        return []
    return [v for v in values[-count:] if v is not None]


def _price(value: float) -> str:
    return f"{value:.4g}" if 0 < abs(value) < 1 else f"{value:.2f}"
