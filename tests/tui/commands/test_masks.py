"""A run under a mask: what a service on loopback was sent is searched for every name, date and price of the window."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from connectors.charts.painter import MatplotlibPainter
from connectors.demo.listings import load_listings
from connectors.files.prices import prices_text
from engine.app.models import mask
from engine.domain.chart import ChartSpec
from engine.domain.market import NANO
from engine.market.trading_hours import calendar_for
from tests.data_folders import DrawnOnce, rows_of
from tests.long_cases import first_of
from tests.servers.fake_llm_server import FakeLLMServer, Say, fake_llm_server, is_preflight
from tests.tui.commands.conftest import Run

WINDOW = ("--symbols", "ORVL", "--from", "2025-03-20", "--to", "2025-03-24", "--warm-up-from", "2025-03-17")
NEAR = """
[endpoints.near]
base_url = "{}"
requests_per_minute = 60000
vision = {}
"""
MARKET = DrawnOnce(7, calendar_for, date(2025, 4, 30))
CODES = re.compile(r"ASSET1|Company1|Name[a-z]{5}|Ticker[a-z]{5}|205\d-")


class Reader(FakeLLMServer):
    """Answers every question with what it was asked about: the asset's name, the date and the last price."""

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Say:
        with self._lock:
            self.requests.append(body)
        if is_preflight(body):
            return Say(text='{"word": "ready"}')
        text = asked(body)
        day = (re.findall(r"Date: ([\d-]+)", text) or re.findall(r"\d{4}-\d\d-\d\d", text))[-1]
        close = re.search(r"(?:last close|close): ([\d.]+)", text)
        name = re.search(r"Asset: (\S+?)[ .,]", text)
        said = f"{name and name[1]} after {day}, close {close[1]}" if close else f"Quiet until {day}."
        said = " ".join(dict.fromkeys([said, *re.findall(r"\d\d/\d\d/\d{4}", text)]))
        schema = body["response_format"]["json_schema"]["schema"]
        return Say(text=json.dumps(filled(schema, schema, said, "" if name is None else name[1])))


def filled(schema: Mapping[str, Any], whole: Mapping[str, Any], said: str, symbol: str) -> Any:
    """The shortest answer of a schema whose texts are all what is said."""
    known = {"recommendation": "BUY", "position_size": 5, "rule": "strong uptrend", "symbol": symbol, "action": "BUY"}
    if "$ref" in schema:
        return filled(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole, said, symbol)
    if "anyOf" in schema:
        return None if {"type": "null"} in schema["anyOf"] else filled(schema["anyOf"][0], whole, said, symbol)
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        fields = schema["properties"].items()
        return {name: known[name] if name in known else filled(one, whole, said, symbol) for name, one in fields}
    if schema["type"] == "array":
        return [filled(schema["items"], whole, said, symbol)] * schema.get("minItems", 0)
    return {"string": said, "boolean": True, "integer": 1, "number": 0.5}[schema["type"]]


def asked(body: Mapping[str, Any]) -> str:
    """All texts of a question after its constant part."""
    parts: list[str] = []
    for message in body["messages"]:
        content = message["content"]
        texts = [content] if isinstance(content, str) else [one.get("text", "") for one in content]
        parts += [text.rpartition("\nexample>>>")[2] for text in texts]
    return "\n".join(parts)


@cache
def hidden() -> Mapping[int, Collection[str]]:
    """Whatever a level hides of the market of the window and the year before it."""
    listing, history = load_listings()["ORVL"], asyncio.run(MARKET.history("ORVL"))
    texts = " ".join((listing.name, listing.short, listing.city, *listing.products, *listing.partners, "Marit Halvane"))
    common = {"Falls", "Cloud", "Motors", "Devices", "Semiconductors"}
    names = set(re.findall(r"[A-Z]\w+", texts)) - common
    rows = range(len(history) - 300, len(history))
    days = {history.session(row).isoformat() for row in rows}
    columns = (history.open, history.high, history.low, history.close)
    prices = {f"{column[row] / NANO:.2f}" for row in rows for column in columns}
    return {1: {"ORVL"}, 2: names, 3: {*days, "2024", "2025"}, 4: prices}


