"""Access to market data: what was known at a moment, and nothing later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.market import CorporateAction, Filing, FundHolding, NewsItem, PriceHistory
from engine.errors import MissingData
from engine.market.as_of import Market, MarketAsOf
from tests.engine.desks import bars, dividend, market_of, split, weekdays

HOLIDAY, EARLY = date(2024, 3, 6), date(2024, 3, 8)
CALENDAR = weekdays(holidays=[HOLIDAY], early=[EARLY])
DAYS = CALENDAR.sessions(date(2024, 2, 26), date(2024, 3, 22))
EVERY_DAY = [date(2024, 2, 26) + timedelta(n) for n in range(26)]
SECOND, TICK = timedelta(seconds=1), timedelta(microseconds=1)


def rising(symbol: str = "AAA", days: Sequence[date] = DAYS) -> PriceHistory:
    return bars(symbol, days, [100 + n for n in range(len(days))])


def news(symbol: str, moments: Sequence[datetime]) -> list[NewsItem]:
    return [
        NewsItem(id=str(n), symbol=symbol, date=t.date(), available_at=t, summary=f"item {n}")
        for n, t in enumerate(sorted(moments))
    ]


def filings(symbol: str, moments: Sequence[datetime]) -> list[Filing]:
    return [
        Filing(id=str(n), symbol=symbol, form="10-Q", date=t.date(), available_at=t, summary=f"filing {n}")
        for n, t in enumerate(sorted(moments))
    ]


def rows(history: PriceHistory) -> list[tuple[date, Decimal, Decimal]]:
    return [(b.session, b.open, b.close) for b in history]


@pytest.mark.parametrize("day", [date(2024, 2, 27), EARLY, date(2024, 3, 11)])
def test_a_bar_is_visible_exactly_from_its_sessions_close(day: date) -> None:
    market = market_of({"AAA": rising()}, calendar=CALENDAR)
    close, before = CALENDAR.closes_at(day), DAYS[DAYS.index(day) - 1]

    assert market.at(close).last_session("AAA") == day
    assert market.at(close - TICK).last_session("AAA") == before
    assert market.at(close + timedelta(hours=5)).close("AAA") == 100 + DAYS.index(day)
    assert market.at(close).count("AAA") == DAYS.index(day) + 1


def test_summer_time_moves_the_moment_that_a_bar_is_seen(tmp_path_factory: pytest.TempPathFactory) -> None:
    calendar = weekdays()
    shifted = [
        c - 3600 if date.fromordinal(d) >= date(2024, 3, 11) else c
        for d, c in zip(calendar.days, calendar.closes, strict=True)
    ]
    summer = type(calendar)("XNYS", calendar.days, calendar.opens, tuple(shifted))
    days = summer.sessions(date(2024, 3, 7), date(2024, 3, 12))
    market = market_of({"AAA": rising(days=days)}, calendar=summer)

    assert market.at(datetime(2024, 3, 8, 20, tzinfo=UTC)).last_session("AAA") == date(2024, 3, 7)
    assert market.at(datetime(2024, 3, 8, 21, tzinfo=UTC)).last_session("AAA") == date(2024, 3, 8)
    assert market.at(datetime(2024, 3, 11, 20, tzinfo=UTC)).last_session("AAA") == date(2024, 3, 11)


def test_a_coins_bar_is_visible_from_the_next_utc_midnight() -> None:
    market = market_of({"BTC-USD": rising("BTC-USD", EVERY_DAY), "AAA": rising()}, calendar=CALENDAR)
    saturday, midnight = date(2024, 3, 2), datetime(2024, 3, 3, tzinfo=UTC)

    assert market.at(midnight - TICK).last_session("BTC-USD") == date(2024, 3, 1)
    assert market.at(midnight).last_session("BTC-USD") == saturday
    # After the exchange's close the coin's day goes on, and what is seen of it is the day before.
    after_close = CALENDAR.closes_at(EARLY) + SECOND
    assert market.at(after_close).last_session("AAA") == EARLY
    assert market.at(after_close).last_session("BTC-USD") == date(2024, 3, 7)


def test_news_and_filings_are_seen_from_when_they_are_available_and_after_the_last_look() -> None:
    moments = [datetime(2024, 3, 1, 21, tzinfo=UTC) + timedelta(hours=n) for n in range(5)]
    market = market_of(
        {"AAA": rising()},
        news={"AAA": news("AAA", moments)},
        filings={"AAA": filings("AAA", moments)},
        calendar=CALENDAR,
    )

    for seen in (
        [n.summary for n in market.at(moments[3]).news("AAA", moments[1])],
        [f.summary.replace("filing", "item") for f in market.at(moments[3]).filings("AAA", moments[1])],
    ):
        assert seen == ["item 2", "item 3"]
    assert not market.at(moments[3] - TICK).news("AAA", moments[2])
    assert not market.at(moments[3]).news("AAA", moments[3])
    assert not market.at(moments[3]).news("NONE", moments[0])


def test_prices_are_on_the_split_basis_of_the_last_visible_session() -> None:
    ex = DAYS[5]
    prices = [(300, 300)] * 5 + [(100, 102)] + [(104, 105)] * (len(DAYS) - 6)
    market = market_of({"AAA": bars("AAA", DAYS, prices)}, {"AAA": [split("AAA", ex, "3")]}, calendar=CALENDAR)

    before = market.at(CALENDAR.closes_at(DAYS[4])).bars("AAA", 3)
    assert [b.close for b in before] == [300, 300, 300]
    after = market.at(CALENDAR.closes_at(ex)).bars("AAA", 3)
    assert rows(after) == [(DAYS[3], 100, 100), (DAYS[4], 100, 100), (ex, 100, 102)]
    assert [b.volume for b in after] == [3_000_000, 3_000_000, 1_000_000]
    assert market.at(CALENDAR.closes_at(DAYS[4])).close("AAA") == 300
    # A window that begins on the ex-date is on its own basis already.
    assert [b.volume for b in market.at(CALENDAR.closes_at(ex)).bars("AAA", 1)] == [1_000_000]


def test_splits_compound_and_a_dividend_moves_no_price() -> None:
    actions = [split("AAA", DAYS[2], "2"), dividend("AAA", DAYS[3], "5"), split("AAA", DAYS[4], "0.1")]
    prices = [40, 40, 20, 20, 200, 210]
    market = market_of({"AAA": bars("AAA", DAYS[:6], prices)}, {"AAA": actions}, calendar=CALENDAR)

    closes = {n: [b.close for b in market.at(CALENDAR.closes_at(DAYS[n])).bars("AAA", 9)] for n in (1, 3, 5)}
    assert closes == {1: [40, 40], 3: [20, 20, 20, 20], 5: [200, 200, 200, 200, 200, 210]}
    # A dividend of 5 on a close of 20 leaves three quarters of the prices before it.
    assert [b.close for b in market.at(CALENDAR.closes_at(DAYS[3])).adjusted("AAA", 9)] == [15, 15, 15, 20]


def test_what_is_not_there_is_missing_data() -> None:
    market = market_of({"AAA": rising(days=DAYS[3:])}, calendar=CALENDAR)
    early = market.at(CALENDAR.closes_at(DAYS[1]))
    assert early.count("AAA") == 0
    for look in (early.last_session, early.close, lambda s: early.bars(s, 5)):
        with pytest.raises(MissingData, match="AAA"):
            look("AAA")
    with pytest.raises(MissingData, match="BBB"):
        early.close("BBB")


MOMENTS = st.integers(0, 22 * 86_400).map(lambda n: datetime(2024, 2, 28, tzinfo=UTC) + n * SECOND) | st.builds(
    lambda day, offset: CALENDAR.closes_at(day) + offset,
    st.sampled_from(DAYS[2:-2]),
    st.sampled_from([-TICK, timedelta(0), TICK, SECOND]),
)
ACTIONS = st.lists(
    st.builds(
        lambda day, ratio: split("AAA", day, ratio), st.sampled_from(EVERY_DAY), st.sampled_from(["2", "0.1", "1.5"])
    )
    | st.builds(lambda day, amount: dividend("AAA", day, amount), st.sampled_from(EVERY_DAY), st.sampled_from(["1"])),
    max_size=3,
)


def everything(seen: MarketAsOf, count: int) -> object:
    """All that the access shows."""
    long_ago = datetime(2000, 1, 1, tzinfo=UTC)
    shown: dict[str, object] = {"commentary": list(seen.commentary(long_ago)), "fund": seen.fund_trade("fund", "AAA")}
    for symbol in seen.symbols:
        shown[symbol] = (seen.count(symbol), list(seen.news(symbol, long_ago)), list(seen.filings(symbol, long_ago)))
        if seen.count(symbol):
            window = seen.bars(symbol, count)
            columns = [list(getattr(window, f.name)) for f in fields(window) if f.name != "symbol"]
            shown[f"{symbol} bars"] = (seen.last_session(symbol), seen.close(symbol), columns)
    return shown


@given(MOMENTS, st.integers(1, 30), ACTIONS, st.lists(MOMENTS, max_size=6), st.integers(0, 9))
def test_a_view_of_the_whole_market_is_that_of_the_market_cut_then(
    now: datetime, count: int, actions: list[CorporateAction], moments: list[datetime], late: int
) -> None:
    whole = market_of(
        {"AAA": rising(), "BBB": rising("BBB", DAYS[late:]), "BTC-USD": rising("BTC-USD", EVERY_DAY)},
        {"AAA": sorted(actions, key=lambda a: a.ex_date)},
        {"AAA": news("AAA", moments), "BTC-USD": news("BTC-USD", moments)},
        {"AAA": filings("AAA", moments)},
        CALENDAR,
    )
    holdings = [FundHolding(day, "AAA", Decimal(n), Decimal(1)) for n, day in enumerate(EVERY_DAY)]
    whole = replace(whole, commentary=news("ALL", moments), holdings={"fund": holdings})
    cut = whole.cut(now)

    assert everything(whole.at(now), count) == everything(cut.at(now), count)
    traded = whole.at(now).fund_trade("fund", "AAA")
    assert traded is None or traded.session < now.date()
    # The cut leaves nothing later behind the access either.
    for symbol, history in cut.histories.items():
        assert all(cut.calendars[symbol].closes_at(b.session) <= now for b in history)
        assert all(item.available_at <= now for item in [*cut.news.get(symbol, ()), *cut.filings.get(symbol, ())])
        assert not len(history) or cut.at(now).peek(symbol) is None
    assert _untouched(whole)


def _untouched(market: Market) -> bool:
    return len(market.histories["AAA"]) == len(DAYS)


def test_peeking_shows_tomorrow_and_is_part_of_data_access_for_the_audit_alone() -> None:
    market = market_of({"AAA": rising()}, calendar=CALENDAR)
    assert market.at(CALENDAR.closes_at(DAYS[4])).peek("AAA") == 105
    assert market.at(CALENDAR.closes_at(DAYS[-1])).peek("AAA") is None
