"""Trading sessions: holidays, early closes and summer time of the exchange, the coin's day, the table that is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.errors import MissingData, UsageError
from engine.market import trading_hours
from engine.market.trading_hours import (
    AroundTheClock,
    ExchangeCalendar,
    calendar_for,
    decision_time,
    desk_calendar,
    exchange_calendar,
    session_after,
    session_to_decide,
)
from tests.engine.desks import weekdays


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table as the library's answer was kept."""
    path = tmp_path_factory.mktemp("cache") / "deeper" / "sessions.json"
    exchange_calendar("XNYS", path)
    return path


@pytest.fixture
def new_york(table: Path) -> ExchangeCalendar:
    return exchange_calendar("XNYS", table)


@pytest.mark.parametrize(
    ("day", "what"),
    [
        (date(2001, 9, 12), "the days after the attacks"),
        (date(2012, 10, 29), "the hurricane"),
        (date(2018, 12, 5), "a day of mourning"),
        (date(2023, 1, 2), "New Year on a Sunday"),
        (date(2023, 4, 7), "Good Friday"),
        (date(2022, 6, 20), "Juneteenth on a Sunday"),
        (date(2024, 11, 28), "Thanksgiving"),
        (date(2024, 12, 25), "Christmas"),
        (date(2025, 1, 9), "a day of mourning"),
        (date(2024, 3, 2), "a Saturday"),
    ],
)
def test_days_without_a_session(new_york: ExchangeCalendar, day: date, what: str) -> None:
    assert new_york.sessions(day, day) == [], what
    with pytest.raises(MissingData, match=str(day)):
        new_york.closes_at(day)


@pytest.mark.parametrize(
    ("session", "opens", "closes"),
    [
        (date(2024, 3, 8), "14:30", "21:00"),  # the last winter session
        (date(2024, 3, 11), "13:30", "20:00"),  # the first of summer time
        (date(2024, 11, 1), "13:30", "20:00"),
        (date(2024, 11, 4), "14:30", "21:00"),
        (date(2023, 7, 3), "13:30", "17:00"),  # early closes
        (date(2024, 11, 29), "14:30", "18:00"),
        (date(2024, 12, 24), "14:30", "18:00"),
    ],
)
def test_open_and_close_in_utc(new_york: ExchangeCalendar, session: date, opens: str, closes: str) -> None:
    assert f"{new_york.opens_at(session):%Y-%m-%d %H:%M %Z}" == f"{session} {opens} UTC"
    assert f"{new_york.closes_at(session):%Y-%m-%d %H:%M %Z}" == f"{session} {closes} UTC"


def test_a_years_count_of_sessions(new_york: ExchangeCalendar) -> None:
    assert len(new_york.sessions(date(2023, 1, 1), date(2023, 12, 31))) == 250
    # The paper's test window. Source: FinVision §4.1 [V9].
    assert len(new_york.sessions(date(2023, 6, 1), date(2023, 12, 29))) == 147
    assert new_york.sessions(date(2024, 3, 5), date(2024, 3, 4)) == []


def test_a_session_is_closed_exactly_from_its_close(new_york: ExchangeCalendar) -> None:
    early = date(2024, 11, 29)
    close = new_york.closes_at(early)
    assert new_york.last_closed(close) == early
    assert new_york.last_closed(close - timedelta(microseconds=1)) == date(2024, 11, 27)
    assert new_york.last_closed(close + timedelta(days=2)) == early
    assert decision_time(new_york, early) == close + timedelta(seconds=1)


def test_outside_the_table_there_is_no_answer(new_york: ExchangeCalendar) -> None:
    for ask in (
        lambda: new_york.sessions(date(1999, 12, 31), date(2000, 1, 5)),
        lambda: new_york.sessions(date(2035, 12, 1), date(2036, 2, 1)),
        lambda: session_after(new_york, date(2035, 12, 31)),
        lambda: new_york.last_closed(datetime(2000, 1, 1, tzinfo=UTC)),
    ):
        with pytest.raises(MissingData):
            ask()


# The coin


def test_a_coins_session_is_the_utc_day() -> None:
    coin = AroundTheClock()
    leap = date(2024, 2, 29)
    assert coin.sessions(date(2024, 2, 28), date(2024, 3, 1)) == [date(2024, 2, 28), leap, date(2024, 3, 1)]
    assert coin.opens_at(leap) == datetime(2024, 2, 29, tzinfo=UTC)
    assert coin.closes_at(leap) == datetime(2024, 3, 1, tzinfo=UTC)
    assert coin.last_closed(coin.closes_at(leap)) == leap
    assert coin.last_closed(coin.closes_at(leap) - timedelta(microseconds=1)) == date(2024, 2, 28)


def test_a_desk_decides_on_the_exchange_as_soon_as_one_symbol_is_a_share(table: Path) -> None:
    assert desk_calendar(["BTC-USD", "ETH/USD"], lambda name: table).name == "24/7"
    assert desk_calendar(["BTC-USD", "AAPL"], lambda name: table).name == "XNYS"
    assert calendar_for("BTC-USD", lambda name: table).name == "24/7"
    assert calendar_for("USD", lambda name: table).name == "XNYS"


