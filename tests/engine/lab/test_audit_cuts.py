"""What an audit cuts and plants: nothing of the future stays in a cut market, everything planted lies in it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.macro import MacroObservation, MacroSeries, end_of_vintage
from engine.domain.market import ActionKind, Bar, CorporateAction, Filing, NewsItem, PriceHistory, from_nano
from engine.domain.run import FillAt
from engine.lab.audit import choose_cuts, venue
from engine.lab.watched_market import ABSURD_PRICE, MARKERS, SOURCES, WatchedMarket, planted, shown
from engine.market.as_of import Market, last_opened
from engine.market.trading_hours import AroundTheClock, decision_time, exchange_calendar

XNYS = exchange_calendar()
DAYS = XNYS.sessions(date(2024, 1, 1), date(2024, 3, 1))
COIN_DAYS = AroundTheClock().sessions(date(2024, 1, 1), date(2024, 3, 1))


def bars(symbol: str, days: list[date]) -> PriceHistory:
    prices = [Decimal(100 + n) for n in range(len(days))]
    return PriceHistory.of(
        symbol,
        (
            Bar(session=d, open=p, high=p + 2, low=p - 2, close=p + 1, adj_close=p, volume=Decimal(9))
            for d, p in zip(days, prices, strict=True)
        ),
    )


def market() -> Market:
    at = [datetime(2024, 1, 10, tzinfo=UTC) + timedelta(hours=7 * n) for n in range(100)]
    news = [
        NewsItem(id=f"n{n}", symbol="SHARE", date=t.date(), available_at=t, summary="news") for n, t in enumerate(at)
    ]
    filings = [
        Filing(id=f"f{n}", symbol="SHARE", form="10-Q", date=t.date(), available_at=t, summary="report")
        for n, t in enumerate(at[::9])
    ]
    actions = [
        CorporateAction("SHARE", DAYS[20], ActionKind.SPLIT, Decimal(2)),
        CorporateAction("SHARE", DAYS[30], ActionKind.DIVIDEND, Decimal(1)),
    ]
    return Market(
        histories={"SHARE": bars("SHARE", list(DAYS)), "COIN-USD": bars("COIN-USD", list(COIN_DAYS))},
        actions={"SHARE": actions, "COIN-USD": None},
        news={"SHARE": news, "COIN-USD": []},
        filings={"SHARE": filings, "COIN-USD": []},
        calendars={"SHARE": XNYS, "COIN-USD": AroundTheClock()},
        macro={"ICSA": claims()},
    )


def claims() -> MacroSeries:
    """Weekly figures, each revised a week later."""
    weeks = [date(2024, 1, 6) + timedelta(weeks=n) for n in range(8)]
    firsts = [MacroObservation(d, Decimal(200_000 + d.day), end_of_vintage(d + timedelta(5))) for d in weeks]
    revised = [MacroObservation(o.date, o.value + 1, o.known_from + timedelta(7)) for o in firsts]
    return MacroSeries.of("ICSA", [*firsts, *revised])


MARKET = market()
sessions = st.sampled_from(list(DAYS[5:-5]))


@given(sessions)
def test_a_cut_market_ends_at_its_moment_and_data_access_shows_the_same(session: date) -> None:
    now = decision_time(XNYS, session)
    cut = MARKET.cut(now)
    assert cut.histories["SHARE"].session(-1) == session
    assert cut.histories["COIN-USD"].session(-1) == session - timedelta(days=1)
    assert all(item.available_at <= now for item in [*cut.news["SHARE"], *cut.filings["SHARE"]])
    assert all(action.ex_date <= session for action in cut.actions["SHARE"] or ())
    assert all(item.known_from <= now for item in cut.macro["ICSA"].observations)
    assert cut.actions["COIN-USD"] is None
    assert shown(cut, now) == shown(MARKET, now)


@given(sessions, st.lists(st.sampled_from(SOURCES), unique=True, min_size=1))
def test_planted_records_are_invisible_now_and_glaring_afterwards(session: date, sources: list[str]) -> None:
    now = decision_time(XNYS, session)
    changed = planted(MARKET, sources, now)
    assert shown(changed, now) == shown(MARKET, now)
    later = decision_time(XNYS, XNYS.sessions(session + timedelta(days=1), session + timedelta(days=5))[0])
    door = changed.at(later)
    for source, read in (("news", door.news), ("filings", door.filings)):
        texts = [item.summary for item in read("SHARE", now)]
        assert any(MARKERS[source] in text for text in texts) == (source in sources)
    figures = {release.series: release.summary for release in door.macro(now)}
    assert (MARKERS["macro"] in figures) == ("macro" in sources)
    assert (str(ABSURD_PRICE) in figures.get("ICSA", "")) == ("macro" in sources)
    absurd = ABSURD_PRICE * 3 / 2  # wild: by half above it and by a third below in turn
    assert (door.close("SHARE") == absurd) == ("bars" in sources)
    assert (door.close("COIN-USD") == absurd) == ("bars" in sources)
    splits = [a for a in changed.actions["SHARE"] or () if a.value == 1000]
    assert len(splits) == ("actions" in sources)
    assert changed.actions["COIN-USD"] is None
    # The coin's day that goes on already has opened: a split that took effect with it would be no future.
    assert all(AroundTheClock().opens_at(split.ex_date) > now for split in splits)


def test_bars_can_be_planted_after_the_last_one() -> None:
    now = decision_time(XNYS, DAYS[-1])
    history = planted(MARKET, ["bars"], now).histories["SHARE"]
    assert history.session(-1) == date(2024, 3, 4)
    assert len(history) == len(DAYS) + 1


def test_last_opened_is_the_day_that_goes_on() -> None:
    noon = datetime(2024, 1, 9, 12, tzinfo=UTC)
    assert last_opened(AroundTheClock(), noon) == date(2024, 1, 9)
    assert last_opened(XNYS, noon) == date(2024, 1, 8)
    assert last_opened(XNYS, noon + timedelta(hours=3)) == date(2024, 1, 9)


def test_a_broker_knows_of_an_unfinished_bar_only_the_open() -> None:
    session = DAYS[7]
    now = decision_time(XNYS, session)
    coin = venue(MARKET, session, now, FillAt.NEXT_OPEN)["COIN-USD"]
    assert coin.session(-1) == session
    assert coin.open[-1] == coin.high[-1] == coin.low[-1] == coin.close[-1]
    whole = MARKET.histories["COIN-USD"]
    assert coin.open[-1] == whole.open[len(coin) - 1]
    assert coin.close[:-1] == whole.close[: len(coin) - 1]
    share = venue(MARKET, session, now, FillAt.NEXT_OPEN)["SHARE"]
    assert share.session(-1) == session and share.close[-1] != share.open[-1]


@pytest.mark.parametrize("count", [1, 2, 5, 12, 40])
def test_cuts_are_of_the_window_with_both_ends(count: int) -> None:
    decided = DAYS[1:41]
    cuts = choose_cuts(decided, count, MARKET)
    assert len(cuts) == count
    assert list(cuts) == sorted(set(cuts)) and set(cuts) <= set(decided)
    assert cuts[-1] == decided[-1] and (count == 1 or cuts[0] == decided[0])


def test_all_cuts_are_all_sessions_but_those_around_a_last_trade() -> None:
    assert choose_cuts(DAYS[1:11], None, MARKET) == tuple(DAYS[1:11])
    stopped = {**MARKET.histories, "SHARE": MARKET.histories["SHARE"].slice(0, 6)}
    ends_inside = Market(
        histories=stopped, actions=MARKET.actions, news=MARKET.news, filings=MARKET.filings, calendars=MARKET.calendars
    )
    assert choose_cuts(DAYS[1:11], None, ends_inside) == tuple(d for d in DAYS[1:11] if d not in DAYS[4:6])


def test_what_is_read_is_counted_once_with_the_nearest_availability() -> None:
    watched = WatchedMarket.of(MARKET)
    early, late = decision_time(XNYS, DAYS[10]), decision_time(XNYS, DAYS[11])
    for now in (early, late):
        watched.at(now).bars("SHARE", 5)
        watched.at(now).news("SHARE", now - timedelta(days=1))
    read = watched.read["bars"]
    assert len(read.items) == 6
    assert (read.latest, read.decision) == (XNYS.closes_at(DAYS[11]), late)
    assert not read.from_the_future
    tomorrow = watched.at(late).peek("SHARE")
    assert tomorrow == from_nano(MARKET.histories["SHARE"].close[12])
    assert watched.read["bars"].from_the_future
    assert not watched.read["news"].from_the_future
