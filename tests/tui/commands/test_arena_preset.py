"""The preset `arena`: one agent for the whole portfolio, in backtests and on a desk, read from the journal."""

from __future__ import annotations

import json
import re
from collections import Counter
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from engine.agents.tools import without_strategy
from engine.journal.reader import JournalReader
from engine.offline.portfolio import CONTRARY, FOLLOW
from engine.settings import places
from tests.servers.fake_llm_server import Say, Turn
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_costs import LOCAL_PRICE, Counting, Desk, desk

__all__ = ["desk"]

SYMBOLS = ("ORVL", "BXWD", "HLXM")
WINDOW = ("--symbols", ",".join(SYMBOLS), "--from", "2025-03-04", "--to", "2025-03-24", "--run", "arena")


def backtest(run: Run, *more: str) -> Any:
    done = run("backtest", "--preset", "arena", *WINDOW, *more, "--json")
    assert (done.code, done.err) == (0, "")
    return done.json


def answers(symbol: str, session: str) -> list[Any]:
    with JournalReader(places.run_journal("arena")) as reader:
        (made,) = [one for one in reader.decisions("arena", symbol) if str(one.key.session) == session]
        return [(one.agent, one.prompt_hash, one.answer) for one in reader.answers(made.key)]


@pytest.mark.slow
def test_every_symbol_takes_its_order_out_of_one_answer(run: Run, fresh: Path) -> None:
    document = backtest(run)
    by_session: dict[str, dict[str, Any]] = {}
    for one in document["decisions"]:
        by_session.setdefault(one["session"], {})[one["symbol"]] = one
    assert all(set(of) == set(SYMBOLS) for of in by_session.values())
    traded = 0
    for session, made in by_session.items():
        asked = [answers(symbol, session) for symbol in SYMBOLS]
        assert asked[0] == asked[1] == asked[2]
        agents = [agent for agent, _, _ in asked[0]]
        first = session == min(by_session)
        assert agents == [*(() if first else ("portfolio-reflection",)), "portfolio-analysis", "portfolio-decision"]
        orders = {order["symbol"]: order for order in asked[0][-1][2]["orders"]}
        for symbol in SYMBOLS:
            decided, order = made[symbol], orders.get(symbol)
            assert decided["action"] == ("HOLD" if order is None else order["action"])
            assert decided["cut"] or decided["size"] == (0 if order is None else order["percent"])
            traded += order is not None
        cash = sum(order["percent"] for order in orders.values() if order["action"] == "BUY")
        assert cash <= 100
    assert traded > 5 and document["trades"] and document["final_value"] != document["initial_value"]
    assert backtest(run, "--run", "again")["fingerprint"] == document["fingerprint"]


def test_strategies_are_scored_against_all_stocks_and_the_next_is_written_from_them(run: Run, fresh: Path) -> None:
    document = backtest(run)
    strategies = {one["session"]: without_strategy(one["reason"])[1] for one in document["decisions"]}
    assert {FOLLOW, CONTRARY} <= {*strategies.values()} or len(set(strategies.values())) > 1
    sessions = sorted(strategies)
    with JournalReader(places.run_journal("arena")) as reader:
        outcomes, points = reader.outcomes("arena"), reader.equity("arena")
        decisions = {str(one.key.session): one for one in reader.decisions("arena", SYMBOLS[0])}
        asked = {day: reader.answers(one.key)[0] for day, one in decisions.items() if day != sessions[0]}
    # By hand: a session's return is that of the equity, but for slippage and rounding; a changed strategy did worse.
    values = {str(point.session): float(point.value) for point in points}
    for before, after in pairwise(sessions[1:]):
        told = asked[after].messages[0].text.split("Your return over the session: ")[1]
        mine, all_stocks = (float(part.split("%")[0]) for part in (told, told.split("of all stocks: ")[1]))
        assert mine == pytest.approx(100 * (values[after] / values[before] - 1), abs=0.006)
        earned = sum(float(row.reward) for row in outcomes if str(row.session) == after)
        assert mine == pytest.approx(100 * earned, abs=0.006)
        if abs(mine - all_stocks) > 0.01:
            assert (strategies[after] == strategies[before]) is (mine >= all_stocks)
    last = asked[sessions[-1]].messages[0].text
    assert last.count("- since 2025-03-") >= len(set(strategies.values())) - 1 and "score " in last


