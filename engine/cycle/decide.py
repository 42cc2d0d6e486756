"""The last step of an analysis: all findings become one opinion, with the memories that it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, TypeVar

from engine.agents import decision as agents
from engine.agents.ask import Reply
from engine.agents.character import describe
from engine.agents.evidence import cited_ids
from engine.agents.immediate import FiveLevelReflection, ImmediateReflection, ThreeWayReflection, action_before
from engine.cycle import portfolio
from engine.cycle.debate import HeldDebate
from engine.cycle.step import Analysis, Observations, Reflections, StepContext
from engine.cycle.turn import Turn
from engine.domain.decision import Action, DecisionKey, Opinion, SizingRule
from engine.domain.five_level import trade_of
from engine.domain.market import Symbol
from engine.domain.portfolio import ZERO
from engine.domain.recollection import EXTENDED, Recollection
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
        ordered = await portfolio.opinion(context)
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
    reason = f"{opinion.size:f} % becomes {size:f} %: {why}. {opinion.reason}"
    return replace(opinion, size=size, reason=reason)


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
