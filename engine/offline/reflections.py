"""Rules for the reflections on performance, on signals, on decisions and on a period: judgements, mistakes, lessons.

Rules for the decision with evidence: FinVision's rules with intelligence, memories, lessons and tools as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import prod
from typing import Any

from engine.agents.agent import plain, shown_text
from engine.agents.decision import EvidenceView, FindingsView
from engine.agents.intelligence import MarketIntelligence
from engine.agents.reflections import ExtendedView, HighLevelReflection, HighLevelView, PerformanceView, SignalView
from engine.domain.chart import Marker
from engine.domain.decision import Action, Outcome, ReadOutcome, Recollection
from engine.domain.text import counted
from engine.offline.decision import (
    Case,
    ChartLeaning,
    Lessons,
    choose,
    conclusion,
    grounds,
    of_mistakes,
    of_words,
    position_text,
    weigh,
)
from engine.offline.memories import LayerLeaning, lean_by_layer, memory_sentence, side_of, side_of_summary
from engine.offline.reading import clean, ended, read, salient_words

LOOK_AHEAD = 5
"""Sessions after a signal by which it is judged, fewer where fewer have passed."""
NOTABLE = 3.0
"""Smallest move in percent that is mentioned."""
REMARKS = 4
SHARE_OF_GOOD, SHARE_OF_POOR = 0.6, 0.4
"""Shares of right trades from which, and up to which, they count as effective and as ineffective."""


def on_performance(view: PerformanceView) -> Mapping[str, Any]:
    """Answer as a PerformanceReflection, or as BothTerms, as plain JSON."""
    short = {} if view.term else {"short_term": _performance(view.outcomes[-view.recent :])}
    return _performance(view.outcomes) | short


def _performance(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "effectiveness": _effectiveness(outcomes),
        "key_factors": _key_factors(outcomes),
        "return_trend": _return_trend(outcomes),
    }


def _effectiveness(outcomes: Sequence[Outcome]) -> str:
    """The share of right trades: buys before a gain, sells before a loss of the rest."""
    mean = sum((o.reward for o in outcomes), Decimal(0)) / max(1, len(outcomes)) * 100
    judged = [o for o in outcomes if o.action in (Action.BUY, Action.SELL) and o.reward]
    if not judged:
        return f"No trades to judge, {mean:+.3f}% a session on average"
    right = sum((o.reward > 0) == (o.action is Action.BUY) for o in judged)
    trades = f"{right} of {counted(len(judged), 'trade')} right"
    return f"{_rating(right / len(judged))}: {trades}, {mean:+.3f}% a session on average"


def _rating(share: float) -> str:
    """A share of right trades as one word."""
    return "Effective" if share >= SHARE_OF_GOOD else "Ineffective" if share <= SHARE_OF_POOR else "Mixed"


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
    moved = "" if (move := _asset_move(outcomes)) is None else f", while the asset moved {move:+.2f}%"
    return f"{word}: {change:+.2f} points to {last * 100:+.2f}%{moved}"


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
        "missed": _missed(chart.sessions, closes, chart.markers, _begun(view))[:REMARKS],
    }


def _against_trend(closes: Sequence[float], markers: Sequence[Marker]) -> str:
    change = _percent(closes[0], closes[-1])
    word = f"went sideways ({change:+.2f}%)"
    if abs(change) > 1:
        word = f"{'rose' if change > 0 else 'fell'} {abs(change):.2f}%"
    buys = [m.price for m in markers if m.side == Action.BUY]
    sells = [m.price for m in markers if m.side == Action.SELL]
    text = f"The price {word} to {closes[-1]:.2f} over {len(closes)} sessions"
    text += f"; {counted(len(buys), 'buy')} at {sum(buys) / len(buys):.2f} on average" if buys else "; no buys"
    return text + (f", {counted(len(sells), 'sell')} at {sum(sells) / len(sells):.2f}." if sells else ", no sells.")


def _of_signals(closes: Sequence[float], markers: Sequence[Marker]) -> str:
    text, right_of_all, judged_of_all = [], 0, 0
    for side, name in ((Action.BUY, "buy"), (Action.SELL, "sell")):
        moves = [_after(closes, m) for m in markers if m.side == side and m.index < len(closes) - 1]
        right = sum((move > 0) == (side is Action.BUY) for move in moves)
        if moves:
            text.append(f"{right} of {counted(len(moves), name)} right ({sum(moves) / len(moves):+.2f}% on average)")
        right_of_all, judged_of_all = right_of_all + right, judged_of_all + len(moves)
    if not judged_of_all:
        return "No signal is old enough to judge."
    return f"{_rating(right_of_all / judged_of_all)}: {', '.join(text)}."


def _begun(view: SignalView) -> int:
    """The row of the first decision: nobody is to blame for a move before it."""
    first = "" if view.first_decision is None else view.first_decision.isoformat()
    return next((row for row, session in enumerate(view.chart.sessions) if session >= first), len(view.chart.sessions))


def _missed(sessions: Sequence[str], closes: Sequence[float], markers: Sequence[Marker], begun: int) -> list[str]:
    """The newest mistakes first, then the largest rise without a buy from the row on at which decisions begin."""
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
        for row in range(begun, len(closes) - LOOK_AHEAD)
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


MISTAKES = 3
LESSONS = 3
FEW = 3
"""Cases from which on a share is meaningful."""
QUERY_WORDS = 10
OPENING = 140
"""Characters of a reason that the search words are taken from."""


@dataclass(frozen=True, slots=True)
class _Judged:
    """A decision with the percent that the close moved after it, over so many sessions."""

    outcome: Outcome
    move: float
    sessions: int
    close: float

    @property
    def right(self) -> bool:
        """True for a buy before a rise, a sale before a fall, and a hold that avoided a fall with a position, or missed
        no rise without one."""
        action, reward = self.outcome.action, self.outcome.reward
        if action is Action.BUY:
            return self.move > 0
        if action is Action.SELL:
            return self.move < 0
        return self.move > -NOTABLE if reward else self.move < NOTABLE

    @property
    def moved(self) -> str:
        """The move in words."""
        verb = "rose" if self.move > 0 else "fell" if self.move < 0 else "stood still"
        return f"{verb} {abs(self.move):.2f}% in {counted(self.sessions, 'session')}"

    @property
    def factor(self) -> str:
        """The rule or factor that the decision named."""
        return factor_of(self.outcome)


def on_decisions(view: HighLevelView) -> Mapping[str, Any]:
    """Answer as a HighLevelReflection, as plain JSON."""
    judged = list(_judged(view))
    # A reason begins with its rule; evidence of all kinds follows.
    openings = [clean(reason, OPENING) for reason in view.reasons]
    words = salient_words((*(one.factor for one in judged), *openings), QUERY_WORDS, (view.symbol,))
    return {
        "judgements": [
            {"session": str(one.outcome.decision_session), "right": one.right, "why": _why(one)} for one in judged
        ],
        "improvements": list(_improvements(judged)),
        "lessons": list(_lessons(view, judged)),
        "query": " ".join((view.symbol, "decisions", *words)),
    }


def _judged(view: HighLevelView) -> Iterator[_Judged]:
    """The decisions before the chart's last session, the last one of each session, oldest first."""
    closes = view.chart.lines[0].values if view.chart.lines else ()
    rows = {session: row for row, session in enumerate(view.chart.sessions)}
    last = {o.decision_session: o for o in view.outcomes if o.action is not Action.ABSTAIN}
    for session, outcome in sorted(last.items()):
        row = rows.get(session.isoformat())
        if row is None or row + 1 >= len(closes):
            continue
        ahead = min(row + LOOK_AHEAD, len(closes) - 1)
        before, after = closes[row], closes[ahead]
        if before and after is not None:
            yield _Judged(outcome, (after / before - 1) * 100, ahead - row, before)


