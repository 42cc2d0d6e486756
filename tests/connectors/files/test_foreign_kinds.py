"""Imports of files as they lie about: dates and numbers in any writing, columns in any script, symbols of any vendor,
junk around a table, answers without data. Each is imported, and the data folder read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from connectors.files.foreign_file import Numerals
from connectors.files.import_files import import_file
from engine.domain.fetched import FileImport, ImportResult
from engine.errors import MalformedData, MissingData, PaperdeskError, UsageError
from engine.market import trading_hours

NOW = datetime(2026, 11, 23, tzinfo=UTC)
HEAD = "Date,Open,High,Low,Close,Volume"
PRICES = "188.5,190,187,189,41000"

Bring = Callable[..., ImportResult]


@pytest.fixture
def bring(tmp_path: Path) -> Bring:
    """Imports a file with this content into the folder `data`."""

    def called(content: Any, *symbols: str, name: str = "file.csv", kinds: str = "prices", **more: Any) -> ImportResult:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        request = FileImport(
            kinds=tuple(kinds.split(",")), file=path, folder=tmp_path / "data", symbols=symbols, **more
        )
        return import_file(request, trading_hours.calendar_for, NOW)

    return called


def rows(folder: Path, kind: str = "prices", symbol: str = "AAPL") -> list[str]:
    return (folder / "data" / kind / f"{symbol}.csv").read_text().splitlines()[1:]


def news(folder: Path, symbol: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "data" / "news" / f"{symbol}.jsonl").read_text().splitlines()]


def refused(bring: Bring, content: Any, *symbols: str, **more: Any) -> PaperdeskError:
    """The error of an import that writes nothing and is one line."""
    with pytest.raises(PaperdeskError) as caught:
        bring(content, *symbols, **more)
    assert "\n" not in str(caught.value)
    return caught.value


# Dates


@pytest.mark.parametrize(
    ("written", "days"),
    [
        (("1/2/2025", "1/15/2025"), ("2025-01-02", "2025-01-15")),
        (("02/01/2025", "15/01/2025"), ("2025-01-02", "2025-01-15")),
        (("02.01.2025", "15.01.2025"), ("2025-01-02", "2025-01-15")),
        (("02-01-25", "15-01-25"), ("2025-01-02", "2025-01-15")),
        (("01/02/2025", "01/03/2025", "01/06/2025"), ("2025-01-02", "2025-01-03", "2025-01-06")),
        (("02/01/2025", "03/01/2025", "06/01/2025"), ("2025-01-02", "2025-01-03", "2025-01-06")),
        (("25-01-02", "25-01-03"), ("2025-01-02", "2025-01-03")),
        (("2025/1/2", "2025.01.03"), ("2025-01-02", "2025-01-03")),
        (("02-Jan-25", "3 January 2025"), ("2025-01-02", "2025-01-03")),
        (('"Jan 2, 2025"', '"Fri, Jan 03, 2025"'), ("2025-01-02", "2025-01-03")),
        (("2. Januar 2025", "3. März 2025"), ("2025-01-02", "2025-03-03")),
        (("2 de enero de 2025", "3 févr. 2025"), ("2025-01-02", "2025-02-03")),
        (("2025年1月2日", "2025年01月03日"), ("2025-01-02", "2025-01-03")),
        (("114/01/02", "114/01/03"), ("2025-01-02", "2025-01-03")),
        (("45659", "45660"), ("2025-01-02", "2025-01-03")),
        (("01/02/2025 4:00 PM ET", "01/15/2025 04:00:00 PM EST"), ("2025-01-02", "2025-01-15")),
        (("1/2/2025 0:00", "1/15/2025 12:00:00 AM"), ("2025-01-02", "2025-01-15")),
        (("2025-01-02 21:00:00 UTC", "2025-01-03T16:00:00-05:00"), ("2025-01-02", "2025-01-03")),
    ],
)
def test_a_date_is_read_in_the_one_order_that_fits_all_rows(
    bring: Bring, tmp_path: Path, written: Sequence[str], days: Sequence[str]
) -> None:
    bring("\n".join((HEAD, *(f"{day},{PRICES}" for day in written))), "AAPL")
    assert [line[:10] for line in rows(tmp_path)] == list(days)


def test_an_order_that_nothing_tells_is_asked_for(bring: Bring, tmp_path: Path) -> None:
    text = f"{HEAD}\n02/04/2025,{PRICES}\n03/04/2025,{PRICES}\n"  # February and March, or April twice
    said = refused(bring, text, "AAPL")
    assert isinstance(said, MalformedData) and "--dates mdy" in str(said) and "line 2" in str(said)
    done = bring(text, "AAPL", dates="dmy")
    assert [line[:10] for line in rows(tmp_path)] == ["2025-04-02", "2025-04-03"]
    assert done.taken[0].dates == "dmy"
    coin = f"{HEAD}\n01/02/2025,{PRICES}\n01/03/2025,{PRICES}\n"
    assert "--dates" in str(refused(bring, coin, "BTC-USD")), "every day is a session of a coin"
    item = [{"title": "Up", "date": "01/02/2025"}]
    assert "--dates" in str(refused(bring, item, "AAPL", name="news.json", kinds="news"))


def test_a_said_order_that_does_not_fit_is_told_by_row(bring: Bring) -> None:
    said = refused(bring, f"{HEAD}\n13/01/2025,{PRICES}\n14/01/2025,{PRICES}\n", "AAPL", dates="mdy")
    assert "'13/01/2025' is not a date" in str(said)


# Numbers


@pytest.mark.parametrize(
    ("cell", "decimal", "number"),
    [
        ("$1,885.00", ".", "1885.00"),
        ("1.885,00 €", ",", "1885.00"),
        ("1 885,50", ",", "1885.50"),
        ("1\u202f885.5", ".", "1885.5"),
        ("1'885.50", ".", "1885.50"),
        ("1\u2019885\u2019000", ".", "1885000"),
        ("18,85,000.25", ".", "1885000.25"),
        ("US$ 12.5", ".", "12.5"),
        ("USD 12.5", ".", "12.5"),
        ("12.5 CHF", ".", "12.5"),
        ("41.00M", ".", "41000000"),
        ("41,5 Mio.", ",", "41500000"),
        ("1.2B", ".", "1200000000"),
        ("3.4k", ".", "3400"),
        ("4.1万", ".", "41000"),
        ("1.2亿", ".", "120000000"),
        ("(1,234.5)", ".", "-1234.5"),
        ("\u22125", ".", "-5"),
        ("-$5", ".", "-5"),
        ("4.5e9", ".", "4.5e9"),
        ("0.5%", ".", "0.5"),
        ("１２.５", ".", "12.5"),
        *((blank, ".", "") for blank in ("-", "--", "\u2014", "N/A", "n/a", "#N/A", "null", "None", "nan", "NaN", " ")),
        *((text, ".", text) for text in ("12,34", "1,2,3", "1.2.3", "12 3", "abc", "1_000", "12x")),
    ],
)
def test_a_number_is_read_as_people_write_it_and_what_is_none_is_left(cell: str, decimal: str, number: str) -> None:
    assert Numerals(decimal).plain(cell) == number


def test_the_decimal_mark_is_that_of_the_file(bring: Bring, tmp_path: Path) -> None:
    comma = "Datum;Erster;Hoch;Tief;Schluss;Volumen\n02.01.2025;188,50;1.190,00;187;189,125;41.000.000\n"
    done = bring(comma.replace("1.190", "190"), "SAP.DE", name="kurse.csv")
    assert rows(tmp_path, symbol="SAP.DE") == ["2025-01-02,188.5,190,187,189.125,,41000000"]
    assert done.taken[0].decimal == "comma"
    bring(f'{HEAD}\n2025-01-02,"$1,885.00","1,905","1,870","1,892",41.00M\n', "AAPL")
    assert rows(tmp_path) == ["2025-01-02,1885,1905,1870,1892,,41000000"]
    doubtful = f'{HEAD}\n2025-01-03,"1,885","1,905","1,870","1,892","41,000"\n'
    assert "--decimal" in str(refused(bring, doubtful, "AAPL"))
    points = "Datum;Erster;Hoch;Tief;Schluss\n2025-01-03;1.885;1.905;1.870;1.892\n"
    assert "--decimal" in str(refused(bring, points, "AAPL"))
    bring(doubtful.replace("41,000", "41,000,000"), "TOLD")
    assert rows(tmp_path, symbol="TOLD") == ["2025-01-03,1885,1905,1870,1892,,41000000"]
    bring(doubtful, "AAPL", decimal="point")
    assert rows(tmp_path)[1] == "2025-01-03,1885,1905,1870,1892,,41000"


def test_a_price_in_another_currency_is_refused(bring: Bring, tmp_path: Path) -> None:
    bring(f"{HEAD}\n2025-01-02,188.5p,190p,187p,189p,1\n", "VOD.L")
    assert rows(tmp_path, symbol="VOD.L") == ["2025-01-02,1.885,1.9,1.87,1.89,,1"]
    assert "EUR" in str(refused(bring, f'{HEAD}\n2025-01-02,"€188.5","€190","€187","€189",1\n', "AAPL"))


# Columns


@pytest.mark.parametrize(
    "header",
    [
        "日期,开盘,最高,最低,收盘,成交量",
        "日期,開盤價,最高價,最低價,收盤價,成交股數",
        "日付,始値,高値,安値,終値,出来高",
        "날짜,시가,고가,저가,종가,거래량",
        "Datum,Eröffnung,Hoch,Tief,Schlusskurs,Volumen",
        "Date,Ouv.,Plus Haut,Plus Bas,Dernier,Volume",
        "Fecha,Apertura,Máximo,Mínimo,Último,Volumen",
        "Data,Abertura,Máxima,Mínima,Fechamento,Volume",
        "Дата,Открытие,Макс.,Мин.,Закрытие,Объем",
        "<DATE>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>",
        "Date,Open,High,Low,Close/Last,Vol.",
        "date,1. open,2. high,3. low,4. close,5. volume",
    ],
)
def test_a_column_is_told_by_its_whole_name_in_any_script(bring: Bring, tmp_path: Path, header: str) -> None:
    bring(f"{header}\n2025-01-06,10,12,9,11,300\n", "AAPL")
    assert rows(tmp_path) == ["2025-01-06,10,12,9,11,,300"]


def test_a_chosen_column_is_that_of_the_exact_name(bring: Bring, tmp_path: Path) -> None:
    text = "日期,开盘,开盘参考,收盘,close,Close,最高,最低\n2025-01-06,10,5,11,10.5,11.5,12,9\n"
    columns = {"date": "日期", "open": "开盘", "high": "最高", "low": "最低"}
    bring(text, "600519.SS", columns={**columns, "close": "Close"})
    assert rows(tmp_path, symbol="600519.SS") == ["2025-01-06,10,12,9,11.5,,"]
    with pytest.raises(UsageError, match="no such column"):
        bring(text, "600519.SS", columns={**columns, "close": "收"})
    with pytest.raises(UsageError, match="no such column"):
        bring(text, "600519.SS", columns={"volume": "成交量"})


def test_a_file_without_a_header_is_told_and_its_columns_are_named_by_number(bring: Bring, tmp_path: Path) -> None:
    text = "1735689600000,93000.01,94000.5,92000.2,93500.9,12.5\n1735776000000,93100.01,94100.5,92100.2,93600.9,12.5\n"
    said = refused(bring, text, "BTC-USDT")
    assert "no header" in str(said) and "--header no" in str(said)
    columns = {"date": "1", "open": "2", "high": "3", "low": "4", "close": "5", "volume": "6"}
    for header in (False, True):
        bring(text, "BTC-USDT", columns=columns, header=header)
        assert rows(tmp_path, symbol="BTC-USDT")[0] == "2025-01-01,93000.01,94000.5,92000.2,93500.9,,12.5"


def test_columns_of_several_lengths_are_no_rows(bring: Bring) -> None:
    refused(
        bring, {"result": [{"open": [1, 2], "close": [1], "date": ["2025-01-06", "2025-01-07"]}]}, "A", name="a.json"
    )


def test_rows_of_cells_in_json_are_named_by_number(bring: Bring, tmp_path: Path) -> None:
    answer = [[1735689600000, "93000.01", "94000.5", "92000.2", "93500.9", "12.5"]]
    assert "--map" in str(refused(bring, answer, "BTC-USDT", name="klines.json"))
    columns = {"date": "1", "open": "2", "high": "3", "low": "4", "close": "5", "volume": "6"}
    bring(answer, "BTC-USDT", name="klines.json", columns=columns)
    assert rows(tmp_path, symbol="BTC-USDT") == ["2025-01-01,93000.01,94000.5,92000.2,93500.9,,12.5"]


@pytest.mark.parametrize(
    ("encoding", "header"), [("cp1252", "Datum;Eröffnung;Hoch;Tief;Schluss"), ("gbk", "日期;开盘;最高;最低;收盘")]
)
def test_a_file_of_excel_in_the_west_or_in_china_is_read(
    bring: Bring, tmp_path: Path, encoding: str, header: str
) -> None:
    done = bring(f"{header}\n2025-01-06;10;12;9;11\n".encode(encoding), "AAPL")
    assert rows(tmp_path) == ["2025-01-06,10,12,9,11,,"] and any("not UTF-8" in note for note in done.notes)


def test_volumes_in_lots_are_told_by_what_was_paid_for_them(bring: Bring, tmp_path: Path) -> None:
    head = "日期,股票代码,开盘,收盘,最高,最低,成交量,成交额\n"
    done = bring(f"{head}2025-01-06,600519,10,10,10,10,300,300000\n", "600519.SS")
    assert rows(tmp_path, symbol="600519.SS") == ["2025-01-06,10,10,10,10,,30000"]
    assert any("lots" in note for note in done.notes)
    bring(f"{head}2025-01-06,000001,10,10,10,10,300,3000\n", "000001.SZ")
    assert rows(tmp_path, symbol="000001.SZ") == ["2025-01-06,10,10,10,10,,300"]


# Symbols


@pytest.mark.parametrize(
    ("written", "symbol"),
    [
        *(
            (name, "AAPL")
            for name in ("AAPL.US", "aapl.us", "US.AAPL", "NASDAQ:AAPL", "AAPL.O", "AAPL US Equity", "$AAPL")
        ),
        *((name, "600519.SS") for name in ("sh600519", "sh.600519", "600519.SH", "600519.XSHG", "SSE:600519")),
        *((name, "000001.SZ") for name in ("sz000001", "sz.000001", "000001.XSHE", "SZSE:000001")),
        *((name, "SAP.DE") for name in ("SAP.XETRA", "ETR:SAP", "XETR:SAP", "SAP.DEX", "SAP GY")),
        *((name, "0700.HK") for name in ("700.HK", "00700.HK", "HK.00700", "HKEX:700")),
        *((name, "7203.T") for name in ("7203.JP", "TYO:7203")),
        *((name, "BRK.B") for name in ("BRK-B", "BRK.B", "BRK/B", "BRK B", "BRK.B.US", "NYSE:BRK.B")),
        *((name, "BTC-USD") for name in ("BTCUSD", "BTC/USD", "BTC_USD", "XBTUSD", "X:BTCUSD", "COINBASE:BTCUSD")),
        *((name, "BTC-USDT") for name in ("BTCUSDT", "BINANCE:BTCUSDT", "btc-usdt")),
        ("SAP.F", "SAP.F"),
        ("^GSPC", "^GSPC"),
    ],
)
def test_a_symbol_is_read_as_any_vendor_writes_it(bring: Bring, tmp_path: Path, written: str, symbol: str) -> None:
    text = f"date,ticker,open,high,low,close\n2025-01-06,{written},10,12,9,11\n"
    bring(text)
    assert rows(tmp_path, symbol=symbol) == ["2025-01-06,10,12,9,11,,"]
    bring(text, symbol)
    with pytest.raises(MissingData, match="no row for MSFT"):
        bring(text, "MSFT")


def test_a_wanted_symbol_takes_no_row_of_another_company(bring: Bring, tmp_path: Path) -> None:
    head = "date,{},open,high,low,close\n"
    for column in ("Symbol", "股票代码", "Name", "銘柄コード", "ts_code"):
        text = head.format(column) + "2025-01-06,AAL,1,1,1,1\n2025-01-06,AAPL,10,12,9,11\n2025-01-06,AAPLW,2,2,2,2\n"
        done = bring(text, "AAPL")
        assert rows(tmp_path) == ["2025-01-06,10,12,9,11,,"]
        assert [(one.reason, one.count) for one in done.files[0].dropped] == [("another symbol", 2)]
    same_stem = head.format("symbol") + "2025-01-06,SAP,1,1,1,1\n"
    assert "it has SAP" in str(refused(bring, same_stem, "SAP.DE"))
    bring(head.format("代码") + "2025-01-06,1,1,1,1,1\n", "000001.SZ")
    assert rows(tmp_path, symbol="000001.SZ")
    bring(head.format("Name") + "2025-01-06,A Company Inc.,1,1,1,1\n", "CCC")
    assert rows(tmp_path, symbol="CCC")


def test_both_spellings_of_a_class_are_the_one_that_is_wanted(bring: Bring, tmp_path: Path) -> None:
    bring("date,symbol,open,high,low,close\n2025-01-06,BRK.B,1,1,1,1\n", "BRK-B")
    assert rows(tmp_path, symbol="BRK-B")


def test_a_pair_of_any_coin_is_the_one_that_is_wanted(bring: Bring, tmp_path: Path) -> None:
    head = "date,symbol,open,high,low,close\n2025-01-04,"
    for name in ("PEPEUSDT", "PEPE/USDT", "PEPE"):
        bring(f"{head}{name},1,1,1,1\n", "PEPE-USDT")
        assert rows(tmp_path, symbol="PEPE-USDT")
    assert "PEPEUSDC" in str(refused(bring, f"{head}PEPEUSDC,1,1,1,1\n", "PEPE-USDT"))


def bars(first: float) -> dict[str, Any]:
    return {"o": first, "h": first, "l": first, "c": first, "v": 5}


@pytest.mark.parametrize(
    "answer",
    [
        {"bars": {"AAPL": [{"t": "2025-01-06T05:00:00Z", **bars(10)}], "MSFT": [{"t": "2025-01-06", **bars(20)}]}},
        {"results": [{"T": "AAPL", "t": 1736182800000, **bars(10)}, {"T": "MSFT", "t": 1736182800000, **bars(20)}]},
        {
            "AAPL": {"values": [{"datetime": "2025-01-06", **bars(10)}]},
            "MSFT": {"values": [{"datetime": "2025-01-06", **bars(20)}]},
        },
        {"meta": {"symbol": "AAPL"}, "values": [{"datetime": "2025-01-06", **bars(10)}]},
        {"AAPL": {"symbol": "AAPL", "timestamp": [1736175600], **{name: [10] for name in "ohlc"}, "v": [5]}},
        {"columns": ["Open", "High", "Low", "Close", "v"], "index": [1736121600000], "data": [[10, 10, 10, 10, 5]]},
        {"dataset": {"column_names": ["Date", *"ohlcv"], "data": [["2025-01-06", 10, 10, 10, 10, 5]]}},
        {"datatable": {"columns": [{"name": one} for one in "tohlcv"], "data": [["2025-01-06", 10, 10, 10, 10, 5]]}},
        [["Date", "Open", "High", "Low", "Close", "Volume"], ["2025-01-06", 10, 10, 10, 10, 5]],
        {"t": [1736121600], **{name: [10] for name in "ohlc"}, "v": [5], "s": "ok", "symbol": "AAPL"},
    ],
)
def test_answers_of_services_are_read_in_their_shapes(bring: Bring, tmp_path: Path, answer: Any) -> None:
    bring(answer, *(() if '"AAPL"' in json.dumps(answer) else ("AAPL",)), name="answer.json")
    assert rows(tmp_path) == ["2025-01-06,10,10,10,10,,5"]
    if (tmp_path / "data" / "prices" / "MSFT.csv").exists():
        assert rows(tmp_path, symbol="MSFT") == ["2025-01-06,20,20,20,20,,5"]


@pytest.mark.parametrize(
    "named",
    [
        {"symbols": ["MSFT"]},
        {"tickers": ["msft"]},
        {"related": "MSFT"},
        {"symbols": "MSFT NVDA"},
        {"symbols": "['MSFT', 'NVDA']"},
        {"ticker_sentiment": [{"ticker": "MSFT", "relevance_score": "0.9"}]},
        {"stocks": [{"name": "MSFT"}]},
        {"entities": [{"symbol": "MSFT", "name": "A Company"}]},
        {"insights": [{"ticker": "MSFT"}]},
        {"companies": [{"stock": {"ticker": "MSFT"}}]},
        {"stocks": {"MSFT": {"weight": 1}}},
        {"data": {"instruments": [{"symbol": "MSFT"}]}},
    ],
)
def test_news_of_another_company_stays_out_wherever_it_is_named(bring: Bring, tmp_path: Path, named: Any) -> None:
    item = {"title": "Up", "published_at": "2025-01-06T14:00:00Z", **named}
    both = {"title": "Both", "published_at": "2025-01-06T15:00:00Z", "symbols": ["AAPL", "MSFT"]}
    done = bring([item, both], "AAPL", name="news.json", kinds="news")
    assert [one["headline"] for one in news(tmp_path, "AAPL")] == ["Both"]
    assert done.files[0].dropped[0].reason == "another symbol"
    bring([item], name="msft.json", kinds="news")
    assert [one["headline"] for one in news(tmp_path, "MSFT")] == ["Up"]


def test_the_sentiment_of_news_is_that_of_the_symbol(bring: Bring, tmp_path: Path) -> None:
    told = [{"ticker": "AAPL", "sentiment": "positive"}, {"ticker": "MSFT", "sentiment": "negative"}]
    item = {
        "title": "Up",
        "published_at": "2025-01-06T14:00:00Z",
        "tickers": ["MSFT", "AAPL", "NVDA"],
        "insights": told,
    }
    bring([{**item, "sentiment": "mixed"}], name="news.json", kinds="news")
    found = {symbol: news(tmp_path, symbol)[0]["sentiment"] for symbol in ("AAPL", "MSFT", "NVDA")}
    assert found == {"AAPL": "positive", "MSFT": "negative", "NVDA": "mixed"}


def test_texts_lose_their_markup_and_others_stay_to_the_letter(bring: Bring, tmp_path: Path) -> None:
    items = [
        {"title": "A &amp; B", "body": "<p>One</p><script>x</script>\n<b>two</b>", "date": "2025-01-06"},
        {"title": "P/E < 5 & up", "body": " as  it\nstands ", "date": "2025-01-06"},
    ]
    bring(items, "AAPL", name="news.json", kinds="news")
    assert [(one["headline"], one["summary"]) for one in news(tmp_path, "AAPL")] == [
        ("A & B", "One two"),
        ("P/E < 5 & up", " as  it\nstands "),
    ]
    assert bring(items, "AAPL", name="news.json", kinds="news").files[0].unchanged == 2


def test_a_whole_moment_may_stand_under_time(bring: Bring, tmp_path: Path) -> None:
    bring("Headlines,Time\nUp,2025-01-06 09:30:00 UTC\n", "AAPL", name="news.csv", kinds="news")
    assert news(tmp_path, "AAPL")[0]["created"] == "2025-01-06T09:30:00Z"


def test_news_that_nobody_is_named_in_is_counted(bring: Bring) -> None:
    items = [{"title": "Up", "date": "2025-01-06", "symbols": named} for named in (["AAPL"], [])]
    done = bring(items, "AAPL", name="news.json", kinds="news")
    assert [(one.reason, one.count) for one in done.files[0].dropped] == [("no symbol", 1)]


# What stands around a table

TABLE = f"{HEAD}\n2025-01-02,{PRICES}\n2025-01-03,{PRICES}\n"


@pytest.mark.parametrize(
    ("content", "passed"),
    [
        (f"www.example.com\n{TABLE}", "www.example.com"),
        (f"AAPL Historical Data\nFrom,2025-01-02\n\n{TABLE}", "AAPL Historical Data"),
        (f"sep=,\n{TABLE}", "sep="),
        ("sep=;\n" + TABLE.replace(",", ";"), "sep="),
        (f"{TABLE},,,,,\n", "blank"),
        (f"{TABLE}Total,,,,,82000\n", "Total"),
        (f"{TABLE}Average,188.5,190,187,189,41000\n", "Average"),
        (f"{TABLE}\nSource: an exchange, delayed\n", "Source"),
        (f"{TABLE}2025-01-03,{PRICES}\n", "repeated"),
        (f"{TABLE}2025-01-06,,,,,\n", "2025-01-06"),
        (f"{TABLE}{HEAD}\n", "in the table"),
        (TABLE.replace(HEAD, f"{HEAD}\n,USD,USD,USD,USD,shares", 1), "USD"),
        (f"{TABLE}{HEAD}\n2025-01-02,{PRICES}\n", "repeated"),
        (b"\xef\xbb\xbf" + TABLE.encode(), ""),
        (TABLE.encode("utf-16"), ""),
        (TABLE.replace(",", "\t"), ""),
        (re.sub("([^,\n]+)", r' "\1"', TABLE), ""),
        (TABLE.replace(",", "|"), ""),
        (TABLE.replace("\n", "\r\n"), ""),
        (TABLE.replace("000\n", "000,\n"), ""),
    ],
)
def test_junk_around_a_table_is_passed_over_with_a_note(
    bring: Bring, tmp_path: Path, content: Any, passed: str
) -> None:
    done = bring(content, "AAPL")
    assert rows(tmp_path) == [f"2025-01-02,{PRICES[:17]},,41000", f"2025-01-03,{PRICES[:17]},,41000"]
    assert bool(passed) is bool(done.notes) and passed in " ".join(done.notes)


def test_a_different_row_of_a_date_is_refused(bring: Bring) -> None:
    assert "appears twice" in str(refused(bring, f"{TABLE}2025-01-03,188.5,190,187,188,41000\n", "AAPL"))


def test_a_saved_page_is_read_by_its_table_and_its_dividends(bring: Bring, tmp_path: Path) -> None:
    cells = "".join(f"<td>{one}</td>" for one in ("Jan 6, 2025", "188", "190", "187", "189", "188.9", "41,000,000"))
    head = "".join(f"<th>{one}</th>" for one in ("Date", "Open", "High", "Low", "Close*", "Adj Close**", "Volume"))
    rest = "<tr><td>Jan 3, 2025</td><td colspan=6><strong>0.25</strong> <span>Dividend</span></td></tr>"
    tables = f"<table><tr><td>menu</td></tr></table><table><tr>{head}</tr><tr>{cells}</tr>{rest}</table>"
    page = f"<!DOCTYPE html><html>{tables}</html>"
    done = bring(page, "AAPL", name="page.html")
    assert rows(tmp_path) == ["2025-01-06,188,190,187,189,188.9,41000000"]
    assert any("Dividends" in note for note in done.notes)
    bring(page, "AAPL", name="page.html", kinds="actions")
    assert rows(tmp_path, "actions") == ["2025-01-03,dividend,0.25"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "Exceeded the daily hits limit", "Exceeded the daily hits limit"),
        ("a.csv", "Thank you for calling, our limit is 25 a day, please pay\n", "our limit is 25 a day"),
        ("a.csv", f"{HEAD}\nThe limit is reached\n", "The limit is reached"),
        ("a.csv", {"Information": "the limit is reached"}, "the limit is reached"),
        ("a.json", {"Note": "five calls a minute"}, "five calls a minute"),
        ("a.json", {"Error Message": "Invalid API call"}, "Invalid API call"),
        ("a.json", {"status": "ERROR", "request_id": "x", "error": "You've exceeded it"}, "You've exceeded it"),
        ("a.json", {"error": "You don't have access"}, "You don't have access"),
        ("a.json", {"detail": "Not found."}, "Not found."),
        ("a.json", {"code": 429, "message": "out of API credits", "status": "error"}, "out of API credits"),
        ("a.json", {"error": {"code": "limit", "message": "monthly limit reached"}}, "monthly limit reached"),
        ("a.json", {"chart": {"result": None, "error": {"description": "No data found"}}}, "No data found"),
        ("a.json", {"s": "no_data"}, "no_data"),
        ("a.json", ["Error: over your limit"], "over your limit"),
        ("a.json", "Too Many Requests", "Too Many Requests"),
        ("a.html", "<html><title>Sign in</title><body><h1>Please sign in</h1></body></html>", "Please sign in"),
        ("a.csv", "<!DOCTYPE html><html><body>Access denied</body></html>", "Access denied"),
    ],
)
def test_an_answer_without_data_is_told_in_its_own_words(bring: Bring, name: str, content: Any, words: str) -> None:
    said = refused(bring, content, "AAPL", name=name)
    assert isinstance(said, MalformedData | MissingData) and words in str(said)


# Money


def test_no_money_is_dropped(bring: Bring, tmp_path: Path) -> None:
    head = f"{HEAD},Dividends,Stock Splits,Capital Gains"
    text = f"{head}\n2025-01-02,{PRICES},0.1,0,0.2\n2025-01-03,{PRICES},0,0,0.3\n2025-01-06,{PRICES},0,0,0\n"
    done = bring(text, "AAPL")
    assert [any(name in note for note in done.notes) for name in ("Dividends", "Capital Gains", "Splits")] == [
        True,
        True,
        False,
    ]
    done = bring(text, "AAPL", kinds="prices,actions")
    assert rows(tmp_path, "actions") == ["2025-01-02,dividend,0.3", "2025-01-03,dividend,0.3"]
    assert not done.notes
    for symbol, column in {
        "DA": "Ex-Dividend",
        "DB": "Special Dividend",
        "DC": "配当",
        "DD": "Return of Capital",
    }.items():
        bring(f"{HEAD},{column}\n2025-01-02,{PRICES},0.25\n2025-01-03,{PRICES},0\n", symbol, kinds="actions")
        assert rows(tmp_path, "actions", symbol) == ["2025-01-02,dividend,0.25"]
    other = f"{HEAD},Dividends,Zusatz,Payout Total\n2025-01-02,{PRICES},0,0.5,1\n2025-01-03,{PRICES},0,0,1\n"
    notes = bring(other, "BBB", kinds="prices,actions").notes
    assert len(notes) == 2 and "Zusatz" in notes[0] and "Payout Total" in notes[1]
    bring(other, "BBB", kinds="prices,actions", columns={"special": "Zusatz"})
    assert rows(tmp_path, "actions", "BBB") == ["2025-01-02,dividend,0.5"]


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("Ex/EFF Date,Type,Cash Amount,Record Date\n01/15/2025,Cash,$0.25,01/16/2025\n", "2025-01-15,dividend,0.25"),
        ("Ex-Date,Type,Amount\n2025-01-15,Special Cash,0.25\n", "2025-01-15,dividend,0.25"),
        ("Ex-Date,Type,Ratio\n2025-01-15,Forward Split,4-for-1\n", "2025-01-15,split,4"),
        ("date,split\n2025-01-15,4.000000/1.000000\n", "2025-01-15,split,4"),
        ("Date,Stock Splits\n2025-01-15,1:20\n", "2025-01-15,split,0.05"),
    ],
)
def test_actions_are_read_as_they_are_called(bring: Bring, tmp_path: Path, text: str, row: str) -> None:
    bring(text, "AAPL", kinds="actions")
    assert rows(tmp_path, "actions") == [row]


def test_a_turnover_is_no_dividend(bring: Bring, tmp_path: Path) -> None:
    text = f"{HEAD},amount\n2025-01-02,{PRICES},5000\n2025-01-03,{PRICES},6000\n"
    assert "no column of dividends" in str(refused(bring, text, "AAPL", kinds="actions"))


# What becomes of it


def test_every_row_dropped_is_refused_with_the_columns_that_there_are(bring: Bring) -> None:
    said = refused(bring, [{"title": "Up", "seendate": "20250102"}], "AAPL", name="news.json", kinds="news")
    assert isinstance(said, MalformedData) and "seendate" in str(said)
    assert "2025" not in str(refused(bring, f"{HEAD}\n2025-01-02,,,,,\n", "AAPL"))


def test_what_a_file_is_taken_for_is_told_and_a_trial_writes_nothing(bring: Bring, tmp_path: Path) -> None:
    text = "Datum;Erster;Hoch;Tief;Schluss;Stück;Neu\n15.01.2025;1,5;2;1;1,5;7;x\n"
    done = bring(text, "SAP.DE", write=False, zone="Europe/Berlin")
    assert not (tmp_path / "data").exists()
    [taken] = done.taken
    assert (taken.dates, taken.decimal, taken.zone, taken.rows, taken.header) == ("dmy", "comma", "Europe/Berlin", 1, 1)
    assert taken.columns["close"] == "Schluss" and taken.unread == ("Neu",)
    assert done.files[0].added == 1
