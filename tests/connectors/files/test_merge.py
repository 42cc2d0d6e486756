"""Adjusted closes by hand, and what a merge keeps, adds and counts."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.files.fetch.market import (
    FetchLog,
    SymbolRequests,
    adjusted_closes,
    checked_row,
    extended_closes,
    merge_actions,
    merge_bars,
)
from connectors.files.prices import BarRow, read_bars
from connectors.files.texts import append_news
from engine.domain.market import NANO, UNKNOWN, ActionKind, Bar, CorporateAction, NewsItem
from engine.errors import MalformedData

FIRST = date(2024, 1, 2)
AT = datetime(2024, 1, 2, 9, tzinfo=UTC)
DIVIDEND, SPLIT = ActionKind.DIVIDEND, ActionKind.SPLIT


def day(n: int) -> date:
    return FIRST + timedelta(days=n)


def act(n: int, kind: ActionKind, value: str) -> CorporateAction:
    return CorporateAction("AAA", day(n), kind, Decimal(value))


def adjusted(closes: list[int], *actions: CorporateAction, unsupported: tuple[int, ...] = ()) -> list[float]:
    days = [day(n).toordinal() for n in range(len(closes))]
    found = adjusted_closes(days, [close * NANO for close in closes], actions, [day(n) for n in unsupported])
    return [nano if nano == UNKNOWN else nano / NANO for nano in found]


def test_a_split_divides_and_a_dividend_takes_its_part_of_the_close_before() -> None:
    assert adjusted([100, 50, 55], act(1, SPLIT, "2")) == [50, 50, 55]
    assert adjusted([100, 90, 99], act(1, DIVIDEND, "10")) == [90, 90, 99]
    # On one day: ten a share of the old ones, then four new ones for each.
    assert adjusted([100, 25], act(1, SPLIT, "4"), act(1, DIVIDEND, "10")) == [22.5, 25]
    assert adjusted([100, 50, 50], act(1, SPLIT, "2"), act(2, DIVIDEND, "5")) == [45, 45, 50]


def test_what_is_outside_the_bars_changes_nothing_and_what_is_untold_ends_the_column() -> None:
    assert adjusted([10, 11], act(0, SPLIT, "2"), act(-3, DIVIDEND, "1"), act(9, SPLIT, "3")) == [10, 11]
    assert adjusted([10, 11, 12], unsupported=(1,)) == [UNKNOWN, 11, 12]
    assert adjusted([10, 11, 12], unsupported=(1, 9)) == [UNKNOWN, 11, 12]
    assert adjusted([10, 11], act(1, DIVIDEND, "10")) == [UNKNOWN, 11]


@given(
    st.lists(st.integers(5, 5000), min_size=2, max_size=20),
    st.lists(st.tuples(st.integers(1, 19), st.sampled_from(["0.5", "2", "3", "1.05"])), max_size=4),
    st.lists(st.tuples(st.integers(1, 19), st.sampled_from(["0.1", "1", "2.25"])), max_size=4),
)
def test_adjusted_closes_grow_as_the_wealth_of_who_reinvests(
    closes: list[int], splits: list[tuple[int, str]], dividends: list[tuple[int, str]]
) -> None:
    """A share held from the first bar: a dividend is worth what it buys at the close before its ex-date, less itself
    (that is where the share opens without it)."""
    actions = [act(n, SPLIT, value) for n, value in dict(splits).items()]
    actions += [act(n, DIVIDEND, value) for n, value in dict(dividends).items()]
    shares, wealth = 1.0, [float(closes[0])]
    for row in range(1, len(closes)):
        for action in sorted(actions, key=lambda one: one.kind):
            if action.ex_date == day(row) and action.kind is DIVIDEND:
                shares *= closes[row - 1] / (closes[row - 1] - float(action.value))
            elif action.ex_date == day(row):
                shares *= float(action.value)
        wealth.append(shares * closes[row])
    found = adjusted(closes, *actions)
    assert found == pytest.approx([value * found[-1] / wealth[-1] for value in wealth], rel=1e-6)
    assert found[-1] == closes[-1]


def test_somebody_elses_column_goes_on_in_its_own_scale() -> None:
    computed = [20, 30, 60, 90]
    assert list(extended_closes({1: 10, 2: 20}, computed)) == [7, 10, 20, 30]
    assert list(extended_closes({0: UNKNOWN}, computed)) == [UNKNOWN] * 4


def row(n: int, close: int, volume: float = 5.0) -> BarRow:
    nano = close * NANO
    return day(n).toordinal(), nano, nano, nano, nano, UNKNOWN, volume


def test_a_merge_counts_and_keeps_unless_told_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "prices" / "AAA.csv"

    def merge(*rows: BarRow, replace: bool = False) -> Counter[str]:
        return merge_bars(path, rows, (), (), replace=replace, keep_adjusted=False)

    assert merge() == Counter()
    assert not path.exists()
    assert merge(row(1, 11), row(0, 10, nan)) == Counter(added=2)
    before = path.stat().st_mtime_ns
    assert merge(row(0, 10, nan)) == Counter(unchanged=1)
    assert path.stat().st_mtime_ns == before
    assert merge(row(1, 12), row(2, 13)) == Counter(added=1, differing=1)
    assert [bar[4] // NANO for bar in read_bars(path)] == [10, 11, 13]
    assert merge(row(1, 12), replace=True) == Counter(replaced=1)
    assert [bar[4] // NANO for bar in read_bars(path)] == [10, 12, 13]


def test_actions_are_merged_and_none_at_all_is_written_down(tmp_path: Path) -> None:
    path = tmp_path / "actions" / "AAA.csv"
    assert merge_actions(path, "AAA", (), replace=False) == ((), Counter())
    assert path.read_text() == "ex_date,kind,value\n"
    merge_actions(path, "AAA", [act(1, DIVIDEND, "0.5")], replace=False)
    known, merged = merge_actions(path, "AAA", [act(1, DIVIDEND, "0.6"), act(2, SPLIT, "2")], replace=False)
    assert merged == Counter(added=1, differing=1)
    assert [one.value for one in known] == [Decimal("0.5"), Decimal(2)]
    assert merge_actions(path, "AAA", [act(1, DIVIDEND, "0.6")], replace=True)[1] == Counter(replaced=1)


def test_a_bar_that_cannot_be_is_refused_with_its_day() -> None:
    bad = Bar(
        session=FIRST,
        open=Decimal(10),
        high=Decimal(9),
        low=Decimal(11),
        close=Decimal(10),
        adj_close=None,
        volume=Decimal(1),
    )
    with pytest.raises(MalformedData, match="AAA on 2024-01-02 cannot be: high 9 is below low 11"):
        checked_row("AAA", bad)


def test_a_log_that_is_damaged_or_of_a_later_program_is_no_obstacle(tmp_path: Path) -> None:
    log = FetchLog(tmp_path)
    log.note("AAA", feed="iex", computed=True)
    assert FetchLog(tmp_path).of("AAA") == SymbolRequests(feed="iex", computed=True)
    text = (tmp_path / "fetched.json").read_text()
    (tmp_path / "fetched.json").write_text(text.replace('"feed"', '"later": 1, "feed"'))
    assert FetchLog(tmp_path).of("AAA").computed
    for damage in ("", "[]", text.replace("true", '"yes"'), "\x00"):
        (tmp_path / "fetched.json").write_text(damage)
        assert FetchLog(tmp_path).of("AAA") == SymbolRequests()


def test_news_of_other_origin_stays_to_the_letter(tmp_path: Path) -> None:
    path = tmp_path / "AAA.jsonl"
    own = '{"date": "2024-01-02", "headline": "mine", "summary": "mine"}'
    path.write_text(own)
    item = NewsItem(
        id="7",
        symbol="AAA",
        date=FIRST,
        available_at=AT,
        summary="s",
        headline="h",
        published=AT,
        source="wire",
        sentiment=None,
        url="https://x.test/7",
    )
    assert append_news(path, [item, item]) == (1, 1)
    assert path.read_text().splitlines()[0] == own
    assert append_news(path, [item]) == (0, 1)
    path.write_text('{"id": 7}\n')
    with pytest.raises(MalformedData, match="line 1"):
        append_news(path, [item])