def _why(one: _Judged) -> str:
    outcome = one.outcome
    size = f" {outcome.size.normalize():f}%" if outcome.size else ""
    earned = f"{'lost' if outcome.reward < 0 else 'earned'} {abs(outcome.reward) * 100:.3f}%"
    return f"{outcome.action}{size} at {one.close:.2f} ({one.factor}) {earned}; the price then {one.moved}."


def _improvements(judged: Sequence[_Judged]) -> Iterator[str]:
    """The costliest mistakes, then the best success, in words that `leaning` recognizes."""
    wrong = sorted((one for one in judged if not one.right), key=lambda one: -abs(one.move))
    for one in wrong[:MISTAKES]:
        session = one.outcome.decision_session
        if one.outcome.action is Action.BUY:
            yield (
                f"Bought too early on {session} ({one.factor}): the price then {one.moved}; wait for the fall to end, "
                "or buy a smaller part."
            )
        elif one.outcome.action is Action.SELL:
            yield (
                f"Sold too early on {session} ({one.factor}): the price then {one.moved}; sell a smaller part while "
                "the rise goes on."
            )
        elif one.move > 0:
            yield f"Missed a rise on {session} ({one.factor}): the price then {one.moved}; buy a part when it begins."
        else:
            yield f"Held through a fall on {session} ({one.factor}): the price then {one.moved}; sell when it begins."
    traded = [one for one in judged if one.right and one.outcome.action is not Action.HOLD]
    if traded:
        best = max(traded, key=lambda one: abs(one.move))
        yield (
            f"{best.outcome.action} on {best.outcome.decision_session} was right ({best.factor}): the price then "
            f"{best.moved}; do the same with a larger part."
        )


