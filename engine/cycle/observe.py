"""The steps that take in what there is today: news, intelligence, memories, the chart, tools, the user's own agents."""

from __future__ import annotations

from asyncio import Task
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any

from engine.agents.agent import Agent, Answer, Inputs, Reads, Report, plain
from engine.agents.ask import Asker
from engine.agents.character import describe
from engine.agents.chart import CHART, ChartReading, ChartView
from engine.agents.intelligence import (
    FILING_SUMMARY,
    INTELLIGENCE,
    REPORT_LIMIT,
    FilingSummary,
    FilingView,
    IntelligenceView,
    ItemJudgement,
    MarketIntelligence,
)
from engine.agents.news import NEWS, NewsDigest, NewsView
from engine.agents.past import PAST, PastSummary, PastView
from engine.agents.registry import Agents, cut, market_alone, waits_for
from engine.agents.tools import ToolSignal, guidance_signals, tool_signals
from engine.cycle.recall import YEAR, Inquiry
from engine.cycle.step import FilingsRead, Finding, Gathered, OwnAnswer, Received, Remembered, StepContext
from engine.cycle.steps import Steps
from engine.cycle.turn import Turn
from engine.domain.decision import Recollection
from engine.domain.macro import MacroRelease
from engine.domain.market import Filing, NewsItem, PriceHistory, Symbol
from engine.domain.order import ZERO, PositionContext
from engine.errors import ConfigError, PaperdeskError
from engine.market.chart_specs import indicator_table, kline_chart
from engine.market.figures import last_sessions
from engine.settings.user_code import failures_of
from memory.record import Layer


def position(turn: Turn, symbol: Symbol, owner: str, bars: PriceHistory) -> PositionContext:
    """An owner's position in a symbol and its free cash: of its own book where it keeps one, else the desk's."""
    portfolio, reserved, value, shorts = turn.portfolio, turn.reserved, turn.value, _shorts(turn)
    if owner in turn.books:
        portfolio = turn.books[owner]
        reserved = turn.open_orders[owner].cash if owner in turn.open_orders else ZERO
        value, shorts = portfolio.value({held: turn.price(held) for held in portfolio.positions}), ZERO
    held = portfolio.positions.get(symbol)
    return PositionContext(
        shares=ZERO if held is None else held.quantity,
        price=turn.price(symbol) if len(bars) else ZERO,
        average_cost=ZERO if held is None else held.average_cost,
        cash=portfolio.cash - reserved - shorts,
        value=value,
        gains_in_a_row=_rising_closes(bars),
        shorts=shorts,
    )


def _shorts(turn: Turn) -> Decimal:
    """The value of the shares that are sold short in the desk's one book, or that its open sales may sell short."""
    symbols = turn.portfolio.positions.keys() | turn.queued.keys()
    short = {symbol: turn.queued.get(symbol, ZERO) - turn.portfolio.quantity(symbol) for symbol in symbols}
    return sum((shares * turn.price(symbol) for symbol, shares in short.items() if shares > 0), ZERO)


async def stored(context: StepContext, new: Remembered) -> Received:
    """All items as memory has stored them, or as they come in where there is none."""
    if (remembered := new.get((context.symbol, context.owner))) is None:
        return await received(context)
    sources, found = remembered
    context.sources.absorb(sources)
    return found


async def received(context: StepContext) -> Received:
    """All items since the last decision, judged."""
    releases, said = macro(context), commentary(context)
    async with Steps(context) as begin:
        digest, read = begin(news), begin(filings)
        judging = begin(intelligence, read, releases.value or (), said.value or ())
    found, judged = judging.result()
    return Received(
        news=digest.result(),
        filings=read.result(),
        macro=releases,
        commentary=said,
        intelligence=found,
        judged=judged,
    )


async def news(context: StepContext) -> Finding[NewsDigest]:
    """FinVision's digest of the news since the last decision. Source: FinVision §3.1 [V1]."""
    if (left_out := context.without("news")) is not None:
        return left_out
    if not context.news:
        return Finding(absent="news: there was none")
    return await context.ask(NEWS, NewsView.of(*context.subject, context.news))


_UNSUMMARIZED = "(The beginning of a filing of which there is no summary.)"


