"""The look-ahead audit catches what it is there for: a door that is off by one, a peeking rule, a leak in the books."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
import pytest

from connectors.wiring.services import services
from engine.agents.tools import ToolSignal, guidance_signals
from engine.app.audit.audit import run_audit
from engine.cycle import observe
from engine.cycle.recall import TradingMemory
from engine.domain.market import PriceHistory, from_nano
from engine.domain.run import Briefing, DataSpec, ExpertNote, RunSpec
from engine.lab import rule_backtest
from engine.lab.audit import Certificate
from engine.market.as_of import ArrayMarketAsOf
from engine.market.trading_hours import decision_time
from engine.session import loop
from engine.settings.config import Config
from engine.strategies.strategy import Signal, Signals
from memory.partition import LayerRows

SYMBOLS = ("ORVL", "WRNN-USD")
# Around a quarterly report of ORVL, so that real filings become available inside it.
AGENTS = RunSpec(
    symbols=SYMBOLS,
    first=date(2025, 1, 31),
    last=date(2025, 2, 12),
    preset="finvision",
    data=DataSpec(None, 7),
    convention="desk",
)


# A week of it, with the report in it.
WEEK = replace(AGENTS, last=date(2025, 2, 6))


def certificate(spec: RunSpec = AGENTS, cuts: int | None = 4) -> Certificate:
    return run_audit(services(Config()), spec, cuts)


def surfaced(found: Certificate) -> set[str]:
    return {planted.source for planted in found.planted if planted.surfaced}


def test_an_honest_run_is_clean() -> None:
    found = certificate(WEEK)
    assert found.outcome == "clean"
    assert (found.cuts, found.differing, found.access_differing, found.findings) == (4, 0, 0, ())
    # Every decision from the first through the last cut has been taken again, the cuts' own twice.
    assert found.compared == len(SYMBOLS) * (found.access_sessions + 3)
    assert [planted.source for planted in found.planted] == [
        "bars",
        "actions",
        "news",
        "filings",
        "macro",
        "commentary",
    ]
    for source in ("bars", "news"):
        read = found.inputs[source]
        assert read.items and read.latest is not None and read.decision is not None
        assert read.latest <= read.decision


@pytest.mark.slow
def test_the_preset_that_peeks_is_caught_and_only_bars_are_blamed() -> None:
    found = certificate(replace(AGENTS, preset="leaky-test"))
    assert found.outcome == "leak"
    assert found.differing > 0
    assert surfaced(found) == {"bars"}
    assert found.inputs["bars"].from_the_future


# A warm-up of three weeks, so that lessons are written with sight of what followed.
REMEMBERING = replace(AGENTS, preset="desk", symbols=("ORVL",), warm_up_from=date(2025, 1, 10))
# Long enough to catch one that sees too much.
BRIEFLY = replace(REMEMBERING, warm_up_from=date(2025, 1, 17), last=date(2025, 2, 5))


@pytest.mark.slow
def test_a_run_with_a_memory_is_clean_and_its_hindsight_is_known() -> None:
    found = certificate(REMEMBERING, cuts=3)
    assert found.outcome == "clean", found.findings
    assert [planted.source for planted in found.planted] == [
        *("bars", "actions", "news", "filings", "macro", "commentary"),
        *("guidance", "memory"),
    ]
    assert found.hindsight is not None and found.hindsight > 10
    read = found.inputs["memory"]
    assert len(read.items) > 20
    assert read.latest is not None and read.decision is not None and read.latest <= read.decision
    assert certificate(cuts=1).hindsight is None


def _unavailable_too(rows: LayerRows, part: Any) -> Any:
    return ~(part.alive if rows._kinds is None else part.alive & part.matching(rows._kinds))


@pytest.mark.slow
def test_a_recall_that_looks_past_its_step_is_caught_by_a_planted_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LayerRows, "hidden", _unavailable_too)
    found = certificate(BRIEFLY, cuts=2)
    assert found.outcome == "leak"
    assert "memory" in surfaced(found)
    # Lessons of the warm-up come up before what they saw is known.
    assert found.inputs["memory"].from_the_future


@pytest.mark.slow
@pytest.mark.parametrize("written_later", [True, False])
def test_both_kinds_of_planted_memories_are_looked_for(monkeypatch: pytest.MonkeyPatch, written_later: bool) -> None:
    """Each kind by itself: one that is written after the cut, and one that is written before and known after it."""
    honest = LayerRows.hidden

    def off_by_a_kind(rows: LayerRows, part: Any) -> Any:
        ahead = [
            record.available_at > rows.now
            and (record.born_step > rows.now) == written_later
            and (rows._kinds is None or record.kind in rows._kinds)
            for record in part.records
        ]
        hidden = honest(rows, part)
        return (~part.alive if hidden is None else hidden) & ~np.array(ahead, np.bool_)

    monkeypatch.setattr(LayerRows, "hidden", off_by_a_kind)
    short = replace(AGENTS, preset="desk", symbols=("ORVL",), last=date(2025, 2, 4))
    found = certificate(short, cuts=1)
    assert surfaced(found) == {"memory"}
    assert found.outcome == "leak"


@pytest.mark.slow
def test_experts_notes_are_read_a_day_later_and_a_run_that_does_not_wait_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = guidance_signals
    shown: list[str] = []

    def watched(notes: Sequence[ExpertNote], symbol: str, session: date) -> tuple[ToolSignal, ...]:
        told = honest(notes, symbol, session)
        shown.extend(signal.explanation for signal in told)
        return told

    noted = tuple(ExpertNote(date(2025, 2, day), "ORVL", f"Buy it, note {day}.") for day in range(2, 12))
    spec = replace(AGENTS, preset="desk", symbols=("ORVL",), last=date(2025, 2, 7), briefing=Briefing(guidance=noted))
    monkeypatch.setattr(observe, "guidance_signals", watched)
    found = certificate(spec, cuts=3)
    assert found.outcome == "clean", found.findings
    assert set(shown) == {f"Buy it, note {day}." for day in range(2, 6)}

    monkeypatch.setattr(
        observe, "guidance_signals", lambda notes, symbol, session: honest(notes, symbol, session + timedelta(days=1))
    )
    found = certificate(spec, cuts=3)
    assert found.outcome == "leak"
    assert surfaced(found) == {"guidance"}
    assert found.differing > 0


@pytest.mark.slow
def test_a_memory_that_goes_on_from_a_cut_with_a_later_state_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint that shares its memory with the run that goes on remembers what was not there yet."""
    monkeypatch.setattr(TradingMemory, "copy", lambda self: self)
    found = certificate(BRIEFLY, cuts=3)
    assert found.outcome == "leak"


