"""Imports into the data folder: other people's columns, every bad row named, nothing lost."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from connectors.files.import_files import import_file
from connectors.files.market import FilesMarket
from engine.domain.fetched import FileImport, Imported
from engine.domain.market import parse_symbol
from engine.errors import DataError, MalformedData, MissingData, UsageError
from engine.market import trading_hours
from engine.settings.places import write_whole
from tests.connectors.weekdays import calendar_for
from tests.examples import examples

YAHOO = (
    "Date,Open,High,Low,Close,Adj Close,Volume,Dividends,Stock Splits\n"
    "2024-03-05 00:00:00-05:00,10.5,11,10,10.75,10.7,2000,0.0,0.0\n"
    "2024-03-04 00:00:00-05:00,10,11,9.5,10.25,10.2,1000,0.25,4.0\n"
)


NOW = datetime(2026, 11, 23, tzinfo=UTC)


def imported(kind: str, file: Path, folder: Path, symbol: str) -> Imported:
    """One kind of data of one symbol, imported."""
    request = FileImport(kinds=(kind,), file=file, folder=folder, symbols=(symbol,))
    [done] = import_file(request, trading_hours.calendar_for, NOW).files
    return done


IMPORTERS = {kind: partial(imported, kind) for kind in ("prices", "actions", "news", "filings")}
import_prices, import_actions, import_news, import_filings = IMPORTERS.values()


def source(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


async def test_prices_come_from_vendor_columns_in_any_order(tmp_path: Path) -> None:
    done = import_prices(source(tmp_path, "yahoo.csv", YAHOO), tmp_path / "data", "abc")
    assert (done.added, done.replaced, done.unchanged) == (2, 0, 0)
    assert done.path == tmp_path / "data" / "prices" / "ABC.csv"
    first, second = await FilesMarket(tmp_path / "data", calendar_for).history("ABC")
    assert (str(first.session), first.adj_close, first.volume) == ("2024-03-04", Decimal("10.2"), 1000)
    assert (str(second.session), second.close) == ("2024-03-05", Decimal("10.75"))


async def test_actions_come_from_the_same_file(tmp_path: Path) -> None:
    done = import_actions(source(tmp_path, "yahoo.csv", YAHOO), tmp_path / "data", "ABC")
    assert done.added == 2
    actions = await FilesMarket(tmp_path / "data", calendar_for).actions("ABC")
    assert actions is not None
    assert [(str(a.ex_date), a.kind.value, a.value) for a in actions] == [
        ("2024-03-04", "dividend", Decimal("0.25")),
        ("2024-03-04", "split", Decimal(4)),
    ]


async def test_actions_come_from_rows_too_and_a_quiet_file_says_there_were_none(tmp_path: Path) -> None:
    rows = "Ex-Date,Type,Amount\n2024-03-04,Split,3:2\n2024-03-01,DIVIDEND,0.1\n"
    import_actions(source(tmp_path, "acts.csv", rows), tmp_path / "data", "ABC")
    quiet = "Date,Dividends,Stock Splits\n2024-03-04,0,0\n2024-03-05,,\n"
    import_actions(source(tmp_path, "quiet.csv", quiet), tmp_path / "data", "DEF")
    market = FilesMarket(tmp_path / "data", calendar_for)
    assert [a.value for a in await market.actions("ABC") or ()] == [Decimal("0.1"), Decimal("1.5")]
    assert await market.actions("DEF") == ()


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_second_import_changes_not_one_byte(tmp_path: Path, kind: str) -> None:
    rows = [{"t": "2024-03-04T05:00:00Z", "o": 10, "h": 11.5, "l": 9, "c": 10.1, "v": 5}]
    text = YAHOO if kind == "csv" else "\n".join(map(json.dumps, rows))
    file = source(tmp_path, f"bars.{kind}", text)
    first = import_prices(file, tmp_path / "data", "ABC")
    before = first.path.read_bytes()
    again = import_prices(file, tmp_path / "data", "ABC")
    assert (again.added, again.replaced, again.unchanged) == (0, 0, first.added)
    assert again.path.read_bytes() == before


def test_new_bars_join_the_old_and_replace_those_of_their_dates(tmp_path: Path) -> None:
    import_prices(source(tmp_path, "yahoo.csv", YAHOO), tmp_path / "data", "ABC")
    rows = "date,open,high,low,close\n2024-03-05,10.5,12,10,11.5\n2024-03-06,11,12,11,12\n"
    done = import_prices(source(tmp_path, "more.csv", rows), tmp_path / "data", "ABC")
    assert (done.added, done.replaced, done.unchanged) == (1, 1, 0)
    assert done.path.read_text().splitlines() == [
        "date,open,high,low,close,adj_close,volume",
        "2024-03-04,10,11,9.5,10.25,10.2,1000",
        "2024-03-05,10.5,12,10,11.5,,",
        "2024-03-06,11,12,11,12,,",
    ]


def test_every_bad_row_is_counted_and_the_folder_stays_as_it_was(tmp_path: Path) -> None:
    done = import_prices(source(tmp_path, "yahoo.csv", YAHOO), tmp_path / "data", "ABC")
    before = done.path.read_bytes()
    rows = (
        "date,open,high,low,close\n2024-03-06,11,12,11,12\n2024-03-07,11,10,11,12\nyesterday,1,1,1,1\n"
        "2024-03-08,1,1\n2024-03-06,11,12,11,12\n2024-03-11,x,1,1,1\n"
    )
    bad = source(tmp_path, "bad.csv", rows)
    with pytest.raises(MalformedData) as caught:
        import_prices(bad, tmp_path / "data", "ABC")
    message = str(caught.value)
    assert message.startswith(f"{bad}: 4 bad rows, nothing was imported: line 3: high 10 is below low 11")
    assert "line 4: 'yesterday' is not a date" in message
    assert message.endswith("; and 1 more")
    assert re.findall(r"line (\d)", message) == ["3", "4", "5"], "in the order of the file"
    assert done.path.read_bytes() == before
    assert [path.name for path in done.path.parent.iterdir()] == ["ABC.csv"]


def test_a_folder_with_a_bad_file_is_left_alone(tmp_path: Path) -> None:
    write_whole(tmp_path / "data" / "prices" / "ABC.csv", "date\nbroken\n")
    with pytest.raises(MalformedData, match=r"ABC\.csv, line 1"):
        import_prices(source(tmp_path, "yahoo.csv", YAHOO), tmp_path / "data", "ABC")
    assert (tmp_path / "data" / "prices" / "ABC.csv").read_text() == "date\nbroken\n"


def test_a_crash_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = import_prices(source(tmp_path, "yahoo.csv", YAHOO), tmp_path / "data", "ABC")
    before = done.path.read_bytes()

    def full(part: Path, to: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    rows = "date,open,high,low,close\n2024-03-06,11,12,11,12\n"
    with pytest.raises(DataError, match="No space"):
        import_prices(source(tmp_path, "more.csv", rows), tmp_path / "data", "ABC")
    assert done.path.read_bytes() == before
    assert [path.name for path in done.path.parent.iterdir()] == ["ABC.csv"]


async def test_news_is_added_once_and_old_lines_stay_to_the_letter(tmp_path: Path) -> None:
    old = '{"summary":"first","date":"2024-03-01","odd":  1}\n'
    write_whole(tmp_path / "data" / "news" / "ABC.jsonl", old.removesuffix("\n"))
    rows = [
        {"created_at": "2024-03-05T12:00:00Z", "updated_at": "2024-03-05T13:00:00Z", "title": "T", "body": " b "},
        {"date": "2024-03-01", "summary": "first"},
        {"title": "undated"},
    ]
    file = source(tmp_path, "feed.jsonl", "\n".join(map(json.dumps, rows)))
    done = import_news(file, tmp_path / "data", "ABC")
    assert (done.added, done.unchanged) == (1, 1)
    assert [(drop.reason, drop.count) for drop in done.dropped] == [("no date", 1)]
    assert done.path.read_text().startswith(old)
    before = done.path.read_bytes()
    assert import_news(file, tmp_path / "data", "ABC").added == 0
    assert done.path.read_bytes() == before
    items = (await FilesMarket(tmp_path / "data", calendar_for).news("ABC")).items
    assert [(i.headline, i.summary, i.available_at.isoformat()) for i in items] == [
        (None, "first", "2024-03-01T21:00:00+00:00"),
        ("T", " b ", "2024-03-05T13:00:00+00:00"),
    ]


async def test_news_and_filings_come_from_csv_too(tmp_path: Path) -> None:
    text = 'title,publisher,date,content\n"Two\nlines",Wire,2024-03-05,"a ""b"""\nx,y,soon,z\n'
    with pytest.raises(MalformedData, match="line 4: 'soon' is not a date"):
        import_news(source(tmp_path, "news.csv", text), tmp_path / "data", "ABC")
    import_news(source(tmp_path, "news.csv", text.removesuffix("x,y,soon,z\n")), tmp_path / "data", "ABC")
    filings = "formType,filedAt,acceptanceDateTime,text\n10-K,2024-02-20,2024-02-20T21:05:00Z,good year\n"
    import_filings(source(tmp_path, "filings.csv", filings), tmp_path / "data", "ABC")
    market = FilesMarket(tmp_path / "data", calendar_for)
    [item] = (await market.news("ABC")).items
    assert (item.headline, item.source, item.summary) == ("Two\nlines", "Wire", 'a "b"')
    [filing] = (await market.filings("ABC")).items
    assert (filing.form, filing.available_at.isoformat()) == ("10-K", "2024-02-20T21:05:00+00:00")