def is_told(word: str, text: str) -> bool:
    """True where a text has a word or a number by itself."""
    return word in text and re.search(rf"(?<![\w.,]){re.escape(word)}(?![\w%]|[.,]\d)", text) is not None


def drawn(charts: Sequence[ChartSpec]) -> Iterator[str]:
    """The texts of pictures, and the prices that their scales are made of."""
    for chart in charts:
        assert chart.candles is not None or chart.lines
        values = [line.values for line in chart.lines] + ([] if chart.candles is None else [chart.candles.close])
        yield from (chart.title, chart.symbol, *chart.sessions)
        yield from (f"{value:.2f}" for column in values for value in column if value is not None)


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> list[ChartSpec]:
    """The charts that are painted."""
    painted: list[ChartSpec] = []
    paint = MatplotlibPainter.paint

    async def noted(self: MatplotlibPainter, spec: ChartSpec) -> bytes:
        painted.append(spec)
        return await paint(self, spec)

    monkeypatch.setattr(MatplotlibPainter, "paint", noted)
    return painted


def played(run: Run, home: Path, server: FakeLLMServer, level: str, preset: str = "desk", vision: str = "true") -> Any:
    (home / "own.toml").write_text(NEAR.format(server.openai_url, vision), encoding="utf-8")
    flags = () if not level else ("--mask", level)
    said = run(
        "--config",
        str(home / "own.toml"),
        "backtest",
        *WINDOW,
        "--preset",
        preset,
        "--model",
        "near:m1",
        "--yes",
        *flags,
        "--json",
    )
    assert said.code == 0, said.err
    return said.json


@pytest.mark.parametrize(
    ("level", "vision"), first_of(2, [(4, "true"), (2, "false"), (1, "true"), (3, "true"), (4, "false")])
)
def test_nothing_that_a_level_hides_is_sent(
    run: Run, paperdesk_home: Path, pictures: list[ChartSpec], level: int, vision: str
) -> None:
    with fake_llm_server(Reader()) as server:
        made = played(run, paperdesk_home, server, str(level), vision=vision)
    texts = [asked(body) for body in server.requests if not is_preflight(body)]
    texts = [re.sub(r" \| [-\d.]+$", "", text, flags=re.MULTILINE) for text in texts]  # J passes 100, as prices do
    assert made["settings"]["mask"] == level and not any(one["abstained"] for one in made["decisions"])
    assert bool(pictures) is (vision == "true")
    sent = "\n".join([*texts, *drawn([chart for chart in pictures if chart.symbol != "ABC"])])
    found = {kind: [word for word in words if is_told(word, sent)] for kind, words in hidden().items()}
    assert {kind for kind, leaked in found.items() if leaked} == set(range(level + 1, 5)), found

    # What is recorded is the market as it is, in the decision's words, every agent's answer and its question.
    history = asyncio.run(MARKET.history("ORVL"))
    for decision in made["decisions"]:
        row = history.index(date.fromisoformat(decision["session"]))
        assert row is not None and decision["symbol"] == "ORVL"
        assert f"ORVL after {decision['session']}, close {history.close[row] / NANO:.2f}" in decision["reason"]
    why = run("why", "ORVL", made["decisions"][-1]["session"], "--run", made["run"], "--prompts", "--json").out
    assert "Orvelle" in why and not CODES.search(why)
    assert not made["unresolved_figures"]