def test_a_model_is_asked_once_for_all_symbols(desk: Desk, service: PortfolioService, run: Run) -> None:
    desk(LOCAL_PRICE)
    done = run("backtest", "--preset", "arena", *WINDOW[:-4], "--to", "2025-03-06", "--run", "arena", "--yes", "--json")
    assert done.code == 0
    use = done.json["model"]
    sessions = done.json["sessions"]
    # No reflection before the first decision; every other call of the three symbols is the first one's.
    assert use["calls"] == len(SYMBOLS) * (3 * sessions - 1)
    assert use["calls"] - use["cached_calls"] == 3 * sessions - 1
    assert len(service.requests) == 3 * sessions - 1
    bought = [one for one in done.json["decisions"] if one["action"] == "BUY"]
    assert {(one["symbol"], one["size"]) for one in bought} == {("ORVL", 20.0), ("HLXM", 10.0)}
    # What was asked of the models was forecast for the batch, not for each symbol.
    assert f"near:m1: about {3 * sessions - 1} calls" in done.err


class PortfolioService(Counting):
    """Buys two of the stocks on every session."""

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Turn:
        schema = json.dumps(body.get("response_format"))
        for field, answer in PORTFOLIO.items():
            if f'"{field}"' in schema:
                with self._lock:
                    self.requests.append(body)
                return Say(text=json.dumps(answer), tokens_in=1000, tokens_out=100)
        return super().next_turn(body, headers)


def _buy(symbol: str, percent: int) -> dict[str, Any]:
    return {"symbol": symbol, "action": "BUY", "percent": percent, "reason": "It rose."}


PORTFOLIO: dict[str, dict[str, Any]] = {
    "evaluation": {"evaluation": "It went well.", "strategy": "Buy what rose."},
    "ranking": {"findings": [{"finding": "ORVL rose.", "bearing": "Buy it."}], "ranking": [*SYMBOLS]},
    "orders": {"explanation": "Two of them rose.", "orders": [_buy("ORVL", 20), _buy("HLXM", 10)]},
}


@pytest.fixture
def service(fresh: Path) -> Any:
    from tests.servers.fake_llm_server import fake_llm_server

    with fake_llm_server(PortfolioService()) as running:
        yield running


@pytest.mark.parametrize("shown", ["text", "charts", "both"])
def test_prices_are_shown_as_the_preset_says(shown: str, run: Run, fresh: Path, tmp_path: Path) -> None:
    preset = tmp_path / "mine.toml"
    preset.write_text(f'extends = "arena"\nname = "mine"\n[portfolio]\ninput = "{shown}"\nwindow = 5\n')
    done = run("backtest", "--preset", str(preset), *WINDOW[:-4], "--to", "2025-03-06", "--run", "arena")
    assert done.code == 0
    with JournalReader(places.run_journal("arena")) as reader:
        asked = reader.answers(run="arena")
    closes = Counter("closes of the last 5 sessions" in one.messages[0].text for one in asked)
    assert set(closes) == {shown != "charts"}
    first = min(one.key.session for one in asked)
    for one in asked:
        # After the prices comes the own record, once there is one.
        kinds = ["signals"] * len(SYMBOLS) + ["record"] * (one.key.session > first)
        assert [chart.kind for chart in one.charts] == ([] if shown == "text" else kinds)
    if shown != "text":
        candles = {one.agent: bool(one.charts[0].candles) for one in asked}
        assert candles == {
            "portfolio-reflection": True,
            "portfolio-analysis": False,
            "portfolio-decision": False,
        }
        assert {len(chart.sessions) for one in asked for chart in one.charts} == {5}


