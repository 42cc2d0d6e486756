"""The findings of one owner's analysis of one symbol, which pass between its steps as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.agents.ask import Reply
from engine.agents.chart_reading import CHART, ChartReading
from engine.agents.extended_reflection import ExtendedReflection
from engine.agents.high_level_reflection import HighLevelReflection
from engine.agents.immediate_reflection import ImmediateReflection
from engine.agents.low_level_reflection import LowLevelReflection
from engine.agents.market_intelligence import INTELLIGENCE, MarketIntelligence
from engine.agents.news_digest import NEWS, NewsDigest
from engine.agents.past_intelligence import PAST, PastSummary
from engine.agents.performance_reflection import PerformanceReflection
from engine.agents.signal_reflection import SignalReflection
from engine.agents.tools import ToolSignal
from engine.agents.view import Answer, Report
from engine.cycle.step import Finding
from engine.domain.macro import MacroRelease
from engine.domain.market import Filing
from engine.domain.recollection import Recollection
from memory.record import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """The findings of the steps that take in what there is today.

    news: digest of the news.
    filings: new since the last decision.
    macro: releases since the last decision.
    intelligence: judgement of every item, with queries for memory.
    recollections: the memories that these queries brought up.
    past: summary of the recollections.
    chart: reading of the last sessions.
    tools: signals of rule strategies, and experts' notes.
    reports: answers of the user's own agents.
    """

    news: Finding[NewsDigest]
    filings: Sequence[Filing]
    macro: Finding[Sequence[MacroRelease]]
    intelligence: Finding[MarketIntelligence]
    recollections: tuple[Recollection, ...]
    past: Finding[PastSummary]
    chart: Finding[ChartReading]
    tools: Finding[tuple[ToolSignal, ...]]
    reports: tuple[Finding[Report], ...] = ()

    @property
    def answers(self) -> Mapping[str, Answer]:
        """The answers that came, by agent."""
        asked = (
            (NEWS.name, self.news.value),
            (INTELLIGENCE.name, self.intelligence.value),
            (PAST.name, self.past.value),
            (CHART.name, self.chart.value),
        )
        return {name: answer for name, answer in asked if answer is not None}

    @property
    def summary(self) -> MarketIntelligence | NewsDigest | None:
        """The intelligence, or the digest of the news where there is none."""
        return self.intelligence.value or self.news.value

    @property
    def own(self) -> tuple[Report, ...]:
        """The reports that the user's own agents gave."""
        return tuple(finding.value for finding in self.reports if finding.value is not None)

    @property
    def queries(self) -> Mapping[str, str]:
        """Texts to search memory with."""
        return search_queries(self.news, self.intelligence)

    @property
    def absent(self) -> tuple[str, ...]:
        """The reasons of all findings that are absent, in the order of the steps."""
        return _absent(self.news, self.macro, self.intelligence, self.past, self.chart, self.tools, *self.reports)


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

    low_level: Finding[LowLevelReflection]
    high_level: Finding[HighLevelReflection]
    short_term: Finding[PerformanceReflection]
    medium_term: Finding[PerformanceReflection]
    signals: Finding[SignalReflection]
    extended: Finding[ExtendedReflection]
    immediate: Finding[Reply[ImmediateReflection]]

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


def search_queries(news: Finding[NewsDigest], intelligence: Finding[MarketIntelligence]) -> Mapping[str, str]:
    """Texts to search memory with, by retrieval type: always of today's news, never a constant."""
    if intelligence.value is not None:
        asked = intelligence.value.queries
        return {"short term": asked.short_term, "medium term": asked.medium_term, "long term": asked.long_term}
    return {"news": " ".join(news.value.summary)} if news.value is not None else {}


def _absent(*findings: Finding[Any]) -> tuple[str, ...]:
    return tuple(finding.absent for finding in findings if finding.absent)
