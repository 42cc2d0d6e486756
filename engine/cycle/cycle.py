"""THE STORY: what the desk does with one session, from observing the market to orders for the next open.

Per symbol and owner: observe, digest the news or gather intelligence, recall, read the chart, use tools, reflect on
moves, on decisions, on performance and on signals, decide. Then over the whole batch, in the order of the symbols:
combine, size, limit. What the orders came to is settled by whoever keeps the books, and comes back through `learn`: as
the outcomes that the next cycle reflects on, and as feedback to the memories that were cited. A preset says which
steps run. Source: FinVision §3, figure 1 [V8]; FinAgent §4 [A1-A10].
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine.agents.ask import Asker
from engine.cycle import decide, observe, reflect
from engine.cycle.analysis import Analysis
from engine.cycle.recall import TradingMemory
from engine.cycle.turn import CycleResult, Formed, Observed, TradingHistory, Turn
from engine.domain.decision import Action, Decision, DecisionKey, Opinion, Outcome, Proposal
from engine.domain.market import PriceHistory, Symbol
from engine.domain.order import Order
from engine.domain.portfolio import ZERO
from engine.domain.recollection import Recollection
from engine.execution.limits import Approved, Batch, limit
from engine.execution.sizing import PositionContext, size
from engine.messages.events import DecisionMade, Event
from engine.ports import Calendar
from engine.preset import Preset
from engine.strategies.catalog import make_strategy

INDICATOR_ROWS = 250
"""Bars before the chart's first, so that its averages have settled when it begins."""


class Cycle:
    """The one cycle; a preset says which of its steps run and with which numbers."""

    def __init__(
        self,
        preset: Preset,
        asker: Asker,
        calendars: Mapping[Symbol, Calendar],
        publish: Callable[[Event], None] = lambda event: None,
        memory: TradingMemory | None = None,
    ) -> None:
        self.preset = preset
        self._asker = asker
        self._calendars = calendars
        self._publish = publish
        self._memory = memory
        self._tools = tuple(make_strategy(name, {}) for name in preset.tools)

    @property
    def bars(self) -> int:
        """How many bars of a symbol are read."""
        return self.preset.windows.chart + INDICATOR_ROWS

    async def run(self, turn: Turn) -> CycleResult:
        """Decides for every symbol of the turn. Symbols think side by side; limits apply in the symbols' order."""
        if self._memory is not None:
            self._memory.begin(turn.step)
        pairs = [(symbol, owner) for symbol in turn.symbols for owner in self.preset.owners]
        opinions = await _side_by_side(self._form_opinion(turn, symbol, owner) for symbol, owner in pairs)
        verdict = self._limit(turn, combine(opinions))
        turn.notebook.decided(verdict.decisions)
        if self._memory is not None:
            self._memory.decided(verdict.decisions, turn.step)
        return verdict

    def learn(self, notebook: TradingHistory, rows: Sequence[Outcome]) -> None:
        """What decisions earned is known: later cycles reflect on it, and what was cited is rewarded."""
        notebook.remember(rows)
        if self._memory is not None:
            self._memory.feedback(notebook.decisions, rows)

    async def _form_opinion(self, turn: Turn, symbol: Symbol, owner: str) -> Formed:
        closed = self._calendars[symbol].last_closed(turn.market.now)
        if not turn.market.count(symbol) or turn.market.last_session(symbol) != closed:
            return _abstaining(turn, symbol, owner, f"there is no bar of {symbol} for {closed}")
        observed = self._observe(turn, symbol, owner)
        memory = self._memory if "memory" in self.preset.steps else None
        thought = Analysis(
            seen=observed,
            preset=self.preset,
            asker=self._asker,
            tools=self._tools,
            memory=memory,
            publish=self._publish,
        )
        await observe.news(thought)
        await observe.intelligence_and_memories(thought)
        await observe.chart(thought)
        observe.tools(thought)
        await reflect.on_moves(thought)
        await reflect.on_decisions(thought)
        await reflect.on_performance(thought, "short")
        await reflect.on_performance(thought, "medium")
        await reflect.on_signals(thought)
        await reflect.on_period(thought)
        await reflect.immediately(thought)
        return await decide.opinion(thought)

    def _observe(self, turn: Turn, symbol: Symbol, owner: str) -> Observed:
        bars = turn.market.bars(symbol, self.bars)
        position = turn.portfolio.positions.get(symbol)
        standing = PositionContext(
            quantity=ZERO if position is None else position.quantity,
            price=turn.price(symbol),
            average_cost=ZERO if position is None else position.average_cost,
            cash=turn.portfolio.cash - turn.reserved,
            value=turn.value,
            gains_in_a_row=_rising_closes(bars),
        )
        return Observed(turn, symbol, owner, bars, standing)

    def _limit(self, turn: Turn, opinions: Sequence[Formed]) -> CycleResult:
        sizing = self.preset.sizing
        sized = {o.symbol: size(o.proposal, o.standing, sizing) for o in opinions}
        batch = Batch(turn.desk, turn.session, turn.number, sizing, turn.whole_shares)
        # `standing.cash` already leaves out what open buys may take.
        verdicts = limit(batch, ((o.symbol, sized[o.symbol], o.standing) for o in opinions), turn.taken, turn.queued)
        decisions: list[Decision] = []
        orders: list[Order] = []
        formed: list[Opinion] = []
        recalled: dict[DecisionKey, tuple[Recollection, ...]] = {}
        for opinion in opinions:
            rule, verdict = sized[opinion.symbol], verdicts.get(opinion.symbol)
            action, allowed, cuts = rule.action, rule.size, rule.cuts
            if isinstance(verdict, Approved):
                allowed, cuts = verdict.size, cuts + verdict.cuts
                orders.append(replace(verdict.order, reason=str(opinion.proposal.rule or "")))
            elif verdict is not None:
                action, allowed, cuts = Action.HOLD, ZERO, cuts + verdict.cuts
            key = DecisionKey(turn.run, turn.session, turn.number, opinion.symbol, opinion.owner)
            decision = Decision(
                key=key,
                action=action,
                size=allowed,
                proposal=opinion.proposal,
                cuts=cuts,
                unresolved_figures=opinion.unresolved,
                evidence=opinion.evidence,
            )
            decisions.append(decision)
            self._publish(_made(turn, decision))
            recalled[key] = opinion.recollections
            formed.append(decision.opinion)
        return CycleResult(tuple(decisions), tuple(orders), tuple(formed), recalled)


