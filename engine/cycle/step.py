"""The steps of one owner's analysis of one symbol: their context, and what passes between them as values.

Every step is a function: it takes the context and the findings that it rests on, and returns a finding of its own. So
a step can be read, and tested, without the steps around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any, Generic, TypeVar

from engine.agents import reflections as reflecting
from engine.agents.agent import A, Agent, Answer, Report, V
from engine.agents.ask import Asker, Reply
from engine.agents.character import fixed_nature, profile_of
from engine.agents.chart import ChartReading
from engine.agents.immediate import ImmediateReflection, MarketFacts
from engine.agents.intelligence import FilingSummary, IntelligenceItem, ItemJudgement, MarketIntelligence
from engine.agents.news import NewsDigest
from engine.agents.past import PastSummary
from engine.agents.tools import Rule, ToolSignal
from engine.cycle.portfolio_facts import PortfolioFacts
from engine.cycle.recall import MemoryScope, TradingMemory
from engine.cycle.sources import Sources
from engine.cycle.turn import Turn
from engine.domain.decision import Action, Outcome, ReadOutcome, Recollection
from engine.domain.macro import MacroRelease
from engine.domain.market import Filing, FundTrade, NewsItem, PriceHistory, Symbol, from_nano
from engine.domain.model_call import ModelKind
from engine.domain.order import ZERO, PositionContext
from engine.errors import PaperdeskError
from engine.market.figures import MOMENTUM_SESSIONS, PriceMove, last_sessions, moves_after, moves_up_to
from engine.messages.events import Event, StepStarted
from engine.preset import Preset
from engine.settings.owners import Owner
from memory.record import Item

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finding(Generic[T]):
    """The result of one step. `absent` names the reason why there is none, empty where nobody has to know it; `lesson`
    is what memory keeps of it."""

    value: T | None = None
    absent: str = ""
    lesson: Item | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """The context of one owner's analysis of one symbol.

    turn: the cycle's input.
    symbol, owner: whose opinion on what.
    bars: visible bars, oldest first.
    position: the owner's position and cash, the desk's where it has one book.
    preset: the steps that run, and their numbers.
    asker: puts questions to models.
    strategies: rule strategies whose signals are tools.
    memory: None where the preset has none.
    publish: receives every event.
    failed: errors of the batch so far; after the first one nothing more is asked.
    sources: where figures of the analysis may come from, and those that agents made up.
    portfolio: the owner's portfolio, where the preset decides on all symbols at once.
    """

    turn: Turn
    symbol: Symbol
    owner: str
    bars: PriceHistory
    position: PositionContext
    preset: Preset
    asker: Asker
    strategies: tuple[Rule, ...]
    memory: TradingMemory | None
    publish: Callable[[Event], None]
    failed: list[PaperdeskError] = field(default_factory=list)
    sources: Sources = field(default_factory=Sources)
    portfolio: PortfolioFacts | None = None

    @property
    def subject(self) -> tuple[Symbol, date, str]:
        """The question's symbol, session and owner, with which every view begins."""
        return self.symbol, self.turn.session, self.owner

    @property
    def traits(self) -> Owner:
        """The owner's settings."""
        return self.preset.owner(self.owner)

    @property
    def scope(self) -> MemoryScope:
        """The owner's memory of the symbol, at this session."""
        return MemoryScope(self.symbol, self.owner, self.turn.session, self.turn.step)

    @property
    def adjusted(self) -> PriceHistory:
        """The bars that momentum is taken of, on adjusted prices. Source: InvestorBench appendix D [I5]."""
        return self.turn.market.adjusted(self.symbol, MOMENTUM_SESSIONS + 1)

    @property
    def market_facts(self) -> MarketFacts:
        """Price, momentum and adjusted closes, with the owner's risk character. Source: InvestorBench A.1 [I5, I6]."""
        facts = MarketFacts.of(self.adjusted, fixed_nature(self.traits))
        return replace(facts, price=self.position.price)

    @property
    def profile(self) -> str:
        """The knowledge of the owner, of its assets and of this one. Source: InvestorBench A.1 [I6]."""
        return profile_of(self.traits, self.preset.profiles.get(self.symbol, ""))

    @property
    def news(self) -> Sequence[NewsItem]:
        """The news since the last decision; none where it is withheld."""
        if self.preset.withholds_news:
            return ()
        return self.turn.market.news(self.symbol, self.turn.news_after)

    @property
    def price_item(self) -> IntelligenceItem | None:
        """The move of the price since the last decision; None in a cycle within the session, which sees no new close.
        Source: FinAgent §4.1 [A1]."""
        return None if self.turn.within_session else IntelligenceItem.of_price(last_sessions(self.bars))

    @property
    def moves(self) -> tuple[PriceMove, ...]:
        """The moves that led here and, in training, those that followed: the one place that looks ahead."""
        turn, led_here = self.turn, moves_up_to(self.bars)
        if turn.hindsight_until is None:
            return led_here
        ahead = turn.market.hindsight(self.symbol, len(self.bars), turn.hindsight_until)
        return led_here + moves_after(ahead, turn.market.last_session(self.symbol))

    @property
    def move_that_followed(self) -> float | None:
        """The change of the close over the session that followed, in training alone.
        Source: InvestorBench A.1 [I7]."""
        return next((move.change for move in self.moves if move.hindsight and move.horizon_days == 1), None)

    @property
    def fund_trade(self) -> FundTrade | None:
        """The last trade of the owner's reference fund in the symbol, in training alone.
        Source: TradingGPT §4.2 [G8]."""
        fund = self.traits.reference_fund
        return self.turn.market.fund_trade(fund, self.symbol) if fund and self.turn.training else None

    def outcomes(self, last: int) -> tuple[Outcome, ...]:
        """The owner's last outcomes in the symbol, at most `last`, each with the close of the decision's own session
        the move that followed, and its decision, on the price basis of today's bars."""
        return tuple(map(self._read, self.turn.history.of(self.symbol, self.owner, last)))

    def _read(self, one: Outcome) -> ReadOutcome:
        history, before, after = self.turn.history, self._close_by(one.decision_session), self._close_by(one.session)
        opinion = history.opinion(one)
        return ReadOutcome.of(one, before, after, history.decision(one), "" if opinion is None else opinion.note)

    def outcomes_shown(self, sessions: int) -> tuple[Outcome, ...]:
        """All of the owner's outcomes in the symbol that became known in the last `sessions` sessions of the bars."""
        first = self.bars.session(max(0, len(self.bars) - sessions))
        past = self.turn.history.record(self.symbol, self.owner)
        return tuple(one for one in past if one.session >= first)

    def _close_by(self, session: date) -> Decimal:
        """The last close by a session; zero where the bars begin later."""
        rows = self.bars.rows_through(session)
        return from_nano(self.bars.close[rows - 1]) if rows else ZERO

    def lessons(self, kind: str, queries: Mapping[str, str]) -> tuple[Recollection, ...]:
        """A reflection's own past lessons; none without memory."""
        if self.memory is None:
            return ()
        return self.memory.lessons(self.scope, kind, " ".join(queries.values()))

    def without(self, step: str, name: str | None = None) -> Finding[Any] | None:
        """The finding of a step that the preset leaves out, None where it runs. A step that an ablation has left out
        is reported as absent."""
        if step in self.preset.steps:
            return None
        return Finding(absent=f"{name or step}: switched off" if step in self.preset.expected else "")

    async def ask(
        self,
        agent: Agent[V, A],
        view: V,
        learned: Callable[[A], Item | None] = lambda answer: None,
        *,
        name: str = "",
    ) -> Finding[A]:
        """The finding of a step that asks an agent. `learned` makes what memory keeps of its answer; `name` is the
        step's in the reason why there is no answer, the question's where empty."""
        return finding_of(name or view.question or agent.name, await self.reply(agent, view), learned)

    async def reply(self, agent: Agent[V, A], view: V) -> Reply[A]:
        """An agent's reply; publishes that the step has begun, and looks its figures up in its sources, which rules
        that answer everything leave alone: theirs are computed. Raises what has failed elsewhere in the batch."""
        if self.failed:
            raise self.failed[0]
        turn = self.turn
        self.publish(
            StepStarted(
                run=turn.run,
                time=turn.market.now,
                session=turn.session,
                symbol=self.symbol,
                owner=self.owner,
                step=view.question or agent.questions[0],
            )
        )
        reply = await self.asker.ask(agent, view, self.preset.about(self.symbol), self.preset.currency)
        if agent.name != self._deciding and not self.asker.asks_rules_alone:
            self.sources.add(agent.name, view, reply, by_rules=self._asks_rules(agent.name))
        return reply

    def unresolved(self, text: str, reply: Reply[Any], action: Action) -> tuple[str, ...]:
        """The figures of a decision's text that stand in no source, then those of the reports that it rests on."""
        own = () if self._asks_rules(self._deciding) else self.sources.decided(text, reply.inputs, action)
        return (*own, *self.sources.unresolved)

    @property
    def _deciding(self) -> str:
        return self.preset.deciding(training=self.turn.training).name

    def _asks_rules(self, agent: str) -> bool:
        return self.asker.model_of(agent, self.owner).spec == ModelKind.OFFLINE


