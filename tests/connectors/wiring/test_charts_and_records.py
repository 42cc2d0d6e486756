"""What agents of a backtest are shown of the past: every trade of a chart, and every close at its own date."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal

import pytest

from connectors.wiring.services import services
from engine.app.research.backtest import run_backtest
from engine.app.research.market_data import load_run
from engine.domain.decision import Action
from engine.domain.model_call import AnswerRecord
from engine.domain.run import DataSpec, RunSpec
from engine.journal.reader import JournalReader
from engine.market.as_of import Market
from engine.market.trading_hours import decision_time, desk_calendar
from engine.settings import places
from engine.settings.config import Config

SHARE, COIN = "ORVL", "WRNN-USD"
CALENDAR = desk_calendar((SHARE, COIN))
RECORD = re.compile(r"(\d{4}-\d\d-\d\d): (?:BUY|SELL|HOLD|ABSTAIN)(?: [\d.]+)?, close ([\d.]+), reward")
UP_TO = re.compile(r"up to the close of (\d{4}-\d\d-\d\d)")


def spec(preset: str) -> RunSpec:
    return RunSpec(
        symbols=(SHARE, COIN),
        first=date(2025, 2, 10),
        last=date(2025, 4, 11),
        preset=preset,
        data=DataSpec(None, 7),
        run=f"shown-{preset}",
    )


@pytest.fixture(scope="module", params=[pytest.param("finagent", marks=pytest.mark.slow), "finvision"])
def shown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JournalReader]:
    """The journal of a backtest of a share and a coin, over more sessions than a reflection reads outcomes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(places.HOME, str(tmp_path_factory.mktemp(request.param)))
        run_backtest(services(Config()), spec(request.param), baselines=())
        with JournalReader(places.run_journal(f"shown-{request.param}")) as reader:
            yield reader


@pytest.fixture(scope="module")
def market() -> Market:
    return asyncio.run(load_run(services(Config()), spec("finagent")))


def answers(reader: JournalReader, symbol: str | None = None) -> Sequence[AnswerRecord]:
    return [answer for made in reader.decisions(symbol=symbol) for answer in reader.answers(made.key)]


@pytest.mark.slow
def test_every_trade_of_the_sessions_shown_is_drawn(shown: JournalReader) -> None:
    most = 0
    for symbol in (SHARE, COIN):
        sides = {made.key.session: made.action.value for made in shown.decisions(symbol=symbol)}
        traded = {str(day): side for day, side in sides.items() if side in (Action.BUY, Action.SELL)}
        days = [str(day) for day in sorted(sides)]
        for answer in answers(shown, symbol):
            for chart in (one for one in answer.charts if one.kind in ("trading", "signals")):
                drawn = {chart.sessions[marker.index]: marker.side for marker in chart.markers}
                # A chart has the trades of the outcomes: the coin's last one is known once its day is over.
                known = days[: days.index(str(answer.key.session))]
                known = known[:-1] if symbol == COIN else known
                assert drawn == {day: side for day, side in traded.items() if day in known and day >= chart.sessions[0]}
                most = max(most, len(drawn))
    assert most >= 3


def test_beside_a_session_stands_its_own_close(shown: JournalReader, market: Market) -> None:
    found = 0
    for answer in answers(shown):
        known = market.at(decision_time(CALENDAR, answer.key.session))
        bars = known.bars(answer.key.symbol, 400)
        for day, close in RECORD.findall("\n".join(message.text for message in answer.messages)):
            row = bars.index(date.fromisoformat(day))
            assert row is not None
            assert Decimal(close) == (Decimal(bars.close[row]) / 10**9).quantize(Decimal("0.01"))
            found += 1
    assert found > 100


def test_a_chart_says_up_to_which_day_its_data_go(shown: JournalReader) -> None:
    last: dict[str, set[int]] = {SHARE: set(), COIN: set()}
    for answer in (one for one in answers(shown) if one.charts):
        for day in UP_TO.findall("\n".join(message.text for message in answer.messages)):
            assert {day} == {chart.sessions[-1] for chart in answer.charts}
            last[answer.key.symbol].add((answer.key.session - date.fromisoformat(day)).days)
    # At the close of the exchange the coin's day is not over.
    assert last == {SHARE: {0}, COIN: {1}}


def test_an_outcome_is_counted_in_the_symbols_own_sessions(shown: JournalReader) -> None:
    known = shown.outcomes()
    assert {one.horizon for one in known if one.symbol == SHARE} == {1}
    coin = {(one.session - one.decision_session).days: one.horizon for one in known if one.symbol == COIN}
    assert coin == {1: 1, 3: 3, 4: 4}