async def filings(context: StepContext) -> FilingsRead:
    """New filings as they are judged and remembered: a long one by its summary, or cut where there is none. Where the
    step is left out they are as they came. Source: InvestorBench A.1 [I5]."""
    new = _new_filings(context)
    if (left_out := context.without(FILING_SUMMARY.step)) is not None:
        return FilingsRead(new, absent=left_out.absent)
    texts: list[Filing] = []
    summaries: list[FilingSummary] = []
    absent: list[str] = []
    for filing in new:
        view = FilingView.of(*context.subject, filing)
        if not view.is_long:
            texts.append(filing)
            continue
        found = await context.ask(FILING_SUMMARY, view, name=f"filing-summary of {view.summary()}")
        if found.value is None:
            absent.append(found.absent)
            texts.append(replace(filing, summary=plain(f"{_UNSUMMARIZED} {filing.summary}", REPORT_LIMIT)))
        else:
            summaries.append(found.value)
            part = f"(Of {view.part} of the filing.) " if view.part else ""
            summary = context.sources.struck(FILING_SUMMARY.name, found.value.summary)
            texts.append(replace(filing, summary=f"{part}{summary}"))
    return FilingsRead(texts, tuple(summaries), "; ".join(absent))


def _new_filings(context: StepContext) -> Sequence[Filing]:
    """Filings since the last decision; of a year for a memory that knows nothing of the symbol yet."""
    market = context.turn.market
    after = market.now - YEAR if _memory_begins(context) else context.turn.news_after
    return market.filings(context.symbol, after)


def macro(context: StepContext) -> Finding[Sequence[MacroRelease]]:
    """Macro releases since the last decision; the latest of every series for a memory that knows nothing of the symbol
    yet. Source: TradingGPT §4.1.1 [G2]."""
    if (left_out := context.without("macro")) is not None:
        return left_out
    return Finding(context.turn.market.macro(None if _memory_begins(context) else context.turn.news_after))


def commentary(context: StepContext) -> Finding[Sequence[NewsItem]]:
    """Commentary of funds since the last decision; of a year for a memory that knows nothing of the symbol yet.
    Source: TradingGPT §4.1.1 [G2]."""
    if (left_out := context.without("commentary")) is not None:
        return left_out
    market = context.turn.market
    return Finding(market.commentary(market.now - YEAR if _memory_begins(context) else context.turn.news_after))


async def intelligence(
    context: StepContext,
    new_filings: FilingsRead,
    releases: Sequence[MacroRelease],
    texts: Sequence[NewsItem] = (),
) -> tuple[Finding[MarketIntelligence], Mapping[str, ItemJudgement]]:
    """Judgement of every new item, a summary for trading, and queries for memory; the judgements as memory keeps
    them, by the ids that the items have at their sources. Source: FinAgent §4.1 [A1]."""
    if (left_out := context.without("intelligence")) is not None:
        return left_out, {}
    view = IntelligenceView.of(
        *context.subject,
        context.news,
        filings=new_filings.texts,
        summaries=new_filings.summaries,
        prices=last_sessions(context.bars),
        price=context.price_item,
        macro=releases,
        commentary=texts,
        types=context.preset.retrieval,
    )
    found = await context.ask(INTELLIGENCE, view)
    judged = {} if found.value is None else {item.id: item for item in found.value.items}
    return found, {
        item.id: judged[item.number].model_copy(
            update={"summary": context.sources.struck(INTELLIGENCE.name, judged[item.number].summary)}
        )
        for item in view.items
        if item.number in judged
    }


async def gathered(context: StepContext, new: Received) -> Gathered:
    """Items since the last decision, with the memories that they bring up."""
    return Gathered(received=new, recollections=recall(context, new.queries))


def recall(context: StepContext, queries: Mapping[str, str]) -> tuple[Recollection, ...]:
    """The memories that bear on what is known today; none without memory. Queries by type are what they are; the one
    query of a memory without types holds the owner's character and profile as well, as its inquiry does.
    Source: FinAgent §4.2 [A2]; InvestorBench A [I2]."""
    if context.memory is None:
        return ()
    preset = context.preset
    diversified = "diversified" in preset.steps
    if not diversified:
        character = describe(context.traits, context.adjusted)
        queries = {**queries, "character": character, "profile": context.profile}
    inquiry = Inquiry(queries, diversified, preset.cites_memories, today=preset.decides_on_memory)
    return context.memory.recall(context.scope, inquiry)


async def past(context: StepContext, recalled: Gathered) -> Finding[PastSummary]:
    """Summary of the intelligence that was recalled: the owner's reflections are none. Source: FinAgent §4.1 [A3]."""
    recollections = tuple(memory for memory in recalled.recollections if memory.layer != Layer.REFLECTION)
    if not recollections:
        return Finding()
    if (left_out := context.without("past")) is not None:
        return left_out
    # Owners who remember the same ask the same question, which is paid for once.
    shared = tuple(replace(memory, owner="") for memory in recollections)
    return await context.ask(PAST, PastView(*context.subject, shared))


