"""THE STORY: one round of decisions over a batch of symbols, from observing the market to orders for the next open.

For every symbol and owner: observe (digest the news or gather intelligence, recall, read the chart, use tools, ask the
user's own agents), reflect on moves, on decisions, on performance and on signals, debate with the other owners of the
symbol, decide. Then over the whole batch, in the order of the symbols: combine the owners' opinions to one decision
per symbol, size it by the rule that it names, limit it by cash and holdings. A step that the preset leaves out gives
an empty finding; an agent without a valid answer abstains, which never raises; where no answer could be had the cycle
ends with an error and decides nothing. The session (engine/session/loop.py) settles the orders: the next cycle
reflects on their outcomes, and `feedback` rewards memories that were cited, once it is known what followed. Where a
preset decides on the whole portfolio, one question about all symbols takes the place of these steps
(engine/cycle/decide.py).
Source: FinVision §3, figure 1 [V8]; FinAgent §4 [A1-A10]; TradingGPT §4.2 [G6].
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import chain
from typing import Any

from engine.agents.ask import Asker
from engine.agents.chart import CHART
from engine.agents.figures import Facts
from engine.agents.past import PAST
from engine.agents.tools import Rule
from engine.cycle import debate, observe, reflect
from engine.cycle.combine import book_of, combine, size_and_limit
from engine.cycle.debate import HeldDebate
from engine.cycle.decide import abstention, opinion
from engine.cycle.deliberation import Deliberation
from engine.cycle.portfolio_facts import PortfolioFacts, portfolio_facts
from engine.cycle.recall import TradingMemory
from engine.cycle.received import documents
from engine.cycle.sources import Sources
from engine.cycle.step import Analysis, Finding, Observations, Received, Reflections, Remembered, StepContext
from engine.cycle.steps import Steps, gather_all, noted
from engine.cycle.turn import CycleResult, TradingHistory, Turn
from engine.domain.market import PriceHistory, Symbol, from_nano
from engine.domain.order import ZERO
from engine.errors import PaperdeskError
from engine.market.as_of import MarketAsOf
from engine.messages.events import DecisionMade, Event, OpinionFormed
from engine.ports import Calendar
from engine.preset import Preset
from engine.strategies.catalog import make_rule

INDICATOR_ROWS = 250
"""Bars before the chart's first, so that its averages have settled when it begins."""


