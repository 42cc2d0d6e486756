"""The steps that look back: on moves, on decisions, on performance, on signals, on a period, and at once.

What a reflection learns becomes a memory, marked where it was written with hindsight.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from engine.agents import reflections as agents
from engine.agents.ask import Reply
from engine.agents.character import manner_of, traits_of
from engine.agents.immediate import IMMEDIATE, ImmediateReflection, ImmediateView
from engine.agents.past import PastSummary
from engine.agents.rendering import money, ratio
from engine.cycle.received import lesson
from engine.cycle.step import Finding, Gathered, OwnAnswer, StepContext, finding_of
from engine.domain import decision as kinds
from engine.domain.decision import HORIZON_TYPES, Decision, Outcome
from engine.domain.order import Order
from engine.market.chart_specs import indicator_table, kline_chart, signal_chart, trading_chart
from engine.market.figures import PriceMove, price_figures
from memory.record import Item


async def on_moves(
    context: StepContext, gathered: Gathered, past: Finding[PastSummary]
) -> Finding[agents.LowLevelReflection]:
    """Intelligence linked to the moves of the price; the lesson is remembered. Source: FinAgent §4.3 [A4, A9]."""
    kind = "low-level-reflection"
    if (left_out := context.without("low-level")) is not None:
        return left_out
    moves, queries = context.moves, gathered.received.queries
    view = agents.LowLevelView(
        *context.subject,
        kline_chart(context.symbol, context.bars, context.preset.windows.chart),
        intelligence=gathered.summary,
        past=past.value,
        table=indicator_table(context.bars),
        moves=moves,
        lessons=tuple(
            context.lessons(kind, {name: queries[name]} if name in queries else queries) for name in HORIZON_TYPES
        ),
    )

    def learned(answer: agents.LowLevelReflection) -> Item | None:
        return _lesson(context, gathered, kind, answer.lesson, answer.query, seen_until=_seen_until(context, moves))

    return await context.ask(agents.LOW_LEVEL, view, learned)


async def on_decisions(context: StepContext, gathered: Gathered) -> Finding[agents.HighLevelReflection]:
    """Past decisions judged; the lessons are remembered. Source: FinAgent §4.3 [A5]."""
    kind, windows, history = "high-level-reflection", context.preset.windows, context.turn.history
    if (left_out := context.without("high-level")) is not None:
        return left_out
    past = context.outcomes(windows.medium_term)
    if not past:
        return Finding(absent=f"{kind}: there is no past yet")
    shown = context.outcomes_shown(windows.chart)
    chart = trading_chart(
        context.symbol,
        context.bars,
        windows.chart,
        [(o.decision_session, o.action) for o in shown],
        [(o.session, o.cumulative) for o in shown],
    )
    opinions = [history.opinion(outcome) for outcome in past]
    view = agents.HighLevelView(
        *context.subject,
        chart,
        outcomes=past,
        reasons=tuple("" if opinion is None else opinion.explanation for opinion in opinions),
        intelligence=gathered.summary,
        lessons=context.lessons(kind, gathered.received.queries),
    )

    def learned(answer: agents.HighLevelReflection) -> Item | None:
        return _lesson(context, gathered, kind, _of_part(context, " ".join(answer.lessons)), answer.query)

    return await context.ask(agents.HIGH_LEVEL, view, learned)


async def on_both_terms(context: StepContext) -> Finding[agents.PerformanceReflection]:
    """The outcomes of recent decisions over two terms, where the preset asks one question about both."""
    return await _on_performance(context, "") if context.preset.performance_questions == 1 else Finding()


async def on_performance(
    context: StepContext, term: Literal["short", "medium"], both: Finding[agents.PerformanceReflection]
) -> Finding[agents.PerformanceReflection]:
    """The outcomes of recent decisions over one of two terms: a question of its own, or a part of the answer about
    both. Source: FinVision §3.3 [V3]."""
    if context.preset.performance_questions == 2:
        return await _on_performance(context, term)
    if term == "short" and isinstance(both.value, agents.BothTerms):
        return Finding(both.value.short_term)
    return both if term == "medium" else Finding()


async def _on_performance(
    context: StepContext, term: Literal["short", "medium", ""]
) -> Finding[agents.PerformanceReflection]:
    windows, name = context.preset.windows, f"{term}-term reflection" if term else agents.BOTH_TERMS
    if (left_out := context.without("performance-reflection", name)) is not None:
        return left_out
    past = context.outcomes(windows.short_term if term == "short" else windows.medium_term)
    if not past:
        return Finding(absent=f"{name}: there is no past yet")
    recent = min(windows.short_term, len(past))
    return await context.ask(agents.PERFORMANCE, agents.PerformanceView(*context.subject, term, past, recent))


async def on_signals(context: StepContext) -> Finding[agents.SignalReflection]:
    """The chart of past signals, seen again. Source: FinVision §3.3 [V4]."""
    name, count = "signal reflection", context.preset.windows.signal_chart
    if (left_out := context.without("signal-reflection", name)) is not None:
        return left_out
    shown = context.outcomes_shown(count)
    if not shown:
        return Finding(absent=f"{name}: there is no past yet")
    chart = signal_chart(context.symbol, context.bars, count, [(o.decision_session, o.action) for o in shown])
    first = context.turn.history.record(context.symbol, context.owner)[0].decision_session
    return await context.ask(agents.SIGNALS, agents.SignalView(*context.subject, chart, first), name=name)


async def on_period(context: StepContext, gathered: Gathered) -> Finding[agents.ExtendedReflection]:
    """The owner's trading of a period judged; it is remembered. Source: TradingGPT §4.1.2 [G5]."""
    if (left_out := context.without("extended")) is not None:
        return left_out
    past = context.outcomes(context.preset.windows.extended)
    if not past:
        return Finding()
    lessons = context.lessons(kinds.IMMEDIATE, gathered.received.queries)
    view = agents.ExtendedView(*context.subject, past, lessons)

    def learned(answer: agents.ExtendedReflection) -> Item | None:
        text = " ".join((answer.trading_trend, answer.self_evaluation, *answer.repeat, *answer.avoid))
        return _lesson(context, gathered, kinds.EXTENDED, _of_part(context, text), answer.query)

    return await context.ask(agents.EXTENDED, view, learned)


