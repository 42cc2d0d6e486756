"""The demo market: the same on every machine, never rewritten, and worth reading the news of."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from datetime import date, timedelta
from functools import cache
from itertools import pairwise
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.demo import price_path
from connectors.demo.listings import Company, load_listings, profile_of
from connectors.demo.market import DEFAULT_WATCHLIST, EPOCH, SERIES, DemoMarket
from connectors.demo.price_path import EARNINGS, SPLIT, PricePath, Slot, draw_path, factor_moves
from engine.domain.macro import end_of_vintage
from engine.domain.market import NANO, ActionKind, PriceHistory
from engine.errors import MissingData, UsageError
from tests.connectors.weekdays import Weekdays, calendar_for
from tests.examples import examples

SESSIONS = [day.toordinal() for day in Weekdays().sessions(EPOCH, date(2025, 12, 31))]


COMPANIES = {symbol: one for symbol, one in load_listings().items() if isinstance(one, Company)}


@cache
def paths(seed: int) -> dict[str, PricePath]:
    moves = factor_moves(seed, SESSIONS)
    return {symbol: draw_path(seed, company, SESSIONS, lambda: moves) for symbol, company in COMPANIES.items()}


def path(seed: int, company: Company, sessions: list[int]) -> PricePath:
    return draw_path(seed, company, sessions, lambda: factor_moves(seed, sessions))


def fresh() -> None:
    """Forget what was drawn in this process."""
    price_path._drawn.cache_clear()


def columns(history: PriceHistory, rows: int) -> list[bytes]:
    cut = history.slice(0, rows)
    return [bytes(column) for column in (cut.sessions, cut.open, cut.high, cut.low, cut.close, cut.volume)]


@examples(20)
@given(
    seed=st.integers(0, 3),
    company=st.sampled_from(list(COMPANIES.values())),
    asked=st.lists(st.tuples(st.integers(1, 400), st.booleans()), min_size=2, max_size=6),
)
def test_a_path_that_was_drawn_before_is_that_of_a_fresh_process(
    seed: int, company: Company, asked: list[tuple[int, bool]]
) -> None:
    calendars = SESSIONS, SESSIONS[:30] + SESSIONS[31:]
    wanted = [calendars[other][:rows] for rows, other in asked]
    fresh()
    drawn = [path(seed, company, sessions) for sessions in wanted]
    for found, sessions in zip(drawn, wanted, strict=True):
        fresh()
        alone = path(seed, company, sessions)
        assert columns(found.history, len(found.history)) == columns(alone.history, len(sessions))
        assert replace(found, history=alone.history) == alone


@examples(12)
@given(
    seed=st.integers(0, 2**63),
    symbol=st.sampled_from([*DEFAULT_WATCHLIST, "TMBK", "FABX"]),
    through=st.dates(EPOCH, date(2023, 6, 30)),
    more=st.integers(1, 200),
)
async def test_a_longer_market_changes_nothing_that_was_there(seed: int, symbol: str, through: date, more: int) -> None:
    short = DemoMarket(seed, calendar_for, through)
    long = DemoMarket(seed, calendar_for, through + timedelta(days=more))
    before = await short.history(symbol)
    fresh()
    after = await long.history(symbol)
    assert columns(before, len(before)) == columns(after, len(before))
    first, second = await short.actions(symbol) or (), await long.actions(symbol) or ()
    assert list(first) == [action for action in second if action.ex_date <= through]
    told, later = (await short.news(symbol)).items, (await long.news(symbol)).items
    assert list(told) == [item for item in later if item.date <= through]
    filed, filed_later = (await short.filings(symbol)).items, (await long.filings(symbol)).items
    assert list(filed) == [filing for filing in filed_later if filing.date <= through]
    for name in SERIES:
        figures, later_figures = await short.series(name), await long.series(name)
        assert figures == later_figures.cut(end_of_vintage(through))


async def test_the_economy_is_plausible_revised_and_out_after_its_period() -> None:
    market = DemoMarket(7, calendar_for, date(2025, 12, 31))
    claims, hours = [await market.series(name) for name in SERIES]
    assert len(claims.history_at(end_of_vintage(date(2025, 12, 31)))) == 259
    assert len(hours.history_at(end_of_vintage(date(2025, 12, 31)))) == 59
    for series, least, most in ((claims, 150_000, 400_000), (hours, 38, 43)):
        assert len({item.value for item in series.observations}) > 5
        assert all(least <= item.value <= most for item in series.observations)
        assert all(item.known_from.date() > item.date + timedelta(4) for item in series.observations)
        assert len(series.observations) > len({item.date for item in series.observations})
    assert all(item.date.weekday() == 5 for item in claims.observations)
    assert await DemoMarket(8, calendar_for, date(2025, 12, 31)).series("ICSA") != claims
    with pytest.raises(MissingData, match="'GDP'; available: ICSA, AWHMAN"):
        await market.series("GDP")


async def test_the_bars_of_a_seed_are_these_on_every_machine() -> None:
    digest = hashlib.sha256()
    market = DemoMarket(0, calendar_for, date(2024, 12, 31))
    for symbol in await market.symbols():
        history = await market.history(symbol)
        for part in columns(history, len(history)):
            digest.update(part)
    assert digest.hexdigest() == "4a16ab4f0843a2d74dcd957a6b586cd58ca5726d47b2a3efcde6aa1056837056"


async def test_seeds_differ() -> None:
    one, two = [await DemoMarket(seed, calendar_for, date(2021, 3, 1)).history("ORVL") for seed in (1, 2)]
    assert list(one.close) != list(two.close)


async def test_shares_trade_on_sessions_and_the_coin_every_day() -> None:
    market = DemoMarket(3, calendar_for, date(2021, 12, 31))
    crypto, share, fund = [await market.history(symbol) for symbol in ("WRNN-USD", "ORVL", "FABX")]
    assert len(crypto) == 362
    assert list(share.sessions) == list(fund.sessions) == [day for day in SESSIONS if day <= share.sessions[-1]]
    assert share.session(0) == EPOCH


async def test_every_listing_has_a_profile_of_its_own() -> None:
    symbols = await DemoMarket(0, calendar_for, date(2021, 3, 1)).symbols()
    profiles = {symbol: profile_of(symbol) for symbol in symbols}
    assert len(set(profiles.values())) == len(symbols) and all(len(text) > 80 for text in profiles.values())
    assert "sector semiconductors" in profiles["ORVL"] and "after the close" in profiles["ORVL"]
    assert profile_of("MSFT") == ""


def test_it_does_not_begin_before_its_epoch() -> None:
    with pytest.raises(UsageError, match="begins on 2021-01-04"):
        DemoMarket(0, calendar_for, date(2020, 12, 31))


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_splits_and_dividends_are_in_the_prices(seed: int) -> None:
    """Without its actions a price would jump at a split; with them it moves as on any other day."""
    splits = dividends = 0
    for path in paths(seed).values():
        history = path.history
        for action in path.actions:
            row = history.index(action.ex_date)
            assert row is not None
            assert row > 0
            change = history.open[row] / history.close[row - 1]
            if action.kind is ActionKind.SPLIT:
                splits += 1
                assert change * float(action.value) == pytest.approx(1, abs=0.2)
            else:
                dividends += 1
                assert 0 < int(action.value * NANO) < history.close[row - 1] // 20
        days = [action.ex_date for action in path.actions]
        assert len(days) == len(set(days))
    assert dividends > 80
    assert splits > 0


async def test_every_split_and_dividend_was_in_the_news_before() -> None:
    market = DemoMarket(2, calendar_for, date(2024, 12, 31))
    checked = 0
    for symbol in ("HLXM", "BXWD", "TMBK"):
        items = (await market.news(symbol)).items
        for action in await market.actions(symbol) or ():
            word = "split" if action.kind is ActionKind.SPLIT else "dividend"
            month_before = action.ex_date - timedelta(days=40)
            found = [
                item
                for item in items
                if month_before < item.date < action.ex_date and word in f"{item.headline} {item.summary}".lower()
            ]
            assert found, (symbol, action)
            checked += 1
    assert checked > 20


def returns_after(path: PricePath, row: int, sessions: int) -> float:
    """From the open of the session after a row to the close some sessions on, as one who reads at the close earns
    it; None of the jump is in it."""
    history, factor = path.history, 1.0
    for action in path.actions:
        done = history.index(action.ex_date)
        if action.kind is ActionKind.SPLIT and done is not None and row + 1 < done <= row + sessions:
            factor *= float(action.value)
    return history.close[row + sessions] * factor / history.open[row + 1] - 1


def test_who_reads_the_news_at_the_close_earns_by_it() -> None:
    gains, elsewhere = [], []
    for seed in range(3):
        for path in paths(seed).values():
            last = len(path.history) - 10
            busy = {event.row for event in path.events}
            for event in path.events:
                row = event.row + (event.slot is Slot.AFTER_CLOSE)
                if event.direction and event.kind != SPLIT and row < last and abs(event.jump) > 5_000:
                    gains.append(returns_after(path, row, 6) * (1 if event.jump > 0 else -1))
            elsewhere += [returns_after(path, row, 6) for row in range(7, last, 7) if row not in busy]
    t_value = fmean(gains) / stdev(gains) * len(gains) ** 0.5
    assert len(gains) > 1000
    assert t_value > 8
    assert 0.006 < fmean(gains) < 0.03
    # Buying on any day, news or none, earns little: the gain is the news'.
    assert abs(fmean(elsewhere)) < fmean(gains) / 3


async def test_rumours_move_nothing() -> None:
    outcomes = []
    for seed in range(2):
        market = DemoMarket(seed, calendar_for, date(2023, 12, 31))
        for symbol, path in paths(seed).items():
            rumours = [item for item in (await market.news(symbol)).items if "Unconfirmed" in item.summary]
            for item in rumours:
                row = path.history.rows_through(item.date) - 1
                if 0 <= row < len(path.history) - 10:
                    outcomes.append(returns_after(path, row, 6))
    assert len(outcomes) > 150
    assert abs(fmean(outcomes)) < 3 * stdev(outcomes) / len(outcomes) ** 0.5 + 0.006


def test_results_come_every_quarter_and_move_the_price_at_once() -> None:
    for symbol, path in paths(0).items():
        results = [event for event in path.events if event.kind == EARNINGS]
        gaps = [(later.session - before.session).days for before, later in pairwise(results)]
        assert len(results) in (20, 21), symbol
        assert all(60 < gap < 125 for gap in gaps), symbol
        assert [quarter.form for _, quarter in path.reports].count("10-K") in (5, 6)
        for (filed, quarter), event in zip(path.reports, results, strict=False):
            assert event.quarter == quarter
            assert quarter.ended < event.session <= filed
    jumps = [
        abs(path.history.open[event.row + 1] / path.history.close[event.row] - 1)
        for path in paths(0).values()
        for event in path.events
        if event.kind == EARNINGS and event.slot is Slot.AFTER_CLOSE and event.row + 1 < len(SESSIONS)
    ]
    quiet = [
        abs(path.history.open[row + 1] / path.history.close[row] - 1)
        for path in paths(0).values()
        for row in range(0, len(SESSIONS) - 1, 9)
    ]
    assert fmean(jumps) > 2 * fmean(quiet)


async def test_the_fund_is_the_mean_of_its_companies() -> None:
    market = DemoMarket(4, calendar_for, date(2022, 12, 30))
    fund = await market.history("FABX")
    histories = {symbol: await market.history(symbol) for symbol in COMPANIES}
    taken = {symbol: {a.ex_date: a for a in await market.actions(symbol) or ()} for symbol in COMPANIES}
    for row in range(1, len(fund)):
        mean = 0.0
        for symbol, history in histories.items():
            close, action = float(history.close[row]), taken[symbol].get(history.session(row))
            if action is not None and action.kind is ActionKind.SPLIT:
                close *= float(action.value)
            elif action is not None:
                close += float(action.value) * NANO
            mean += close / history.close[row - 1] / len(histories)
        assert fund.close[row] / fund.close[row - 1] == pytest.approx(mean, abs=0.0003)


async def test_a_day_has_at_most_four_items_and_texts_are_filled_in() -> None:
    market = DemoMarket(6, calendar_for, date(2023, 6, 30))
    in_hours = outside = corrected = 0
    for symbol in await market.symbols():
        per_day: dict[date, int] = {}
        for item in (await market.news(symbol)).items:
            per_day[item.date] = per_day.get(item.date, 0) + 1
            assert item.published is not None
            assert item.headline is not None
            assert not re.search(r"[{}]|None|\s\s|\.\.", item.headline + item.summary), item
            assert item.headline[0] == item.headline[0].upper()
            assert item.summary.endswith(".")
            assert item.source
            corrected += item.available_at > item.published
            if 14.5 <= item.published.hour + item.published.minute / 60 < 21:
                in_hours += 1
            else:
                outside += 1
        assert max(per_day.values()) <= 4
        assert len(set(per_day.values())) > 1
    assert min(in_hours, outside) > 1000
    assert corrected > 50
