"""The steps of a portfolio agent: one question about all symbols of the batch, out of whose answer each symbol takes
its own order.

Every symbol's analysis asks it in the same words; a model is asked once, and the others get the same answer, recorded
for each. Source: Agent Trading Arena §4.2, §5.2 [R4, R5, R6, R8].
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from engine.agents import portfolio as agents
from engine.agents.strategy_library import best_and_worst, with_strategy
from engine.cycle.portfolio_facts import PortfolioFacts
from engine.cycle.step import Finding, StepContext
from engine.domain.decision import Action, DecisionKey, Opinion
from engine.domain.portfolio import ZERO


async def opinion(context: StepContext) -> Opinion | str:
    """The owner's opinion on one symbol, out of its orders in all; a text says why there is none."""
    facts = context.portfolio
    assert facts is not None  # the cycle gives it to every preset that decides on the portfolio
    if context.symbol not in {stock.symbol for stock in facts.stocks}:
        return f"there are too few bars of {context.symbol}"
    reflection = await _reflect(context, facts)
    analysis = await _analyse(context, facts, reflection)
    view = agents.PortfolioDecisionView(
        **_shared(context, facts, reflection.value),
        analysis=analysis.value,
        reflection=reflection.value,
        decisions=facts.decisions,
        absent=tuple(filter(None, (reflection.absent, analysis.absent, *facts.absent))),
    )
    reply = await context.reply(agents.PORTFOLIO_DECISION, view)
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


async def _reflect(context: StepContext, facts: PortfolioFacts) -> Finding[agents.PortfolioReflection]:
    """The session judged, and the next strategy."""
    name = agents.PORTFOLIO_REFLECTION.name
    if (left_out := context.without(name)) is not None:
        return left_out
    if facts.day_return is None:
        return Finding(absent=f"{name}: there is no past yet")
    best, worst = best_and_worst(facts.library)
    view = agents.PortfolioReflectionView(
        **_shared(context, facts, None),
        decisions=facts.decisions,
        day_return=facts.day_return,
        market_return=facts.market_return,
        best=tuple(one.line for one in best),
        worst=tuple(one.line for one in worst),
    )
    return await context.ask(agents.PORTFOLIO_REFLECTION, view)


async def _analyse(
    context: StepContext, facts: PortfolioFacts, reflection: Finding[agents.PortfolioReflection]
) -> Finding[agents.PortfolioAnalysis]:
    """Findings and a ranking of all stocks."""
    if (left_out := context.without(agents.PORTFOLIO_ANALYSIS.name)) is not None:
        return left_out
    view = agents.PortfolioAnalysisView(**_shared(context, facts, reflection.value), reflection=reflection.value)
    return await context.ask(agents.PORTFOLIO_ANALYSIS, view)


def _shared(
    context: StepContext, facts: PortfolioFacts, reflection: agents.PortfolioReflection | None
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
        "index_change": sum((one.change for one in facts.stocks), ZERO) / max(1, len(facts.stocks)),
        "input": context.preset.portfolio.input,
        "record": facts.record,
        "strategy": facts.strategy if reflection is None else reflection.strategy,
        "moment": context.turn.market.now if context.turn.within_session else None,
    }