@pytest.mark.parametrize("kind", list(IMPORTERS))
def test_every_importer_refuses_what_it_cannot_read(tmp_path: Path, kind: str) -> None:
    run = IMPORTERS[kind]
    with pytest.raises(MissingData, match="no file at"):
        run(tmp_path / "nothing.csv", tmp_path, "ABC")
    with pytest.raises(UsageError, match=r"neither \.csv, \.json, \.jsonl nor \.parquet"):
        run(source(tmp_path, "book.xlsx", "x"), tmp_path, "ABC")
    with pytest.raises(UsageError, match="not a symbol"):
        run(source(tmp_path, "a.csv", "date\n"), tmp_path, "../ABC")
    with pytest.raises(MalformedData, match="line 1: the file is empty"):
        run(source(tmp_path, "empty.csv", ""), tmp_path, "ABC")
    with pytest.raises(MalformedData, match="line 1"):
        run(source(tmp_path, "bad.jsonl", "{oops\n"), tmp_path, "ABC")


def test_symbols_are_written_as_the_folder_names_them() -> None:
    assert [parse_symbol(text) for text in ("btc/usd", " brk.b ", "^GSPC")] == ["BTC-USD", "BRK.B", "^GSPC"]


def test_parquet_is_read_or_says_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "bars.parquet"
    path.write_bytes(b"PAR1")
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        with pytest.raises(UsageError, match="needs pyarrow"):
            import_prices(path, tmp_path, "ABC")
        return
    with pytest.raises(MalformedData, match="not a Parquet file"):
        import_prices(path, tmp_path, "ABC")
    columns = {"Date": ["2024-03-04"], "Open": [1.5], "High": [2.0], "Low": [1.0], "Close": [1.25], "Volume": [None]}
    parquet.write_table(arrow.table(columns), path)
    done = import_prices(path, tmp_path / "data", "ABC")
    assert done.path.read_text().splitlines()[1] == "2024-03-04,1.5,2,1,1.25,,"