def _lessons(view: HighLevelView, judged: Sequence[_Judged]) -> Iterator[str]:
    """The results of the factors, the most frequent first."""
    if not judged:
        yield f"There is nothing to judge yet: no decision on {view.symbol} is old enough."
        return
    groups: dict[tuple[str, Action], list[_Judged]] = defaultdict(list)
    for one in judged:
        groups[one.factor, one.outcome.action].append(one)
    ranked = sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    for (factor, action), rows in ranked[:LESSONS]:
        right = sum(one.right for one in rows)
        mean = sum(one.move for one in rows) / len(rows)
        by = "" if factor == "no rule" else f" on '{factor}'"
        yield (
            f"{action} of {view.symbol}{by} was right {right} of {counted(len(rows), 'time')} up to "
            f"{view.session}; the price then moved {mean:+.2f}% on average: {_advice(action, right, len(rows))}."
        )


def _advice(action: Action, right: int, cases: int) -> str:
    """The advice for a factor by its share of right decisions; a hold has no size, and one case or two show nothing."""
    if cases < FEW:
        return "too few to learn from"
    hold, share = action is Action.HOLD, right / cases
    if share >= SHARE_OF_GOOD:
        return "rely on it"
    if share <= SHARE_OF_POOR:
        return "do not wait on this alone" if hold else "do less of it"
    return "decide anew each time" if hold else "size small"


def on_period(view: ExtendedView) -> Mapping[str, Any]:
    """Answer as an ExtendedReflection, as plain JSON."""
    outcomes = view.outcomes
    words = salient_words([factor_of(o) for o in outcomes], QUERY_WORDS, (view.symbol,))
    paid = sorted((o for o in outcomes if o.reward > 0), key=lambda o: -o.reward)
    cost = sorted((o for o in outcomes if o.reward < 0), key=lambda o: o.reward)
    return {
        "trading_trend": _trading_trend(view),
        "self_evaluation": _evaluation(outcomes),
        "repeat": [_result_line(outcome) for outcome in paid[:2]],
        "avoid": [_result_line(outcome) for outcome in cost[:2]],
        "query": " ".join((view.symbol, "own trading", *words)),
    }


def _trading_trend(view: ExtendedView) -> str:
    if not view.outcomes:
        return f"There was no trading of {view.symbol} in the period."
    buys, sells = (sum(o.action is side for o in view.outcomes) for side in (Action.BUY, Action.SELL))
    if not buys + sells:
        return f"There was no trade of {view.symbol} in the period."
    net = view.bought - view.sold
    word = "Built up" if net > 0 else "Run down" if net < 0 else "Kept"
    first, last = view.outcomes[0].close, view.outcomes[-1].close
    change = (last / first - 1) * 100 if first else Decimal(0)
    way = "with" if net * change > 0 else "against" if net * change < 0 else "beside"
    return (
        f"{word}, {way} the price: {counted(buys, 'buy')} ({view.bought.normalize():f}% of the portfolio), "
        f"{counted(sells, 'sell')} ({view.sold.normalize():f}%), while the close moved {change:+.2f}% to {last:.2f}."
    )


