"""Runs over real market days, from the folder of data to the result: repeatable, and resting on the news."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from connectors.wiring.services import services
from engine.agents.agent import plain
from engine.app.research.backtest import run_backtest
from engine.app.research.market_data import load_run
from engine.domain.decision import Action, Decision
from engine.domain.market import NewsItem
from engine.domain.run import DataSpec, Result, RunPart, RunSpec
from engine.journal.reader import JournalReader
from engine.lab.window import desk_calendar_of
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time
from engine.reports.documents.backtest import fingerprint
from engine.settings import places
from engine.settings.config import Config
from tests.connectors.wiring.clocks import NOON
from tests.engine.desks import assert_books_add_up

FLOOR = Decimal("0.10")
FINVISION = RunSpec(
    symbols=("AAPL", "AMZN", "MSFT"),
    first=date(2023, 6, 1),
    last=date(2023, 12, 29),
    warm_up_from=date(2023, 4, 3),
    preset="finvision",
    model="offline",
)
SESSIONS = {date(2023, 6, 30): (12, 21), FINVISION.last: (41, 147)}
"""Sessions of the warm-up and of the test, by the last."""
NEWS = RunSpec(
    symbols=("MSFT", "JNJ", "HON", "UVV"),
    first=date(2020, 10, 1),
    last=date(2020, 11, 6),
    preset="finvision",
    model="offline",
)


@dataclass(frozen=True)
class Ran:
    result: Result
    market: Market
    journal: Path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("home")


def ran(spec: RunSpec, folder: Path, home: Path, name: str) -> Ran:
    spec = replace(spec, data=DataSpec(str(folder)), run=name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAPERDESK_HOME", str(home))
        report = run_backtest(services(Config(), NOON), spec)
        return Ran(report.result, asyncio.run(load_run(services(Config()), spec)), places.run_journal(name))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(replace(FINVISION, last=date(2023, 6, 30), warm_up_from=date(2023, 5, 15)), id="june"),
        pytest.param(FINVISION, id="whole", marks=pytest.mark.slow),
    ],
)
def finvision(request: pytest.FixtureRequest, real_data: Path, home: Path) -> Ran:
    return ran(request.param, real_data, home, f"finvision-until-{request.param.last}")


@pytest.fixture(scope="module")
def news(real_data: Path, home: Path) -> Ran:
    return ran(NEWS, real_data, home, "news")


def _keeps_its_promises(run: Ran, run_part: RunPart) -> None:
    assert_books_add_up(run_part, run.market)
    before = {p.session: p for p in run_part.equity}
    calendar = desk_calendar_of(run.market, run.result.spec.symbols)
    for decision in run_part.decisions:
        assert 1 <= decision.size <= 10 if decision.action is Action.BUY else decision.size <= 10
        books = before.get(decision.key.session)
        if books is None:
            continue
        (following,) = calendar.sessions(decision.key.session + timedelta(1), decision.key.session + timedelta(9))[:1]
        bought = [f for f in run_part.fills if f.session == following and f.side == "BUY"]
        spent = sum((f.quantity * f.price + f.fee for f in bought), Decimal(0))
        assert not bought or books.portfolio.cash - spent >= books.value * FLOOR - Decimal("0.02")


def _alike(one: Ran, two: Ran) -> None:
    test = one.result.test
    renamed = [replace(d, key=replace(d.key, run=one.result.spec.run)) for d in two.result.test.decisions]
    assert renamed == list(test.decisions)
    assert (two.result.test.fills, two.result.test.equity) == (test.fills, test.equity)
    assert fingerprint(two.result.test) == fingerprint(test)


@pytest.mark.slow
def test_the_same_run_twice_is_the_same_run(news: Ran, real_data: Path, home: Path) -> None:
    _alike(news, ran(NEWS, real_data, home, "news-again"))


@pytest.mark.slow
def test_the_papers_window_keeps_every_rule(finvision: Ran) -> None:
    test, warm_up = finvision.result.test, finvision.result.warm_up
    assert warm_up is not None
    spec = finvision.result.spec
    assert (len(warm_up.equity), len(test.equity)) == SESSIONS[spec.last]
    for run_part in (warm_up, test):
        _keeps_its_promises(finvision, run_part)
        assert {d.action for d in run_part.decisions} >= {Action.BUY, Action.SELL, Action.HOLD}
        assert not [d for d in run_part.decisions if d.abstained]
    assert test.initial_value == 100_000
    assert test.equity[0].session == FINVISION.first
    assert test.equity[-1].session == spec.last
    assert test.decisions[0].key.session == date(2023, 5, 31)
    assert test.decisions[-1].key.session == spec.last - timedelta(1)


@pytest.mark.slow
def test_the_news_runs_books_keep_every_rule(news: Ran) -> None:
    _keeps_its_promises(news, news.result.test)
    assert not [d for d in news.result.test.decisions if d.abstained]


@cache
def shingles(text: str, words: int = 8) -> frozenset[tuple[str, ...]]:
    """Every run of so many words of a text that is plain already, as an item is once it is in a prompt."""
    said = text.split()
    return frozenset(tuple(said[n : n + words]) for n in range(len(said) - words + 1))


of_item = cache(lambda item: shingles(plain(item.summary)))


def news_of(run: Ran, decision: Decision) -> Sequence[NewsItem]:
    """The news that is new to a decision."""
    key, calendar = decision.key, desk_calendar_of(run.market, run.result.spec.symbols)
    now = decision_time(calendar, key.session)
    before = decision_time(calendar, calendar.sessions(key.session - timedelta(9), key.session - timedelta(1))[-1])
    return [n for n in run.market.news[key.symbol] if before < n.available_at <= now]


def only_later(run: Ran, decision: Decision) -> set[tuple[str, ...]]:
    """Word runs that only news has which came later than a decision."""
    now = decision_time(desk_calendar_of(run.market, run.result.spec.symbols), decision.key.session)
    every = list(chain.from_iterable(run.market.news.values()))
    later = set().union(*(of_item(n) for n in every if now < n.available_at <= now + timedelta(20)))
    known = set().union(*(of_item(n) for n in every if n.available_at <= now))
    return later - known


@pytest.mark.slow
def test_the_days_real_news_enters_the_decisions_and_no_later_news_does(news: Ran) -> None:
    quoting: dict[str, int] = {}
    reported = 0
    with JournalReader(news.journal) as reader:
        for n, decision in enumerate(news.result.test.decisions):
            items = news_of(news, decision)
            of_the_day = set().union(*map(of_item, items))
            said = shingles(decision.reason)
            reported += bool(items)
            if said & of_the_day:
                quoting[decision.key.symbol] = quoting.get(decision.key.symbol, 0) + 1
            if n % 7 == 0:
                later = only_later(news, decision)
                assert not said & later, f"{decision.key} quotes what was not known yet"
                asked = {e.agent: e for e in reader.answers(decision.key)}
                prompts = "\n".join(m.text for e in asked.values() for m in e.messages)
                assert not shingles(prompts) & later, f"{decision.key} was asked with what was not known yet"
                # An item is read up to a limit; so much of each is there.
                assert all(plain(item.summary)[:500] in prompts for item in items)
                assert ("news" in asked) == bool(items)
    assert reported > 60
    # Most of what is said of UVV concerns other companies, and is not quoted for it.
    assert min(quoting.get(symbol, 0) for symbol in ("MSFT", "JNJ", "HON")) >= 10, quoting


@pytest.mark.slow
@pytest.mark.parametrize("spec", [FINVISION, replace(NEWS, last=date(2021, 5, 6))], ids=["prices", "news"])
def test_the_whole_windows_run_twice_alike(spec: RunSpec, real_data: Path, home: Path) -> None:
    one, two = (ran(spec, real_data, home, f"{spec.symbols[0]}-{n}") for n in (1, 2))
    _alike(one, two)
    _keeps_its_promises(one, one.result.test)
    assert len(one.result.test.equity) == {"AAPL": 147, "MSFT": 150}[spec.symbols[0]]