def _count_ahead(door: ArrayMarketAsOf, symbol: str) -> int:
    history = door._market.histories[symbol]
    seen = history.rows_through(door._market.calendars[symbol].last_closed(door.now))
    return min(seen + 1, len(history))


def _close_ahead(door: ArrayMarketAsOf, symbol: str) -> Decimal:
    history = door._market.histories[symbol]
    return from_nano(history.close[min(door.count(symbol), len(history) - 1)])


def _news_ahead(door: ArrayMarketAsOf, symbol: str, after: datetime) -> Sequence[Any]:
    items = door._market.news[symbol]
    known = [n for n, item in enumerate(items) if item.available_at <= door.now]
    return [i for i in items[: len(known) + 1] if i.available_at > after]


def _filings_ahead(door: ArrayMarketAsOf, symbol: str, after: datetime) -> Sequence[Any]:
    reports = door._market.filings[symbol]
    known = [n for n, report in enumerate(reports) if report.available_at <= door.now]
    return [r for r in reports[: len(known) + 1] if r.available_at > after]


@pytest.mark.parametrize(
    ("method", "mutant", "source"),
    [
        ("count", _count_ahead, "bars"),
        pytest.param("close", _close_ahead, "bars", marks=pytest.mark.slow),
        ("news", _news_ahead, "news"),
        ("filings", _filings_ahead, "filings"),
    ],
)
def test_data_access_that_is_off_by_one_is_caught(
    monkeypatch: pytest.MonkeyPatch, method: str, mutant: Callable[..., Any], source: str
) -> None:
    monkeypatch.setattr(ArrayMarketAsOf, method, mutant)
    found = certificate(WEEK, cuts=2)
    assert found.outcome == "leak"
    assert found.access_differing > 0
    # A door that shows tomorrow's bar shows tomorrow's split with it.
    assert surfaced(found) - {"actions"} == {source}
    assert any(source in finding for finding in found.findings)


@pytest.mark.slow
def test_a_leak_through_the_books_is_caught_though_data_access_is_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = loop.build_turn

    async def a_session_late(context: Any, moment: Any, history: Any) -> Any:
        turn = await honest(context, moment, history)
        following = context.calendar.sessions(moment.session, date(2025, 3, 7))[1]
        known = context.market.at(decision_time(context.calendar, following))
        return replace(turn, value=turn.portfolio.value({s: known.close(s) for s in turn.portfolio.positions}))

    monkeypatch.setattr(loop, "build_turn", a_session_late)
    found = certificate(cuts=2)
    assert found.outcome == "leak"
    assert found.differing > 0
    assert found.access_differing == 0