def test_mask_0_asks_what_a_run_without_one_asks(run: Run, paperdesk_home: Path) -> None:
    with fake_llm_server(Reader()) as server:
        before = played(run, paperdesk_home, server, "", "finvision")
        server.requests.clear()
        again = played(run, paperdesk_home, server, "0", "finvision")
        assert not server.requests
        assert again["fingerprint"] == before["fingerprint"] and again["settings"]["mask"] is None
        assert again["model"]["cached_calls"] == again["model"]["calls"]

        # Both, paired: the open run is read from what is recorded, the masked one is asked anew.
        compared = played(run, paperdesk_home, server, "0,4", "finvision")
        assert server.requests
        (pair,) = compared["pairs"]
        assert [one["run"][-6:] for one in compared["runs"]] == ["-mask0", "-mask4"]
        assert {"setting": "mask", "before": None, "now": 4} in pair["settings"]
        assert "  mask: none, then 4\n" in run("runs", "compare", *(one["run"] for one in compared["runs"])).out
        assert pair["daily"]["sessions"] == 3 and pair["decisions"]["differing"] == 0

        # A masked run again: of its own answers alone, and one decision of it.
        server.requests.clear()
        masked = compared["runs"][1]["run"]
        config = ("--config", str(paperdesk_home / "own.toml"))
        again = run(*config, "rerun", masked, "--model", "replay", "--json")
        assert again.code == 0 and again.json["same"]
        redecided = run(*config, "why", "ORVL", "2025-03-20", "--run", masked, "--redecide", "--yes", "--json")
        assert redecided.code == 0 and not server.requests


