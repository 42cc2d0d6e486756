"""Rules for the decision with evidence: FinVision's rules with intelligence, memories, lessons and tools as well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.agents.decision import EvidenceView, FindingsView
from engine.agents.evidence import shown_text
from engine.agents.intelligence import MarketIntelligence
from engine.agents.reflections import HighLevelReflection
from engine.domain.decision import Action, Outcome
from engine.domain.recollection import Recollection
from engine.offline.decision import Case, choose, conclusion, grounds, position_text, weigh
from engine.offline.leaning import ChartLeaning, Lessons, of_mistakes, of_words
from engine.offline.memories import LayerLeaning, lean_by_layer, memory_sentence, side_of, side_of_summary
from engine.offline.reading import clean, ended, read
from engine.offline.reflections import SHARE_OF_GOOD, SHARE_OF_POOR

CITED = 2
"""Memories cited of each layer."""
SIDE = 0.3
"""Smallest balance by weight at which the intelligence of the day takes a side."""
_WORDS = {1: "Positive", -1: "Negative", 0: "Mixed"}
_LEANINGS = {1: "speaks for it", -1: "speaks against it", 0: "takes no side"}


@dataclass(frozen=True, slots=True)
class Weighed:
    """The evidence beside FinVision's reports: sides of the day's intelligence and of memory, the leaning of the
    reflections on the price, the balance of the tools, and the leaning of each layer of memory."""

    today: int
    memory: int
    moves: ChartLeaning
    tools: int
    layers: Sequence[LayerLeaning]


@dataclass(frozen=True, slots=True)
class Stance:
    """An action with its reason, and the sentence that an explanation begins with."""

    action: str
    because: str
    conclusion: str


def decide(view: EvidenceView) -> Mapping[str, Any]:
    """Answer as an EvidencedTrade, as plain JSON."""
    weighed = weigh_evidence(view, view.recollections)
    case = case_of(view, weighed)
    choice = choose(case)
    cited = _cited(weighed.layers, choice.recommendation)
    reasons = reasoned(view, weighed, case, Stance(choice.recommendation, choice.because, conclusion(choice)), cited)
    evidence = [memory.handle for memory in cited]
    return {**reasons, "evidence": evidence, "position_size": choice.size, "rule": choice.rule.value}


def weigh_evidence(view: FindingsView, recollections: Sequence[Recollection] = ()) -> Weighed:
    """The evidence beside FinVision's reports, weighed: of memory the recollections, or else their summary."""
    layers = lean_by_layer(recollections)
    memory = side_of(layers) if layers or view.past is None else side_of_summary(view.past.summary)
    return Weighed(_today(view.intelligence), memory, _moves(view), _tools(view), layers)


def reasoned(
    view: FindingsView, weighed: Weighed, case: Case, stance: Stance, cited: Sequence[Recollection] = ()
) -> dict[str, Any]:
    """The fields that decisions with and without a size share: reasoning, action, explanation."""
    return {
        "sentiment": _limited(_sentiment(view, weighed)),
        "price_view": _limited(_price_view(view, case)),
        "lessons": _limited(_lessons(view, weighed.layers)),
        "indicators": _limited(_indicators(view, weighed)),
        "position": _limited(f"{position_text(view)}; {stance.because}"),
        "symbol": view.symbol,
        "explanation": "\n".join((stance.conclusion, *grounds(case), *_evidence_lines(view, weighed, cited))),
        "recommendation": stance.action,
    }


def case_of(view: FindingsView, weighed: Weighed) -> Case:
    """FinVision's case with the rest added. Tools count as one signal at most, because they have misled before."""
    case = weigh(view)
    chart = case.chart if view.chart is not None else weighed.moves
    signal = chart.signal + max(-1, min(1, weighed.tools))
    return replace(
        case,
        chart=replace(chart, signal=signal),
        lessons=_with_reviews(view, case.lessons),
        news=max(-2, min(2, (case.news or weighed.today) + weighed.memory)),
    )


def _today(intelligence: MarketIntelligence | None) -> int:
    """The side of the day's intelligence, its items counted by their weight."""
    if intelligence is None:
        return 0
    good, bad = (
        sum(item.weight for item in intelligence.items if item.concerns_company and item.effect == effect)
        for effect in ("positive", "negative")
    )
    balance = (good - bad) / (good + bad + 4)
    return (balance > SIDE) - (balance < -SIDE)


def _moves(view: FindingsView) -> ChartLeaning:
    """The leaning of the reflections on the price, for presets without a chart agent: the low-level one's text about
    the chart and the immediate one's advice."""
    words: list[str] = []
    if view.low_level is not None:
        parts = (view.low_level.short_term, view.low_level.medium_term, view.low_level.long_term)
        words = [text.partition("The chart says: ")[2] or text for text in parts]
    leaning = of_words(words)
    if view.immediate is None:
        return leaning
    advice = view.immediate.recommendation.lower()
    way = (advice == "buy" or "increase" in advice) - (advice == "sell" or "decrease" in advice)
    strength = 1 if "slightly" in advice else 2
    return replace(leaning, trend=leaning.trend + strength * way, signal=leaning.signal + way)


