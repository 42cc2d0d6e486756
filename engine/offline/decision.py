"""Rules for the decision agent: a sized trade and its reasons, by the preset's sizing rules.

The leaning of agents' reports, whether a model or a rule wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from engine.agents.agent import Report
from engine.agents.chart import ChartReading
from engine.agents.decision import DecisionView
from engine.agents.reflections import PerformanceReflection, SignalReflection
from engine.agents.rendering import money, percent, signed_percent
from engine.domain.decision import Action, SizingRule
from engine.offline.reading import ended
from engine.settings.values import Band

_CAUTION = {"aggressive": -1, "moderate": 0, "conservative": 1}
REST = 3
"""Sessions without a further partial sale after one."""


@dataclass(frozen=True, slots=True)
class Case:
    """The weighed evidence: `outlook` sums trend, signals, news and own agents' reports, from about -8 to 8."""

    view: DecisionView
    chart: ChartLeaning
    lessons: Lessons
    news: int
    reports: int = 0

    @property
    def outlook(self) -> int:
        return self.chart.trend + self.chart.signal + self.news + self.reports

    @property
    def held(self) -> bool:
        return self.view.holding.shares > 0


@dataclass(frozen=True, slots=True)
class Choice:
    """The proposal of one rule with its reason."""

    recommendation: str
    rule: SizingRule
    size: int = 0
    because: str = ""


def decide(view: DecisionView) -> Mapping[str, Any]:
    """Answer as a TradeAnswer, as plain JSON."""
    case = weigh(view)
    choice = choose(case)
    return {
        "symbol": view.symbol,
        "explanation": "\n".join((conclusion(choice), *grounds(case))),
        "recommendation": choice.recommendation,
        "position_size": choice.size,
        "rule": choice.rule.value,
    }


def weigh(view: DecisionView) -> Case:
    """The case by FinVision's reports; the owner's preference makes trades larger or smaller."""
    sentiment = {"bullish": 1, "bearish": -1, "neutral": 0}
    lessons = of_reflections(view.short_term, view.medium_term, view.signals)
    return Case(
        view,
        of_chart(view.chart),
        replace(lessons, caution=lessons.caution + _CAUTION[view.preference]),
        sentiment[view.news.sentiment] if view.news else 0,
        leaning_of(view.reports),
    )


def leaning_of(reports: Sequence[Report]) -> int:
    """The side of the own agents' reports together, at most 1 either way: their record is not known."""
    return max(-1, min(1, sum(report.leaning for report in reports)))


def choose(case: Case) -> Choice:
    """The choice of the first rule that applies, else to hold."""
    return next(filter(None, _choices(case)), None) or _hold(case)


def _choices(case: Case) -> Iterator[Choice | None]:
    """The rules in order of urgency: a reversal, gains to secure, a strong uptrend, a dip."""
    yield _reversal(case)
    yield _secure_gains(case)
    yield _strong_uptrend(case)
    yield _dip(case)


def _reversal(case: Case) -> Choice | None:
    """Sell after a reversal: sooner after losses, later after sales that came too early."""
    rule = SizingRule.REVERSAL
    band = case.view.sizing.sell.get(rule)
    bar = -3 if case.lessons.sells_too_early else -2
    if band is None or not _can_sell(case) or case.chart.trend > -2 or case.outlook > bar:
        return None
    # A fall that has only begun and is already oversold is no time to sell; an established downtrend is.
    if case.chart.oversold and case.chart.trend > -3:
        return None
    size = 4 - case.outlook + max(0, case.lessons.caution)
    return _sale(case, rule, size, band, "the trend has turned down and the signals confirm it")


def _secure_gains(case: Case) -> Choice | None:
    """Sell a part of a gain when the price is overbought, not merely high, and not day after day."""
    holding, sizing = case.view.holding, case.view.sizing
    recently = any(outcome.action is Action.SELL for outcome in case.view.outcomes[-REST:])
    stretched = case.chart.overbought + (case.chart.signal < 0) + (case.news < 0)
    if not case.held or recently or stretched < (3 if case.lessons.sells_too_early else 2):
        return None
    if holding.unrealized_fraction > sizing.gain_over_cost:
        rule = SizingRule.GAIN_OVER_COST
        why = f"the position is {percent(holding.unrealized_fraction)} above cost and the price looks stretched"
    elif case.view.holding.gains_in_a_row >= sizing.gains_in_a_row:
        rule = SizingRule.GAINS_IN_A_ROW
        why = f"{case.view.holding.gains_in_a_row} gains in a row have stretched the price"
    else:
        return None
    band = sizing.sell.get(rule)
    return None if band is None else _sale(case, rule, 3 + (case.news < 0) + (case.lessons.caution > 0), band, why)