def finding_of(name: str, reply: Reply[A], lesson: Callable[[A], Item | None] = lambda answer: None) -> Finding[A]:
    """The finding of a step whose agent was asked; `lesson` makes what memory keeps of an answer."""
    if reply.answer is None:
        return Finding(absent=f"{name}: abstained, {reply.abstained_because}")
    return Finding(reply.answer, lesson=lesson(reply.answer))


@dataclass(frozen=True, slots=True)
class FilingsRead:
    """Filings as they are judged and remembered, with the summaries among them. `absent` names the reason why a long
    one has none."""

    texts: Sequence[Filing]
    summaries: tuple[FilingSummary, ...] = ()
    absent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """All items since the last decision, as they were judged.

    news: digest of the news.
    filings: long ones summarized.
    macro: releases.
    commentary: of funds.
    intelligence: judgement of every item, with queries for memory.
    judged: the judgements as memory keeps them, by the ids of the items at their sources.
    """

    news: Finding[NewsDigest]
    filings: FilingsRead
    macro: Finding[Sequence[MacroRelease]]
    commentary: Finding[Sequence[NewsItem]]
    intelligence: Finding[MarketIntelligence]
    judged: Mapping[str, ItemJudgement]

    @property
    def queries(self) -> Mapping[str, str]:
        """Texts to search memory with, by retrieval type: always of today's news, never a constant. A digest of the
        news is of no type."""
        if self.intelligence.value is not None:
            return {name.value: text for name, text in self.intelligence.value.queries.texts.items()}
        return {"all": " ".join(self.news.value.summary)} if self.news.value is not None else {}


