"""The data folder as it is read: every bad row named, every item known at the right moment."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from connectors.files.market import FilesMarket
from engine.domain.market import ActionKind, CorporateAction
from engine.errors import MalformedData, MissingData
from tests.connectors.weekdays import Weekdays, calendar_for

HEADER = "date,open,high,low,close,adj_close,volume\n"
GOOD = "2024-03-04,10,11,9.5,10.25,10.25,1000\n"


def market_with(folder: Path, name: str, text: str | bytes) -> FilesMarket:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return FilesMarket(folder, calendar_for)


async def test_prices_are_exact_and_blanks_unknown(tmp_path: Path) -> None:
    rows = "2024-03-04,0.1,0.3,0.1,0.2,,\n2024-03-05,101.123456789,102,101,101.5,50.25,35329300\n"
    history = await market_with(tmp_path, "prices/ABC.csv", HEADER + rows).history("ABC")
    first, second = history
    assert (first.open, first.high, first.adj_close, first.volume) == (Decimal("0.1"), Decimal("0.3"), None, None)
    assert (second.open, second.adj_close) == (Decimal("101.123456789"), Decimal("50.25"))
    assert second.volume == 35329300


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("2024-03-05,10,9,9.5,9.2,,", "high 9 is below low 9.5"),
        ("2024-03-05,12,11,9,10,,", "open 12 is not between low 9 and high 11"),
        ("2024-03-05,10,11,9,8.9,,", "close 8.9 is not between low 9"),
        ("2024-03-05,0,11,0,10,,", "open 0 is not a price above zero"),
        ("2024-03-05,-1,11,-2,10,,", "open -1 is not a price"),
        ("2024-03-05,ten,11,9,10,,", "open 'ten' is not a number"),
        ("2024-03-05,10,NaN,9,10,,", "high 'NaN' is not a number"),
        ("2024-03-05,10,1_1,9,10,,", "high '1_1' is not a number"),
        ("2024-03-05,10,,9,10,,", "high '' is not a number"),
        ("2024-03-05,10,1e400,9,10,,", "high 1e400 is not a price"),
        ("2024-03-05,10,11,9,10,0,", "adj_close 0 is not a price"),
        ("2024-03-05,10,11,9,10,,-5", "volume -5 is negative"),
        ("2024-03-05,10,11,9,10,,many", "volume 'many' is not a number"),
        ("2024-03-05,10,11,9,10,", "6 cells, expected 7"),
        ("2024-3-5,10,11,9,10,,", "'2024-3-5' is not a date"),
        ("20240305,10,11,9,10,,", "'20240305' is not a date"),
        ("2024-02-30,10,11,9,10,,", "'2024-02-30' is not a date"),
        ("2024-03-04,10,11,9,10,,", "2024-03-04 appears twice"),
        ("2024-03-01,10,11,9,10,,", "2024-03-01 comes after 2024-03-04"),
    ],
)
async def test_a_bad_row_names_file_and_line(tmp_path: Path, row: str, says: str) -> None:
    market = market_with(tmp_path, "prices/ABC.csv", HEADER + GOOD + row + "\n")
    with pytest.raises(MalformedData) as caught:
        await market.history("ABC")
    message = str(caught.value)
    assert says in message
    assert f"{tmp_path / 'prices' / 'ABC.csv'}, line 3: " in message
    assert "\n" not in message
    assert caught.value.exit_code == 65


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1: the file is empty"),
        (GOOD, "line 1: the columns are 2024-03-04,10"),
        ("Date,Open,High,Low,Close,Adj Close,Volume\n", "`paperdesk import` maps them"),
        (HEADER.encode() + b"2024-03-04,\xff\n", "not UTF-8"),
        (HEADER + '2024-03-04,"10,11\n', "invalid CSV"),
    ],
)
async def test_a_file_that_is_no_price_file_says_so(tmp_path: Path, text: str | bytes, says: str) -> None:
    with pytest.raises(MalformedData, match=says):
        await market_with(tmp_path, "prices/ABC.csv", text).history("ABC")


async def test_a_mark_at_the_start_windows_lines_and_blank_lines_are_read(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf" + (HEADER + GOOD + "\n").replace("\n", "\r\n").encode()
    assert len(await market_with(tmp_path, "prices/ABC.csv", text).history("ABC")) == 1


async def test_what_is_missing_is_said_with_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match=r"no data folder at .*nowhere.*prices/SYMBOL\.csv"):
        await FilesMarket(tmp_path / "nowhere", calendar_for).symbols()
    with pytest.raises(MissingData, match="holds no prices"):
        await FilesMarket(tmp_path, calendar_for).history("ABC")
    market_with(tmp_path, "prices/MSFT.csv", HEADER + GOOD)
    market = market_with(tmp_path, "prices/JNJ.csv", HEADER)
    with pytest.raises(MissingData, match="such as MSFT;"):
        await market.history("MSTF")
    with pytest.raises(MissingData, match="holds no bars"):
        await market.history("JNJ")
    assert await market.actions("MSFT") is None


async def test_actions_are_read_in_order_of_their_date(tmp_path: Path) -> None:
    text = "ex_date,kind,value\n2024-06-10,split,10\n2024-03-05,dividend,0.04\n"
    assert await market_with(tmp_path, "actions/ABC.csv", text).actions("ABC") == (
        CorporateAction("ABC", date(2024, 3, 5), ActionKind.DIVIDEND, Decimal("0.04")),
        CorporateAction("ABC", date(2024, 6, 10), ActionKind.SPLIT, Decimal(10)),
    )
    assert await market_with(tmp_path, "actions/NONE.csv", "ex_date,kind,value\n").actions("NONE") == ()


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("2024-06-10,merger,10", "kind 'merger' is unknown; write split or dividend"),
        ("2024-06-10,split,0", "value 0 is not between"),
        ("2024-06-10,dividend,-1", "value -1 is not between"),
        ("2024-06-10,dividend,1,USD", "4 cells, expected 3"),
        ("2024-03-05,dividend,2", "a second dividend on 2024-03-05"),
    ],
)
async def test_a_bad_action_names_its_line(tmp_path: Path, row: str, says: str) -> None:
    text = f"ex_date,kind,value\n2024-03-05,dividend,0.04\n{row}\n"
    with pytest.raises(MalformedData, match=f"line 3: {says}"):
        await market_with(tmp_path, "actions/ABC.csv", text).actions("ABC")


@pytest.mark.parametrize(
    ("symbol", "fields", "known"),
    [
        # 2024-03-08 is a Friday; shares close at 21:00.
        ("ABC", {"date": "2024-03-08", "time": None}, "2024-03-08T21:00:00+00:00"),
        ("ABC", {"date": "2024-03-09"}, "2024-03-09T23:59:59.999000+00:00"),
        ("BTC-USD", {"date": "2024-03-09"}, "2024-03-10T00:00:00+00:00"),
        ("ABC", {"date": "2024-03-08", "time": "09:15"}, "2024-03-08T09:15:00+00:00"),
        ("ABC", {"date": "2024-03-08", "time": "09:15:30-05:00"}, "2024-03-08T14:15:30+00:00"),
        ("ABC", {"date": "2024-03-08", "time": "2024-03-08T10:00:00Z"}, "2024-03-08T10:00:00+00:00"),
        ("ABC", {"date": "2024-03-08T09:15:00Z"}, "2024-03-08T09:15:00+00:00"),
        (
            "ABC",
            {"date": "2024-03-08", "time": "09:15", "updated": "2024-03-11T08:00:00Z"},
            "2024-03-11T08:00:00+00:00",
        ),
        (
            "ABC",
            {"created_at": "2024-03-08T09:15:00Z", "updated_at": "2024-03-08T09:00:00Z"},
            "2024-03-08T09:15:00+00:00",
        ),
        (
            "ABC",
            {"date": "2024-03-08", "created": "2024-03-08T22:00:00Z", "updated": "2024-03-08T23:30:00+01:00"},
            "2024-03-08T22:30:00+00:00",
        ),
        # Updated in the morning, but who knows when it first came out.
        ("ABC", {"date": "2024-03-08", "updated": "2024-03-08T09:00:00Z"}, "2024-03-08T21:00:00+00:00"),
    ],
)
async def test_news_is_known_from_the_later_of_created_and_updated(
    tmp_path: Path, symbol: str, fields: dict[str, str | None], known: str
) -> None:
    line = json.dumps({**fields, "summary": "text"}) + "\n"
    [item] = (await market_with(tmp_path, f"news/{symbol}.jsonl", line).news(symbol)).items
    assert item.available_at == datetime.fromisoformat(known)
    assert item.date in (date(2024, 3, 8), date(2024, 3, 9))


async def test_a_holiday_reaches_the_next_decision(tmp_path: Path) -> None:
    market_with(tmp_path, "news/ABC.jsonl", '{"date": "2024-07-04", "summary": "fireworks"}\n')
    closed = Weekdays(holidays=frozenset({date(2024, 7, 4)}))
    [item] = (await FilesMarket(tmp_path, lambda _: closed).news("ABC")).items
    assert closed.closes_at(date(2024, 7, 3)) < item.available_at < closed.closes_at(date(2024, 7, 5))


async def test_news_without_a_date_or_text_is_dropped_and_counted(tmp_path: Path) -> None:
    records = [
        {"date": "2024-03-08", "summary": "kept  \n as it is "},
        {"date": None, "time": "09:00", "summary": "when?"},
        {"summary": "when?"},
        {"date": "2024-03-08", "headline": " ", "summary": None},
        {"date": "2024-03-07", "headline": "Only a headline", "source": "X", "sentiment": "positive"},
    ]
    text = "\n".join(json.dumps(record) for record in records)
    batch = await market_with(tmp_path, "news/ABC.jsonl", text).news("ABC")
    assert [(item.headline, item.summary) for item in batch.items] == [
        ("Only a headline", ""),
        (None, "kept  \n as it is "),
    ]
    assert {(drop.source, drop.reason, drop.count) for drop in batch.dropped} == {
        ("news/ABC.jsonl", "no date", 2),
        ("news/ABC.jsonl", "no text", 1),
    }


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"date": "2024-03-08", ', "invalid JSON"),
        ('["2024-03-08"]', "not a JSON object"),
        ('{"date": "2024-13-08", "summary": "x"}', "'2024-13-08' is not a date"),
        ('{"date": "2024-03-08", "time": "9 am", "summary": "x"}', "'9 am' is not a time of day"),
        ('{"date": 20240308, "summary": "x"}', "date is 20240308, which is not text"),
        ('{"date": "2024-03-08", "summary": ["x"]}', "summary is"),
        ('{"date": "2024-03-08", "summary": "\\ud83d"}', "surrogate"),
    ],
)
async def test_a_line_that_cannot_be_read_names_file_and_line(tmp_path: Path, line: str, says: str) -> None:
    text = '{"date": "2024-03-08", "summary": "\\ud83d\\ude00 fine"}\n\n' + line + "\n"
    with pytest.raises(MalformedData) as caught:
        await market_with(tmp_path, "news/ABC.jsonl", text).news("ABC")
    assert f"{tmp_path / 'news' / 'ABC.jsonl'}, line 3: " in str(caught.value)
    assert says in str(caught.value)


async def test_ids_follow_the_content_and_not_the_place(tmp_path: Path) -> None:
    one, two = '{"date": "2024-03-08", "summary": "one"}\n', '{"summary": "two", "date": "2024-03-08"}\n'
    before = (await market_with(tmp_path, "news/ABC.jsonl", one + two).news("ABC")).items
    after = (await market_with(tmp_path, "news/ABC.jsonl", two + one + one).news("ABC")).items
    by_text = {item.summary: item.id for item in before}
    assert [item.id for item in after[:2]] == [by_text["two"], by_text["one"]]
    assert len({item.id for item in after}) == 3


async def test_a_filing_is_known_from_its_acceptance_else_from_the_close(tmp_path: Path) -> None:
    records = [
        {"date": "2024-03-08", "form": "10-Q", "summary": "a", "accepted": "2024-03-08T21:31:07Z"},
        {"date": "2024-03-08", "form": "10-K", "summary": "b"},
        {"form": "10-K", "summary": "c"},
    ]
    market = market_with(tmp_path, "filings/ABC.jsonl", "\n".join(map(json.dumps, records)))
    batch = await market.filings("ABC")
    assert [(item.form, item.available_at) for item in batch.items] == [
        ("10-K", datetime(2024, 3, 8, 21, tzinfo=UTC)),
        ("10-Q", datetime(2024, 3, 8, 21, 31, 7, tzinfo=UTC)),
    ]
    assert [(drop.reason, drop.count) for drop in batch.dropped] == [("no date", 1)]
    bad = market_with(tmp_path, "filings/DEF.jsonl", '{"date": "2024-03-08", "summary": "no form"}')
    with pytest.raises(MalformedData, match="line 1: the filing has no form"):
        await bad.filings("DEF")


async def test_the_real_files_are_read_whole(real_data: Path) -> None:
    market = FilesMarket(real_data, calendar_for)
    bars = sum([len(await market.history(symbol)) for symbol in await market.symbols()])
    assert bars > 25_000
    news = await market.news("MSFT")
    assert len(news.items) > 3_000
    assert not news.dropped
