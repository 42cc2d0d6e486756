"""Figures of the economy on their way through the cycle: read when they came out, remembered deep, never too early."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from connectors.demo.market import DemoMarket
from connectors.files.macro import write_macro
from connectors.wiring.services import services
from connectors.wiring.sources import calendars
from engine.app.audit.audit import run_audit
from engine.app.desk.run import run_daily
from engine.app.research.backtest import run_backtest
from engine.app.research.market_data import load_macro
from engine.clock import BacktestClock
from engine.domain.macro import MacroRelease
from engine.domain.run import DataSpec, RunSpec
from engine.errors import MalformedData
from engine.journal.entries import Trail
from engine.market.as_of import ArrayMarketAsOf
from engine.market.trading_hours import decision_time, desk_calendar
from engine.messages.events import Event, Noticed
from engine.settings.config import Config
from memory.record import Layer, MemoryRecord
from tests.connectors.wiring.clocks import NOON
from tests.connectors.wiring.few_symbols import FewSymbols
from tests.connectors.wiring.past_runs import memories, trails
from tests.data_folders import write_folder

BOTH = ("ICSA", "AWHMAN")
# Claims come out on Thursdays, hours on the first Friday: 2024-02-02 is one.
SPEC = RunSpec(
    symbols=("TMBK",),
    first=date(2024, 2, 2),
    last=date(2024, 2, 13),
    preset="desk",
    data=DataSpec(None, 7, BOTH),
    model="offline",
)
# What is known already is remembered on the first day.
BRIEF = replace(SPEC, last=date(2024, 2, 6))
NONE = "no figures of the economy for ICSA, AWHMAN: the agents decide without (paperdesk fetch macro)"


@cache
def ran(spec: RunSpec) -> tuple[list[MemoryRecord], list[Trail]]:
    """What a backtest, made once, remembered of the economy, and the trails of its decisions."""
    run_backtest(services(Config(), NOON), spec)
    return [record for record in memories(spec.run) if record.kind == "macro"], trails(spec.run)


@pytest.mark.parametrize("preset", ["desk", "tradinggpt-single"])
def test_a_figure_is_remembered_deep_and_born_at_the_close_by_which_it_was_known(preset: str) -> None:
    spec = replace(SPEC, preset=preset, run=f"deep-{preset}")
    records, _ = ran(spec)
    series = asyncio.run(load_macro(services(Config()), spec.data, spec.last))
    calendar = desk_calendar(("TMBK",))
    assert {record.birth_layer for record in records} == {Layer.DEEP}
    born = {(r.source.split()[0], r.source.split()[1]): calendar.session_at(int(r.born_step)) for r in records}
    decided = calendar.sessions(date(2024, 2, 1), date(2024, 2, 12))
    expected: dict[tuple[str, str], date] = {}
    for name in BOTH:
        for before, session in pairwise([None, *decided]):
            after = None if before is None else calendar.closes_at(before)
            release = series[name].release(after, calendar.closes_at(session))
            if release is not None:
                known = next(
                    day
                    for day in calendar.sessions(date(2023, 6, 1), session)
                    if decision_time(calendar, day) >= release.available_at
                )
                expected.setdefault((name, str(release.date)), known)
    assert born == expected
    assert len([key for key in born if key[0] == "ICSA"]) == 3


def test_it_is_judged_recalled_and_shown_on_the_trail() -> None:
    _, met = ran(replace(SPEC, run="deep-desk"))
    asked = [answer for one in met for answer in one.answers if answer.agent == "market-intelligence"]
    for name in BOTH:
        told = [answer for answer in asked if f"({name}): " in answer.messages[0].text]
        # On the first day what is known already, then what comes out: claims every week, hours once.
        assert len(told) == {"ICSA": 3, "AWHMAN": 2}[name]
    recalled = [one for found in met for one in found.recalled if one.memory.kind == "macro"]
    assert recalled and {one.memory.layer for one in recalled} == {"deep"}


@pytest.mark.parametrize(
    "changes",
    [{"preset": "finmem"}, {"preset": "finagent"}, {"data": DataSpec(None, 7)}],
)
def test_without_the_step_in_the_preset_or_without_series_there_are_none(changes: dict[str, Any]) -> None:
    assert ran(replace(BRIEF, run="none", **changes))[0] == []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    asyncio.run(write_folder(FewSymbols(SPEC.symbols, date(2024, 2, 13)), made))
    return made


def test_a_folder_without_figures_is_fine_and_said_once(folder: Path) -> None:
    notes = run_backtest(
        services(Config(), NOON), replace(BRIEF, data=DataSpec(str(folder), 0, BOTH), run="a")
    ).result.notes
    assert notes.count(NONE) == 1
    without = replace(BRIEF, data=DataSpec(str(folder), 0, BOTH), without=("macro",), run="b")
    assert NONE not in run_backtest(services(Config(), NOON), without).result.notes


def test_a_daily_desk_says_so_on_its_first_day(folder: Path) -> None:
    config = Config.model_validate(
        {"desk": {"name": "mine", "symbols": ["TMBK"], "preset": "desk"}, "data": {"folder": str(folder)}}
    )
    heard: list[Event] = []
    for day in (12, 13):
        wall = BacktestClock(datetime(2024, 2, day, 21, 30, tzinfo=UTC))
        asyncio.run(run_daily(services(config, wall), date(2024, 2, day), heard.append))
    assert [event.text for event in heard if isinstance(event, Noticed)] == [NONE]


def test_figures_of_a_folder_are_those_of_the_market_that_wrote_them(folder: Path) -> None:
    demo = asyncio.run(DemoMarket(7, calendars(), date(2024, 2, 13)).series("ICSA"))
    write_macro(folder / "macro" / "ICSA.csv", demo)
    data = DataSpec(str(folder), 0, BOTH)
    assert asyncio.run(load_macro(services(Config()), data, date(2024, 2, 13))) == {"ICSA": demo}
    (folder / "macro" / "AWHMAN.csv").write_text("date,value,known_from\n2023-05-01,much,2023-06-02\n")
    with pytest.raises(MalformedData, match=r"AWHMAN.csv, line 2"):
        asyncio.run(load_macro(services(Config()), data, date(2024, 2, 13)))


@pytest.mark.slow
def test_an_audit_counts_them_and_catches_data_access_that_is_a_release_early(monkeypatch: pytest.MonkeyPatch) -> None:
    clean = run_audit(services(Config(), NOON), replace(SPEC, preset="tradinggpt-single"), 2)
    assert clean.outcome == "clean"
    assert len(clean.inputs["macro"].items) >= 3

    honest: Callable[..., Any] = ArrayMarketAsOf.macro

    def early(door: ArrayMarketAsOf, after: datetime | None) -> tuple[MacroRelease, ...]:
        return tuple(honest(ArrayMarketAsOf(door._market, door.now + timedelta(days=8)), after))

    monkeypatch.setattr(ArrayMarketAsOf, "macro", early)
    leaking = run_audit(services(Config(), NOON), replace(SPEC, preset="tradinggpt-single"), 2)
    assert leaking.outcome == "leak"
    assert "macro" in {planted.source for planted in leaking.planted if planted.surfaced}
