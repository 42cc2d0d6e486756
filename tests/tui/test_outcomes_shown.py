"""What came of a decision, in `paperdesk why` and on the decisions screen: the symbol's own sessions, held or not, and
a colour and a sign that say whether a trade was right."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app.open_desk import OpenDesk
from engine.app.research.backtest import run_backtest
from engine.app.research.market_data import known_closes, load_run
from engine.domain.decision import Decision
from engine.domain.market import from_nano
from engine.domain.run import DataSpec, RunSpec
from engine.market.as_of import Market
from engine.market.trading_hours import calendar_for
from engine.reports.documents.decisions import followed_decisions
from engine.reports.documents.records import Records, open_records
from engine.settings import places
from engine.settings.config import Config
from tests.conftest import MadeHome
from tui.cli import main
from tui.desk.bridge import Bridge
from tui.screens.why import rows
from tui.text.trail_text import why_lines
from tui.view.desk_port import Source
from tui.widgets.trail_pane import trail_of

RUN = "followed"
# HLXM splits on 2024-12-16.
SPEC = RunSpec(
    symbols=("ORVL", "HLXM", "WRNN-USD"),
    first=date(2024, 11, 25),
    last=date(2025, 1, 10),
    preset="finvision",
    data=DataSpec(None, 7),
    run=RUN,
)


@pytest.fixture
def home(made_home: MadeHome, paperdesk_home: Path) -> Market:
    """A home after a backtest of two shares and a coin; its market."""
    made = made_home("followed", lambda: run_backtest(services(Config()), SPEC, baselines=()))
    shutil.copytree(made, paperdesk_home, dirs_exist_ok=True)
    return market()


@cache
def market() -> Market:
    return asyncio.run(load_run(services(Config()), SPEC))


@contextmanager
def decisions() -> Iterator[tuple[Records, list[Decision]]]:
    with open_records("demo", RUN) as records:
        yield records, list(records.required.decisions(RUN, part=records.part))


def why(capsys: pytest.CaptureFixture[str], made: Decision, *more: str) -> dict[str, Any]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["why", made.key.symbol, str(made.key.session), "--run", RUN, "--json", *more])
    assert ended.value.code == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_what_the_decisions_of_a_session_earned_is_what_the_portfolio_did(home: Market) -> None:
    """Shares and crypto alike, whose day ends after the exchange has closed: the reward of a session's decisions is of
    the trades that they made, up to the next close of the books."""
    with decisions() as (records, made):
        closes, rows = records.required.equity(RUN, records.part), records.required.outcomes(RUN)
    assert {row.decision_session for row in rows} == {one.key.session for one in made}
    earned = defaultdict[date, Decimal](Decimal)
    for row in rows:
        earned[row.decision_session] += row.reward
    coin = [row for row in rows if row.symbol == "WRNN-USD"]
    assert any(row.reward for row in coin) and coin[-1].session == closes[-1].session
    for before, after in pairwise(closes):
        assert float(earned[before.session]) == pytest.approx(float(after.value / before.value - 1), abs=1e-6)


@pytest.mark.slow
def test_closes_are_counted_in_the_symbols_own_sessions_held_or_not(
    home: Market, capsys: pytest.CaptureFixture[str]
) -> None:
    with decisions() as (_, made):
        some = made[::5] + [one for one in made if one.key.session == date(2024, 12, 13)]
    weekend = 0
    for one in some:
        symbol, session = one.key.symbol, one.key.session
        calendar, bars = calendar_for(symbol), home.histories[symbol]
        basis = home.at(calendar.closes_at(SPEC.last)).bars(symbol, 1000)
        due = {n: calendar.session_at(calendar.number(session) + n) for n in (1, 5, 20)}
        (shown,) = why(capsys, one)["decisions"]
        row = bars.index(session)
        assert row is not None and shown["close"] == float(from_nano(bars.close[row]))
        told = {later["sessions"]: date.fromisoformat(later["session"]) for later in shown["closes_since"]}
        assert told == {n: day for n, day in due.items() if day <= SPEC.last}
        weekend += sum(day.weekday() > 4 for day in told.values())
        for later in shown["closes_since"]:
            day = date.fromisoformat(later["session"])
            then, now, traded = basis.index(session), basis.index(day), bars.index(day)
            assert then is not None and now is not None and traded is not None
            assert later["close"] == float(from_nano(bars.close[traded]))
            moved = Decimal(basis.close[now]) / Decimal(basis.close[then]) - 1
            assert later["change"] == pytest.approx(float(moved), abs=1e-6)
    assert weekend


BEFORE_SPLIT, WEEKEND = date(2024, 12, 13), date(2024, 11, 29)


def samples(made: list[Decision]) -> list[Decision]:
    """The decisions of the session before the split and of one before a weekend."""
    return [one for one in made if one.key.session in (BEFORE_SPLIT, WEEKEND)]


@pytest.mark.slow
def test_a_decision_taken_again_has_the_closes_of_the_first(home: Market, capsys: pytest.CaptureFixture[str]) -> None:
    with decisions() as (_, made):
        some = samples(made)
    assert len(some) == 6
    for one in some:
        (first,) = why(capsys, one)["decisions"]
        (again,) = why(capsys, one, "--redecide")["decisions"]
        for side in (again["then"], again["now"]):
            assert [side[name] for name in ("close", "closes_since")] == [first["close"], first["closes_since"]]
        assert len(first["closes_since"]) > 1


def test_the_apps_backtests_are_followed_on_their_own_data(home: Market, capsys: pytest.CaptureFixture[str]) -> None:
    """The desk of the app trades other symbols of another demo market than the backtest that it shows."""
    config = Config.model_validate({"desk": {"seed": 3, "symbols": ["BXWD"]}})
    bridge = Bridge(lambda: OpenDesk(services(config)), lambda spec, connection: None)
    bridge.start()
    try:
        for _ in range(6000):
            if (opened := bridge.snapshot().opened) is not None:
                break
            time.sleep(0.01)
        assert opened is not None
        source = Source(RUN, places.run_journal(RUN), RUN)
        followed = {one.decision.key: one.changes for one in asyncio.run(opened.ask.read(source, followed_decisions))}
        with decisions() as (_, made):
            some = samples(made)
        for one in some:
            (shown,) = why(capsys, one)["decisions"]
            changes = {later["sessions"]: later["change"] for later in shown["closes_since"]}
            assert followed[one.key] == tuple(map(changes.get, (1, 5, 20)))
            (trail,) = asyncio.run(opened.ask.read(source, partial(trail_of, decisions=[one])))["decisions"]
            assert trail["closes_since"] == shown["closes_since"]
    finally:
        bridge.stop()
        assert bridge.wait(600)


def test_colour_and_sign_say_whether_a_trade_was_right(home: Market, capsys: pytest.CaptureFixture[str]) -> None:
    signs = {"BUY": 1, "SELL": -1}
    with decisions() as (records, made):
        followed = followed_decisions(records, partial(known_closes, services(Config())))
    table = {
        (one.decision.key.symbol, one.decision.key.session): row for row, one in rows(followed, owners=False).items()
    }
    seen = set()
    for one in [one for one in made if one.action in signs] + made[:6]:
        document = why(capsys, one)
        (shown,) = document["decisions"]
        lines = {
            text.split(":")[0].removeprefix("After").strip(): (text, ink) for text, ink in why_lines(document, 100)
        }
        cells = dict(zip((1, 5, 20), table[one.key.symbol, one.key.session].cells[5:8], strict=True))
        for later in shown["closes_since"]:
            sessions, sign = later["sessions"], signs.get(one.action.value)
            text, ink = lines[f"+{sessions} session{'s' if sessions > 1 else ' '} {later['session']}"]
            told = later["change"] * (sign or 1)
            verdict = "" if sign is None else "right" if told > 0 else "wrong"
            assert f"{told * 100:+.2f}%" in text and ("right" in text, "wrong" in text) == (
                verdict == "right",
                verdict == "wrong",
            )
            assert ink == {"": "quiet", "right": "up", "wrong": "down"}[verdict]
            cell = cells[sessions]
            assert (cell.text, cell.ink) == (
                f"{told * 100:+.1f}%",
                {"": "muted", "right": "up", "wrong": "down"}[verdict],
            )
            seen.add((one.action.value, verdict))
    assert {("BUY", "right"), ("SELL", "right"), ("SELL", "wrong"), ("HOLD", "")} <= seen
