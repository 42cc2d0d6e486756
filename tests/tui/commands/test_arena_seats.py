"""Presets of the cycle and strategies of backtests at the arena's table: decisions, orders, kill and replay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connectors.llm import gate
from engine.settings import places
from tests.servers.fake_llm_server import Say, Turn, fake_llm_server
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_arena import Traders, killed
from tests.tui.commands.test_model_outages import ANSWERS

HALF = """
class Half:
    def weights(self, view):
        return {symbol: 0.5 / len(view.symbols) for symbol in view.symbols}
"""
SEATS = """
[[agents]]
name = "Fin"
preset = "finvision"

[[agents]]
name = "Books"
preset = "tradinggpt"

[[agents]]
name = "Debate"
preset = "desk-debate"

[[agents]]
name = "Half"
rule = "half.py:Half"

[[agents]]
name = "Macd"
rule = "macd"
params = { fast = 2, slow = 5, signal = 2 }

[[agents]]
name = "Amy"

[[agents]]
name = "Maker"
rule = "market-maker"
"""
MARKET = """
days = 5
cost_rate = 0.001
income = 250
fluctuation = 20

[[stocks]]
name = "A"
shares = 600
first_price = 445.60
dividends = [2, 4]

[[stocks]]
name = "B"
shares = 600
first_price = 465.80

[[seats]]
cash = 100000

[[shocks]]
day = 2
kind = "dividend"
factor = 0.5
stock = "A"
"""


@pytest.fixture
def seats(fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("seats.toml", SEATS), ("market.toml", MARKET), ("half.py", HALF)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("seats")
def test_presets_and_strategies_trade_what_they_decide(run: Run) -> None:
    arena = ("arena", "--preset", "market.toml", "--agents", "seats.toml", "--seed", "2")
    document = run(*arena, "--run", "seats", "--json").json
    kinds = {one["name"]: one["kind"] for one in document["agents"]}
    assert kinds["Fin"].startswith("preset finvision, ") and kinds["Macd"] == "rule macd"
    decided = {(one["agent"], one["day"], one["stock"]): one for one in document["decisions"]}
    assert {day for agent, day, _ in decided if agent == "Fin"} == {1, 2, 3, 4, 5}
    traded: dict[tuple[str, int, str], int] = {}
    for one in document["trades"]:
        for agent, sign in ((one["buyer"], 1), (one["seller"], -1)):
            if agent in ("Fin", "Books", "Half", "Macd"):
                key = agent, one["day"], one["stock"]
                traded[key] = traded.get(key, 0) + sign * one["quantity"]
    # Whatever trades was decided that morning, and no more of it.
    assert {agent for agent, *_ in traded} >= {"Fin", "Books", "Half"}
    for key, shares in traded.items():
        assert shares * decided[key]["shares"] > 0 and abs(shares) <= abs(decided[key]["shares"])
    # The answers that a decision rests on, and who gave them.
    fin = decided["Fin", 5, "A"]
    assert [one["step"] for one in fin["answers"]][:2] == ["news", "chart"] and fin["answers"][-1]["step"] == "decision"
    assert "trades right" in json.dumps(fin["answers"])  # it looks back on its own outcomes
    owners = {one["owner"] for one in document["decisions"] if one["agent"] == "Books"}
    assert owners == {"seeking", "neutral", "averse"}
    assert any(one["step"] == "immediate-reflection" for one in decided["Books", 1, "A"]["answers"])
    assert "25.0%" in decided["Half", 1, "A"]["reason"] and "MACD" in decided["Macd", 1, "A"]["reason"]
    assert [one["step"] for one in decided["Debate", 5, "B"]["answers"]].count("immediate-reflection") == 3
    assert document["notes"] == [
        f"{name}: an arena has no filings, macro series, commentary of funds: nothing to read for filing-summary, "
        "macro, commentary"
        for name in ("Books", "Debate")
    ]
    swapped = run(*arena, "--swap-seats", "--json").json
    assert swapped["trades"] == document["trades"]
    run("report", "--run", "seats", "--out", "seats.html")
    notes, page = Path("seats.html").read_text().split("Decisions of presets and strategies")
    assert "Books: an arena has no filings" in notes
    half = decided["Half", 1, "A"]
    cells = [re.findall("<t[dh][^>]*>([^<]*)", row)[:4] for row in page.split("<tr>")]
    assert ["1", "Half", "A", f"{half['shares']:+d}"] in cells


TABLE = """
[[agents]]
name = "Fin"
preset = "finvision-no-reflection"
model = "openai:m1"

[[agents]]
name = "Twin"
preset = "finvision-no-reflection"
model = "openai:m1"

[[agents]]
name = "Ann"
model = "openai:m2"

