"""`paperdesk import` on the inputs from the field (../shared/field/README.md): each gives the result of its row."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tui.commands.conftest import Run, Said

HEAD = "Date,Open,High,Low,Close,Volume"
BARS = "2025-01-02,188.5,190.5,187,189.2,41000000"

Field = Callable[..., Said]


@pytest.fixture
def field(run: Run, fresh: Path, tmp_path: Path, real_data: Path) -> Field:
    """Imports a file from the field; the test is skipped where there is none."""
    folder = real_data.parent / "field" / "data"
    if not folder.is_dir():
        pytest.skip(f"no inputs from the field: {folder} is not a folder")

    def called(kinds: str, name: str, *more: str) -> Said:
        return run("import", kinds, str(folder / name), "--data", str(tmp_path / "data"), "--json", *more)

    return called


def stored(folder: Path, kind: str, symbol: str) -> list[str]:
    return (folder / "data" / kind / f"{symbol}.csv").read_text().splitlines()[1:]


def items(folder: Path, symbol: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (folder / "data" / "news" / f"{symbol}.jsonl").read_text().splitlines()]


MAPPED = [
    f"--map={pair}" for pair in ("date=日期", "open=开盘", "close=收盘", "high=最高", "low=最低", "volume=成交量")
]


@pytest.mark.parametrize(
    ("name", "symbol", "more", "count", "first"),
    [
        ("nasdaq-com.csv", "AAPL", ("--symbol", "AAPL"), 5, "2025-01-02,188.5,190.5,187,189.2,,41000000"),
        ("thousands-quoted.csv", "AAPL", ("--symbol", "AAPL"), 5, "2025-01-02,1885,1905,1870,1892,,41000000"),
        ("chinese-headers.csv", "600519.SS", ("--symbol", "600519.SS"), 4, "2025-01-02,1500,1510,1490,1505,"),
        ("chinese-headers.csv", "600519.SS", ("--symbol", "600519.SS", *MAPPED), 4, "2025-01-02,1500,1510,1490,1505,"),
        ("stooq-bulk.txt", "AAPL", (), 5, "2025-01-02,188.5,190.5,187,189.2,,41000000"),
        ("stooq-bulk.txt", "AAPL", ("--symbol", "AAPL"), 5, "2025-01-02,188.5,190.5,187,189.2,,41000000"),
        ("url-line-first.csv", "BTC-USDT", ("--symbol", "BTC-USDT"), 5, "2025-01-01,93400.01,94400.5,92400.2,93900.9,"),
        ("last-row-twice.csv", "MSFT", ("--symbol", "MSFT"), 5, "2025-01-02,188.5,190.5,187,189.2,189.2,41000000"),
        ("last-row-empty.csv", "MSFT", ("--symbol", "MSFT"), 4, "2025-01-02,188.5,190.5,187,189.2,189.2,41000000"),
        ("yahoo-chart.json", "AAPL", (), 5, "2025-01-02,188.5,190.5,187,189.2,189.1,41000000"),
    ],
)
def test_bars_from_the_field(
    field: Field, tmp_path: Path, name: str, symbol: str, more: tuple[str, ...], count: int, first: str
) -> None:
    said = field("prices", name, *more)
    assert said.code == 0, said.err
    rows = stored(tmp_path, "prices", symbol)
    assert len(rows) == count and rows[0].startswith(first)
    notes = " ".join(said.json["notes"])
    told = {"url-line-first.csv": "www.example-download.com", "last-row-twice.csv": "2025-01-08"}
    told["last-row-empty.csv"] = "2025-01-08"
    assert told.get(name, "") in notes


def test_a_dividend_from_the_field(field: Field, tmp_path: Path) -> None:
    assert field("prices,actions", "ex-dividend-column.csv", "--symbol", "AAPL").code == 0
    assert stored(tmp_path, "actions", "AAPL") == ["2025-01-06,dividend,0.25"]


@pytest.mark.parametrize(
    ("kind", "name", "symbol", "words"),
    [
        ("prices", "no-header.csv", "BTC-USDT", "has no header"),
        ("prices", "vendor-limit.csv", "AAPL", "Exceeded the daily hits limit"),
        ("prices", "vendor-limit.json", "AAPL", "This key is limited to 25 requests a day; the limit is reached."),
        ("news", "news-all-dropped.json", "AAPL", "seendate"),
    ],
)
def test_what_is_refused_of_the_field(
    field: Field, tmp_path: Path, kind: str, name: str, symbol: str, words: str
) -> None:
    said = field(kind, name, "--symbol", symbol)
    assert (said.code, said.err.count("\n")) == (65, 1) and words in said.err
    assert not (tmp_path / "data").exists()


def test_news_from_the_field(field: Field, tmp_path: Path) -> None:
    assert field("news", "news-symbols-in-objects.json", "--symbol", "AAPL", "--tz", "UTC").code == 0
    assert [one["sentiment"] for one in items(tmp_path, "AAPL")] == ["Bullish"]
    assert field("news", "news-symbols-in-objects.json", "--tz", "UTC").json["added"] == 2
    assert [one["sentiment"] for one in items(tmp_path, "MSFT")] == ["Neutral", "Bearish"]
    chosen = ("--map", "headline=Article_title", "--map", "symbol=Stock_symbol")
    assert field("news", "news-utc-word.csv", *chosen).code == 0
    assert [one["date"] for one in items(tmp_path, "AAPL")[1:]] == ["2023-12-15T23:00:00Z", "2023-12-16T00:00:00Z"]
    assert field("news", "news-markup.json").json["added"] == 2
    assert [items(tmp_path, symbol)[-1]["summary"] for symbol in ("AAPL", "MSFT")] == ["Body & more"] * 2


# The options, on files of our own


def test_a_trial_shows_what_a_file_is_taken_for_and_writes_nothing(run: Run, fresh: Path, tmp_path: Path) -> None:
    file = tmp_path / "kurse.csv"
    file.write_text("Datum;Erster;Hoch;Tief;Schluss;Neu\n15.01.2025;1,5;2,0;1,0;1,5;x\n", encoding="utf-8")
    at = ("import", "prices", str(file), "--symbol", "SAP.DE", "--data", str(tmp_path / "data"), "--dry-run")
    said = run(*at)
    assert said.code == 0 and not (tmp_path / "data").exists()
    for word in ("close = Schluss", "not read: Neu", "decimal comma", "dates dmy", "nothing was written"):
        assert word in said.out, said.out
    document = run(*at, "--json").json
    assert (document["written"], document["taken_for"][0]["dates"], document["added"]) == (False, "dmy", 1)


def test_what_the_file_does_not_tell_is_said_with_options(run: Run, fresh: Path, tmp_path: Path) -> None:
    file, folder = tmp_path / "bars.csv", tmp_path / "data"
    file.write_text('02/04/2025,"1,885","1,905","1,870","1,892"\n', encoding="utf-8")
    columns = [f"--map={pair}" for pair in ("date=1", "open=2", "high=3", "low=4", "close=5")]
    at = ("import", "prices", str(file), "--symbol", "AAPL", "--data", str(folder), *columns)
    assert "--decimal" in run(*at, "--header", "no").err
    assert "--dates" in run(*at, "--header", "no", "--decimal", "point").err
    said = run(*at, "--header", "no", "--decimal", "point", "--dates", "dmy")
    assert said.code == 0, said.err
    assert (folder / "prices" / "AAPL.csv").read_text().splitlines()[1] == "2025-04-02,1885,1905,1870,1892,,"
    again = run(*at, "--header", "no", "--decimal", "point", "--dates", "dmy", "--json")
    assert (again.code, again.json["unchanged"]) == (0, 1)
