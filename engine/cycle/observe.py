"""The steps that take in what there is today: news, intelligence, memories, the chart, the tools."""

from __future__ import annotations

from collections.abc import Sequence

from engine.agents.chart_reading import CHART, ChartView
from engine.agents.market_intelligence import INTELLIGENCE, IntelligenceView
from engine.agents.news_digest import NEWS, NewsView
from engine.agents.past_intelligence import PAST, PastView
from engine.agents.tools import guidance_signals, tool_signals
from engine.cycle.analysis import Analysis
from engine.cycle.recall import YEAR
from engine.domain.macro import MacroRelease
from engine.domain.market import Filing
from engine.market.chart_specs import indicator_table, kline_chart
from engine.market.moves import last_sessions


async def news(thought: Analysis) -> None:
    """FinVision's summary of the news since the last decision. Source: FinVision §3.1 [V1]."""
    seen = thought.seen
    if not thought.wants("news"):
        return
    if not thought.news_items:
        thought.absent.append("news: there was none")
        return
    thought.begin("news")
    view = NewsView.of(seen.symbol, seen.turn.session, seen.owner, thought.news_items)
    thought.news = thought.kept("news", await thought.asker.ask(NEWS, view))


async def intelligence_and_memories(thought: Analysis) -> None:
    """Every item judged, a summary for trading, queries for memory; then what memory holds on what is known today, and
    its summary. After that today's items go into memory themselves.
    Source: FinAgent §4.1, §4.2 [A1, A2, A3]; TradingGPT §4.1.1 [G2]."""
    filings, macro = _new_filings(thought), _new_macro(thought)
    await _intelligence(thought, filings, macro)
    if thought.memory is None:
        return
    seen = thought.seen
    diversified = "diversified" in thought.preset.steps
    thought.recollections = thought.memory.recall(thought.place, thought.queries(), diversified)
    thought.memory.take_in(thought.place, thought.news_items, filings, thought.intelligence, macro)
    if not thought.recollections or not thought.wants("past"):
        return
    thought.begin("past-intelligence")
    view = PastView(seen.symbol, seen.turn.session, seen.owner, thought.recollections)
    thought.past = thought.kept("past-intelligence", await thought.asker.ask(PAST, view))


async def chart(thought: Analysis) -> None:
    """The chart of the last sessions, read. Source: FinVision §3.2 [V2]."""
    seen = thought.seen
    if not thought.wants("chart"):
        return
    thought.begin("chart")
    drawn = kline_chart(seen.symbol, seen.bars, thought.preset.windows.chart)
    view = ChartView(seen.symbol, seen.turn.session, seen.owner, drawn, indicator_table(seen.bars))
    thought.chart = thought.kept("chart", await thought.asker.ask(CHART, view))


def tools(thought: Analysis) -> None:
    """What the rule strategies say, with their explanation, and what experts wrote by then.
    Source: FinAgent §4.4 [A7]."""
    if thought.wants("tools"):
        seen = thought.seen
        notes = guidance_signals(thought.preset.guidance, seen.symbol, seen.turn.session)
        thought.tool_signals = (*tool_signals(thought.tools, seen.bars), *notes)


async def _intelligence(thought: Analysis, filings: Sequence[Filing], macro: Sequence[MacroRelease]) -> None:
    seen = thought.seen
    if not thought.wants("intelligence"):
        return
    thought.begin("market-intelligence")
    view = IntelligenceView.of(
        seen.symbol,
        seen.turn.session,
        seen.owner,
        thought.news_items,
        filings=filings,
        prices=last_sessions(seen.bars),
        macro=macro,
    )
    thought.intelligence = thought.kept("market-intelligence", await thought.asker.ask(INTELLIGENCE, view))


def _new_filings(thought: Analysis) -> Sequence[Filing]:
    """Filings since the last decision; for a memory that knows nothing of the symbol yet, those of a year."""
    market = thought.seen.turn.market
    return market.filings(thought.seen.symbol, market.now - YEAR if _begins(thought) else thought.seen.turn.news_after)


def _new_macro(thought: Analysis) -> Sequence[MacroRelease]:
    """Figures of the economy that came out since the last decision; for a memory that knows nothing of the symbol
    yet, the latest of all. Source: TradingGPT §4.1.1 [G2]."""
    if not thought.wants("macro"):
        return ()
    return thought.seen.turn.market.macro(None if _begins(thought) else thought.seen.turn.news_after)


def _begins(thought: Analysis) -> bool:
    return thought.memory is not None and not thought.memory.knows(thought.place)
