"""`paperdesk arena`: accounts that anyone can add up, one tape for one seed, models over HTTP, outages, resuming."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from errno import EACCES, ENOSPC
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from connectors.llm import gate
from engine.arena import rules
from engine.settings import places
from tests.servers.fake_llm_server import Fail, FakeLLMServer, Hang, Say, Turn, fake_llm_server
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_daily import process

TABLE = """
[[agents]]
name = "Ann"
model = "openai:m1"

[[agents]]
name = "Bob"
model = "openai:m2"

[[agents]]
name = "Maker"
rule = "market-maker"

[[agents]]
name = "Luck"
rule = "zero-intelligence"
"""


@pytest.mark.parametrize("preset", ["paper", "paper-program", "ssw", "constant"])
def test_cash_shares_and_wealth_add_up(run: Run, fresh: Path, preset: str) -> None:
    days = ("--days", "8") if preset.startswith("paper") else ()
    document = run("arena", "--preset", preset, "--agents", "controls", "--seed", "4", *days, "--json").json
    assert document["trades"] and document["days"] == {"ssw": 15, "constant": 20}.get(preset, 8)
    cash: dict[str, Decimal] = dict.fromkeys((one["name"] for one in document["agents"]), Decimal(0))
    shares: dict[tuple[str, str], int] = {}
    for flow in document["flows"]:
        cash[flow["agent"]] += Decimal(flow["amount"])
        if "stock" in flow:
            key = flow["agent"], flow["stock"]
            shares[key] = shares.get(key, 0) + flow["shares"]
    for trade in document["trades"]:
        value = trade["quantity"] * Decimal(trade["price"])
        cash[trade["buyer"]] -= value + Decimal(trade["cost_buyer"])
        cash[trade["seller"]] += value - Decimal(trade["cost_seller"])
        for agent, sign in ((trade["buyer"], 1), (trade["seller"], -1)):
            shares[agent, trade["stock"]] = shares.get((agent, trade["stock"]), 0) + sign * trade["quantity"]
    last = {stock["name"]: Decimal(stock["last_price"]) for stock in document["stocks"]}
    for agent in document["agents"]:
        assert cash[agent["name"]] == Decimal(agent["cash"]) >= 0
        assert agent["holdings"] == {stock: shares.get((agent["name"], stock), 0) for stock in last}
        worth = sum(count * last[stock] for stock, count in agent["holdings"].items())
        assert Decimal(agent["wealth"]) == Decimal(agent["cash"]) + worth
        total = Decimal(agent["wealth"]) / Decimal(agent["equity"][0]) - 1
        assert agent["metrics"]["total_return"] == pytest.approx(float(total))
    assert {one["close"] for one in document["prices"] if one["day"] == document["days"]} == {
        stock["last_price"] for stock in document["stocks"]
    }


def test_an_arena_of_rules_is_one_tape(run: Run, fresh: Path) -> None:
    first, again = (run("arena", "--days", "4", "--seed", "2", "--json").json for _ in range(2))
    assert first["fingerprint"] == again["fingerprint"] and first["run"] != again["run"]
    assert run("arena", "--days", "4", "--seed", "3", "--json").json["fingerprint"] != first["fingerprint"]
    # The seats are no advantage of their own; without a rumour it is not read.
    swapped = run("arena", "--days", "4", "--seed", "2", "--swap-seats", "--json").json
    assert swapped["trades"] == first["trades"]
    unsaid = first["messages"][0]["id"]
    cli_equivalent = run("arena", "--days", "4", "--seed", "2", "--without-rumour", unsaid, "--json").json
    assert unsaid not in [one["id"] for one in cli_equivalent["messages"]]
    assert cli_equivalent["messages"][:3] == first["messages"][1:4]
    text = run("arena", "--days", "2").out
    assert "play money" in text and "rules, not a language model" in text and "--resume" in text


def test_the_document_has_every_key_and_strategies_have_scores_and_a_lineage(run: Run, fresh: Path) -> None:
    document = run("arena", "--seed", "1", "--days", "8", "--run", "arena-s", "--json").json
    for agent in document["agents"]:
        first, *later = agent["strategies"]
        assert (first["day"], first["parent"]) == (0, None)
        assert all(one["parent"] == before["day"] for before, one in zip(agent["strategies"], later, strict=False))
        assert all(one["score"] is not None for one in agent["strategies"][:-1])
    assert any(len(agent["strategies"]) > 2 for agent in document["agents"])
    assert set(document) >= {"schema", "run", "preset", "seed", "days", "market", "fingerprint", *KEYS}
    for name, keys in KEYS.items():
        assert document[name] and all(set(row) >= keys for row in document[name])
    market = document["market"]
    assert set(market) >= FIGURES
    initial = [one for one in document["flows"] if one["kind"] == "initial"]
    assert [one["amount"] for one in initial if "stock" in one] == ["0"] * 27
    assert all(one["shares"] >= 0 for one in initial if "stock" in one)
    returns = [one["metrics"]["total_return"] for one in document["agents"]]
    assert market["difference"] == pytest.approx(sum(returns) / 9 - market["average_trend"])
    assert market["most_volatile"]["stock"] in {"A", "B", "C"}
    # Returns have a sign, and shares have none.
    wealthiest = max(document["agents"], key=lambda one: Decimal(one["wealth"]))
    assert run("arena", "--resume", "arena-s", "--seed", "0").code == 2, "a resumed arena keeps its own"
    said = run("arena", "--resume", "arena-s", "--model", "replay").out
    row = next(line.split() for line in said.splitlines() if line.startswith(wealthiest["name"]))
    metrics = wealthiest["metrics"]
    assert row[2] == f"{metrics['total_return']:+.2%}" and row[4] == f"{metrics['win_rate']:.2%}"
    assert f"volatility {market['volatility']:.2%}\n" in said


class Traders(FakeLLMServer):
    """Two personas over HTTP; `trouble` may reply to a question in place of them, given its number from 1."""

    trouble: Callable[[int, dict[str, Any]], Turn | None] = staticmethod(lambda number, body: None)

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Turn:
        with self._lock:
            self.requests.append(body)
            number = len(self.requests)
        return self.trouble(number, body) or Say(text=json.dumps(_answer(body)))


def _answer(body: dict[str, Any]) -> dict[str, Any]:
    schema = json.dumps(body["response_format"])
    if '"invented"' in schema:
        return {"message": f"{body['model']} hears of a merger of A and B.", "invented": body["model"] == "m2"}
    if '"ranking"' in schema:
        finding = {"finding": "A pays more.", "bearing": "Buy A."}
        return {"findings": [finding], "ranking": ["A", "B", "C"]}
    if '"orders"' in schema:
        action, limit = ("BUY", "450") if body["model"] == "m1" else ("SELL", "440")
        orders = [{"stock": "A", "action": action, "quantity": 5, "limit": limit}]
        return {"reason": "The ranking says so.", "orders": orders}
    return {"evaluation": "It did well.", "strategy": "Stay with A."}


@pytest.fixture
def traders(fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Traders]:
    monkeypatch.setattr(gate, "PACE", 0.001)
    with fake_llm_server(Traders()) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1")
        (tmp_path / "table.toml").write_text(TABLE)
        monkeypatch.chdir(tmp_path)
        assert isinstance(running, Traders)
        yield running


@pytest.fixture
def charts(traders: Traders, tmp_path: Path) -> None:
    """Ann is shown charts, too."""
    (tmp_path / "table.toml").write_text(TABLE.replace('"openai:m1"\n', '"openai:m1"\ninput = "both"\n'))


ARENA = ("arena", "--agents", "table.toml", "--days", "3", "--json", "--yes")


@pytest.mark.slow
@pytest.mark.usefixtures("charts")
def test_personas_talk_trade_and_learn_over_http(run: Run, traders: Traders) -> None:
    document = run(*ARENA).json
    bought = [one for one in document["trades"] if one["buyer"] == "Ann"]
    assert bought and {one["stock"] for one in bought} == {"A"}
    assert [(one["agent"], one["truth"]) for one in document["messages"]][:2] == [("Ann", True), ("Bob", False)]
    # Chat, analysis and three rounds a day, and a reflection after all days but the last.
    assert document["model"]["calls"] == len(traders.requests) == 2 * (3 * 5 + 2)
    asked = json.dumps(traders.requests)
    # What is invented is known to whoever runs the arena alone.
    assert "<<<chat\\n- Bob: m2 hears of a merger of A and B.\\nchat>>>" in asked
    assert "SELL 5 A at 440.00: accepted" in asked and "score " in asked
    # A persona that is shown charts gets them as pictures.
    pictures = [body["model"] for body in traders.requests if '"image_url"' in json.dumps(body)]
    assert pictures and set(pictures) == {"m1"}


def test_an_outage_pauses_and_resuming_gives_the_unbroken_tape(run: Run, traders: Traders) -> None:
    traders.trouble = lambda number, body: Fail(500, "boom") if number > 14 else None
    failed = run(*ARENA, "--run", "arena-x")
    assert (failed.code, failed.result) == (75, "") and "paperdesk arena --resume arena-x" in failed.err
    traders.trouble = lambda number, body: None
    answered, traders.requests = 14, []
    done = run("arena", "--resume", "arena-x", "--json", "--yes")
    assert done.code == 0 and done.json["run"] == "arena-x"
    assert len(traders.requests) == 34 - answered
    traders.requests = []
    unbroken, replayed = run(*ARENA), run("arena", "--resume", "arena-x", "--model", "replay", "--json")
    assert unbroken.json["fingerprint"] == replayed.json["fingerprint"] == done.json["fingerprint"]
    assert traders.requests == []
    assert json.loads(places.arena_file("arena-x").read_text())["document"]["fingerprint"] == done.json["fingerprint"]


def killed(server: Traders, number: int, home: Path, *arguments: str) -> None:
    """Run `paperdesk` in a process of its own, and kill it when its models are asked question `number`."""
    server.requests, reached = [], threading.Event()

    def trouble(asked: int, body: dict[str, Any]) -> Turn | None:
        if asked < number:
            return None
        reached.set()
        return Hang()

    server.trouble = trouble
    one = process(home, *arguments)
    while not reached.wait(0.05):
        assert one.poll() is None
    one.send_signal(signal.SIGKILL)
    one.communicate()
    assert one.returncode == -signal.SIGKILL
    server.trouble, server.requests = lambda number, body: None, []


@pytest.mark.slow
def test_killed_at_a_question_it_resumes_to_the_unbroken_tape(
    run: Run, traders: Traders, fresh: Path, tmp_path: Path
) -> None:
    unbroken = run(*ARENA, "--seed", "5").json["fingerprint"]
    assert run("replay", "prune", "--before", "2999-01-01").code == 0
    table = ("--agents", str(tmp_path / "table.toml"))
    killed(traders, 21, fresh, *ARENA, "--seed", "5", "--run", "arena-k", *table)
    assert json.loads(places.arena_file("arena-k").read_text())["document"] is None
    done = run("arena", "--resume", "arena-k", "--json", "--yes")
    assert (done.code, done.json["fingerprint"]) == (0, unbroken)
    # What was answered before the kill is not asked again, but for what was still on its way.
    assert len(traders.requests) <= 34 - 19


@pytest.mark.usefixtures("charts")
def test_a_reflection_is_of_the_day_that_is_over(run: Run, traders: Traders) -> None:
    run(*ARENA, "--seed", "7")
    looked = [body for body in traders.requests if '"evaluation"' in json.dumps(body["response_format"])]
    said = [json.dumps(body["messages"]) for body in looked]
    assert sum("Day 1 of 3, after the close" in one for one in said) == 2
    assert any("shares traded today, high" in one and "BUY 5 A at 450.00: accepted" in one for one in said)
    assert all("Index: +0.00" not in one and "A pays more." in one for one in said)
    # Fills of earlier rounds are known in the next ones.
    orders = [body for body in traders.requests if '"orders"' in json.dumps(body["response_format"])]
    assert any("bought 5 A at" in json.dumps(body["messages"]) for body in orders)
    # One that is shown charts looks back on candles and volumes, and ahead on closes.
    shown = [one for one, body in zip(said, looked, strict=True) if body["model"] == "m1"]
    assert shown and all("show candles and volumes of A, B, C" in one and "image_url" in one for one in shown)
    assert any("show the daily closes of A, B, C" in json.dumps(body["messages"]) for body in orders)


def test_income_and_news_of_shocks_reach_every_agent(run: Run, traders: Traders, tmp_path: Path) -> None:
    paper = (Path(rules.__file__).parent / "presets" / "paper.toml").read_text()
    shocks = "[[shocks]]\nday = 2\nkind = 'dividend'\nfactor = 0.5\nstock = 'A'\n"
    (tmp_path / "mine.toml").write_text(paper.replace("[[stocks]]", "income = 250\n\n[[stocks]]", 1) + shocks)
    document = run(*ARENA, "--preset", "mine.toml").json
    incomes = [one for one in document["flows"] if one["kind"] == "income"]
    assert len(incomes) == 4 * 3 and {one["amount"] for one in incomes} == {"250.00"}
    told = [body for body in traders.requests if "Dividends of A are multiplied by 0.5" in json.dumps(body["messages"])]
    assert told and all("Day 2 of 3" in json.dumps(body["messages"]) for body in told)
    assert {body["model"] for body in told} == {"m1", "m2"}
    dividends = {one["day"]: one for one in document["flows"] if one["kind"] == "dividend" and one["stock"] == "A"}
    assert Decimal(dividends[1]["amount"]) > Decimal(dividends[2]["amount"]) > 0


@pytest.mark.slow
def test_repeats_rotate_seats_and_pair_differences(run: Run, fresh: Path) -> None:
    call = ("arena", "--preset", "ssw", "--agents", "controls", "--seed", "3", "--repeats", "4", "--run", "arena-r")
    document = run(*call, "--json").json
    assert [(one["run"], one["seed"]) for one in document["runs"]] == [(f"arena-r-{n + 1}", 3 + n) for n in range(4)]
    single = [json.loads(places.arena_file(one["run"]).read_text())["document"] for one in document["runs"]]
    # The seats of this market have different endowments: whoever is first changes.
    assert len({one["agents"][0]["name"] for one in single}) == 4
    returns = {
        agent["name"]: [
            next(one["metrics"]["total_return"] for one in arena["agents"] if one["name"] == agent["name"])
            for arena in single
        ]
        for agent in document["agents"]
    }
    for agent in document["agents"]:
        own = returns[agent["name"]]
        gaps = [own[n] - mean(rest[n] for name, rest in returns.items() if name != agent["name"]) for n in range(4)]
        half = 3.182 * stdev(gaps) / 2
        assert agent["mean_return"] == pytest.approx(mean(own))
        found = agent["difference"]
        assert (found["mean"], found["low"], found["high"]) == pytest.approx(
            (mean(gaps), mean(gaps) - half, mean(gaps) + half)
        )
        assert agent["relative"] is None
    assert len(document["pairs"]) == 12 * 11 / 2
    # Resuming plays nothing that is done again.
    places.arena_file("arena-r-3").unlink()
    again = run("arena", "--resume", "arena-r", "--json")
    assert again.code == 0 and again.json["runs"] == document["runs"]
    text = run("arena", "--resume", "arena-r").out
    assert "TO OTHERS" in text and "4 of 4 repeats" in text and "Momentum" in text


@pytest.mark.slow
def test_repeats_side_by_side_are_those_one_by_one(run: Run, fresh: Path) -> None:
    call = ("arena", "--preset", "ssw", "--agents", "controls", "--seed", "3", "--repeats", "4", "--json")
    serial, side = run(*call).json, run(*call, "--jobs", "2").json
    assert [one["fingerprint"] for one in side["runs"]] == [one["fingerprint"] for one in serial["runs"]]


def test_an_outage_in_a_repeat_pauses_and_resumes_the_whole(run: Run, traders: Traders) -> None:
    call = (*ARENA, "--repeats", "2", "--run", "arena-t")
    traders.trouble = lambda number, body: Fail(500, "boom") if number > 40 else None
    failed = run(*call)
    assert failed.code == 75 and "`paperdesk arena --resume arena-t` continues" in failed.err
    assert failed.err.count("--resume") == 1
    traders.trouble, traders.requests = lambda number, body: None, []
    done = run("arena", "--resume", "arena-t", "--json", "--yes")
    assert done.code == 0 and len(done.json["runs"]) == 2 and len(traders.requests) == 68 - 40


def test_a_duel_scores_text_and_charts_against_a_baseline(run: Run, traders: Traders) -> None:
    duel = ("arena", "--agents", "duel", "--model", "openai:m1", "--baseline", "openai:m2", "--days", "1")
    document = run(*duel, "--repeats", "2", "--run", "arena-d", "--json", "--yes").json
    scores = {one["name"]: one["relative"] for one in document["agents"]}
    bases = [name for name in scores if name.startswith("Baseline")]
    assert len(bases) == 7 and set(scores) - set(bases) == {"Text", "Charts"}
    with_pictures = {body["model"] for body in traders.requests if '"image_url"' in json.dumps(body)}
    assert with_pictures == {"m1"}
    assert {body["model"] for body in traders.requests} == {"m1", "m2"}
    rows = {one["name"]: one["returns"] for one in document["agents"]}
    base = mean(value for name in bases for value in rows[name])
    assert base > 0 and scores["Text"]["return"] == pytest.approx(100 * mean(rows["Text"]) / base)
    assert mean(scores[name]["return"] for name in bases) == pytest.approx(100)
    assert "OF 100" in run("arena", "--resume", "arena-d").out
    # One arena has its scores, too.
    first = json.loads(places.arena_file("arena-d-1").read_text())["document"]["agents"]
    own, *others = sorted(first, key=lambda one: one["name"] != "Text")
    base = mean(one["metrics"]["total_return"] for one in others if one["name"] in bases)
    assert own["relative"]["return"] == pytest.approx(100 * own["metrics"]["total_return"] / base)
    assert "OF 100" in run("arena", "--resume", "arena-d-1").out


def test_the_report_shows_prices_values_wealth_volume_and_chat(run: Run, fresh: Path, tmp_path: Path) -> None:
    document = run("arena", "--preset", "constant", "--agents", "controls", "--run", "arena-v", "--json").json
    assert {one["fundamental"] for one in document["prices"]} == {"14.00"}
    text = run("report", "--run", "arena-v").out
    assert all(one["name"] in text for one in document["agents"]) and f"{len(document['messages'])}, of them" in text
    page = tmp_path / "arena.html"
    assert run("report", "--run", "arena-v", "--out", str(page)).code == 0
    html = page.read_text()
    for title in ("Price of X", "fundamental value", "Wealth by agent", "Shares traded", "Chat:", "Strategies"):
        assert title in html
    # All that the Arena screen shows: the tape, what was open at each close, wealth on each day.
    rows = {"Trades": document["trades"], "Orders open at the close": document["books"], "Wealth by day": range(21)}
    for title, of in rows.items():
        assert f"<summary>{title}: {len(of)} row" in html and len(of) > 0
    assert document["messages"][0]["text"].split()[0] in html.split("Chat:")[1]
    assert html.count("<svg") == 3 and "--own: #0b62a8" in html
    assert json.loads(run("report", "--run", "arena-v", "--json").out) == document
    refused = run("report", "--run", "arena-v", "--format", "csv")
    assert refused.code == 2 and "an arena is written as html or json" in refused.err
    run("arena", "--agents", "controls", "--days", "2", "--repeats", "2", "--run", "arena-w")
    assert "2 of 2 repeats" in run("report", "--run", "arena-w").out
    refused = run("report", "--run", "arena-w", "--format", "html")
    assert refused.code == 2 and "repeats are written as json, not as html" in refused.err


def test_what_a_model_writes_is_no_markup_in_a_report(run: Run, traders: Traders, tmp_path: Path) -> None:
    bad = {"message": "<script>alert(1)</script> | **A**", "invented": True}
    traders.trouble = lambda number, body: (
        Say(text=json.dumps(bad)) if '"invented"' in json.dumps(body["response_format"]) else None
    )
    run(*ARENA, "--run", "arena-m")
    run("report", "--run", "arena-m", "--out", str(tmp_path / "m.html"))
    page = (tmp_path / "m.html").read_text()
    assert "<script>" not in page and "&lt;script&gt;" in page and "invented" in page


KEYS = {
    "agents": {"name", "kind", "cash", "holdings", "wealth", "metrics"},
    "stocks": {"name", "shares", "first_price", "last_price", "fundamental"},
    "trades": {
        *("day", "round", "stock", "buyer", "seller", "quantity", "price", "cost_buyer", "cost_seller", "maker"),
    },
    "flows": {"day", "agent", "kind", "amount"},
    "prices": {"day", "stock", "close"},
    "messages": {"day", "agent", "to", "text", "truth"},
}
FIGURES = {
    *("average_trend", "difference", "index_sharpe", "volatility", "turnover", "deviation", "relative_deviation"),
}


def test_a_costly_arena_is_asked_about_first(run: Run, traders: Traders) -> None:
    prices = '[models.prices]\n"openai:m1" = { input = 1000, output = 1000 }\n"openai:m2" = { input = 0, output = 0 }\n'
    places.config_file().write_text(prices)
    done = run(*ARENA[:-1])
    assert done.code == 2 and "openai:m1: about" in done.err and "pass --yes to run it" in done.err
    assert traders.requests == []
    assert run(*ARENA).code == 0
    # A budget that does not pay for the first question pauses before it is sent.
    traders.requests = []
    stopped = run(*ARENA, "--seed", "9", "--budget", "0.01")
    assert stopped.code == 75 and "paperdesk arena --resume" in stopped.err
    assert not [body for body in traders.requests if body["model"] == "m1"]


NONSENSE = (
    "no JSON at all",
    json.dumps({"reason": "all in", "orders": [{"stock": "A", "action": "BUY", "quantity": 900000, "limit": None}]}),
    json.dumps({"reason": "short", "orders": [{"stock": "A", "action": "SELL", "quantity": 5000, "limit": "440"}]}),
    json.dumps({"reason": "?", "orders": [{"stock": "TESLA", "action": "BUY", "quantity": 1, "limit": "440"}]}),
    json.dumps({"reason": "?", "orders": [{"stock": "A", "action": "BUY", "quantity": 1, "limit": "0.01"}]}),
    json.dumps({"message": "buy!" * 500, "invented": False}),
)


@pytest.mark.parametrize(
    "text",
    [*NONSENSE[:2], *(pytest.param(text, marks=pytest.mark.slow) for text in NONSENSE[2:])],
    ids=lambda text: text[:20],
)
def test_an_agent_without_a_usable_answer_harms_itself_alone(run: Run, traders: Traders, text: str) -> None:
    traders.trouble = lambda number, body: Say(text=text) if body["model"] == "m2" else None
    done = run(*ARENA)
    assert done.code == 0 and done.json["days"] == 3
    ann, bob, *_ = done.json["agents"]
    assert ann["abstentions"] == {} and sum(bob["abstentions"].values()) >= 3
    assert not any(one["seller"] == "Bob" and one["maker"] == "Bob" for one in done.json["trades"])
    assert not [one for one in done.json["messages"] if one["agent"] == "Bob"]
    assert any("Ann" in (one["buyer"], one["seller"]) for one in done.json["trades"])


def test_an_agent_that_is_late_abstains(run: Run, traders: Traders, monkeypatch: pytest.MonkeyPatch) -> None:
    places.config_file().write_text("[models.arena]\ntimeout = 1.0\n")
    traders.trouble = lambda number, body: Hang() if body["model"] == "m2" else None
    done = run("arena", "--agents", "table.toml", "--days", "1", "--json", "--yes")
    assert done.code == 0 and sum(done.json["agents"][1]["abstentions"].values()) == 5


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--preset", "nasdaq"), 2, "no arena preset nasdaq: choose constant, paper, paper-program, ssw"),
        (("--agents", "twelve"), 2, "no table twelve"),
        (("--resume", "arena-none"), 65, "no arena arena-none"),
        (("--resume", "arena-none", "--seed", "1"), 2, "the only one that can change is --model replay"),
        (("--days", "0"), 2, "0 is not in the range"),
        (("--jobs", "2"), 2, "--jobs runs repeats in parallel, and this is a single arena"),
        (("--without-rumour", "31-Amy"), 2, "31-Amy: no such message; they are DAY-AGENT, days 1 to 30, of Amy, Bruce"),
        (("--without-rumour", "1-Nobody"), 2, "1-Nobody: no such message"),
        (("--baseline", "offline"), 2, "no agent of the table nine asks a baseline, as those of duel do"),
    ],
)
def test_bad_input_is_one_line(run: Run, fresh: Path, arguments: tuple[str, ...], code: int, says: str) -> None:
    done = run("arena", *arguments)
    assert done.code == code and says in done.err and done.err.count("\n") == 1


def test_a_faulty_table_names_file_and_fault(run: Run, fresh: Path, tmp_path: Path) -> None:
    file = tmp_path / "t.toml"
    for text, says in (
        ('[[agents]]\nname = "A"\n', "at least 2 items"),
        ('[[agents]]\nname = "A"\n[[agents]]\nname = "A"\n', "A appears twice in the table"),
        ('[[agents]]\nname = "A"\nrule = "luck"\n[[agents]]\nname = "B"\n', "no rule luck"),
        ("[[agents", "t.toml"),
    ):
        file.write_text(text)
        done = run("arena", "--agents", str(file))
        assert done.code == 2 and says in done.err and "t.toml" in done.err and ": :" not in done.err


SMALL = ("arena", "--agents", "controls", "--days", "2")


def test_a_new_arena_never_takes_the_place_of_another(run: Run, fresh: Path) -> None:
    assert run(*SMALL, "--seed", "1", "--run", "arena-n").code == 0
    kept = places.arena_file("arena-n").read_bytes()
    refused = run(*SMALL, "--seed", "2", "--run", "arena-n")
    assert refused.code == 2 and "an arena arena-n already exists" in refused.err and "--resume arena-n" in refused.err
    assert places.arena_file("arena-n").read_bytes() == kept
    # Nor one of its repeats, and it has no name in common with a backtest.
    assert run(*SMALL, "--run", "arena-r-2").code == 0
    refused = run(*SMALL, "--repeats", "3", "--run", "arena-r")
    assert refused.code == 2 and "an arena arena-r-2 already exists" in refused.err
    assert not places.arena_file("arena-r").exists()
    window = ("--symbols", "ORVL", "--from", "2025-03-03", "--to", "2025-03-07")
    backtest = run("backtest", "--strategy", "cash", *window, "--run", "arena-n")
    assert backtest.code == 2 and "--run arena-n: this run already exists" in backtest.err
    assert run("backtest", "--strategy", "cash", *window, "--run", "bt").code == 0
    assert run(*SMALL, "--run", "bt").code == 2


@pytest.mark.parametrize(
    ("errno", "code", "says"), [(ENOSPC, 65, "check its folder and the free space"), (EACCES, 78, "PAPERDESK_HOME")]
)
def test_a_record_that_cannot_be_written_is_one_line(
    run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch, errno: int, code: int, says: str
) -> None:
    def refuse(self: Path, target: Path) -> Path:
        raise OSError(errno, os.strerror(errno))

    monkeypatch.setattr(Path, "replace", refuse)
    done = run(*SMALL, "--run", "arena-n")
    file = places.arena_file("arena-n")
    assert done.code == code and f"{file} cannot be written" in done.err and says in done.err
    assert done.err.count("\n") == 1 and list(file.parent.glob("arena-n.json*")) == []


def test_a_resumed_arena_takes_no_other_model(run: Run, fresh: Path) -> None:
    assert run(*SMALL, "--run", "arena-o").code == 0
    kept = places.arena_file("arena-o").read_bytes()
    for more in (("--model", "openai:gpt-4o"), ("--seed", "3"), ("--run", "other")):
        refused = run("arena", "--resume", "arena-o", *more)
        assert refused.code == 2 and "the only one that can change is --model replay" in " ".join(refused.err.split())
    assert places.arena_file("arena-o").read_bytes() == kept
    assert run("arena", "--resume", "arena-o", "--model", "replay").code == 0


@pytest.mark.parametrize("damage", ["{", "[]", '{"spec": {}}', '{"spec": {}, "document": {"run": 1}}'])
def test_a_damaged_record_of_a_repeat_is_named(run: Run, fresh: Path, damage: str) -> None:
    assert run(*SMALL, "--repeats", "2", "--run", "arena-q").code == 0
    file = places.arena_file("arena-q-2")
    file.write_text(damage)
    for call in (("arena", "--resume", "arena-q"), ("report", "--run", "arena-q-2")):
        refused = run(*call)
        assert (refused.code, refused.result) == (65, "") and f"{file}: not the record of an arena" in refused.err
    file.unlink()
    assert "2 of 2 repeats" in run("arena", "--resume", "arena-q").out


def test_a_resumed_arena_has_the_files_that_it_was_begun_with(
    run: Run, fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table, code = tmp_path / "t.toml", tmp_path / "own.py"
    code.write_text("class Own:\n    def weights(self, view):\n        return {view.symbols[0]: 0.5}\n")
    text = '[[agents]]\nname = "A"\nrule = "own.py:Own"\n[[agents]]\nname = "B"\nrule = "value"\n'
    table.write_text(text)
    played = run("arena", "--agents", "t.toml", "--days", "2", "--run", "arena-t", "--json").json
    for file, other in ((table, text.replace("value", "momentum")), (code, code.read_text() + "# another\n")):
        kept = file.read_text()
        file.write_text(other)
        said = run("arena", "--resume", "arena-t")
        assert said.code == 2 and f"{file.name} has changed since arena arena-t was begun" in said.err
        file.write_text(kept)
    monkeypatch.chdir("/")
    said = run("arena", "--resume", "arena-t")
    assert said.code == 2 and f"was begun in {tmp_path} with t.toml, own.py: resume it there" in said.err
    monkeypatch.chdir(tmp_path)
    assert run("arena", "--resume", "arena-t", "--json").json["fingerprint"] == played["fingerprint"]


def test_a_budget_is_an_amount_of_dollars(run: Run, fresh: Path) -> None:
    for text in ("nan", "-1", "lots"):
        refused = run(*SMALL, "--budget", text)
        assert refused.code == 2 and f"'{text}' is not a non-negative amount" in refused.err
    assert run(*SMALL, "--budget", "0").code == 0  # rules cost nothing
