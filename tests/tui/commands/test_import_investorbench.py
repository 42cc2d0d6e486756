"""A file of the shape of InvestorBench's own, made up here, is imported as it is, and decided on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from engine.market.trading_hours import exchange_calendar
from tests.tui.commands.conftest import Run

DAYS = [str(day) for day in exchange_calendar("XNYS").sessions(date(2024, 2, 1), date(2024, 4, 30))]
BEAT = "Quillfeather Co. beat every estimate and raised its guidance for the year. (Sentiment: positive)"
SUED = "quillfeather is sued over its inks by three printers. (sentiment:negative)"
PLAIN = "Quillfeather opens a shop."
TEXTS: Mapping[str, Mapping[str, list[object]]] = {
    DAYS[20]: {"10k": ["For the fiscal year Quillfeather had revenue of 412 million dollars, up 9 percent."]},
    DAYS[30]: {"10q": ["For the quarter Quillfeather had revenue of 108 million dollars, up 4 percent."]},
    DAYS[45]: {"news": [BEAT, SUED]},
    DAYS[46]: {"news": [PLAIN]},
}


def file_of(folder: Path, texts: Mapping[str, Mapping[str, list[object]]] = TEXTS) -> Path:
    empty: Mapping[str, list[object]] = {"news": [], "10k": [], "10q": []}
    days = {day: {"prices": 40 + n % 7 + 0.25, **empty, **texts.get(day, {})} for n, day in enumerate(DAYS)}
    file = folder / "qfc.json"
    file.write_text(json.dumps(days, indent=4))
    return file


def test_its_bars_news_and_filings_are_imported_and_decided_on(run: Run, tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    brought = run(
        "import", "prices,news,filings", str(file_of(tmp_path)), "--symbol", "QFC", "--data", data, "--json"
    ).json
    assert [one["added"] for one in brought["files"]] == [len(DAYS), 3, 2]
    assert len(brought["notes"]) == 1 and "adj_close" in brought["notes"][0]
    bars = (tmp_path / "data/prices/QFC.csv").read_text().splitlines()
    assert bars[1] == f"{DAYS[0]},40.25,40.25,40.25,40.25,40.25," and len(bars) == len(DAYS) + 1
    news = [json.loads(line) for line in (tmp_path / "data/news/QFC.jsonl").read_text().splitlines()]
    assert [(one["date"], one["summary"], one["sentiment"]) for one in news] == [
        (DAYS[45], BEAT, "positive"),
        (DAYS[45], SUED, "negative"),
        (DAYS[46], PLAIN, None),
    ]
    filings = [json.loads(line) for line in (tmp_path / "data/filings/QFC.jsonl").read_text().splitlines()]
    assert [(one["date"], one["form"]) for one in filings] == [(DAYS[20], "10-K"), (DAYS[30], "10-Q")]

    window = ("--data", data, "--symbols", "QFC", "--from", DAYS[44], "--to", DAYS[48])
    made = run("backtest", "--preset", "finmem", *window, "--json").json["run"]
    asked = run("why", "QFC", DAYS[45], "--run", made, "--json").json["decisions"][0]["answers"]
    questions = [message["text"] for answer in asked for message in answer["messages"]]
    assert any("beat every estimate" in text for text in questions) and not any(PLAIN in text for text in questions)
    kept = run("memory", "list", "--session", DAYS[46], "--run", made, "--json").json["memories"]
    born = {(one["kind"], one["session"]) for one in kept}
    assert {("10-K", DAYS[20]), ("10-Q", DAYS[30]), ("news", DAYS[45]), ("news", DAYS[46])} <= born

    again = run(
        "import", "prices,news,filings", str(file_of(tmp_path)), "--symbol", "QFC", "--data", data, "--json"
    ).json
    assert [(one["added"], one["unchanged"]) for one in again["files"]] == [(0, len(DAYS)), (0, 3), (0, 2)]


def test_prices_beside_a_high_and_a_low_are_closes_without_an_open(run: Run, tmp_path: Path) -> None:
    file, data = tmp_path / "qfc.csv", tmp_path / "data"
    file.write_text(f"date,prices,high,low,adj_close,volume\n{DAYS[0]},40,41,39,20,1000\n")
    refused = run("import", "prices", str(file), "--symbol", "QFC", "--data", str(data))
    assert refused.code == 65 and "no column of open" in refused.err and not data.exists()


def test_entries_that_are_no_texts_are_counted_and_a_kind_without_rows_is_noted(run: Run, tmp_path: Path) -> None:
    file = file_of(tmp_path, {DAYS[45]: {"news": [{"title": "Quillfeather"}, PLAIN, 7]}})
    asked = ("import", "prices,news,filings", str(file), "--symbol", "QFC", "--data", str(tmp_path / "data"), "--json")
    brought = run(*asked).json
    assert [one["added"] for one in brought["files"]] == [len(DAYS), 1]
    assert [(one["reason"], one["count"]) for one in brought["files"][1]["dropped"]] == [("no text", 2)]
    assert any("no row of filings" in note for note in brought["notes"])
    assert not any("dividend" in note for note in brought["notes"])
    alone = run(*asked[:1], "filings", *asked[2:])
    assert alone.code == 65 and "no row of filings" in alone.err
