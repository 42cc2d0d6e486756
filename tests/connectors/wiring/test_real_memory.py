"""The desk with memory over real news and filings: all layers are used, reports cited, and lessons name real events."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import pytest

from connectors.wiring.services import services
from engine.agents.agent import plain
from engine.app.audit.audit import run_audit
from engine.app.memory import memory_of_run
from engine.app.research.backtest import run_backtest
from engine.app.research.market_data import load_run
from engine.domain.market import Symbol
from engine.domain.run import DataSpec, Result, RunSpec
from engine.journal.entries import Recalled
from engine.journal.reader import JournalReader
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time
from engine.ports import Calendar
from engine.reports.documents.backtest import fingerprint
from engine.settings import places
from engine.settings.config import Config
from memory.live_index import ScoredRecord
from memory.record import Layer, MemoryRecord
from tests.connectors.wiring.clocks import NOON

pytestmark = pytest.mark.slow

SPEC = RunSpec(
    symbols=("MSFT", "JNJ", "HON"),
    first=date(2020, 10, 1),
    last=date(2020, 10, 7),
    warm_up_from=date(2020, 8, 24),
    preset="desk",
    model="offline",
)
WHOLE = replace(SPEC, symbols=(*SPEC.symbols, "UVV"), warm_up_from=date(2020, 7, 1), last=date(2021, 5, 6))
QUOTED = re.compile(r'"([^"]{40,})"')


@dataclass(frozen=True, kw_only=True)
class Ran:
    result: Result
    market: Market
    calendar: Calendar
    recalled: dict[tuple[date, Symbol], tuple[Recalled, ...]]
    records: list[MemoryRecord]
    alive: list[ScoredRecord]


def ran(spec: RunSpec, folder: Path, home: Path, name: str) -> Ran:
    spec = replace(spec, data=DataSpec(str(folder)), run=name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAPERDESK_HOME", str(home))
        result = run_backtest(services(Config(), NOON), spec).result
        market = asyncio.run(load_run(services(Config()), spec))
        with JournalReader(places.run_journal(name)) as reader:
            made = reader.decisions(name)
            recalled = {(d.key.session, d.key.symbol): reader.recalled(d.key) for d in made}
            kept = memory_of_run(services(Config()), reader.run(name))
        with kept.opened() as memory:
            return Ran(
                result=result,
                market=market,
                calendar=kept.calendar,
                recalled=recalled,
                records=memory.records(),
                alive=memory.scored_records(memory.latest),
            )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module", params=[pytest.param(SPEC, id="week"), pytest.param(WHOLE, id="whole")])
def season(request: pytest.FixtureRequest, real_data: Path, home: Path) -> Ran:
    return ran(request.param, real_data, home, f"until-{request.param.last}")


def test_every_layer_holds_records_at_the_end(season: Ran) -> None:
    assert {standing.layer for standing in season.alive} == set(Layer)
    kinds = {record.kind for record in season.records}
    assert kinds >= {"news", "10-Q", "10-K", "low-level-reflection", "high-level-reflection"}
    assert {record.symbol for record in season.records} == set(season.result.spec.symbols)


def test_reports_are_recalled_and_cited_in_the_test(season: Ran) -> None:
    test = [d.key for d in season.result.test.decisions]
    cited = Counter(one.memory.kind for key in test for one in season.recalled[key.session, key.symbol] if one.cited)
    assert cited["10-Q"] + cited["10-K"] > 5
    assert cited["news"] > 5 and cited["low-level-reflection"] > 5
    for decision in season.result.test.decisions:
        recalled = season.recalled[decision.key.session, decision.key.symbol]
        assert {one.memory.id for one in recalled if one.cited} == set(decision.evidence)


def test_nothing_is_recalled_before_it_can_be_known(season: Ran) -> None:
    by_id = {record.id: record for record in season.records}
    hindsight = 0
    for (session, symbol), recalled in season.recalled.items():
        step = season.calendar.number(session)
        for one in recalled:
            record = by_id[one.memory.id]
            assert record.symbol == symbol
            assert max(record.born_step, record.available_at) <= step
            assert one.memory.session < session
            hindsight += record.hindsight
    assert hindsight > 20
    last_of_warm_up = season.calendar.number(season.calendar.sessions(date(2020, 9, 1), date(2020, 9, 30))[-1])
    assert all(record.born_step < last_of_warm_up + 1 for record in season.records if record.hindsight)
    filed = {f.id: f.available_at for filings in season.market.filings.values() for f in filings}
    for record in season.records:
        if record.source in filed:
            written = season.calendar.session_at(int(record.born_step))
            assert filed[record.source] <= decision_time(season.calendar, written)


def test_lessons_name_real_events(season: Ran) -> None:
    texts = {s: " ".join(plain(f"{n.headline} {n.summary}") for n in items) for s, items in season.market.news.items()}
    named: Counter[str] = Counter()
    for record in season.records:
        if record.kind == "low-level-reflection":
            for quote in QUOTED.findall(record.text):
                words = " ".join(plain(quote).split()[:8])
                named["real" if words in texts[record.symbol] else "other"] += 1
    # The rest quotes what the chart was said to show.
    assert named["real"] > 40, named


def test_the_same_run_twice_remembers_the_same(real_data: Path, home: Path) -> None:
    short = replace(SPEC, symbols=("MSFT", "HON"), warm_up_from=date(2020, 9, 16))
    one, two = (ran(short, real_data, home, name) for name in ("one", "two"))
    assert fingerprint(one.result.test) == fingerprint(two.result.test)
    assert one.recalled == two.recalled
    # Their decisions are named by their run; what is remembered is not.
    assert one.records == two.records
    assert one.alive == two.alive


def in_the_last_month(season: Ran) -> list[tuple[Symbol, int, Recalled]]:
    """What was recalled in the last month of the whole window, with its symbol and its age in sessions."""
    number = season.calendar.number
    return [
        (symbol, number(session) - number(one.memory.session), one)
        for (session, symbol), recalled in season.recalled.items()
        if session > date(2021, 4, 6)
        for one in recalled
    ]


def test_finmems_long_memory_is_long(real_data: Path, home: Path) -> None:
    """Reports live as long as their layers say, and the agent's own words take no place of theirs [I1]."""
    season = ran(replace(WHOLE, preset="finmem"), real_data, home, "finmem")
    recalled = in_the_last_month(season)
    end = season.calendar.number(WHOLE.last)

    assert any((symbol, one.memory.kind) == ("MSFT", "10-K") and age > 120 for symbol, age, one in recalled)
    assert any(one.record.kind == "10-Q" and end - one.record.born_step > 40 for one in season.alive)
    assert 0 < sum(one.memory.layer == "reflection" for *_, one in recalled) < len(recalled) / 2
    assert all((one.memory.layer == "reflection") == one.memory.kind.endswith("reflection") for *_, one in recalled)
    assert {standing.layer for standing in season.alive} == set(Layer)


@pytest.mark.parametrize("season", [WHOLE], indirect=True, ids=["whole"])
def test_the_desk_recalls_reports_of_earlier_quarters(season: Ran) -> None:
    recalled = in_the_last_month(season)
    reports = [one.memory.kind for *_, one in recalled if "reports" in one.memory.types]
    assert set(reports) == {"10-Q", "10-K"}
    aged = [(age, one.memory.kind) for _, age, one in recalled]
    assert any(kind == "10-Q" and age > 40 for age, kind in aged)
    assert any(kind == "10-K" and age > 120 for age, kind in aged)


@pytest.mark.parametrize("season", [WHOLE], indirect=True, ids=["whole"])
def test_the_whole_window_comes_out_again_and_sees_no_future(season: Ran, real_data: Path, home: Path) -> None:
    again = ran(WHOLE, real_data, home, "again")
    assert fingerprint(season.result.test) == fingerprint(again.result.test)
    assert season.recalled == again.recalled
    assert season.records == again.records

    audit = run_audit(services(Config()), replace(WHOLE, data=DataSpec(str(real_data))), 12)
    assert (audit.outcome, audit.cuts, audit.differing, audit.findings) == ("clean", 12, 0, ())
    assert "memory" in {planted.source for planted in audit.planted}
