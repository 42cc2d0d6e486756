"""The last step of an analysis: all findings become one opinion, with the memories that it rests on.

The steps of a portfolio agent: one question about all symbols of the batch, out of whose answer each symbol takes
its own order.

Every symbol's analysis asks it in the same words; a model is asked once, and the others get the same answer, recorded
for each. Source: Agent Trading Arena §4.2, §5.2 [R4, R5, R6, R8].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, TypeVar

from engine.agents import decision as agents
from engine.agents import portfolio as portfolio_agents
from engine.agents.agent import cited_ids
from engine.agents.ask import Reply
from engine.agents.character import describe
from engine.agents.immediate import FiveLevelReflection, ImmediateReflection, ThreeWayReflection, action_before
from engine.agents.tools import best_and_worst, with_strategy
from engine.cycle.debate import HeldDebate
from engine.cycle.portfolio_facts import PortfolioFacts
from engine.cycle.step import Analysis, Finding, Observations, Reflections, StepContext
from engine.cycle.turn import Turn
from engine.domain.decision import EXTENDED, Action, DecisionKey, Opinion, Recollection, SizingRule, trade_of, with_note
from engine.domain.market import Symbol
from engine.domain.order import ZERO
from engine.market.figures import price_figures
from engine.preset import Preset

F = TypeVar("F", bound=agents.FindingsView)


def abstention(turn: Turn, symbol: Symbol, owner: str, because: str) -> Opinion:
    """The opinion of an owner of whom no valid answer came."""
    return Opinion(key=_key(turn, symbol, owner), action=Action.ABSTAIN, size=ZERO, reason=because)


async def opinion(analysis: Analysis, debate: HeldDebate | None = None) -> Opinion:
    """The owner's opinion on all findings, after a debate where one fed it. Source: FinVision §3.4 [V5]; FinAgent §4.4
    [A10]; TradingGPT §4.2.2 [G6]."""
    context, observed, reflections = analysis.context, analysis.observed, analysis.reflections
    preset = context.preset
    if preset.decision == "portfolio":
        ordered = await portfolio_opinion(context)
        if isinstance(ordered, Opinion):
            return ordered
        return abstention(context.turn, context.symbol, context.owner, ordered)
    if preset.decision in ("three-way", "five-level"):
        reply: Reply[Any] | None = None if debate is None else debate.replies.get(context.owner)
        advised = _advice(context, observed, reply or reflections.immediate.value)
        return _sized(advised, preset, 0.0 if debate is None else debate.dissent(context.owner))
    reply = await _decided(context, observed, reflections)
    answer = reply.answer
    if answer is None:
        return abstention(context.turn, context.symbol, context.owner, reply.abstained_because)
    action, reason = Action(answer.recommendation), answer.explanation
    size, rule = (answer.position_size, answer.rule) if isinstance(answer, agents.TradeAnswer) else (0, None)
    if preset.peek and (peeked := _peeked(context)) is not None:
        action, size, rule, reason = peeked
    named = answer.evidence if isinstance(answer, agents.EvidencedTrade) else ()
    return Opinion(
        key=_key(context.turn, context.symbol, context.owner),
        action=action,
        size=Decimal(size),
        reason=reason,
        rule=rule,
        evidence=cited_ids(named, observed.recollections),
        unresolved_figures=context.unresolved(reason, reply, action),
    )


async def _decided(
    context: StepContext, observed: Observations, reflections: Reflections
) -> Reply[agents.TradeAnswer] | Reply[agents.EvidencedTrade] | Reply[agents.WholeTrade]:
    """The reply of the agent that the preset has decide."""
    match context.preset.decision:
        case "whole":
            whole = _findings_view(agents.WholeView, context, observed, reflections)
            return await context.reply(agents.WHOLE_DECISION, whole)
        case "evidence":
            evidenced = _findings_view(agents.EvidenceView, context, observed, reflections)
            evidenced = replace(evidenced, recollections=observed.recollections)
            return await context.reply(agents.EVIDENCE_DECISION, evidenced)
    return await context.reply(agents.DECISION, _decision_view(context, observed, reflections))


def _advice(context: StepContext, observed: Observations, reply: Reply[ImmediateReflection] | None) -> Opinion:
    """The immediate reflection's advice; in warm-up its explanation of the move that followed, which sets the action.
    Source: InvestorBench A.1 [I7]."""
    answer = None if reply is None else reply.answer
    if reply is None or answer is None:
        because = "the immediate reflection is switched off" if reply is None else reply.abstained_because
        return abstention(context.turn, context.symbol, context.owner, because)
    action, size = _traded(answer, context.preset)
    reason, followed = answer.reason, context.move_that_followed
    if followed is not None and context.preset.decision == "three-way":
        action = action_before(followed)
        size = 0 if action is Action.HOLD else context.preset.sizing.unit
        reason = f"Training: {action} is set by the move of the session that followed, {followed:+.2%}. {reason}"
    return Opinion(
        key=_key(context.turn, context.symbol, context.owner),
        action=action,
        size=Decimal(size),
        reason=reason,
        evidence=_driving(answer.evidence.handles, observed.recollections),
        unresolved_figures=context.unresolved(answer.reason, reply, action),
        confidence=answer.stated if isinstance(answer, FiveLevelReflection) else None,
    )


def _sized(opinion: Opinion, preset: Preset, dissent: float) -> Opinion:
    """The opinion with its size as the preset makes one of advice: smaller by the distance to the others' advice, or by
    the stated confidence; whole percents, and at least one for a trade."""
    if not opinion.size or "debate" not in preset.steps:
        return opinion
    shares = {"agreement": Decimal(f"{1 - dissent:.4f}"), "confidence": opinion.confidence or Decimal(1)}
    share = shares.get(preset.debate.size, Decimal(1))
    size = max(Decimal(1), (opinion.size * share).quantize(Decimal(1), ROUND_HALF_UP))
    if size == opinion.size:
        return opinion
    why = f"the others differ by {dissent:.2f} of the scale" if preset.debate.size == "agreement" else "by confidence"
    return replace(
        opinion, size=size, reason=with_note(opinion.reason, f"{opinion.size:f} % becomes {size:f} %: {why}")
    )


def _driving(handles: Iterable[str], given: Sequence[Recollection]) -> tuple[str, ...]:
    """The ids of cited memories that advice may rest on: a review of a period is reference only.
    Source: TradingGPT §4.1.2 [G5]."""
    reviews = {memory.handle for memory in given if memory.kind == EXTENDED}
    return cited_ids((handle for handle in handles if handle not in reviews), given)


def _traded(answer: ImmediateReflection, preset: Preset) -> tuple[Action, int]:
    """The action and its size, in percent of the portfolio; 0 where it has none."""
    if isinstance(answer, FiveLevelReflection):
        return trade_of(answer.action, preset.advice)
    action = Action(answer.action) if isinstance(answer, ThreeWayReflection) else Action.HOLD
    return action, 0 if action is Action.HOLD else preset.sizing.unit


def _decision_view(context: StepContext, observed: Observations, reflections: Reflections) -> agents.DecisionView:
    turn, owner = context.turn, context.traits
    return agents.DecisionView(
        *context.subject,
        holding=context.position,
        figures=price_figures(context.bars),
        news=observed.received.news.value,
        chart=observed.chart.value,
        short_term=reflections.short_term.value,
        medium_term=reflections.medium_term.value,
        signals=reflections.signals.value,
        outcomes=context.outcomes(context.preset.windows.history),
        sizing=context.preset.sizing,
        absent=(*observed.absent, *reflections.absent),
        reports=observed.own,
        moment=turn.market.now if turn.within_session else None,
        preference=owner.preference or context.preset.preference,
        character=describe(owner, context.adjusted),
        profile=context.profile,
    )


def _findings_view(kind: type[F], context: StepContext, observed: Observations, reflections: Reflections) -> F:
    view = _decision_view(context, observed, reflections)
    training, immediate = context.turn.training, reflections.immediate.value
    return kind(
        **{name: getattr(view, name) for name in agents.DecisionView.__dataclass_fields__},
        intelligence=observed.received.intelligence.value,
        past=observed.past.value,
        # In warm-up these reflections have seen what followed: no decision may.
        low_level=None if training else reflections.low_level.value,
        high_level=reflections.high_level.value,
        tools=observed.tools.value or (),
        immediate=None if training or immediate is None else immediate.answer,
        extended=reflections.extended.value,
        guidance=context.preset.instruction,
    )


def _key(turn: Turn, symbol: Symbol, owner: str) -> DecisionKey:
    return DecisionKey(turn.run, turn.session, turn.number, symbol, owner)


def _peeked(context: StepContext) -> tuple[Action, int, SizingRule, str] | None:
    """The cheat that the audit must catch; None where tomorrow's close is not known or the same."""
    tomorrow = context.turn.market.peek(context.symbol)
    if tomorrow is None or tomorrow == context.position.price:
        return None
    if tomorrow > context.position.price:
        return Action.BUY, 10, SizingRule.STRONG_UPTREND, "tomorrow's close is higher"
    return Action.SELL, 10, SizingRule.REVERSAL, "tomorrow's close is lower"