Remembered = Mapping[tuple[Symbol, str], tuple[Sources, Received]]
"""Items that came in by symbol and owner, once memory has stored them, and the sources of its figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Items since the last decision, with the memories that their queries brought up."""

    received: Received
    recollections: tuple[Recollection, ...]

    @property
    def summary(self) -> MarketIntelligence | NewsDigest | None:
        """The intelligence, or the digest of the news where there is none."""
        return self.received.intelligence.value or self.received.news.value


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """The answer of one of the user's own agents, and the report that the decision reads of it."""

    report: Finding[Report]
    answer: Answer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations(Gathered):
    """The findings of the steps that take in what there is today.

    past: summary of the recollections.
    chart: reading of the last sessions.
    tools: signals of rule strategies, and experts' notes.
    reports: answers of the user's own agents.
    """

    past: Finding[PastSummary]
    chart: Finding[ChartReading]
    tools: Finding[tuple[ToolSignal, ...]]
    reports: tuple[Finding[Report], ...] = ()

    @property
    def own(self) -> tuple[Report, ...]:
        """The reports that the user's own agents gave."""
        return tuple(finding.value for finding in self.reports if finding.value is not None)

    @property
    def absent(self) -> tuple[str, ...]:
        """The reasons of all findings that are absent, in the order of the steps."""
        new, asked = self.received, (self.past, self.chart, self.tools)
        filings: Finding[Any] = Finding(absent=new.filings.absent)
        return _absent(new.news, filings, new.macro, new.commentary, new.intelligence, *asked, *self.reports)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflections:
    """The findings of the steps that look back.

    low_level: intelligence linked to moves of the price.
    high_level: past decisions judged.
    short_term, medium_term: performance over two windows.
    signals: the chart of past signals.
    extended: trading of a period judged.
    immediate: reply to the market joined with memories, its advice included.
    """

    low_level: Finding[reflecting.LowLevelReflection]
    high_level: Finding[reflecting.HighLevelReflection]
    short_term: Finding[reflecting.PerformanceReflection]
    medium_term: Finding[reflecting.PerformanceReflection]
    signals: Finding[reflecting.SignalReflection]
    extended: Finding[reflecting.ExtendedReflection]
    immediate: Finding[Reply[ImmediateReflection]] = Finding()

    @property
    def absent(self) -> tuple[str, ...]:
        """The reasons of all findings that are absent, in the order of the steps."""
        performance = (self.short_term, self.medium_term, self.signals)
        return _absent(self.low_level, self.high_level, *performance, self.extended, self.immediate)

    @property
    def lessons(self) -> tuple[Item, ...]:
        """The lessons that memory keeps, in the order of the steps."""
        steps: tuple[Finding[Any], ...] = (self.low_level, self.high_level, self.extended, self.immediate)
        return tuple(step.lesson for step in steps if step.lesson is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """All that one owner found out about one symbol, before its decision."""

    context: StepContext
    observed: Observations
    reflections: Reflections


def _absent(*findings: Finding[Any]) -> tuple[str, ...]:
    return tuple(finding.absent for finding in findings if finding.absent)