@dataclass(frozen=True)
class Cycle:
    """The one cycle.

    preset: the steps that run, and their numbers
    asker: the way to the agents' models
    calendars: trading calendar by symbol
    publish: receives every event
    memory: None where the preset has none
    costs: of a trade, as a fraction of its amount
    """

    preset: Preset
    asker: Asker
    calendars: Mapping[Symbol, Calendar]
    publish: Callable[[Event], None] = lambda event: None
    memory: TradingMemory | None = None
    costs: Decimal = ZERO

    @cached_property
    def strategies(self) -> tuple[Rule, ...]:
        """The rule strategies whose signals are tools."""
        return tuple(make_rule(name, params) for name, params in self.preset.tools.items())

    @property
    def bars(self) -> int:
        """The number of bars of a symbol that are read."""
        return self.preset.windows.chart + INDICATOR_ROWS

    async def run(self, turn: Turn) -> CycleResult:
        """Decide every symbol of the turn. Symbols and owners are analysed side by side; limits apply in the symbols'
        order. Memory stores what came in before anybody decides, and reflections last, each dated to its moment, so
        that a killed run recalls the same again."""
        failed: list[PaperdeskError] = []
        portfolios = self._portfolios(turn)
        seats = {symbol: self._contexts(turn, symbol, failed, portfolios) for symbol in turn.symbols}
        new = asyncio.ensure_future(self._remembered(turn, seats))
        symbols = await gather_all(self._deliberate(turn, symbol, contexts, new) for symbol, contexts in seats.items())
        await new
        deliberations = tuple(chain.from_iterable(symbols))
        opinions = tuple(one.opinion for one in deliberations)
        positions = {(one.opinion.key.symbol, book_of(turn, one.opinion)): one.position for one in deliberations}
        decisions, orders = size_and_limit(turn, combine(opinions, self.preset), positions, self.preset.sizing)
        recalled = {one.opinion.key: one.recollections for one in deliberations}
        debated = tuple(await gather_all(self._debated(turn, one, failed) for one in symbols))
        debates = tuple(one.debate for one in debated if one is not None)
        result = CycleResult(decisions, orders, opinions, recalled, debates)
        for combined in result.combined:
            self.publish(OpinionFormed(combined.key.run, turn.market.now, combined))
        for decision in decisions:
            self.publish(DecisionMade(decision.key.run, turn.market.now, decision))
        if self.memory is not None:
            memories = [item for one in deliberations for item in one.memories(turn, result)]
            lessons = (one.lessons.values() for one in debated if one is not None)
            memories += chain.from_iterable(chain.from_iterable(lessons))
            self.memory.write(memories, opinions, turn.step)
        return result

    async def ask_ahead(self, turn: Turn, asker: Asker, of: Collection[tuple[Symbol, str]]) -> None:
        """Ask what the agents that read the market alone will be asked at a turn, of some symbols and owners. Nothing
        comes of it but that their models have answered."""
        symbols = [symbol for symbol in turn.symbols if self._is_current(turn, symbol)]
        contexts = [one for symbol in symbols for one in self._contexts(turn, symbol, [], {})]
        await gather_all(observe.ask_alone(one, asker) for one in contexts if (one.symbol, one.owner) in of)

    def feedback(self, history: TradingHistory, market: MarketAsOf, step: float) -> None:
        """Reward the memories that opinions cited and that by now have paid or cost."""
        if self.memory is not None:
            self.memory.feedback(history, market, step, calendars=self.calendars, costs=self.costs)

    def _portfolios(self, turn: Turn) -> Mapping[str, PortfolioFacts]:
        """Each owner's portfolio, where the preset decides on all symbols at once."""
        if self.preset.decision != "portfolio":
            return {}
        bars = {symbol: self._bars(turn, symbol) for symbol in turn.universe if self._is_current(turn, symbol)}
        if not bars:
            return {}
        positions = {
            owner: {symbol: observe.position(turn, symbol, owner, rows) for symbol, rows in bars.items()}
            for owner in self.preset.owners
        }
        return {owner: portfolio_facts(turn, owner, self.preset, bars, own) for owner, own in positions.items()}

    def _bars(self, turn: Turn, symbol: Symbol) -> PriceHistory:
        return turn.market.bars(symbol, self.bars) if turn.market.count(symbol) else PriceHistory.of(symbol, ())

    def _is_current(self, turn: Turn, symbol: Symbol) -> bool:
        """True where the bar of the last session is there."""
        closed = self.calendars[symbol].last_closed(turn.market.now)
        return bool(turn.market.count(symbol)) and turn.market.last_session(symbol) == closed

    async def _remembered(self, turn: Turn, seats: Mapping[Symbol, Sequence[StepContext]]) -> Remembered:
        """All items for every symbol and owner, once memory has stored them; nothing without memory, for which no owner
        has to wait. Source: InvestorBench A.1 [I1]."""
        if self.memory is None:
            return {}
        self.memory.begin(turn.step)
        current = [one for symbol, some in seats.items() if self._is_current(turn, symbol) for one in some]
        contexts = [replace(one, sources=one.sources.branch()) for one in current]
        new = await gather_all(_receive(context) for context in contexts)
        self.memory.store(chain.from_iterable(map(documents, contexts, new)), turn.step)
        return {(one.symbol, one.owner): (one.sources, found) for one, found in zip(contexts, new, strict=True)}

    async def _deliberate(
        self,
        turn: Turn,
        symbol: Symbol,
        contexts: Sequence[StepContext],
        new: asyncio.Future[Remembered],
    ) -> tuple[Deliberation, ...]:
        """The opinions of a symbol's owners, in their order: each analyses by itself, then they debate where that feeds
        the decision. Without the last session's bar they abstain before any model is asked. An error goes into `failed`
        as well, and nobody in the batch asks any more."""
        if not self._is_current(turn, symbol):
            because = f"there is no bar of {symbol} for {self.calendars[symbol].last_closed(turn.market.now)}"
            return tuple(Deliberation(abstention(turn, symbol, one.owner, because), one.position) for one in contexts)
        with noted(contexts[0].failed):
            analyses = await gather_all(_analyse(one, new) for one in contexts)
            before = self.preset.debates(training=turn.training, before=True)
            held = await debate.hold(analyses, before=True) if before else None
            decided = await gather_all(opinion(one, held) for one in analyses)
        return tuple(
            Deliberation(own, one.context.position, one, held) for one, own in zip(analyses, decided, strict=True)
        )

    def _contexts(
        self,
        turn: Turn,
        symbol: Symbol,
        failed: list[PaperdeskError],
        portfolios: Mapping[str, PortfolioFacts],
    ) -> Sequence[StepContext]:
        """The contexts of a symbol's owners."""
        bars = self._bars(turn, symbol)
        closes = Facts(" ".join(f"{from_nano(close):f}" for close in bars.close[-self.preset.windows.chart :]))
        positions = {owner: observe.position(turn, symbol, owner, bars) for owner in self.preset.owners_of(symbol)}
        return [
            StepContext(
                turn=turn,
                symbol=symbol,
                owner=owner,
                bars=bars,
                position=position,
                sources=Sources(close=position.price, facts=[closes]),
                preset=self.preset,
                asker=self.asker,
                strategies=self.strategies,
                memory=self.memory if "memory" in self.preset.steps else None,
                publish=self.publish,
                failed=failed,
                portfolio=portfolios.get(owner),
            )
            for owner, position in positions.items()
        ]

    async def _debated(
        self, turn: Turn, deliberations: Sequence[Deliberation], failed: list[PaperdeskError]
    ) -> HeldDebate | None:
        """The debate of a symbol: the one that fed the decision, or the one that follows the trade."""
        analyses = [one.analysis for one in deliberations if one.analysis is not None]
        if analyses and self.preset.debates(training=turn.training, before=False):
            with noted(failed):
                return await debate.hold(analyses, before=False)
        return next((one.debate for one in deliberations), None)