def test_the_real_files_pass_through_an_import_unchanged(tmp_path: Path, real_data: Path) -> None:
    for kind, name in (("prices", "NIO.csv"), ("news", "HON.jsonl"), ("filings", "HON.jsonl")):
        original = real_data / kind / name
        done = IMPORTERS[kind](original, tmp_path, original.stem)
        assert done.added > 3
        assert not done.dropped
        assert IMPORTERS[kind](original, tmp_path, original.stem).added == 0


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["2024-01-02", "20240102", "1704171600000", "9999-12-31T23:59:59+14:00", "1e400", "AAA", "1,5"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["bars", "data", "results", "fields", "items", "t", "o", "h", "l", "c", "date", "symbol"])
            | st.sampled_from(["headline", "created", "updated", "time", "split_from", "split_to", "dividend", "AAA"])
            | st.sampled_from(["columns", "index", "timestamp", "quote", "events", "dividends", "stocks", "name"])
            | st.text(max_size=4),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)


@given(value=VALUES, kind=st.sampled_from(["prices", "actions", "news", "filings"]))
@examples(100, suppress_health_check=list(HealthCheck))
def test_no_json_ends_as_a_bug(tmp_path: Path, value: Any, kind: str) -> None:
    file = source(tmp_path, "any.json", json.dumps(value))
    for symbols in ((), ("AAA",)):
        request = FileImport(kinds=(kind,), file=file, folder=tmp_path / "any", symbols=symbols)
        with suppress(UsageError, MalformedData, MissingData):
            import_file(request, trading_hours.calendar_for, NOW)


@given(
    cells=st.lists(
        st.lists(
            st.text(max_size=8)
            | st.sampled_from(
                ["date", "close", "open", "high", "low", "t", "2024-01-02", "1,5", "Price", "Ticker", ""]
            ),
            max_size=6,
        ),
        max_size=6,
    ),
    mark=st.sampled_from([",", ";", "\t"]),
)
@examples(100, suppress_health_check=list(HealthCheck))
def test_no_table_ends_as_a_bug(tmp_path: Path, cells: list[list[str]], mark: str) -> None:
    text = "\n".join(mark.join(row) for row in cells)
    file = tmp_path / "any.csv"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(UsageError, MalformedData, MissingData):
        import_prices(file, tmp_path / "any", "AAA")
