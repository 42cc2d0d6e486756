"""A quoted figure either stands in the inputs or is named."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.agents.figures import Facts, unresolved_figures
from engine.domain.decision import Action

INPUTS = """- price: 180.00, cash: 50000.00 (50.12% of the portfolio), RSI 71.83, K 88.1
2023-06-01: BUY 5. A market of $5.76 billion, CAGR 7.2%, upper band 1,234.567, fraction 0.0563, 12 of 14"""


@pytest.mark.parametrize(
    "text",
    [
        "The price of 180 and an RSI of 72.",
        "$50,000 in cash, 50.1%, about 50 percent.",
        "RSI above 70 is overbought; K over 80.",
        "The 50-day SMA, RSI(14), MACD (12, 26, 9), SMA 200, 20 sessions.",
        "$5.76 billion, 5.8bn, 5760 million, $5,760,000,000.",
        "The upper band at 1234.57.",
        "A gain of 5.63%.",
        "On 2023-06-01, on June 3 and in 2024, at 10:30; a 10-K, Q3, COVID-19.",
        "Selling 3% of the portfolio; BUY 8% here; a position of size 9.",
        "3 of 4 reports agree, 7 do not.",
        "",
    ],
)
def test_what_was_given_resolves(text: str) -> None:
    assert unresolved_figures(text, [Facts(INPUTS)]) == ()


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("The price is 185.20.", ("185.20",)),
        ("RSI(14) at 65.2 and K at 88.1", ("65.2",)),
        ("RSI 28, so oversold; SMA 10 at 1,100", ("28", "1,100")),
        ("A profit of 8%.", ("8%",)),
        ("Resistance at $1,250 and at 1,250 again; and $1,250.", ("$1,250", "1,250")),
        ("A deal of 150 million.", ("150 million",)),
        ("The price is 180.04", ("180.04",)),
        ("It gained 3% in a day.", ("3%",)),
    ],
)
def test_what_was_not_given_is_named_as_written(text: str, missing: tuple[str, ...]) -> None:
    assert unresolved_figures(text, [Facts(INPUTS)]) == missing


@given(st.decimals("0.01", "99999", places=2), st.integers(0, 2))
def test_a_figure_rounded_to_fewer_digits_still_resolves(value: object, digits: int) -> None:
    exact = f"{value:.2f}"
    assert unresolved_figures(f"The level is {float(exact):,.{digits}f}.", [Facts(f"level {exact}")]) == ()


@given(st.decimals("1000", "99999", places=2))
def test_a_figure_that_is_off_by_one_percent_does_not(value: object) -> None:
    told = f"{float(str(value)) * 1.01:.2f}"
    assert unresolved_figures(f"The level is {told}.", [Facts(f"level {value}")]) == (told,)


ITEM = "- [N1] 2025-03-11: It closed at 500.00 with an RSI of 12.3; an analyst has a target of $90; EPS of $2.40."
STATED = """- [N2] 2025-03-11: Quill cut its revenue target to $3.10 billion and its sales target to 4,500 units.
- [N3] 2025-03-11: Jefferies sets a target of $250; the margin target is 12%."""


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("The price is 500.00", ("500.00",)),
        ("Trading at $500 now", ("$500",)),
        ("It ended at 500.00", ("500.00",)),
        ("RSI (relative strength) is at 12.3", ("12.3",)),
        ("Oversold at 12.3", ("12.3",)),
        ("It closed higher on EPS of $2.40.", ()),
        ("The RSI is neutral and EPS of 2.40 beat.", ()),
        ("Analysts see a target of $90.", ()),
    ],
)
def test_what_an_item_says_of_a_close_or_an_indicator_is_no_source(text: str, missing: tuple[str, ...]) -> None:
    assert unresolved_figures(text, [Facts(INPUTS, ITEM)]) == missing


@pytest.mark.parametrize(
    ("text", "action", "missing"),
    [
        ("Target 90, stop at 170.", Action.BUY, ("90",)),
        ("Target $90, stop at 195.5.", Action.SELL, ()),
        ("A stop at 1,234.57.", Action.BUY, ("1,234.57",)),
        ("A target of 180.00", Action.BUY, ("180.00",)),
        ("Bought although an analyst has a target of $90.", Action.BUY, ()),
        ("Target 90, stop at 500.", Action.HOLD, ()),
        ("It cut its revenue target to $3.10 billion.", Action.SELL, ()),
        ("It cut its target to $3.10 billion.", Action.SELL, ()),
        ("A sales target of 4,500 units, a margin target of 12%.", Action.SELL, ()),
        ("A sales target of 4,700 units, a margin target of 13%.", Action.BUY, ("4,700", "13%")),
        ("The fall stops at 1,234.57.", Action.BUY, ()),
        ("Our stops at 1,234.57.", Action.BUY, ("1,234.57",)),
        ("Analysts' consensus target of $210 supports buying.", Action.BUY, ("$210",)),
        ("Analysts' consensus target of $88.1", Action.BUY, ("$88.1",)),
        ("Analysts agree, and my target is 210.", Action.BUY, ()),
        ("Jefferies sets a target of $250.", Action.SELL, ()),
        ("Jefferies raised its target to $260.", Action.BUY, ("$260",)),
        ("It sets a target of $250.", Action.SELL, ("$250",)),
        ("Momentum sets a target of $250.", Action.SELL, ("$250",)),
        ("Target $250.", Action.SELL, ("$250",)),
    ],
)
def test_a_target_on_the_wrong_side_is_flagged_whoever_states_it(
    text: str, action: Action, missing: tuple[str, ...]
) -> None:
    assert unresolved_figures(text, [Facts(INPUTS, f"{ITEM}\n{STATED}")], action, Decimal("180")) == missing
