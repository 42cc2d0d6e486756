"""A turn's inputs in parts: read again they show the same and nothing later; a day adds little to the day before."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from engine.cycle.turn import TradingHistory, Turn
from engine.domain.macro import MacroObservation, MacroSeries
from engine.domain.market import Bar, Filing, NewsItem, PriceHistory, is_crypto
from engine.domain.order import Portfolio, Position
from engine.market.as_of import Market
from engine.market.trading_hours import AroundTheClock, decision_time, previous_session
from engine.ports import Calendar
from engine.session.recorder import TurnInputs, input_parts, read_inputs
from tests.engine.desks import WEEKDAYS, market_of, split

DAYS = WEEKDAYS.sessions(date(2023, 6, 1), date(2024, 6, 28))
BARS = 150


def history(symbol: str) -> PriceHistory:
    """Bars with prices of nine digits, some without an adjusted close or a volume."""
    rows = []
    for n, day in enumerate(DAYS):
        close = Decimal(f"{100 + n % 17}.{n:09d}")
        known = n % 5 != 0
        rows.append(
            Bar(
                session=day,
                open=close,
                high=close + 1,
                low=close - 1,
                close=close,
                adj_close=close if known else None,
                volume=Decimal(n * 100) if known else None,
            )
        )
    return PriceHistory.of(symbol, rows)


def at(day: date, hour: int) -> datetime:
    return datetime(day.year, day.month, day.day, hour, tzinfo=UTC)


def market() -> Market:
    symbols = ("AAA", "BBB", "ETH-USD")
    news = {
        "AAA": [
            NewsItem(
                id=f"n{n}", symbol="AAA", date=day, available_at=at(day, 15), summary=f"story \u2013 {n}", source="wire"
            )
            for n, day in enumerate(DAYS)
        ]
    }
    filings = {
        "AAA": [
            Filing(id=f"f{n}", symbol="AAA", form="10-Q", date=day, available_at=at(day, 12), summary="report " * 300)
            for n, day in enumerate(DAYS[::60])
        ]
    }
    series = MacroSeries.of(
        "ICSA",
        (
            MacroObservation(day, Decimal(200_000 + n), at(day + timedelta(5), 6))
            for n, day in enumerate(date(2019, 1, 5) + timedelta(7 * week) for week in range(290))
        ),
    )
    whole = market_of({s: history(s) for s in symbols}, {"AAA": [split("AAA", DAYS[200], "4")]}, news, filings)
    return Market(
        histories=whole.histories,
        actions=whole.actions | {"BBB": None},
        news=news,
        filings=filings,
        calendars=whole.calendars,
        macro={"ICSA": series},
    )


MARKET = market()


def calendar_of(symbol: str) -> Calendar:
    return AroundTheClock() if is_crypto(symbol) else WEEKDAYS


def turn(session: date) -> Turn:
    return Turn(
        run="run",
        desk="desk",
        session=session,
        number=1,
        symbols=("AAA", "ETH-USD"),
        market=MARKET.at(decision_time(WEEKDAYS, session)),
        news_after=decision_time(WEEKDAYS, previous_session(WEEKDAYS, session)),
        portfolio=Portfolio(Decimal("1234.56"), {"BBB": Position(Decimal("3.000000001"), Decimal("99.5"))}),
        value=Decimal(2000),
        history=TradingHistory(),
        reserved=Decimal("10.01"),
        queued={"BBB": Decimal(1)},
        whole_shares=frozenset({"AAA"}),
    )


def read_again(session: date) -> TurnInputs:
    return read_inputs(input_parts(turn(session), MARKET, BARS), calendar_of)


def columns(bars: PriceHistory) -> list[list[object]]:
    names = ("sessions", "open", "high", "low", "close", "adj_close", "volume")
    return [[repr(value) for value in getattr(bars, name)] for name in names]


def test_what_is_read_again_shows_what_was_seen() -> None:
    for session in (DAYS[160], DAYS[205], DAYS[240], DAYS[-1]):
        then, seen = turn(session), read_again(session)
        now = seen.market.at(then.market.now)
        assert (seen.symbols, seen.news_after, seen.portfolio) == (then.symbols, then.news_after, then.portfolio)
        assert (seen.reserved, seen.queued, seen.whole_shares) == (then.reserved, then.queued, then.whole_shares)
        for symbol in ("AAA", "BBB", "ETH-USD"):
            assert columns(now.bars(symbol, BARS)) == columns(then.market.bars(symbol, BARS))
            assert list(now.news(symbol, then.news_after)) == list(then.market.news(symbol, then.news_after))
            year = then.market.now - timedelta(365)
            assert list(now.filings(symbol, year)) == list(then.market.filings(symbol, year))
        for since in (None, then.news_after, then.news_after - timedelta(9)):
            assert now.macro(since) == then.market.macro(since)
        assert seen.market.actions["BBB"] is None


def test_nothing_later_is_kept() -> None:
    session = DAYS[205]
    now = decision_time(WEEKDAYS, session)
    kept = read_again(session).market
    assert all(history.session(-1) <= session for history in kept.histories.values())
    assert all(item.available_at <= now for some in (*kept.news.values(), *kept.filings.values()) for item in some)
    assert all(one.known_from <= now for one in kept.macro["ICSA"].observations)
    before = read_again(DAYS[195]).market
    assert before.actions["AAA"] == []
    assert len(kept.actions["AAA"] or ()) == 1


def test_a_day_adds_little_to_the_day_before() -> None:
    whole = {part for parts in input_parts(turn(DAYS[220]), MARKET, BARS).values() for part in parts}
    added = {part for parts in input_parts(turn(DAYS[221]), MARKET, BARS).values() for part in parts} - whole
    # The books, the news, and the month that goes on, once for three symbols whose bars are alike.
    assert len(added) == 3
    assert sum(map(len, added)) * 8 < sum(map(len, whole))