async def _receive(context: StepContext) -> Received:
    """The items that came in for one owner and symbol."""
    with noted(context.failed):
        return await observe.received(context)


async def _analyse(context: StepContext, new: asyncio.Future[Remembered]) -> Analysis:
    """One owner's analysis of one symbol: each step with the steps that it reads, in the order of the record. Memory is
    searched with queries made of today's news; the immediate reflection's advice is in some presets the decision."""
    async with Steps(context) as begin:
        received = begin(observe.stored, new)
        gathered = begin(observe.gathered, received)
        past = begin(observe.past, gathered)
        chart = begin(observe.chart)
        asked: dict[str, asyncio.Task[Finding[Any]]] = {PAST.name: past, CHART.name: chart}
        reports = observe.own_reports(begin, context.preset.registered, received, gathered, asked)
        low_level = begin(reflect.on_moves, gathered, past)
        high_level = begin(reflect.on_decisions, gathered)
        both_terms = begin(reflect.on_both_terms)
        short_term = begin(reflect.on_performance, "short", both_terms)
        medium_term = begin(reflect.on_performance, "medium", both_terms)
        signals = begin(reflect.on_signals)
        extended = begin(reflect.on_period, gathered)
        immediate = begin(reflect.immediately, gathered, extended, *reports)
    observed = Observations(
        received=received.result(),
        recollections=gathered.result().recollections,
        past=past.result(),
        chart=chart.result(),
        tools=observe.tools(context),
        reports=tuple(one.result().report for one in reports),
    )
    reflections = Reflections(
        low_level=low_level.result(),
        high_level=high_level.result(),
        short_term=short_term.result(),
        medium_term=medium_term.result(),
        signals=signals.result(),
        extended=extended.result(),
        immediate=immediate.result(),
    )
    return Analysis(context=context, observed=observed, reflections=reflections)