async def portfolio_opinion(context: StepContext) -> Opinion | str:
    """The owner's portfolio_opinion on one symbol, out of its orders in all; a text says why there is none."""
    facts = context.portfolio
    assert facts is not None  # the cycle gives it to every preset that decides on the portfolio
    if context.symbol not in {stock.symbol for stock in facts.stocks}:
        return f"there are too few bars of {context.symbol}"
    reflection = await _reflect(context, facts)
    analysis = await _analyse(context, facts, reflection)
    view = portfolio_agents.PortfolioDecisionView(
        **_shared(context, facts, reflection.value),
        analysis=analysis.value,
        reflection=reflection.value,
        decisions=facts.decisions,
        absent=tuple(filter(None, (reflection.absent, analysis.absent, *facts.absent))),
    )
    reply = await context.reply(portfolio_agents.PORTFOLIO_DECISION, view)
    if reply.answer is None:
        return reply.abstained_because
    order = reply.answer.of(context.symbol)
    told = reply.answer.explanation if order is None else f"{order.reason} {reply.answer.explanation}"
    turn, action = context.turn, Action.HOLD if order is None else Action(order.action)
    return Opinion(
        key=DecisionKey(turn.run, turn.session, turn.number, context.symbol, context.owner),
        action=action,
        size=ZERO if order is None else Decimal(order.percent),
        reason=with_strategy(told, view.strategy),
        unresolved_figures=context.unresolved(told, reply, action),
    )