def test_an_audit_says_what_the_questions_of_a_masked_run_name(
    run: Run, paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ("--preset", "finvision", "--model", "near:m1", "--cuts", "1", "--mask", "4", "--json")
    with fake_llm_server(Reader()) as server:
        (paperdesk_home / "own.toml").write_text(NEAR.format(server.openai_url, "false"), encoding="utf-8")
        config = ("--config", str(paperdesk_home / "own.toml"))
        clean = run(*config, "audit", *WINDOW, *flags)
        assert (clean.code, clean.json["mask"]) == (0, {"level": 4, "named": []})
        monkeypatch.setattr(mask, "_NUMBER", "(?P<number>(?!))")  # a mask with a hole in it
        leaky = run(*config, "audit", *WINDOW, *flags)
        assert leaky.code == 1 and leaky.json["verdict"] == "leak"
        assert "113.24" in leaky.json["mask"]["named"]  # the close of 2025-03-20


def test_a_ticker_within_another_or_a_word_and_names_of_any_alphabet(
    run: Run, paperdesk_home: Path, tmp_path: Path
) -> None:
    (tmp_path / "prices").mkdir()
    (tmp_path / "news").mkdir()
    for symbol, drawn_as in (("S", "NMBR"), ("COST", "ORVL")):
        text = prices_text(rows_of(asyncio.run(MARKET.history(drawn_as)))[-300:])
        (tmp_path / "prices" / f"{symbol}.csv").write_text(text)
    told = {
        "date": "2025-03-20",
        "summary": "COST closed at 113.24. Ørsted and Škoda rise in 2Q24, 3M24, FY 2024-25 and 2025E as Q424 did.",
    }
    empty = dict.fromkeys(("time", "headline", "source", "sentiment"))
    (tmp_path / "news" / "COST.jsonl").write_text(json.dumps(empty | told))
    with fake_llm_server(Reader()) as server:
        (paperdesk_home / "own.toml").write_text(NEAR.format(server.openai_url, "false"), encoding="utf-8")
        window = ("--symbols", "S,COST", "--data", str(tmp_path), "--from", "2025-03-21", "--to", "2025-03-21")
        flags = ("--preset", "finvision", "--model", "near:m1", "--cuts", "1", "--mask", "4", "--json")
        clean = run("--config", str(paperdesk_home / "own.toml"), "audit", *window, *flags)
    assert (clean.code, clean.json["mask"]) == (0, {"level": 4, "named": []}), "an average cost is no COST"
    (news,) = {line for body in server.requests for line in asked(body).splitlines() if "ASSET2 closed at" in line}
    (price,) = {
        found
        for body in server.requests
        for found in re.findall(r"ASSET2.*?last close: ([\d.]+)", asked(body), re.DOTALL)
    }
    assert f"closed at {price}." in news
    assert not re.search("Ørsted|Škoda|2Q24|2024|-25|2025|Q424", news), news


TOLD = """Costco (NASDAQ: COST) closed at $187.02 on Oct. 26. It was $561.06 before the 3-for-1 split of 10/26/2020.
COST fell to 187.02 a share by 26.10.2020; analysts see $180-$190 from 26 October on, for Q3 2020 and fiscal 2020.
On 2020/10/26 and 10/26/20 COSTCO said that 3M and 23andMe buy; 3M closed at $163.40 and hit $171 in OCTOBER 2020.
Alphabet (GOOG, GOOGL) rose to $1,590.45 in Q320, Google said on 26-Oct-2020. Walmart paid 142.16 dollars in FY20.
Berkshire closed at $612,345.50 and Bitcoin rose above $67,123, against a $25,000 fine; 2019a and Q3 '19 beat Sep'19.
Sales rose 4.1% to $53.38 billion in 2021YTD, and 12 new warehouses opened by 31/12/2020."""
HIDDEN = {
    1: ("COST", "GOOG", "GOOGL"),
    2: ("Costco", "COSTCO", "3M", "23andMe", "Alphabet", "Google", "Walmart"),
    3: (
        "26",
        "10/26",
        "26.10",
        "2020",
        "20",
        "Q320",
        "FY20",
        "Oct",
        "October",
        "OCTOBER",
        "2019a",
        "Q3 '19",
        "Sep'19",
        "2021YTD",
    ),
    4: ("187.02", "561.06", "180", "190", "163.40", "171", "1,590.45", "142.16", "612,345.50", "67,123"),
}


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_news_name_nothing_in_any_spelling(run: Run, paperdesk_home: Path, tmp_path: Path, level: int) -> None:
    (tmp_path / "prices").mkdir()
    (tmp_path / "news").mkdir()
    for symbol in ("COST", "GOOG"):
        text = prices_text(rows_of(asyncio.run(MARKET.history("ORVL")))[-300:])
        (tmp_path / "prices" / f"{symbol}.csv").write_text(text)
    empty = dict.fromkeys(("time", "headline", "source", "sentiment"))
    told = [empty | {"date": "2025-03-20", "summary": line} for line in TOLD.splitlines()]
    (tmp_path / "news" / "COST.jsonl").write_text("\n".join(map(json.dumps, told)))
    with fake_llm_server(Reader()) as server:
        (paperdesk_home / "own.toml").write_text(NEAR.format(server.openai_url, "false"), encoding="utf-8")
        window = ("--symbols", "COST,GOOG", "--data", str(tmp_path), "--from", "2025-03-21", "--to", "2025-03-21")
        flags = ("--preset", "finvision", "--model", "near:m1", "--yes", "--mask", str(level), "--json")
        done = run("--config", str(paperdesk_home / "own.toml"), "backtest", *window, *flags)
    assert done.code == 0, done.err
    (news,) = {
        text[text.index("- ") :]
        for body in server.requests
        for text in re.findall(r"<<<\w*news\w*\n(.*?)>>>", asked(body), re.DOTALL)
        if "billion" in text
    }
    for kind, found in HIDDEN.items():
        leaked = [one for one in found if re.search(rf"(?<![\w.,/-]){re.escape(one)}(?![\w%]|[.,/]\d)", news)]
        assert bool(leaked) is (kind > level), (kind, leaked, news)
    (reason,) = (one["reason"] for one in done.json["decisions"] if one["symbol"] == "COST")
    assert "31/12/2020" in reason, "01/04/2049 may be read in two ways"
    assert all(one in news for one in ("4.1% to $53.38 billion", "12 new warehouses", "a $25,000 fine")), (
        "what tells of no price stays"
    )
    classes = re.search(r"(\w+) \((\w+), (\w+)\) rose .*, (\w+) said", news)
    assert classes is not None and classes[2] == "ASSET2" and classes[3].startswith("Ticker")
    assert level == 1 or classes[1] == classes[4] == "Company2", "a company has one word, each of its tickers its own"


def test_flags_that_mean_nothing(run: Run, paperdesk_home: Path) -> None:
    assert run("backtest", *WINDOW, "--mask", "5").code == 2
    assert run("backtest", *WINDOW, "--mask", "1", "--strategy", "macd").code == 2
    assert run("audit", *WINDOW, "--mask", "0,4").code == 2
