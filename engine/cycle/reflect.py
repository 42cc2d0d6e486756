"""The steps that look back: on moves, on decisions, on performance, on signals, on a period, and at once.

What a reflection learns goes into memory, with a mark where it was written with hindsight.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from engine.agents.character import character
from engine.agents.extended_reflection import EXTENDED, ExtendedView
from engine.agents.high_level_reflection import HIGH_LEVEL, HighLevelView
from engine.agents.immediate_reflection import IMMEDIATE, ImmediateView, MarketFacts
from engine.agents.low_level_reflection import LOW_LEVEL, LowLevelView
from engine.agents.performance_reflection import PERFORMANCE, PerformanceView
from engine.agents.signal_reflection import SIGNALS, SignalView
from engine.cycle.analysis import Analysis
from engine.market.chart_specs import indicator_table, kline_chart, signal_chart, trading_chart
from engine.market.moves import PriceMove, moves_after, moves_up_to


async def on_moves(thought: Analysis) -> None:
    """Intelligence linked to the moves of the price; the lesson is remembered. Source: FinAgent §4.3 [A4, A9]."""
    seen = thought.seen
    if not thought.wants("low-level"):
        return
    thought.begin("low-level-reflection")
    moves = _moves(thought)
    view = LowLevelView(
        symbol=seen.symbol,
        session=seen.turn.session,
        owner=seen.owner,
        intelligence=thought.intelligence or thought.news,
        past=thought.past,
        chart=kline_chart(seen.symbol, seen.bars, thought.preset.windows.chart),
        table=indicator_table(seen.bars),
        moves=moves,
        lessons=thought.lessons("low-level-reflection"),
    )
    found = thought.kept("low-level-reflection", await thought.asker.ask(LOW_LEVEL, view))
    thought.low_level = found
    if found is not None:
        thought.keep_lesson("low-level-reflection", found.lesson, found.query, _seen_until(thought, moves))


async def on_decisions(thought: Analysis) -> None:
    """Past decisions judged; the lessons are remembered. Source: FinAgent §4.3 [A5]."""
    seen, windows = thought.seen, thought.preset.windows
    if not thought.wants("high-level"):
        return
    past = thought.outcomes(windows.medium_term)
    if not past:
        thought.absent.append("high-level-reflection: there is no past yet")
        return
    thought.begin("high-level-reflection")
    chart = trading_chart(
        seen.symbol,
        seen.bars,
        windows.chart,
        [(o.decision_session, o.action) for o in past],
        [(o.session, o.cumulative) for o in past],
    )
    view = HighLevelView(
        symbol=seen.symbol,
        session=seen.turn.session,
        owner=seen.owner,
        outcomes=past,
        reasons=tuple(seen.turn.notebook.reason(outcome) for outcome in past),
        chart=chart,
        intelligence=thought.intelligence or thought.news,
        lessons=thought.lessons("high-level-reflection"),
    )
    found = thought.kept("high-level-reflection", await thought.asker.ask(HIGH_LEVEL, view))
    thought.high_level = found
    if found is not None:
        thought.keep_lesson("high-level-reflection", " ".join(found.lessons), found.query)


async def on_performance(thought: Analysis, term: Literal["short", "medium"]) -> None:
    """What recent decisions earned, over one of two terms. Source: FinVision §3.3 [V3]."""
    seen, windows = thought.seen, thought.preset.windows
    name = f"{term}-term reflection"
    if not thought.wants("performance-reflection", name):
        return
    past = thought.outcomes(windows.short_term if term == "short" else windows.medium_term)
    if not past:
        thought.absent.append(f"{name}: there is no past yet")
        return
    thought.begin(name)
    view = PerformanceView(seen.symbol, seen.turn.session, seen.owner, term, past)
    found = thought.kept(name, await thought.asker.ask(PERFORMANCE, view))
    if term == "short":
        thought.short_term = found
    else:
        thought.medium_term = found


async def on_signals(thought: Analysis) -> None:
    """The chart of past signals, seen again. Source: FinVision §3.3 [V4]."""
    seen, show = thought.seen, thought.preset.windows.signal_chart
    if not thought.wants("signal-reflection", "signal reflection"):
        return
    past = thought.outcomes(show)
    if not past:
        thought.absent.append("signal reflection: there is no past yet")
        return
    thought.begin("signal-reflection")
    chart = signal_chart(seen.symbol, seen.bars, show, [(o.decision_session, o.action) for o in past])
    view = SignalView(seen.symbol, seen.turn.session, seen.owner, chart)
    thought.signals = thought.kept("signal reflection", await thought.asker.ask(SIGNALS, view))


async def on_period(thought: Analysis) -> None:
    """The own trading of a period, judged; it is remembered. Source: TradingGPT §4.1.2 [G5]."""
    seen = thought.seen
    if not thought.wants("extended"):
        return
    past = thought.outcomes(thought.preset.windows.short_term)
    if not past:
        return
    thought.begin("extended-reflection")
    view = ExtendedView(seen.symbol, seen.turn.session, seen.owner, past, thought.lessons("reflection"))
    found = thought.kept("extended-reflection", await thought.asker.ask(EXTENDED, view))
    thought.extended = found
    if found is not None:
        text = " ".join((found.self_evaluation, *found.repeat, *found.avoid))
        thought.keep_lesson("extended-reflection", text, found.query)


async def immediately(thought: Analysis) -> None:
    """The market joined with the best memories of each layer: advice with evidence, or, in warm-up, the move that
    followed explained. It is remembered. Source: InvestorBench A.1 [I5, I7]; TradingGPT §4.1.2 [G5]."""
    seen, standing, preset = thought.seen, thought.seen.standing, thought.preset
    if not thought.wants("immediate"):
        return
    thought.begin("immediate-reflection")
    followed = [move.change for move in _moves(thought) if move.hindsight and move.horizon_days == 1]
    fixed = None if preset.risk is None or preset.risk == "momentum" else character(preset.risk)
    view = ImmediateView(
        symbol=seen.symbol,
        session=seen.turn.session,
        owner=seen.owner,
        facts=replace(MarketFacts.of(seen.bars, None if fixed is None else fixed.nature), price=standing.price),
        recollections=thought.recollections,
        shares=standing.quantity,
        profit=standing.gain,
        profile=preset.profiles.get(seen.symbol, ""),
        character="" if fixed is None else fixed.told,
        outcomes=thought.outcomes(preset.windows.history),
        extended=thought.extended,
        scale="five" if preset.decision == "five-level" else "three",
        next_move=followed[0] if followed else None,
        moment=seen.turn.market.now if seen.turn.within_session else None,
    )
    thought.immediate = await thought.asker.ask(IMMEDIATE, view)
    answer = thought.kept("immediate-reflection", thought.immediate)
    if answer is not None:
        thought.keep_lesson("reflection", answer.reason, seen_until=int(seen.turn.step) + 1 if followed else None)


def _moves(thought: Analysis) -> tuple[PriceMove, ...]:
    """The moves that led here and, in training, those that followed: the one place that looks ahead."""
    seen, until = thought.seen, thought.seen.turn.hindsight_until
    led_here = moves_up_to(seen.bars)
    if until is None:
        return led_here
    ahead = seen.turn.market.hindsight(seen.symbol, len(seen.bars), until)
    return led_here + moves_after(ahead, seen.turn.market.last_session(seen.symbol))


def _seen_until(thought: Analysis, moves: tuple[PriceMove, ...]) -> int | None:
    """The step at whose close everything that a reflection saw is known; None without hindsight."""
    turn = thought.seen.turn
    if turn.hindsight_until is None:
        return None
    return int(turn.step) + max((move.horizon_days for move in moves if move.hindsight), default=0)
