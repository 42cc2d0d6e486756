"""The presets with layered memory as their papers describe them, read from what backtests leave."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import cache
from math import log
from pathlib import Path

import pytest

from connectors.demo.listings import profile_of
from connectors.files.prices import prices_text
from connectors.wiring.services import services
from connectors.wiring.sources import calendars
from engine.agents.agent import plain
from engine.agents.character import Risk, character
from engine.app.audit.audit import run_audit
from engine.app.research.backtest import run_backtest
from engine.domain.market import ActionKind, CorporateAction, PriceHistory, from_nano
from engine.domain.run import DataSpec, RunSpec
from engine.journal.entries import Trail
from engine.settings.config import Config
from engine.simulation.price_basis import adjusted_by_actions
from memory.embedders import HashEmbedder
from memory.record import Layer, MemoryRecord
from tests.connectors.wiring.clocks import NOON
from tests.connectors.wiring.past_runs import memories, trails
from tests.data_folders import DrawnOnce, rows_of, write_folder

# BXWD and TMBK pay a dividend on 2024-02-26, BXWD splits two for one on 2024-03-26.
SPEC = RunSpec(
    symbols=("BXWD",),
    first=date(2024, 2, 22),
    last=date(2024, 4, 2),
    preset="finmem",
    data=DataSpec(None, 7),
    model="offline",
    run="layers",
)
PAYS, SPLITS = date(2024, 2, 26), date(2024, 3, 26)


PRESETS = ("finmem", "tradinggpt-single")
ONE_SOON = pytest.mark.parametrize("preset", ["finmem", pytest.param("tradinggpt-single", marks=pytest.mark.slow)])


@cache
def ran(spec: RunSpec) -> tuple[list[Trail], list[MemoryRecord]]:
    """The trails of a backtest, made once, and what it remembered."""
    run_backtest(services(Config(), NOON), spec)
    return trails(spec.run), memories(spec.run)


def prompt(one: Trail, agent: str) -> str:
    """The question that an agent was asked for a decision."""
    return next(answer.messages[0].text for answer in one.answers if answer.agent == agent)


def listed(symbol: str = "BXWD") -> tuple[PriceHistory, tuple[CorporateAction, ...]]:
    market = DrawnOnce(7, calendars(), date(2024, 4, 30))
    return asyncio.run(market.history(symbol)), tuple(asyncio.run(market.actions(symbol)) or ())


def adjusted(through: date, count: int, symbol: str = "BXWD") -> list[tuple[date, Decimal]]:
    """Closes adjusted by the actions known on a day, reckoned one action at a time."""
    history, actions = listed(symbol)
    rows = history.rows_through(through)
    closes = [from_nano(close) for close in history.close[:rows]]
    sessions = [date.fromordinal(day) for day in history.sessions[:rows]]
    for action in actions:
        before = sum(day < action.ex_date for day in sessions)
        if action.ex_date > through or not before:
            continue
        last = from_nano(history.close[before - 1])
        factor = 1 / action.value if action.kind is ActionKind.SPLIT else 1 - action.value / last
        closes[:before] = [close * factor for close in closes[:before]]
    return list(zip(sessions, closes, strict=True))[-count:]


@pytest.mark.slow
@ONE_SOON
def test_momentum_is_of_closes_adjusted_by_what_is_known_and_the_last_is_raw(preset: str) -> None:
    seen = {
        one.decision.key.session: prompt(one, "immediate-reflection") for one in ran(replace(SPEC, preset=preset))[0]
    }
    history, _ = listed()
    for session, text in seen.items():
        expected = adjusted(session, 4)
        line = re.search(r"^- adjusted closes.*: (.*)$", text, re.MULTILINE)
        assert line and line[1] == ", ".join(f"{day} {close:.2f}" for day, close in expected[:-1])
        row = history.index(session)
        assert row is not None and expected[-1][1] == from_nano(history.close[row])
        moved = log(expected[-1][1] / expected[0][1])
        assert f"last 3 sessions: {moved * 100:+.2f}%" in text
    raw = {day: from_nano(history.close[history.rows_through(day) - 1]) for day in (PAYS, SPLITS)}
    # On the ex-dates what was before is scaled, of the dividend as of the split; the day itself is not.
    assert all(f"- close: {raw[day]:.2f}, of {day}\n" in seen[day] for day in (PAYS, SPLITS))
    assert {day for day in seen if adjusted(day, 4) != raw_closes(day, 4)} >= {PAYS, SPLITS}


def raw_closes(through: date, count: int) -> list[tuple[date, Decimal]]:
    history, _ = listed()
    rows = history.rows_through(through)
    return [(history.session(row), from_nano(history.close[row])) for row in range(rows - count, rows)]


@pytest.mark.slow
def test_without_actions_the_adjusted_closes_of_the_file_give_their_returns_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    asyncio.run(write_folder(DrawnOnce(7, calendars(), date(2024, 4, 30)), folder))
    (folder / "actions" / "TMBK.csv").unlink()
    whole = adjusted_by_actions(*listed("TMBK"), date(2024, 4, 30))
    (folder / "prices" / "TMBK.csv").write_text(prices_text(rows_of(whole)))
    spec = replace(SPEC, symbols=("TMBK",), last=date(2024, 3, 1), data=DataSpec(str(folder)))
    seen = {one.decision.key.session: prompt(one, "immediate-reflection") for one in ran(spec)[0]}
    expected = adjusted(PAYS, 4, "TMBK")
    line = re.search(r"^- adjusted closes.*: (.*)$", seen[PAYS], re.MULTILINE)
    assert line
    shown = [Decimal(part.split()[1]) for part in line[1].split(", ")]
    assert all(abs(ours - theirs) <= Decimal("0.02") for ours, (_, theirs) in zip(shown, expected[:-1], strict=True))
    certificate = run_audit(services(Config(), NOON), spec, 3)
    assert certificate.outcome == "clean", certificate


@pytest.mark.parametrize("preset", PRESETS)
def test_relevancy_is_to_the_inquiry_with_character_and_profile(preset: str) -> None:
    embedder, found = HashEmbedder(), 0
    for one in ran(replace(SPEC, preset=preset, last=date(2024, 3, 15)))[0]:
        judged = next(answer for answer in one.answers if answer.agent == "market-intelligence")
        asked = judged.answer
        assert asked is not None
        closes = adjusted(one.decision.key.session, 4)
        risk: Risk = "risk-neutral"
        if preset == "finmem":
            risk = "risk-seeking" if closes[-1][1] > closes[0][1] else "risk-averse"
        nature = character(risk).nature
        manner = character(risk).text.strip() if preset == "tradinggpt-single" else ""
        fields = f"The fields that you know best: {', '.join(character(risk).sectors)}." if manner else ""
        about = profile_of("BXWD")
        queries = (asked["queries"][f"{term}_term"] for term in ("short", "medium", "long"))
        parts = (*queries, " ".join(part for part in (nature, manner, fields) if part), about)
        assert about and nature in one.answers[-1].messages[0].text + one.answers[-1].system
        assert judged.messages[0].text.startswith(f"Asset: BXWD ({about.partition('. ')[0]})")
        query = embedder.embed([" ".join(parts)])[0]
        for recalled in one.recalled:
            text = embedder.embed([recalled.memory.text])[0]
            if recalled.memory.kind not in ("extended-reflection",):  # stored by its query text
                assert recalled.memory.relevancy == pytest.approx(float(query @ text), abs=1e-5)
                found += 1
    assert found > 20


@pytest.mark.parametrize("preset", PRESETS)
def test_news_is_remembered_and_shown_with_its_label(preset: str) -> None:
    run, stored = ran(replace(SPEC, preset=preset, last=date(2024, 3, 15)))
    judged = {
        text: item["effect"]
        for one in run
        for answer in one.answers
        if answer.agent == "market-intelligence" and answer.answer is not None
        for item in answer.answer["items"]
        for text in re.findall(rf"^- \[{item['id']}\] \S+ news: (.*)", answer.messages[0].text, re.MULTILINE)
    }
    news = [record for record in stored if record.kind == "news"]
    assert {record.text.partition(": ")[0].lower() for record in news} >= {"positive", "neutral"}
    for record in news:
        effect, _, text = record.text.partition(": ")
        assert effect == judged[plain(text)].capitalize()
    shown = prompt(run[-1], "immediate-reflection")
    recalled = [one.memory for one in run[-1].recalled if one.memory.kind == "news"]
    assert recalled and all(f"] {one.session} news: {one.text[:80]}" in shown for one in recalled)


@ONE_SOON
def test_a_reflection_is_remembered_with_decision_volume_return_and_reason(preset: str) -> None:
    made, stored = ran(replace(SPEC, preset=preset, last=date(2024, 3, 15)))
    run = {one.decision.key.session: one for one in made}
    calendar = calendars()("BXWD")
    kept = {calendar.session_at(int(one.born_step)): one.text for one in stored if one.kind == "reflection"}
    assert len(kept) == len(run)
    traded = set()
    for session, one in run.items():
        text, order = kept[session], one.orders[0].order if one.orders else None
        assert text.startswith(f"{one.decision.action} (") and one.decision.reason in text
        if order is None:
            assert "(no trade; " in text
        else:
            shares = Decimal(0) if order.quantity is None else order.quantity.normalize()
            amount = f"{shares:f} shares; " if order.notional is None else f"for {order.notional:.2f}; "
            assert f"{one.decision.size.normalize():f}% of the portfolio" in text and amount in text
            traded.add(order.side)
        before = run.get(calendar.sessions(date(2024, 2, 1), session)[-2])
        if before is not None and before.outcome is not None:
            assert f"{before.decision.key.session} returned {before.outcome.reward:+.3%}" in text
    assert traded


@pytest.mark.parametrize(
    ("preset", "period"), [pytest.param("finmem", 20, marks=pytest.mark.slow), ("tradinggpt-single", 5)]
)
def test_the_extended_reflection_looks_back_longer_and_is_reference_alone(preset: str, period: int) -> None:
    run, stored = ran(replace(SPEC, preset=preset, last=date(2024, 4, 2) if period == 20 else date(2024, 3, 15)))
    asked = prompt(run[-1], "extended-reflection")
    assert f"{period} decisions up to" in asked and asked.count(", close ") == period
    assert "extended-reflection:" not in asked and re.search(r"\[R1\] \S+ reflection: ", asked)
    answer = next(one.answer for one in run[-1].answers if one.agent == "extended-reflection")
    decided = prompt(run[-1], "immediate-reflection")
    assert answer is not None and answer["self_evaluation"] in decided
    assert "shares held: " in decided and decided.count(", reward ") == 10
    reflections = [one for one in stored if one.birth_layer is Layer.REFLECTION]
    assert {one.kind for one in reflections} == {"reflection", "extended-reflection"}
    reviews = [one for one in reflections if one.kind == "extended-reflection"]
    trends = [
        a.answer["trading_trend"] for one in run for a in one.answers if a.agent == "extended-reflection" and a.answer
    ]
    assert {one.text for one in reviews} and all(any(one.text.startswith(t) for t in trends) for one in reviews)
    kinds = {one.id: one.kind for one in reflections}
    cited = {kinds.get(name, "document") for one in run for name in one.decision.evidence}
    assert "extended-reflection" not in cited and cited
    assert any(found.memory.kind == "extended-reflection" for one in run for found in one.recalled)