[[agents]]
name = "Luck"
rule = "zero-intelligence"
"""
ARENA = ("arena", "--preset", "constant", "--agents", "table.toml", "--days", "3", "--json", "--yes")


PERSONA: dict[str, dict[str, Any]] = {
    "ranking": {"findings": [{"finding": "X pays.", "bearing": "Sell it."}], "ranking": ["X"]},
    "orders": {"reason": "It is dear.", "orders": [{"stock": "X", "action": "SELL", "quantity": 1, "limit": "14"}]},
}


class Desks(Traders):
    """A persona over HTTP that sells, beside two desks that buy whatever they see."""

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Turn:
        schema = json.dumps(body["response_format"])
        answer = next((one for field, one in (ANSWERS | PERSONA).items() if f'"{field}"' in schema), None)
        if answer is None:
            return super().next_turn(body, headers)
        with self._lock:
            self.requests.append(body)
            number = len(self.requests)
        if "recommendation" in answer:
            answer = {"symbol": "X", **answer, "position_size": 9}
        return self.trouble(number, body) or Say(text=json.dumps(answer))


@pytest.fixture
def desks(fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desks]:
    monkeypatch.setattr(gate, "PACE", 0.001)
    with fake_llm_server(Desks()) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1")
        (tmp_path / "table.toml").write_text(TABLE)
        monkeypatch.chdir(tmp_path)
        assert isinstance(running, Desks)
        yield running


@pytest.mark.slow
def test_a_desk_at_the_table_is_killed_resumed_and_replayed(
    run: Run, desks: Desks, fresh: Path, tmp_path: Path
) -> None:
    unbroken = run(*ARENA, "--run", "whole").json
    asked = [json.dumps(body["messages"]) for body in desks.requests if body["model"] == "m1"]
    # News, chart and decision of two desks a day: each is asked for itself, though both hold the same at first.
    assert len(asked) == 2 * 3 * 3 and len(set(asked)) < len(asked)
    news = [one for one in asked if "sentiment" in one and "m2 hears of a merger" in one]
    assert news and any("worth 14.00" in one for one in asked)
    assert [one["action"] for one in unbroken["decisions"]] == ["BUY"] * 6
    assert {one["buyer"] for one in unbroken["trades"] if one["seller"] == "Ann"} >= {"Fin", "Twin"}
    # An invention is news to a desk as to anybody, and nobody tells it.
    assert not any("invented" in one.replace("figures in them are invented", "") for one in asked)
    total = len(desks.requests)
    assert run("replay", "prune", "--before", "2999-01-01").code == 0
    killed(desks, 14, fresh, *ARENA, "--run", "killed", "--agents", str(tmp_path / "table.toml"))
    done = run("arena", "--resume", "killed", "--json", "--yes")
    assert (done.code, done.json["fingerprint"]) == (0, unbroken["fingerprint"])
    assert done.json["decisions"] == unbroken["decisions"]
    assert 0 < len(desks.requests) <= total - 11
    desks.requests = []
    replayed = run("arena", "--resume", "killed", "--model", "replay", "--json").json
    assert replayed["decisions"] == unbroken["decisions"] and desks.requests == []


def test_a_costly_or_silent_desk_harms_nobody_else(run: Run, desks: Desks) -> None:
    prices = '[models.prices]\n"openai:m1" = { input = 1000, output = 1000 }\n"openai:m2" = { input = 0, output = 0 }\n'
    places.config_file().write_text(prices)
    done = run(*ARENA[:-1])
    assert done.code == 2 and "openai:m1: about 18 calls" in done.err and desks.requests == []
    stopped = run(*ARENA, "--budget", "0.01")
    assert stopped.code == 75 and "paperdesk arena --resume" in stopped.err
    places.config_file().unlink()
    desks.trouble = lambda number, body: Say(text="no JSON at all") if body["model"] == "m1" else None
    document = run(*ARENA, "--seed", "1").json
    assert {one["action"] for one in document["decisions"]} == {"ABSTAIN"}
    fin, cli_equivalent, ann, _ = document["agents"]
    assert fin["abstentions"] == {"news": 3, "chart": 3, "decision": 3} == cli_equivalent["abstentions"]
    assert "arena-analysis" not in ann["abstentions"] and document["days"] == 3
    assert any("Ann" in (one["buyer"], one["seller"]) for one in document["trades"])
    assert not any("Fin" in (one["buyer"], one["seller"]) for one in document["trades"])


@pytest.mark.parametrize(
    ("seat", "says"),
    [
        ('preset = "finvison"', "agents.0: no preset finvison; did you mean finvision?"),
        ('preset = "desk"\nrule = "macd"', "a seat has a rule or a preset, not both"),
        ('preset = "desk"\nwindow = 5', "window belongs to a persona"),
        ('rule = "value"\nparams = { window = 3 }', "params belong to a strategy"),
        ('rule = "macd"\nparams = { fats = 3 }', "has no parameter fats (did you mean fast?)"),
        ('rule = "momentun"', "unknown strategy momentun"),
        ('rule = "fit.py:Learns"', "needs a training part"),
    ],
)
def test_a_seat_that_means_nothing_is_refused(run: Run, fresh: Path, tmp_path: Path, seat: str, says: str) -> None:
    file, learns = tmp_path / "t.toml", tmp_path / "fit.py"
    learns.write_text("class Learns:\n    def fit(self, history): pass\n    def weights(self, view): return None\n")
    file.write_text(f'[[agents]]\nname = "A"\n{seat.replace("fit.py", str(learns))}\n[[agents]]\nname = "B"\n')
    done = run("arena", "--agents", str(file))
    assert done.code == 2 and says in done.err and "t.toml" in done.err