def _strong_uptrend(case: Case) -> Choice | None:
    rule = SizingRule.STRONG_UPTREND
    band = case.view.sizing.buy.get(rule)
    bar = 3 + (case.lessons.caution >= 2) + case.lessons.buys_too_early - case.lessons.misses_rises
    if band is None or case.chart.trend < 2 or case.outlook < bar or case.chart.overbought >= 2:
        return None
    size = 2 + case.outlook - case.chart.overbought - case.lessons.caution + case.lessons.misses_rises
    return _purchase(case, rule, size, band, "the uptrend is strong and nothing points to a reversal")


def _dip(case: Case) -> Choice | None:
    rule = SizingRule.DIP_IN_UPTREND
    band = case.view.sizing.buy.get(rule)
    fallen_back = case.chart.oversold > 0 or case.chart.signal > 0
    if band is None or not fallen_back or case.chart.trend < 0 or case.news < 0 or case.chart.overbought:
        return None
    size = 3 + case.news + min(1, case.chart.signal) - case.lessons.caution - case.lessons.buys_too_early
    return _purchase(case, rule, size, band, "the price has pulled back within an intact uptrend")


def _hold(case: Case) -> Choice:
    if case.chart.trend > 0 and case.outlook > 0:
        return Choice("HOLD", SizingRule.UPTREND_GOES_ON, 0, "the uptrend goes on and nothing calls for more")
    return Choice("HOLD", SizingRule.UNCERTAINTY, 0, "the evidence is too mixed or too thin to act on")


def _sale(case: Case, rule: SizingRule, size: int, band: Band, why: str) -> Choice:
    return Choice("SELL", rule, _within(size, band), why)


def _purchase(case: Case, rule: SizingRule, size: int, band: Band, why: str) -> Choice | None:
    """A buy within its band and the cash above the floor; None where the cash does not allow the rule."""
    spare = (case.view.holding.cash_fraction - case.view.sizing.cash_floor) * 100
    if case.view.holding.cash_fraction <= (band.cash_above or Decimal(0)) or spare < 1:
        return None
    return Choice("BUY", rule, max(1, min(_within(size, band), int(spare))), why)


def _can_sell(case: Case) -> bool:
    return case.held or case.view.sizing.allow_short


def _within(size: int, band: Band) -> int:
    """The size within its band and within the 1 to 10 of any trade."""
    return int(max(Decimal(1), band.smallest, min(Decimal(size), band.largest, Decimal(10))))


def conclusion(choice: Choice) -> str:
    """The action, its size and the rule, in one sentence."""
    size = f" {choice.size}% of the portfolio" if choice.size else ""
    return f'{choice.recommendation}{size} by the rule "{choice.rule.value}": {choice.because}.'


def grounds(case: Case) -> Iterator[str]:
    """The evidence: a line per kind, quoting the reports."""
    view = case.view
    if view.chart is not None:
        yield f"Chart: {view.chart.sentences()}"
    if view.news is not None:
        points = [*view.news.positive[:1], *view.news.negative[:1]] or view.news.summary[:1]
        yield f"News, {view.news.sentiment}: {' '.join(map(ended, (view.news.reason, *points)))}"
    yield from _reviews(view)
    yield from map(report_text, view.reports)
    if case.lessons != Lessons():
        yield f"Lessons: {', '.join(_learnt(case.lessons))}."
    yield f"Position: {position_text(view)}."
    if view.absent:
        yield f"Without a report: {'; '.join(view.absent)}."


def _reviews(view: DecisionView) -> Iterator[str]:
    for name, reflection in (("Short term", view.short_term), ("Medium term", view.medium_term)):
        if reflection is not None:
            yield f"{name}: {reflection.effectiveness}. {reflection.return_trend}."
    if view.signals is not None:
        yield f"Past signals: {' '.join((view.signals.effectiveness, *view.signals.missed[:2]))}"


def report_text(report: Report) -> str:
    """The report of an own agent in one line."""
    return f"{report.agent}: {'. '.join(line.rstrip('.') for line in report.lines)}."


def position_text(view: DecisionView) -> str:
    """The position, its gain and the cash."""
    holding = view.holding
    position = "nothing held"
    if holding.shares:
        position = f"bought at {money(holding.average_cost)} on average, now {money(holding.price)}"
        position += f" ({signed_percent(holding.unrealized_fraction)})"
    return f"{position}; {percent(holding.cash_fraction)} of the portfolio in cash"


def _learnt(lessons: Lessons) -> Iterator[str]:
    if lessons.caution:
        yield "smaller trades after poor ones" if lessons.caution > 0 else "larger trades after good ones"
    if lessons.sells_too_early:
        yield "more patience before selling"
    if lessons.buys_too_early:
        yield "more evidence before buying"
    if lessons.misses_rises:
        yield "less hesitation in a rise"


