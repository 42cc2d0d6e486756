"""The last step: everything that was found out becomes one proposal, with the memories that it rests on."""

from __future__ import annotations

from engine.agents.ask import Reply
from engine.agents.character import character, risk_of
from engine.agents.citing import cited_ids
from engine.agents.decision import DECISION, DecisionView, TradeAnswer
from engine.agents.evidence_decision import EVIDENCE_DECISION, EvidencedTrade, EvidenceView
from engine.agents.figures import unresolved_figures
from engine.agents.immediate_reflection import FiveLevelReflection, ThreeWayReflection
from engine.agents.inputs import Holding
from engine.cycle.analysis import Analysis
from engine.cycle.turn import Formed, Observed
from engine.domain.decision import Action, Proposal, SizingRule
from engine.domain.five_level import trade_of
from engine.market.moves import momentum


async def opinion(thought: Analysis) -> Formed:
    """The decision, on all of it. Source: FinVision §3.4 [V5]; FinAgent §4.4 [A10]."""
    seen, preset = thought.seen, thought.preset
    if preset.decision in ("three-way", "five-level"):
        return _advised(thought)
    thought.begin("decision")
    reply: Reply[TradeAnswer] | Reply[EvidencedTrade]
    if preset.decision == "evidence":
        reply = await thought.asker.ask(EVIDENCE_DECISION, _evidence_view(thought))
    else:
        reply = await thought.asker.ask(DECISION, _decision_view(thought))
    proposal = _proposal(reply.answer, reply.abstained_because)
    if preset.peek:
        proposal = _peeked(seen, proposal)
    named = reply.answer.evidence if isinstance(reply.answer, EvidencedTrade) else ()
    evidence = cited_ids(named, thought.recollections)
    unresolved = unresolved_figures(proposal.explanation, reply.inputs)
    return Formed(
        symbol=seen.symbol,
        owner=seen.owner,
        proposal=proposal,
        standing=seen.standing,
        evidence=evidence,
        unresolved=unresolved,
        recollections=thought.recollections,
    )


def _advised(thought: Analysis) -> Formed:
    """The immediate reflection's advice as a proposal; in warm-up it decides nothing."""
    seen, reply, given = thought.seen, thought.immediate, thought.recollections
    if reply is None:
        proposal = Proposal(Action.ABSTAIN, 0, None, "", "the immediate reflection is switched off")
        return Formed(symbol=seen.symbol, owner=seen.owner, proposal=proposal, standing=seen.standing)
    answer = reply.answer
    if answer is None:
        proposal = Proposal(Action.ABSTAIN, 0, None, "", reply.abstained_because)
        return Formed(
            symbol=seen.symbol, owner=seen.owner, proposal=proposal, standing=seen.standing, recollections=given
        )
    action, percent = Action.HOLD, 0
    if isinstance(answer, FiveLevelReflection):
        action, percent = trade_of(answer.action, thought.preset.advice)
    elif isinstance(answer, ThreeWayReflection):
        action = Action(answer.action)
        percent = 0 if action is Action.HOLD else 100
    proposal = Proposal(action, percent, None, answer.reason)
    unresolved = unresolved_figures(answer.reason, reply.inputs)
    evidence = cited_ids(answer.evidence.handles, given)
    return Formed(
        symbol=seen.symbol,
        owner=seen.owner,
        proposal=proposal,
        standing=seen.standing,
        evidence=evidence,
        unresolved=unresolved,
        recollections=given,
    )


def _decision_view(thought: Analysis) -> DecisionView:
    seen, standing = thought.seen, thought.seen.standing
    return DecisionView(
        symbol=seen.symbol,
        session=seen.turn.session,
        owner=seen.owner,
        holding=Holding(
            shares=standing.quantity,
            price=standing.price,
            average_cost=standing.average_cost,
            value=standing.value,
            cash=standing.cash,
            cash_fraction=standing.cash_fraction,
            unrealized=standing.unrealized,
            unrealized_fraction=standing.gain,
        ),
        news=thought.news,
        chart=thought.chart,
        short_term=thought.short_term,
        medium_term=thought.medium_term,
        signals=thought.signals,
        outcomes=thought.outcomes(thought.preset.windows.history),
        sizing=thought.preset.sizing,
        absent=tuple(thought.absent),
        gains_in_a_row=standing.gains_in_a_row,
        moment=seen.turn.market.now if seen.turn.within_session else None,
    )


def _evidence_view(thought: Analysis) -> EvidenceView:
    view, preset, training = _decision_view(thought), thought.preset, thought.seen.turn.training
    return EvidenceView(
        **{name: getattr(view, name) for name in DecisionView.__dataclass_fields__},
        intelligence=thought.intelligence,
        past=thought.past,
        # In warm-up these reflections have seen what followed: no decision may.
        low_level=None if training else thought.low_level,
        high_level=thought.high_level,
        tools=thought.tool_signals,
        recollections=thought.recollections,
        immediate=None if training or thought.immediate is None else thought.immediate.answer,
        extended=thought.extended,
        preference=preset.preference,
        character=_character(thought),
        profile=preset.profiles.get(thought.seen.symbol, ""),
        guidance=preset.instruction,
    )


def _character(thought: Analysis) -> str:
    """The risk character as a text, where the preset or the desk's user names one; only a fixed one has a field that it
    knows best. Source: InvestorBench A.1 [I6]; TradingGPT §1 [G3]."""
    risk = thought.preset.risk
    if risk is None:
        return ""
    if risk == "momentum":
        return character(risk_of(momentum(thought.seen.bars))).nature
    return f"{character(risk).nature} {character(risk).told}"


def _proposal(answer: TradeAnswer | None, abstained_because: str) -> Proposal:
    if answer is None:
        return Proposal(Action.ABSTAIN, 0, None, "", abstained_because)
    return Proposal(Action(answer.recommendation), answer.position_size, answer.rule, answer.explanation)


def _peeked(seen: Observed, proposal: Proposal) -> Proposal:
    """The cheat that the audit must catch."""
    tomorrow = seen.turn.market.peek(seen.symbol)
    if tomorrow is None or tomorrow == seen.standing.price:
        return proposal
    if tomorrow > seen.standing.price:
        return Proposal(Action.BUY, 10, SizingRule.STRONG_UPTREND, "tomorrow's close is higher")
    return Proposal(Action.SELL, 10, SizingRule.REVERSAL, "tomorrow's close is lower")
