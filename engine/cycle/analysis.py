"""The record of one owner's thinking about one symbol in one cycle: what each step found, and what it had to do
without.

A step that the preset leaves out, that has nothing to look at, or whose agent abstains, leaves a word in `absent`:
the decision is told what it has to do without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from engine.agents.ask import Asker, Reply
from engine.agents.chart_reading import ChartReading
from engine.agents.extended_reflection import ExtendedReflection
from engine.agents.high_level_reflection import HighLevelReflection
from engine.agents.immediate_reflection import ImmediateReflection
from engine.agents.low_level_reflection import LowLevelReflection
from engine.agents.market_intelligence import MarketIntelligence
from engine.agents.news_digest import NewsDigest
from engine.agents.past_intelligence import PastSummary
from engine.agents.performance_reflection import PerformanceReflection
from engine.agents.signal_reflection import SignalReflection
from engine.agents.tools import Rule, ToolSignal
from engine.agents.view import A
from engine.cycle.recall import MemoryScope, TradingMemory
from engine.cycle.turn import Observed
from engine.domain.decision import Outcome
from engine.domain.market import NewsItem
from engine.domain.recollection import Recollection
from engine.messages.events import Event, StepStarted
from engine.preset import Preset


@dataclass(kw_only=True)
class Analysis:
    """What one owner has found out about a symbol so far; the steps stand in `observing`, `reflecting` and
    `deciding`. `memory` is None where the preset has none."""

    seen: Observed
    preset: Preset
    asker: Asker
    tools: tuple[Rule, ...]
    memory: TradingMemory | None
    publish: Callable[[Event], None]

    news: NewsDigest | None = None
    intelligence: MarketIntelligence | None = None
    recollections: tuple[Recollection, ...] = ()
    past: PastSummary | None = None
    chart: ChartReading | None = None
    tool_signals: tuple[ToolSignal, ...] = ()
    low_level: LowLevelReflection | None = None
    high_level: HighLevelReflection | None = None
    short_term: PerformanceReflection | None = None
    medium_term: PerformanceReflection | None = None
    signals: SignalReflection | None = None
    extended: ExtendedReflection | None = None
    immediate: Reply[ImmediateReflection] | None = None
    absent: list[str] = field(default_factory=list)

    @property
    def place(self) -> MemoryScope:
        """Whose memory this is, and when."""
        return MemoryScope(self.seen.symbol, self.seen.owner, self.seen.turn.session, self.seen.turn.step)

    @cached_property
    def news_items(self) -> Sequence[NewsItem]:
        """The news since the last decision."""
        return self.seen.turn.market.news(self.seen.symbol, self.seen.turn.news_after)

    def outcomes(self, last: int) -> tuple[Outcome, ...]:
        """What the last decisions came to, at most so many."""
        return self.seen.turn.notebook.of(self.seen.symbol, self.seen.owner, last)

    def queries(self) -> Mapping[str, str]:
        """Texts to search memory with, by retrieval type: what is known today, never a constant."""
        if self.intelligence is not None:
            asked = self.intelligence.queries
            return {"short term": asked.short_term, "medium term": asked.medium_term, "long term": asked.long_term}
        return {"news": " ".join(self.news.summary)} if self.news is not None else {}

    def lessons(self, kind: str) -> tuple[Recollection, ...]:
        """A reflection's own past lessons."""
        if self.memory is None:
            return ()
        return self.memory.lessons(self.place, kind, " ".join(self.queries().values()))

    def keep_lesson(self, kind: str, text: str, query: str = "", seen_until: int | None = None) -> None:
        """Remembers a reflection, with the memories that it was given."""
        if self.memory is not None:
            self.memory.keep_lesson(self.place, kind, text, query, self.recollections, seen_until)

    def wants(self, step: str, name: str | None = None) -> bool:
        """Whether the preset has a step. One that an ablation left out is said to be absent."""
        if step in self.preset.steps:
            return True
        if step in self.preset.expected:
            self.absent.append(f"{name or step}: switched off")
        return False

    def begin(self, step: str) -> None:
        """Tells that a step has begun."""
        turn = self.seen.turn
        self.publish(
            StepStarted(
                run=turn.run,
                time=turn.market.now,
                session=turn.session,
                symbol=self.seen.symbol,
                owner=self.seen.owner,
                step=step,
            )
        )

    def kept(self, name: str, reply: Reply[A]) -> A | None:
        """The answer of a step, whose agent's abstention is said to be absent."""
        if reply.answer is None:
            self.absent.append(f"{name}: abstained, {reply.abstained_because}")
        return reply.answer