_DENIED = r"(?<!\bno )(?<!\bnot )(?<!\bnot yet )(?<!\bno clear )(?<!\bwithout )"
_STRONG = re.compile(rf"{_DENIED}\bstrong(?:ly)?\s+(?P<way>up|down|bullish|bearish|ris|fall|rall)", re.IGNORECASE)
_RISING = re.compile(rf"{_DENIED}\b(?:uptrend|upward|bullish|rising|rally\w*|recovery|higher highs?)\b", re.IGNORECASE)
_FALLING = re.compile(
    rf"{_DENIED}\b(?:downtrend|downward|bearish|falling|pullback|breakdown|lower lows?)\b", re.IGNORECASE
)
_BUY = re.compile(rf"{_DENIED}\b(?:buy|accumulate|go long|bullish cross\w*)\b", re.IGNORECASE)
_SELL = re.compile(rf"{_DENIED}\b(?:sell|take profits?|go short|bearish cross\w*|exit)\b", re.IGNORECASE)
_OVERBOUGHT = re.compile(rf"{_DENIED}\boverbought\b", re.IGNORECASE)
_OVERSOLD = re.compile(rf"{_DENIED}\b(?:oversold|dip)\b", re.IGNORECASE)
_POOR = re.compile(r"\b(?:ineffective|poor\w*|weak\w*|mostly wrong|losing|unprofitable|not effective)\b", re.IGNORECASE)
_GOOD = re.compile(rf"{_DENIED}\b(?:effective|good|well|strong\w*|mostly right|profitable|successful)\b", re.IGNORECASE)
_FALLING_RETURN = re.compile(r"\b(?:falling|declin\w+|negative|downward|dropping)\b", re.IGNORECASE)
_SOLD_EARLY = re.compile(r"\bsold too early|premature\w* s(?:e|o)l|early sell", re.IGNORECASE)
_BOUGHT_EARLY = re.compile(r"\bbought too early|premature\w* b(?:uy|ought)|early buy", re.IGNORECASE)
_MISSED_RISE = re.compile(r"\bmissed (?:a |the )?(?:\w+ )?(?:rise|rally|buy\w*|gain|upside)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ChartLeaning:
    """`trend` from about -4 to 4, `signal` buys less sells of the three readings, and the number of readings that
    call the price overbought or oversold."""

    trend: int = 0
    signal: int = 0
    overbought: int = 0
    oversold: int = 0


@dataclass(frozen=True, slots=True)
class Lessons:
    """The lessons of reflections: `caution` above 0 asks for smaller trades, below for larger ones; the others are
    mistakes to avoid."""

    caution: int = 0
    sells_too_early: bool = False
    buys_too_early: bool = False
    misses_rises: bool = False


def of_chart(reading: ChartReading | None) -> ChartLeaning:
    """The leaning of a chart reading."""
    if reading is None:
        return ChartLeaning()
    readings = [read for read in (reading.macd, reading.kdj_rsi, reading.bollinger) if read is not None]
    both = [f"{read.trend} {read.signal}" for read in readings]
    return _leaning([read.trend for read in readings], [read.signal for read in readings], both)


def of_words(texts: Sequence[str]) -> ChartLeaning:
    """The leaning of sentences about the price."""
    return _leaning(texts, texts, texts)


def of_reflections(
    short: PerformanceReflection | None, medium: PerformanceReflection | None, signals: SignalReflection | None
) -> Lessons:
    """The lessons of the reflections. The short term counts double, because it is the more recent."""
    caution = 2 * _caution(short) + _caution(medium)
    if signals is None:
        return Lessons(caution)
    return of_mistakes(signals.missed, caution + _poor_or_good(signals.effectiveness))


def of_mistakes(mistakes: Sequence[str], caution: int = 0) -> Lessons:
    """The lessons of named mistakes."""
    text = " ".join(mistakes)
    return Lessons(
        caution,
        _SOLD_EARLY.search(text) is not None,
        _BOUGHT_EARLY.search(text) is not None,
        _MISSED_RISE.search(text) is not None,
    )


def _leaning(trends: Sequence[str], signals: Sequence[str], texts: Sequence[str]) -> ChartLeaning:
    return ChartLeaning(
        sum(_direction(text) for text in trends),
        sum(_hit(_BUY, text) - _hit(_SELL, text) for text in signals),
        sum(_hit(_OVERBOUGHT, text) for text in texts),
        sum(_hit(_OVERSOLD, text) for text in texts),
    )


def _caution(reflection: PerformanceReflection | None) -> int:
    if reflection is None:
        return 0
    return _poor_or_good(reflection.effectiveness) + _hit(_FALLING_RETURN, reflection.return_trend)


def _poor_or_good(text: str) -> int:
    return 1 if _POOR.search(text) else -1 if _GOOD.search(text) else 0


def _direction(text: str) -> int:
    strong = _STRONG.search(text)
    if strong is not None:
        return 2 if strong["way"].lower() in ("up", "bullish", "ris", "rall") else -2
    return _hit(_RISING, text) - _hit(_FALLING, text)


def _hit(pattern: re.Pattern[str], text: str) -> int:
    return 1 if pattern.search(text) else 0
