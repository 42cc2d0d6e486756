"""Rules for the decision agent: a sized trade and its reasons, by the preset's sizing rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from engine.agents.agent import Report
from engine.agents.decision import DecisionView
from engine.agents.rendering import money, percent
from engine.domain.decision import Action, SizingRule
from engine.offline.leaning import ChartLeaning, Lessons, of_chart, of_reflections
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
    return _sale(case, rule, size, band, "the trend has turned and signals confirm it")


def _secure_gains(case: Case) -> Choice | None:
    """Sell a part of a gain when the price is overbought, not merely high, and not day after day."""
    holding, sizing = case.view.holding, case.view.sizing
    recently = any(outcome.action is Action.SELL for outcome in case.view.outcomes[-REST:])
    stretched = case.chart.overbought + (case.chart.signal < 0) + (case.news < 0)
    if not case.held or recently or stretched < (3 if case.lessons.sells_too_early else 2):
        return None
    if holding.unrealized_fraction > sizing.gain_over_cost:
        rule = SizingRule.GAIN_OVER_COST
        why = f"the position is {percent(holding.unrealized_fraction)} over cost and the price is stretched"
    elif case.view.holding.gains_in_a_row >= sizing.gains_in_a_row:
        rule = SizingRule.GAINS_IN_A_ROW
        why = f"{case.view.holding.gains_in_a_row} sessions of gains in a row have stretched the price"
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
    return _purchase(case, rule, size, band, "a strong rise is on and nothing speaks of a turn")


def _dip(case: Case) -> Choice | None:
    rule = SizingRule.DIP_IN_UPTREND
    band = case.view.sizing.buy.get(rule)
    fallen_back = case.chart.oversold > 0 or case.chart.signal > 0
    if band is None or not fallen_back or case.chart.trend < 0 or case.news < 0 or case.chart.overbought:
        return None
    size = 3 + case.news + min(1, case.chart.signal) - case.lessons.caution - case.lessons.buys_too_early
    return _purchase(case, rule, size, band, "the price has fallen back inside a rise that is whole")


def _hold(case: Case) -> Choice:
    if case.chart.trend > 0 and case.outlook > 0:
        return Choice("HOLD", SizingRule.UPTREND_GOES_ON, 0, "the rise goes on and nothing calls for more")
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
        yield f"Chart (trend {case.chart.trend:+d}, signals {case.chart.signal:+d}): {'. '.join(view.chart.lines())}."
    if view.news is not None:
        points = [*view.news.positive[:1], *view.news.negative[:1]] or view.news.summary[:1]
        yield f"News, {view.news.sentiment}: {view.news.reason} {' '.join(points)}"
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
        position = f"price {money(holding.price)} against an average cost of {money(holding.average_cost)}"
        position += f" ({percent(holding.unrealized_fraction)})"
    return f"{position}; cash {percent(holding.cash_fraction)} of the portfolio"


def _learnt(lessons: Lessons) -> Iterator[str]:
    if lessons.caution:
        yield "smaller trades after poor ones" if lessons.caution > 0 else "larger trades after good ones"
    if lessons.sells_too_early:
        yield "more patience before selling"
    if lessons.buys_too_early:
        yield "more evidence before buying"
    if lessons.misses_rises:
        yield "less hesitation in a rise"
