"""Decisions again with an input altered: a model that reads is told from one that recalls, and one that ignores."""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.lab.altered_inputs import flipped
from tests.servers.fake_llm_server import FakeLLMServer, Say, fake_llm_server
from tests.tui.commands.conftest import Run
from tests.tui.commands.test_bench_resume import REFLECTIONS
from tests.tui.commands.test_masks import NEAR, asked
from tests.tui.commands.test_model_outages import ANSWERS

WINDOW = ("--preset", "finvision", "--symbols", "ORVL", "--from", "2025-03-12", "--to", "2025-03-18", "--yes")
UP, DOWN = (
    re.compile(r"\b(up|good|growth|above|raise[sd]?)\b"),
    re.compile(r"\b(down|bad|decline|below|cuts?|lowered)\b"),
)


class Traders(FakeLLMServer):
    """A reader, who buys more after good news and rises; a recaller, who knows the days of a ticker; and one who always
    buys the same, each under the model of its name."""

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Say:
        with self._lock:
            self.requests.append(body)
        schema, text = json.dumps(body["response_format"]), asked(body)
        known = ANSWERS | REFLECTIONS
        answer = dict(next(known[field] for field in known if f'"{field}"' in schema))
        if "sentiment" in answer and body["model"] == "reader":
            balance = len(UP.findall(text)) - len(DOWN.findall(text))
            answer["sentiment"] = "bullish" if balance > 0 else "bearish" if balance < 0 else "neutral"
        if "bollinger" in answer and body["model"] == "reader":
            rows = [line.split(" | ") for line in text.splitlines() if re.match(r"- \d{4}-.* \| ", line)]
            answer["macd"] = {"trend": "up" if float(rows[-1][4]) > float(rows[0][4]) else "down", "signal": "none"}
        if "recommendation" in answer:
            day, symbol = re.search(r"Date: [\d-]+(\d\d)", text), re.search(r"Asset: (\S+)\.", text)
            assert day is not None and symbol is not None
            sizes = {
                "reader": 7 + ("News, bullish" in text) - ("News, bearish" in text) + 2 * ("MACD: up" in text),
                "recaller": 5 + int(day[1]) % 3 if symbol[1] == "ORVL" else 9,
                "ignorer": 5,
            }
            answer |= {"symbol": symbol[1], "position_size": sizes[body["model"]]}
        return Say(text=json.dumps(answer))


def test_a_model_that_reads_is_told_from_those_that_do_not(run: Run, paperdesk_home: Path) -> None:
    models = ("near:reader", "near:recaller", "near:ignorer")
    with fake_llm_server(Traders()) as server:
        (paperdesk_home / "own.toml").write_text(NEAR.format(server.openai_url, "false"), encoding="utf-8")
        config = ("--config", str(paperdesk_home / "own.toml"))
        said = run(*config, "compare", "--models", ",".join(models), *WINDOW, "--sensitivity", "--json")
        assert said.code == 0, said.err
        told = dict(zip(models, said.json["sensitivity"], strict=True))
        moved = {name: {row["input"]: row["moved"] for row in one["inputs"]} for name, one in told.items()}

        reader, recaller, ignorer = (moved[name] for name in models)
        assert reader["news"]["mean"] > 0.3 and reader["prices"]["mean"] > 0.3 and reader["tickers"]["mean"] == 0
        assert [recaller[name]["mean"] for name in ("news", "prices", "tickers")] == [0, 0, 1]
        assert {one["mean"] for one in ignorer.values()} == {0}
        assert [told[name]["verdict"] for name in models] == ["made", "recalled", "recalled"]
        assert 0 < reader["news"]["count"] <= reader["prices"]["count"] == told["near:reader"]["sample"] == 5

        # A question that an altered input does not reach is never asked again.
        use = told["near:reader"]["model"]
        charts = [one for one in server.requests if "bollinger" in json.dumps(one["response_format"])]
        assert len(charts) == len(models) * 3 * 5  # the run's, with prices mirrored, with tickers swapped
        assert 0 < use["cached_calls"] < use["calls"]

        # It is kept with the run: reports and comparisons tell it, and it is not asked for again.
        first = said.json["models"][0]["runs"][0]
        for command in (("report", "--run", first), ("runs", "compare", first, said.json["models"][1]["runs"][0])):
            assert told["near:reader"] in run(*command, "--json").json["sensitivity"]
            assert "tickers swapped" in run(*command).out
        assert run(*config, "compare", "--models", ",".join(models), *WINDOW, "--json").json == said.json

        # All of that is recorded by now: the same of a backtest asks nobody.
        server.requests.clear()
        again = run(*config, "backtest", "--model", "near:recaller", *WINDOW, "--sensitivity")
        assert again.code == 0 and not server.requests
        assert "Forecast for 1 run and for 60 decisions made again at most" in again.err
        assert re.search(r"news flipped +\d+ +0%.*\n.*prices mirrored +5 +0%.*\n.*tickers swapped +5 +100%", again.out)


def test_rules_and_runs_without_decisions_have_none(run: Run, paperdesk_home: Path) -> None:
    assert run("backtest", *WINDOW[2:], "--strategy", "macd", "--sensitivity").code == 2
    assert run("backtest", *WINDOW, "--light", "--sensitivity").code == 2
    masked = run("backtest", *WINDOW, "--mask", "1", "--sensitivity", "--json").json
    assert [row["input"] for row in masked["sensitivity"][0]["inputs"]] == ["news", "prices"]
    assert any("mask" in note for note in masked["notes"])  # which hides nothing from the rules


def test_coins_change_names_among_themselves(run: Run, paperdesk_home: Path, tmp_path: Path) -> None:
    (tmp_path / "prices").mkdir()
    days = [date(2025, 1, 1) + timedelta(days=n) for n in range(80)]
    rows = "".join(f"{day},{n},{n + 1},{n - 1},{n},{n},5\n" for n, day in enumerate(days, 100))
    for coin in ("BTC-USD", "ETH-USD", "SOL-USD"):
        head = "date,open,high,low,close,adj_close,volume\n"
        (tmp_path / "prices" / f"{coin}.csv").write_text(head + rows)
    coins = ("--symbols", "BTC-USD,ETH-USD,SOL-USD", "--data", str(tmp_path))
    window = ("--from", "2025-03-10", "--to", "2025-03-11")
    with fake_llm_server(Traders()) as server:
        (paperdesk_home / "own.toml").write_text(NEAR.format(server.openai_url, "false"), encoding="utf-8")
        model = ("--config", str(paperdesk_home / "own.toml"), "backtest", "--model", "near:recaller", "--yes")
        said = run(*model, "--preset", "finvision", *coins, *window, "--sensitivity", "--json")
    (told,) = said.json["sensitivity"]
    assert {row["input"]: row["moved"]["count"] for row in told["inputs"]} == {"news": 0, "prices": 6, "tickers": 6}
    assert not any(one["abstained"] for one in said.json["decisions"])


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (
            "Shares rose 3% as sales beat estimates; outlook raised.",
            "Shares fell 3% as sales miss estimates; outlook lowered.",
        ),
        ("The stock is up +2.5%, a STRONG gain.", "The stock is down -2.5%, a WEAK loss."),
        ("A portrait of the team.", "A portrait of the team."),
    ],
)
def test_a_flipped_text_says_the_opposite(text: str, other: str) -> None:
    assert flipped(text) == other