async def chart(context: StepContext) -> Finding[ChartReading]:
    """Reading of the chart of the last sessions. Source: FinVision §3.2 [V2]."""
    if (left_out := context.without("chart")) is not None:
        return left_out
    drawn = kline_chart(context.symbol, context.bars, context.preset.windows.chart)
    return await context.ask(CHART, ChartView(*context.subject, drawn, indicator_table(context.bars)))


def tools(context: StepContext) -> Finding[tuple[ToolSignal, ...]]:
    """Signals of the rule strategies with their explanation, and what experts wrote by then.
    Source: FinAgent §4.4 [A7]."""
    if (left_out := context.without("tools")) is not None:
        return left_out
    notes = guidance_signals(context.preset.guidance, context.symbol, context.turn.session)
    return Finding((*tool_signals(context.strategies, context.bars), *notes))


def _memory_begins(context: StepContext) -> bool:
    return context.memory is not None and not context.memory.knows(context.scope)


def _rising_closes(bars: PriceHistory) -> int:
    closes, row = bars.close, len(bars) - 1
    while row > 0 and closes[row] > closes[row - 1]:
        row -= 1
    return len(bars) - 1 - row


def own_reports(
    begin: Steps,
    agents: Agents,
    new: Task[Received],
    recalled: Task[Gathered] | None,
    shipped: Mapping[str, Task[Finding[Any]]],
) -> Sequence[Task[OwnAnswer]]:
    """The preset's own agents under way, each as soon as the agents whose answers it reads have answered, and memory
    is searched where it reads that; `shipped` are the steps of the agents that ship, by agent."""
    waiting: dict[str, Task[Any]] = {NEWS.name: new, INTELLIGENCE.name: new, **shipped}
    own: list[Task[OwnAnswer]] = []
    for agent in agents.values():
        if agent.see is not None:
            names = [name for name in waits_for(agent, agents) if name in waiting]
            memory = recalled if Reads.MEMORY in agent.reads else None
            waiting[agent.name] = begin(report, agent, memory, names, *(waiting[name] for name in names))
            own.append(waiting[agent.name])
    return own


async def report(
    context: StepContext, agent: Agent[Any, Any], recalled: Gathered | None, names: Sequence[str], *found: Any
) -> OwnAnswer:
    """The report of one of the preset's own agents, for the decision; `found` are what the agents of those names
    found."""
    answers = {name: answer for name, one in zip(names, found, strict=True) if (answer := _answer(name, one))}
    inputs = _inputs(context, recalled, answers)
    finding = await _asked(context, agent, cut(inputs, agent, context.preset.registered))
    if finding.value is None:
        return OwnAnswer(Finding(absent=finding.absent))
    return OwnAnswer(
        Finding(Report(agent.name, finding.value.lines(), finding.value.leaning()), finding.absent), finding.value
    )


def _answer(agent: str, found: Received | OwnAnswer | Finding[Answer]) -> Answer | None:
    """The answer of an agent in what its step found."""
    if isinstance(found, Received):
        return found.news.value if agent == NEWS.name else found.intelligence.value
    return found.answer if isinstance(found, OwnAnswer) else found.value


async def _asked(context: StepContext, agent: Agent[Any, Any], inputs: Inputs) -> Finding[Answer]:
    """The finding of one agent. Raises ConfigError, naming file and line, where its code fails."""
    if (left_out := context.without(agent.step)) is not None:
        return left_out
    with failures_of(agent.view, ConfigError):
        view = agent.see(inputs) if agent.see is not None else ""
        if isinstance(view, str):
            return Finding(absent=f"{agent.name}: {view}")
        return await context.ask(agent, view, name=agent.name)


def _inputs(context: StepContext, recalled: Gathered | None, answers: Mapping[str, Answer]) -> Inputs:
    return Inputs(
        symbol=context.symbol,
        session=context.turn.session,
        owner=context.owner,
        now=context.turn.market.now,
        bars=context.bars,
        news=tuple(context.news),
        filings=tuple(_new_filings(context)),
        macro=tuple(macro(context).value or ()),
        outcomes=context.outcomes(context.preset.windows.history),
        holding=context.position,
        recollections=() if recalled is None else recalled.recollections,
        answers=answers,
    )


async def ask_alone(context: StepContext, asker: Asker) -> None:
    """Ask the agents that read the market alone, by another way to their models. What fails is met again by who asks
    at the turn itself."""
    context = replace(context, asker=asker, publish=lambda event: None, memory=None)
    with suppress(PaperdeskError):
        async with Steps(context) as begin:
            given, seen = begin(received), begin(chart)
            own_reports(begin, market_alone(context.preset.registered), given, None, {CHART.name: seen})