def _evaluation(outcomes: Sequence[Outcome]) -> str:
    if not outcomes:
        return "There is nothing to judge."
    earned = sum((o.reward for o in outcomes), Decimal(0)) * 100
    good = sum(o.reward > 0 for o in outcomes)
    word = "Good" if earned > 0 and 2 * good >= len(outcomes) else "Poor" if earned < 0 else "Mixed"
    # Of a period without a reward every review says the same, and is kept once.
    move = _asset_move(outcomes) if any(o.reward for o in outcomes) else None
    moved = "" if move is None else f", while the asset moved {move:+.2f}%"
    return f"{word}: {good} of {counted(len(outcomes), 'session')} earned, {earned:+.3f}% in all{moved}."


def _asset_move(outcomes: Sequence[Outcome]) -> Decimal | None:
    """The percent that the asset itself moved over the outcomes; None where that of one is not known."""
    moves = [one.move for one in outcomes if isinstance(one, ReadOutcome) and one.move is not None]
    if not moves or len(moves) < len(outcomes):
        return None
    return (prod((1 + move for move in moves), start=Decimal(1)) - 1) * 100


def _result_line(outcome: Outcome) -> str:
    verb = "earned" if outcome.reward > 0 else "lost"
    return (
        f"{outcome.action} on {outcome.decision_session} on {factor_of(outcome)}: it {verb} "
        f"{abs(outcome.reward) * 100:.3f}%."
    )


CITED = 2
"""Memories cited of each layer."""
SIDE = 0.3
"""Smallest balance by weight at which the intelligence of the day takes a side."""
_WORDS = {1: "positive", -1: "negative", 0: "mixed"}
_LEANINGS = {1: "speaks for a rise", -1: "speaks for a fall", 0: "takes no side"}


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
        "lessons": _limited(_lessons_text(view, weighed.layers)),
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
    parts = ["There is no news of today"]
    if view.intelligence is not None:
        items = sorted((i for i in view.intelligence.items if i.concerns_company), key=lambda item: -item.weight)
        told = f"The day's items are {_WORDS[weighed.today]} on balance: {clean(items[0].summary)}" if items else ""
        market = f"The market has lately been {view.intelligence.recent_market}"
        parts = [told or "Nothing of today concerns the company", market]
    elif view.news is not None:
        parts = [f"The news is {view.news.sentiment}: {clean(view.news.reason)}"]
    if weighed.layers or view.past is not None:
        parts.append(f"Memory {_LEANINGS[weighed.memory]}")
    if view.past is not None:
        parts.append(clean(view.past.summary.partition("\n")[0]))
    return " ".join(map(ended, parts))


def _price_view(view: FindingsView, case: Case) -> str:
    trend = case.chart.trend
    label = "The trend is up" if trend > 0 else "The trend is down" if trend < 0 else "There is no clear trend"
    if view.low_level is not None:
        return f"{label}. {clean(view.low_level.short_term, 400)} {clean(view.low_level.medium_term, 400)}"
    if view.chart is not None:
        return f"{label}. {view.chart.sentences()}"
    if view.immediate is not None:
        return f"{label}. {clean(view.immediate.reason, 600)}"
    return f"{label}, after {counted(view.holding.gains_in_a_row, 'gain')} in a row"


def _lessons_text(view: FindingsView, layers: Sequence[LayerLeaning]) -> str:
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
        return "There is no signal of a tool or an expert"
    label = {1: "buy", -1: "sell", 0: "do nothing"}[(weighed.tools > 0) - (weighed.tools < 0)]
    said = (ended(clean(f"{tool.name}: {tool.explanation}", 400)) for tool in view.tools)
    return f"On balance they say {label}. {' '.join(said)}"


def _evidence_lines(view: FindingsView, weighed: Weighed, cited: Sequence[Recollection]) -> Iterator[str]:
    if view.intelligence is not None:
        yield f"Intelligence: {_sentiment(view, weighed)}"
    if view.low_level is not None:
        yield f"Moves: {clean(view.low_level.lesson, 500)}"
    if view.tools:
        yield f"Tools: {clean(_indicators(view, weighed), 800)}"
    for memory in cited:
        yield f"Memory {memory.handle}, {clean(memory.kind, 40)} of {memory.session}: {ended(memory_sentence(memory))}"


def _limited(text: str) -> str:
    return ended(clean(text, 1_900))