# Which session a desk decides for

FRIDAY, MONDAY = date(2024, 3, 1), date(2024, 3, 4)


@pytest.mark.parametrize(
    ("now", "shares", "with_coin"),
    [
        ("2024-03-01T20:59:59", date(2024, 2, 29), date(2024, 2, 29)),
        ("2024-03-01T21:00:00", date(2024, 2, 29), date(2024, 2, 29)),  # the decision is a second later
        ("2024-03-01T21:00:01", FRIDAY, date(2024, 2, 29)),  # the coin's Friday goes on
        ("2024-03-02T00:00:00", FRIDAY, date(2024, 2, 29)),
        ("2024-03-02T00:00:01", FRIDAY, FRIDAY),
        ("2024-03-03T12:00:00", FRIDAY, FRIDAY),
        ("2024-03-04T21:00:01", MONDAY, FRIDAY),
    ],
)
def test_the_session_to_decide(now: str, shares: date, with_coin: date) -> None:
    calendar, moment = weekdays(), datetime.fromisoformat(now).replace(tzinfo=UTC)
    assert session_to_decide(calendar, ["AAA"], None, moment) == shares
    assert session_to_decide(calendar, ["AAA", "BTC-USD"], None, moment) == with_coin


def test_a_desk_of_coins_alone_decides_on_every_day() -> None:
    coin, midnight = AroundTheClock(), datetime(2024, 3, 3, tzinfo=UTC)
    assert session_to_decide(coin, ["BTC-USD"], None, midnight) == date(2024, 3, 1)
    assert session_to_decide(coin, ["BTC-USD"], None, midnight + timedelta(seconds=1)) == date(2024, 3, 2)


def test_a_session_that_is_asked_for_has_to_be_a_completed_one() -> None:
    calendar, noon = weekdays(), datetime(2024, 3, 4, 12, tzinfo=UTC)
    assert session_to_decide(calendar, ["AAA"], date(2024, 2, 28), noon) == date(2024, 2, 28)
    with pytest.raises(UsageError, match="2024-03-01"):
        session_to_decide(calendar, ["AAA"], MONDAY, noon)
    with pytest.raises(UsageError):
        session_to_decide(calendar, ["AAA"], date(2024, 2, 24), noon)


# The table


def _spoil(change: Callable[[dict[str, Any]], Any]) -> Callable[[str], str]:
    def spoiled(text: str) -> str:
        plain = json.loads(text)
        changed = change(plain)
        return json.dumps(plain if changed is None else changed)

    return spoiled


SPOILED = {
    "cut in half": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "no JSON": lambda text: "sessions: all",
    "a list": _spoil(lambda plain: [plain]),
    "null": _spoil(lambda plain: "nothing"),
    "another version": _spoil(lambda plain: plain.update(made_by="exchange_calendars 0.1", days=[1])),
    "another exchange": _spoil(lambda plain: plain.update(name="XLON", days=[1])),
    "no opens": _spoil(lambda plain: plain.pop("opens") and None),
    "columns of words": _spoil(lambda plain: plain.update(days=["Monday"] * len(plain["days"]))),
    "columns of unequal length": _spoil(lambda plain: plain.update(closes=plain["closes"][:-5])),
    "days that are a number": _spoil(lambda plain: plain.update(days=5)),
}


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch, new_york: ExchangeCalendar) -> list[str]:
    """Counts how often the library was asked, and answers in its place."""
    asked: list[str] = []

    def answer(name: str) -> ExchangeCalendar:
        asked.append(name)
        return new_york

    monkeypatch.setattr(trading_hours, "_computed", answer)
    return asked


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED.keys())
def test_a_table_that_cannot_be_used_is_made_anew(
    spoil: Callable[[str], str], table: Path, tmp_path: Path, computed: list[str], new_york: ExchangeCalendar
) -> None:
    path = tmp_path / "sessions.json"
    path.write_text(spoil(table.read_text(encoding="utf-8")), encoding="utf-8")

    assert exchange_calendar("XNYS", path) == new_york
    assert computed == ["XNYS"]
    assert path.read_text(encoding="utf-8") == table.read_text(encoding="utf-8")


def test_a_good_table_is_read_and_the_library_left_alone(table: Path, tmp_path: Path, computed: list[str]) -> None:
    path = tmp_path / "sessions.json"
    path.write_bytes(table.read_bytes())

    calendar = exchange_calendar("XNYS", path)

    assert computed == []
    assert calendar.sessions(FRIDAY, MONDAY) == [FRIDAY, MONDAY]


def test_a_table_that_cannot_be_kept_is_no_error(tmp_path: Path, computed: list[str]) -> None:
    (tmp_path / "file").write_text("in the way")

    calendar = exchange_calendar("XNYS", tmp_path / "file" / "sessions.json")

    assert calendar.sessions(FRIDAY, FRIDAY) == [FRIDAY]
    assert computed == ["XNYS"]
