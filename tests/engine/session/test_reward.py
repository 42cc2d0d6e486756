"""What decisions earned, reckoned by hand. Source: FinVision §3.4 [V7]."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from engine.domain.decision import Action, Decision, DecisionKey, Proposal, SizingRule
from engine.domain.order import Portfolio, Position, Side
from engine.domain.run import CashFlow, EquityPoint
from engine.execution.venue import SettledSession
from engine.session.outcomes import outcomes
from tests.engine.desks import fill, outcome

MONDAY, TUESDAY = date(2024, 3, 4), date(2024, 3, 5)


def decision(symbol: str, action: Action = Action.HOLD, abstained: str = "") -> Decision:
    rule = None if abstained else SizingRule.UNCERTAINTY
    key = DecisionKey("r", MONDAY, 1, symbol, "desk")
    return Decision(key=key, action=action, size=Decimal(0), proposal=Proposal(action, 0, rule, "so it is", abstained))


def books(session: date, cash: str, held: dict[str, tuple[str, str]]) -> EquityPoint:
    """Books from symbol to quantity and price."""
    positions = {s: Position(Decimal(q), Decimal(1)) for s, (q, _) in held.items() if Decimal(q)}
    prices = {s: Decimal(p) for s, (_, p) in held.items()}
    portfolio = Portfolio(Decimal(cash), positions)
    return EquityPoint(session, portfolio.value({s: prices[s] for s in positions}), portfolio, prices)


def test_the_reward_is_the_symbols_part_of_the_portfolios_change() -> None:
    # 100 AAA go from 20 to 22 (+200); 40 more are bought at 21 and end at 22, less a fee of 5 (+35);
    # 10 BBB at 50 are sold at 48 with a fee of 1 (-21).
    before = books(MONDAY, "7500", {"AAA": ("100", "20"), "BBB": ("10", "50")})
    after = books(TUESDAY, "7134", {"AAA": ("140", "22"), "BBB": ("0", "49")})
    trades = [
        fill("AAA", Side.BUY, TUESDAY, "40", "21", fee=Decimal(5)),
        fill("BBB", Side.SELL, TUESDAY, "10", "48", fee=Decimal(1)),
    ]

    rows = outcomes(
        [decision("AAA"), decision("BBB"), decision("CCC")], SettledSession(before, after, tuple(trades)), {}
    )

    assert before.value == 10_000
    assert [(r.symbol, r.reward, r.cumulative) for r in rows] == [
        ("AAA", Decimal("0.0235"), Decimal("0.0235")),
        ("BBB", Decimal("-0.0021"), Decimal("-0.0021")),
        ("CCC", 0, 0),
    ]
    # The symbols' rewards are the portfolio's.
    assert sum(r.reward for r in rows) == after.value / before.value - 1
    assert [(r.decision_session, r.session) for r in rows] == [(MONDAY, TUESDAY)] * 3
    assert [r.close for r in rows[:2]] == [22, 49]


def test_a_split_is_no_profit_and_a_dividend_is_one() -> None:
    # 3 for 2: 101 shares at 30 become 151 at 20 and half a share in cash (10): 3020 + 10 = 3030 as before.
    # Then a dividend of 0.10 on 151 shares, 15.10.
    before = books(MONDAY, "6970", {"AAA": ("101", "30")})
    after = books(TUESDAY, "6995.10", {"AAA": ("151", "20")})
    flows = [
        CashFlow(session=TUESDAY, symbol="AAA", kind="cash in lieu", amount=Decimal(10)),
        CashFlow(session=TUESDAY, symbol="AAA", kind="dividend", amount=Decimal("15.10")),
    ]

    (row,) = outcomes([decision("AAA")], SettledSession(before, after, (), tuple(flows)), {})

    assert before.value == 10_000
    assert row.reward == Decimal("0.00151")


def test_the_cumulative_return_compounds_from_the_rows_so_far() -> None:
    before = books(MONDAY, "0", {"AAA": ("100", "100")})
    after = books(TUESDAY, "0", {"AAA": ("100", "110")})
    so_far = outcome(date(2024, 3, 1), MONDAY, cumulative=Decimal("0.2"))
    other = {("AAA", "someone else"): [so_far]}

    (first,) = outcomes([decision("AAA")], SettledSession(before, after), other)
    (second,) = outcomes([decision("AAA")], SettledSession(before, after), {("AAA", "desk"): [so_far]})

    assert (first.reward, first.cumulative) == (Decimal("0.1"), Decimal("0.1"))
    assert (second.reward, second.cumulative) == (Decimal("0.1"), Decimal("0.32"))


def test_an_abstention_tells_its_reason_and_money_lost_is_no_division_by_zero() -> None:
    nothing = books(MONDAY, "0", {})

    (row,) = outcomes([decision("AAA", Action.ABSTAIN, "timed out: no answer")], SettledSession(nothing, nothing), {})

    assert (row.action, row.reward) == (Action.ABSTAIN, 0)
    assert row.key_factors == "no rule: timed out: no answer"