def test_its_record_shows_what_it_traded_and_earned(run: Run, fresh: Path, tmp_path: Path) -> None:
    document = backtest(run)
    traded: Counter[tuple[str, str, str | None]] = Counter()
    for one in document["decisions"]:
        for symbol in (None, one["symbol"]):
            traded[one["session"], one["action"], symbol] += one["size"]
    days = sorted({one["session"] for one in document["decisions"]})
    last = days[-1]
    with JournalReader(places.run_journal("arena")) as reader:
        (made,) = [one for one in reader.decisions("arena", SYMBOLS[0]) if str(one.key.session) == last]
        reflection, analysis, _ = reader.answers(made.key)
        values = {str(point.session): float(point.value) for point in reader.equity("arena")}
    shown = days[-10:]
    charts, record = reflection.charts[:-1], reflection.charts[-1]
    assert record == analysis.charts[-1] and record.sessions == tuple(f"day {n}" for n in range(1, 11))
    bought, sold = (panel.bars for panel in record.panels)
    # What was decided on the last day trades afterwards.
    for bars, action, sign in ((bought, "BUY", 1), (sold, "SELL", -1)):
        assert list(bars)[:-1] == pytest.approx([sign * traded[day, action, None] for day in shown[:-1]]) and any(bars)
    # The return is that of the sessions shown, whatever came before.
    assert record.lines[0].values[-1] == pytest.approx(100 * (values[last] / values[days[-11]] - 1), abs=0.05)
    assert abs(values[days[-11]] / float(document["initial_value"]) - 1) > 0.001
    for symbol, chart in zip(SYMBOLS, charts, strict=True):
        own = [traded[day, "BUY", symbol] - traded[day, "SELL", symbol] for day in shown[:-1]]
        assert list(chart.panels[-1].bars)[:-1] == pytest.approx(own)
    # The mean of a bar is that of high, low and close.
    line = re.search(r"ORVL: price ([\d.]+) .*?high ([\d.]+), low ([\d.]+), mean ([\d.]+)", analysis.messages[0].text)
    assert line is not None
    close, high, low, mean = map(float, line.groups())
    assert mean == pytest.approx((high + low + close) / 3, abs=0.01)
    # Every picture has a file of its own.
    said = run("why", SYMBOLS[0], last, "--run", "arena", "--chart", str(tmp_path / "seen.png")).out
    assert said.count("chart: ") == len(list(tmp_path.glob("seen*.png"))) == 2 * len(SYMBOLS) + 1


def test_a_desk_trades_it_and_its_day_can_be_replayed(run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERDESK_DESK__PRESET", "arena")
    for session in ("2025-03-11", "2025-03-12", "2025-03-14"):
        assert run("--daily", "--session", session).code == 0
    parity = run("parity", "--json")
    assert parity.code == 0 and parity.json["same"] and len(parity.json["decisions"]) == 4
    made = run("decisions", "--json").json["decisions"][-4:]
    document = run("why", made[0]["symbol"], "2025-03-14", "--redecide", "--json").json
    assert document["same_throughout"]
    # The strategies of earlier runs are known to the next one.
    (both,) = document["decisions"]
    assert "portfolio-reflection" in {one["agent"] for one in both["now"]["answers"]}
    ablated = run("why", made[0]["symbol"], "2025-03-14", "--attribute", "--json").json["decisions"][0]
    assert [one["without"] for one in ablated["inputs"]] == [
        ["vision"],
        ["portfolio-reflection"],
        ["portfolio-analysis"],
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('steps = ["vision", "news"]', "a decision of the kind portfolio does not ask news"),
        ('steps = ["portfolio-analysis"]\ndecision = "whole"', "of the kind whole does not ask portfolio-analysis"),
        ("[portfolio]\nwindow = 1", "window"),
    ],
)
def test_what_would_not_be_read_is_refused(text: str, told: str, run: Run, fresh: Path, tmp_path: Path) -> None:
    preset = tmp_path / "mine.toml"
    preset.write_text(f'extends = "arena"\nname = "mine"\n{text}\n')
    refused = run("backtest", "--preset", str(preset), *WINDOW)
    assert (refused.code, refused.result, refused.err.count("\n")) == (78, "", 1) and told in refused.err


def test_orders_beyond_cash_or_shares_go_back_and_then_abstain(
    desk: Desk, service: PortfolioService, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk(LOCAL_PRICE)
    dear = {"explanation": "All in.", "orders": [_buy("ORVL", 60), _buy("BXWD", 60)]}
    monkeypatch.setitem(PORTFOLIO, "orders", dear)
    done = run(
        "backtest",
        "--preset",
        "arena",
        *WINDOW[:-4],
        "--to",
        "2025-03-05",
        "--run",
        "arena",
        "--yes",
        "--json",
        "--abstain-limit",
        "0",
    )
    assert done.code == 0 and {one["action"] for one in done.json["decisions"]} == {"ABSTAIN"}
    assert {one["reason"] for one in done.json["decisions"]} == {
        "malformed: orders: the purchases take 120 %, 100.0 % can be spent"
    }
    assert done.json["model"]["abstentions"] == len(done.json["decisions"])
    assert Decimal(done.json["final_value"]) == Decimal(done.json["initial_value"])