async def immediately(
    context: StepContext, gathered: Gathered, extended: Finding[agents.ExtendedReflection], *own: OwnAnswer
) -> Finding[Reply[ImmediateReflection]]:
    """The market joined with the best memories of each layer: advice with evidence, or, in warm-up, the move that
    followed explained; advice in five levels is given in warm-up too, guided by a fund's trades. It is remembered.
    Source: InvestorBench A.1 [I5, I7]; TradingGPT §4.1.2, §4.2 [G5, G8]."""
    position, preset, owner = context.position, context.preset, context.traits
    if (left_out := context.without("immediate")) is not None:
        return left_out
    five = preset.decision == "five-level"
    # Advice in five levels is guided by a fund's trades in training, not by the move that followed.
    followed = None if five else context.move_that_followed
    view = ImmediateView(
        *context.subject,
        facts=context.market_facts,
        figures=price_figures(context.bars),
        intelligence=gathered.received.intelligence.value,
        recollections=gathered.recollections,
        shares=position.shares,
        profit=position.unrealized_fraction,
        weight=position.weight,
        unit=preset.sizing.unit,
        profile=context.profile,
        character=manner_of(owner, preset.owners[context.owner].preference),
        outcomes=context.outcomes(preset.windows.history),
        extended=extended.value,
        reports=tuple(one.report.value for one in own if one.report.value is not None),
        scale="five" if five else "three",
        trades=preset.advice,
        next_move=followed,
        traits=traits_of(owner),
        fund=context.fund_trade if five else None,
        moment=context.turn.market.now if context.turn.within_session else None,
    )
    reply = await context.reply(IMMEDIATE, view)
    seen_until = None if followed is None else int(context.turn.step) + 1
    finding = finding_of(
        "immediate-reflection",
        reply,
        lambda answer: _lesson(context, gathered, kinds.IMMEDIATE, answer.reason, seen_until=seen_until),
    )
    return Finding(reply, finding.absent, finding.lesson)


def with_trade(
    item: Item, decision: Decision, order: Order | None, before: Outcome | None, *, training: bool = False
) -> Item:
    """An immediate reflection as it is remembered: with the decision, the volume of its trade and the return of the
    decision before it, which is the last that is gathered, of `training` by that name; any other memory as it is.
    Source: TradingGPT §4.1.1, §4.1.2 [G2, G5]."""
    if item.kind != kinds.IMMEDIATE:
        return item
    volume = "no trade"
    if order is not None and order.notional is not None:
        volume = f"{ratio(decision.size)}% of the portfolio for {money(order.notional)}"
    elif order is not None and order.quantity is not None:
        volume = f"{ratio(decision.size)}% of the portfolio, {order.quantity.normalize():f} shares"
    returned = "nothing returned before"
    if before is not None:
        returned = f"the decision of {before.decision_session} returned {before.reward:+.3%}"
        returned += f", all {'of training ' if training else ''}so far {before.cumulative:+.2%}"
    done = f"{decision.action}{' in training' if training else ''}"
    return replace(item, text=f"{done} ({volume}; {returned}). {item.text}")


def _of_part(context: StepContext, text: str) -> str:
    """A review of own decisions as it is remembered: one of training, where the next move may have set them, says
    so."""
    return f"In training: {text}" if context.turn.training else text


def _lesson(
    context: StepContext,
    gathered: Gathered,
    kind: str,
    text: str,
    query: str = "",
    *,
    seen_until: int | None = None,
) -> Item | None:
    """The memory of a reflection, with the memories that it was given; None without memory."""
    if context.memory is None:
        return None
    return lesson(context.scope, kind, text, query=query, rests_on=gathered.recollections, seen_until=seen_until)


def _seen_until(context: StepContext, moves: tuple[PriceMove, ...]) -> int | None:
    """The step at whose close everything that a reflection saw is known; None without hindsight."""
    if context.turn.hindsight_until is None:
        return None
    return int(context.turn.step) + max((move.horizon_days for move in moves if move.hindsight), default=0)