def _tools(view: FindingsView) -> int:
    """Buy signals less sell signals of the tools; an expert's note counts by its text."""
    return sum(
        read(tool.explanation).side if tool.signal == "guidance" else (tool.signal == "buy") - (tool.signal == "sell")
        for tool in view.tools
    )


def _with_reviews(view: FindingsView, lessons: Lessons) -> Lessons:
    """The lessons with those of the judged decisions: larger or smaller trades, named mistakes."""
    caution = lessons.caution + _poor_trades(view.high_level, view.outcomes)
    named = of_mistakes(view.high_level.improvements if view.high_level is not None else ())
    return Lessons(
        caution,
        lessons.sells_too_early or named.sells_too_early,
        lessons.buys_too_early or named.buys_too_early,
        lessons.misses_rises or named.misses_rises,
    )


def _poor_trades(review: HighLevelReflection | None, outcomes: Sequence[Outcome]) -> int:
    """1 where most of the judged trades were wrong, -1 where most were right. A HOLD is no trade, however right: it is
    known by the record or, of further back, by how the reason begins."""
    held = {one.decision_session for one in outcomes if one.action is Action.HOLD}
    every = () if review is None else review.judgements
    judged = [one for one in every if one.session not in held and not one.why.startswith(Action.HOLD)]
    if not judged:
        return 0
    share = sum(one.right for one in judged) / len(judged)
    return 1 if share <= SHARE_OF_POOR else -1 if share >= SHARE_OF_GOOD else 0


def _cited(layers: Sequence[LayerLeaning], action: str) -> list[Recollection]:
    """The memories that support the action; for a HOLD the strongest one of each layer."""
    way = {"BUY": 1, "SELL": -1}.get(action, 0)
    return [memory for layer in layers for memory in layer.strongest(way, CITED if way else 1)]


def _sentiment(view: FindingsView, weighed: Weighed) -> str:
    parts = ["No intelligence of today"]
    if view.intelligence is not None:
        items = sorted((i for i in view.intelligence.items if i.concerns_company), key=lambda item: -item.weight)
        quote = f": {clean(items[0].summary)}" if items else ", nothing concerns the company"
        parts = [f"{_WORDS[weighed.today]}{quote}", f"the market was lately {view.intelligence.recent_market}"]
    elif view.news is not None:
        parts = [f"News {view.news.sentiment}: {clean(view.news.reason)}"]
    if weighed.layers or view.past is not None:
        parts.append(f"memory {_LEANINGS[weighed.memory]}, once its usual praise is deducted")
    if view.past is not None:
        parts.append(f"of the past: {clean(view.past.summary)}")
    return "; ".join(parts)


def _price_view(view: FindingsView, case: Case) -> str:
    trend = case.chart.trend
    label = "Bullish" if trend > 0 else "Bearish" if trend < 0 else "Neither bullish nor bearish"
    if view.low_level is not None:
        return f"{label}. {clean(view.low_level.short_term, 400)} {clean(view.low_level.medium_term, 400)}"
    if view.chart is not None:
        return f"{label}: {'. '.join(view.chart.lines())}"
    if view.immediate is not None:
        return f"{label}: {clean(view.immediate.reason, 600)}"
    return f"{label}: {view.holding.gains_in_a_row} sessions of gains in a row"


def _lessons(view: FindingsView, layers: Sequence[LayerLeaning]) -> str:
    parts = []
    if view.low_level is not None:
        parts.append(clean(view.low_level.lesson, 500))
    if view.high_level is not None:
        parts += [clean(lesson, 300) for lesson in view.high_level.lessons[:2]]
    if view.extended is not None:
        parts.append(clean(view.extended.self_evaluation))
    own = [memory for layer in layers if layer.layer == "reflection" for memory, _ in layer.rows[:1]]
    parts += [f"of {memory.session}: {memory_sentence(memory, 300)}" for memory in own if shown_text(memory)]
    return " ".join(map(ended, parts)) or "None yet"


def _indicators(view: FindingsView, weighed: Weighed) -> str:
    if not view.tools:
        return "No tool and no expert has spoken"
    label = {1: "for a purchase", -1: "for a sale", 0: "neither way"}[(weighed.tools > 0) - (weighed.tools < 0)]
    return f"Together {label}. {' '.join(ended(clean(f'{tool.name}: {tool.explanation}', 400)) for tool in view.tools)}"


def _evidence_lines(view: FindingsView, weighed: Weighed, cited: Sequence[Recollection]) -> Iterator[str]:
    if view.intelligence is not None:
        yield f"Intelligence: {ended(_sentiment(view, weighed))}"
    if view.low_level is not None:
        yield f"Moves: {clean(view.low_level.lesson, 500)}"
    if view.tools:
        yield f"Tools: {clean(_indicators(view, weighed), 800)}"
    for memory in cited:
        yield f"Memory {memory.handle}, {clean(memory.kind, 40)} of {memory.session}: {ended(memory_sentence(memory))}"


def _limited(text: str) -> str:
    return ended(clean(text, 1_900))
