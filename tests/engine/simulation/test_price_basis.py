from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.market import ActionKind, CorporateAction, PriceHistory
from engine.domain.run import PriceBasis
from engine.errors import MissingData
from engine.simulation.price_basis import known_adjusted, on_basis, on_first_basis
from tests.engine.desks import bar

D = Decimal
TUE, WED, THU = (date(2024, 1, n) for n in (2, 3, 4))


def history(*bars: tuple[date, str, str, str | None]) -> PriceHistory:
    """Bars from (session, open, close, adj_close)."""
    return PriceHistory.of("AAA", [bar(*each, volume=60) for each in bars])


DIVIDEND_PAID = history((TUE, "100", "80", "60"), (WED, "90", "100", "90"), (THU, "50", "40", "38"))


def test_prices_as_traded_stay() -> None:
    assert on_basis(DIVIDEND_PAID, PriceBasis.RAW) is DIVIDEND_PAID


def test_adjusted_prices_close_at_adj_close_with_the_rest_of_the_bar_scaled_alike() -> None:
    bar = on_basis(DIVIDEND_PAID, PriceBasis.ADJUSTED).bar(0)

    assert (bar.open, bar.high, bar.low, bar.close) == (D(75), D(75), D(60), D(60))


def test_rebased_prices_equal_the_last_close() -> None:
    rebased = on_basis(DIVIDEND_PAID, PriceBasis.REBASED)

    factor = D(40) / D(38)
    assert rebased.bar(-1).close == DIVIDEND_PAID.bar(-1).close
    assert abs(rebased.bar(0).close - 60 * factor) <= D("5e-10")
    assert abs(rebased.bar(0).open - 75 * factor) <= D("5e-10")


def test_an_unknown_adj_close_is_named() -> None:
    gap = history((TUE, "1", "1", "1"), (WED, "1", "1", None))

    with pytest.raises(MissingData, match="AAA 2024-01-03"):
        on_basis(gap, PriceBasis.ADJUSTED)


def test_what_is_unknown_before_the_window_is_left_out_and_inside_it_is_not() -> None:
    early, late = history((TUE, "1", "1", None), (WED, "1", "1", "1"), (THU, "1", "1", "1")), DIVIDEND_PAID

    assert known_adjusted(early, THU).session(0) == WED
    assert known_adjusted(early, TUE).session(0) == TUE
    assert len(known_adjusted(late, THU)) == 3


def test_a_split_does_not_move_the_scale_that_rules_read() -> None:
    split = CorporateAction("AAA", WED, ActionKind.SPLIT, D("1.5"))
    halved = history((TUE, "30", "30", None), (WED, "20", "21", None), (THU, "22", "22", None))

    read = on_first_basis(halved, [split])

    assert [bar.close for bar in read] == [D(30), D("31.5"), D(33)]
    assert [bar.open for bar in read] == [D(30), D(30), D(33)]
    assert [bar.volume for bar in read] == [D(60), D(40), D(40)]


@given(
    st.lists(st.integers(1, 10**6), min_size=2, max_size=10),
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["2", "1.5", "0.1", "3"])), max_size=3),
    st.integers(1, 10),
)
def test_a_later_split_changes_no_earlier_figure(closes: list[int], splits: list[tuple[int, str]], known: int) -> None:
    days = [date.fromordinal(TUE.toordinal() + n) for n in range(len(closes))]
    whole = history(*((d, str(c), str(c), None) for d, c in zip(days, closes, strict=True)))
    actions = [
        CorporateAction("AAA", date.fromordinal(TUE.toordinal() + n), ActionKind.SPLIT, D(ratio)) for n, ratio in splits
    ]
    cut = whole.slice(0, known)

    read = on_first_basis(cut, [a for a in actions if a.ex_date <= cut.session(-1)])

    assert list(read.close) == list(on_first_basis(whole, actions).close[: len(cut)])