@pytest.mark.slow
@pytest.mark.parametrize("convention", ["finvision", "finagent"])
def test_a_papers_convention_is_clean(real_data: Any, convention: str) -> None:
    spec = RunSpec(
        symbols=("MSFT", "JNJ"),
        first=date(2020, 10, 1),
        last=date(2020, 10, 14),
        preset="finvision",
        data=DataSpec(str(real_data)),
        convention=convention,
    )
    found = certificate(spec, cuts=3)
    assert found.outcome == "clean", found.findings
    assert found.inputs["news"].items


RULES = RunSpec(
    symbols=("ORVL", "BXWD", "WRNN-USD"),
    first=date(2024, 3, 1),
    last=date(2024, 4, 5),
    strategy="sma-cross",
    data=DataSpec(None, 7),
)


ALL_RULES = ("buy-and-hold", "sma-cross", "macd", "kdj-rsi", "z-score", "random", "equal-weight", "cash")
SAMPLE = ("sma-cross", "random")


@pytest.mark.parametrize(
    "strategy", [*SAMPLE, *(pytest.param(name, marks=pytest.mark.slow) for name in ALL_RULES if name not in SAMPLE)]
)
def test_every_rule_is_clean(strategy: str) -> None:
    found = certificate(replace(RULES, strategy=strategy), cuts=6)
    assert found.outcome == "clean", found.findings
    assert found.compared > 6 * 3


@dataclass(frozen=True)
class _Tomorrow:
    """Knows whether the next close is higher."""

    name: ClassVar[str] = "tomorrow"

    def signals(self, history: PriceHistory) -> Signals:
        close = np.asarray(history.close, float)
        ahead = np.append(close[1:] > close[:-1], False)
        return np.where(ahead, Signal.ENTER, Signal.OUT).astype(np.int8)

    def explain(self, history: PriceHistory, row: int) -> str:
        return ""


@dataclass(frozen=True)
class _Hindsight:
    """Compares each close with the last one of the whole history."""

    name: ClassVar[str] = "hindsight"

    def signals(self, history: PriceHistory) -> Signals:
        close = np.asarray(history.close, float)
        return np.where(close < close[-1], Signal.ENTER, Signal.OUT).astype(np.int8)

    def explain(self, history: PriceHistory, row: int) -> str:
        return ""


@pytest.mark.parametrize("rule", [_Tomorrow(), pytest.param(_Hindsight(), marks=pytest.mark.slow)])
def test_a_rule_that_sees_the_future_is_caught(monkeypatch: pytest.MonkeyPatch, rule: Any) -> None:
    monkeypatch.setattr(rule_backtest, "make_strategy", lambda name, params: rule)
    found = certificate(replace(RULES, symbols=("ORVL", "BXWD")), cuts=5)
    assert found.outcome == "leak"
    assert found.differing > 0
    # A split of tomorrow moves tomorrow's prices, so who sees those sees it as well; rules read no news.
    assert surfaced(found) - {"actions"} == {"bars"}


@pytest.mark.slow
def test_a_rule_that_fills_at_the_same_close_is_audited_as_well(
    monkeypatch: pytest.MonkeyPatch, real_data: Any
) -> None:
    window = replace(RULES, first=date(2023, 3, 1), last=date(2023, 3, 31))
    spec = replace(window, symbols=("BTC-USD",), data=DataSpec(str(real_data)), convention="arena")
    assert certificate(spec, cuts=3).outcome == "clean"
    monkeypatch.setattr(rule_backtest, "make_strategy", lambda name, params: _Tomorrow())
    assert certificate(spec, cuts=3).outcome == "leak"


def test_a_rule_that_reads_a_day_too_far_is_caught_by_its_trades(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signals are honest; what shifts them onto the sessions is not."""
    honest = rule_backtest._closed

    def a_day_late(decided: Sequence[date], calendar: Any, other: Any) -> Sequence[int]:
        return [day + 1 for day in honest(decided, calendar, other)]

    monkeypatch.setattr(rule_backtest, "_closed", a_day_late)
    found = certificate(replace(RULES, strategy="z-score"), cuts=6)
    assert found.outcome == "leak"
    assert found.differing > 0


def test_a_coins_unfinished_day_is_no_future_for_its_fills() -> None:
    """At the exchange's close the coin's UTC day still goes on: its close is unknown, its open is not."""
    found = certificate(replace(WEEK, symbols=("WRNN-USD", "ORVL")), cuts=None)
    assert found.outcome == "clean", found.findings
    assert found.cuts == found.access_sessions


@pytest.mark.slow
def test_a_whole_season_on_real_news_is_clean_at_every_session(real_data: Any) -> None:
    spec = RunSpec(
        symbols=("MSFT", "JNJ", "HON"),
        first=date(2020, 10, 1),
        last=date(2021, 5, 6),
        warm_up_from=date(2020, 7, 1),
        preset="finvision",
        data=DataSpec(str(real_data)),
    )
    found = certificate(spec, cuts=None)
    assert found.outcome == "clean", found.findings
    assert found.cuts == 150