async def _reflect(context: StepContext, facts: PortfolioFacts) -> Finding[portfolio_agents.PortfolioReflection]:
    """The session judged, and the next strategy."""
    name = portfolio_agents.PORTFOLIO_REFLECTION.name
    if (left_out := context.without(name)) is not None:
        return left_out
    if facts.day_return is None:
        return Finding(absent=f"{name}: there is no past yet")
    best, worst = best_and_worst(facts.library)
    view = portfolio_agents.PortfolioReflectionView(
        **_shared(context, facts, None),
        decisions=facts.decisions,
        day_return=facts.day_return,
        market_return=facts.market_return,
        best=tuple(one.line for one in best),
        worst=tuple(one.line for one in worst),
    )
    return await context.ask(portfolio_agents.PORTFOLIO_REFLECTION, view)


async def _analyse(
    context: StepContext, facts: PortfolioFacts, reflection: Finding[portfolio_agents.PortfolioReflection]
) -> Finding[portfolio_agents.PortfolioAnalysis]:
    """Findings and a ranking of all stocks."""
    if (left_out := context.without(portfolio_agents.PORTFOLIO_ANALYSIS.name)) is not None:
        return left_out
    view = portfolio_agents.PortfolioAnalysisView(
        **_shared(context, facts, reflection.value), reflection=reflection.value
    )
    return await context.ask(portfolio_agents.PORTFOLIO_ANALYSIS, view)


def _shared(
    context: StepContext, facts: PortfolioFacts, reflection: portfolio_agents.PortfolioReflection | None
) -> dict[str, Any]:
    """The fields that all views share, with the strategy that is in force after a reflection."""
    symbol, session, owner = context.subject
    return {
        "symbol": symbol,
        "session": session,
        "owner": owner,
        "stocks": facts.stocks,
        "cash": facts.cash,
        "value": facts.value,
        "cash_floor": context.preset.sizing.cash_floor,
        "band": context.preset.sizing.unruled,
        "index_change": sum((one.change for one in facts.stocks), ZERO) / max(1, len(facts.stocks)),
        "input": context.preset.portfolio.input,
        "record": facts.record,
        "strategy": facts.strategy if reflection is None else reflection.strategy,
        "moment": context.turn.market.now if context.turn.within_session else None,
    }