async def _side_by_side(thoughts: Iterable[Coroutine[Any, Any, Formed]]) -> Sequence[Formed]:
    """All opinions in order. Where one raises, nobody is asked any more: the others end before it is heard of."""
    tasks = [asyncio.ensure_future(thought) for thought in thoughts]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def combine(opinions: Sequence[Formed]) -> Sequence[Formed]:
    """Makes one opinion per symbol out of its owners'; with one owner there is nothing to combine."""
    return opinions


def _abstaining(turn: Turn, symbol: Symbol, owner: str, reason: str) -> Formed:
    standing = PositionContext(
        quantity=turn.portfolio.quantity(symbol),
        price=ZERO,
        average_cost=ZERO,
        cash=turn.portfolio.cash,
        value=turn.value,
        gains_in_a_row=0,
    )
    return Formed(symbol=symbol, owner=owner, proposal=Proposal(Action.ABSTAIN, 0, None, "", reason), standing=standing)


def _rising_closes(bars: PriceHistory) -> int:
    closes = bars.close
    row = len(closes) - 1
    while row > 0 and closes[row] > closes[row - 1]:
        row -= 1
    return len(closes) - 1 - row


def _made(turn: Turn, decision: Decision) -> DecisionMade:
    key = decision.key
    return DecisionMade(
        run=turn.run,
        time=turn.market.now,
        session=key.session,
        symbol=key.symbol,
        owner=key.owner,
        action=decision.action.value,
        size=decision.size,
        reason=decision.reason,
        cut=decision.cut,
    )
