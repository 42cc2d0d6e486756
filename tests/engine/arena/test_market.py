"""The arena's market under random orders: accounts that balance, limits that hold, price-time priority, one tape."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.arena.book import cents
from engine.arena.market import Market
from engine.arena.rules import ArenaRules, load_rules, preset_names
from engine.arena.values import FlowKind, Order, Refusal
from engine.domain.order import Side
from tests.examples import examples

AGENTS = ("ann", "bob", "cy", "dee")
Action = tuple[str, str, Side, int, Decimal | None, bool]

ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(AGENTS),
        st.sampled_from(("X", "Y")),
        st.sampled_from(Side),
        st.integers(1, 40),
        st.one_of(st.none(), st.integers(700, 1300).map(lambda cents: Decimal(cents) / 100)),
        st.booleans(),
    ),
    max_size=60,
)
VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"fluctuation": 20, "daily_cap": "0.1", "cost_rate": "0.0037", "fee_rate": "0.03"},
    {"fluctuation": 15, "daily_cap": "0.6", "settle": "impact", "checks": "printed", "fee_rate": "0.02"},
    {"settle": "impact", "fluctuation": 20, "cost_rate": "0.01"},
    {"auction": "call", "interest": "0.05", "buy_back": 14},
)


def rules(**changes: Any) -> ArenaRules:
    """Two stocks at 10, little cash and few shares, so that orders meet their limits."""
    stocks = [{"name": name, "shares": 50, "first_price": 10, "dividends": ["0", "0.37"]} for name in ("X", "Y")]
    return ArenaRules.model_validate({"days": 3, "stocks": stocks, "seats": [{"cash": "217.31"}]} | changes)


def play(market: Market, actions: Sequence[Action]) -> list[Order | Refusal]:
    """Send orders, and end a round or a day now and then; check the accounts after every event."""
    answers = []
    for number, (agent, stock, side, quantity, limit, cancels) in enumerate(actions, 1):
        answers.append(market.submit(agent, stock, side, quantity, limit))
        check_accounts(market)
        mine = market.open_orders(agent)
        if cancels and mine:
            assert market.cancel(agent, mine[0].order.id)
            check_accounts(market)
        if number % 7 == 0:
            market.end_round()
        if number % 20 == 0:
            market.close_day()
            market.open_day()
        check_accounts(market)
    return answers


def check_accounts(market: Market) -> None:
    """All accounts add up to nothing; none is negative; open orders are covered; flows and trades give the cash."""
    cash, shares = market.ledger.balance()
    assert cash == 0 and set(shares.values()) == {0}
    for agent in AGENTS:
        assert market.ledger.free_cash(agent) >= 0
        assert all(market.ledger.free_shares(agent, stock) >= 0 for stock in market.listings)
        flows = sum(one.amount for one in market.flows if one.agent == agent)
        bought = sum(one.price * one.quantity + one.cost_buyer for one in market.trades if one.buyer == agent)
        sold = sum(one.price * one.quantity - one.cost_seller for one in market.trades if one.seller == agent)
        assert market.ledger.cash(agent) == flows - bought + sold
    for listing in market.listings.values():
        bids, asks = (listing.book.orders(side) for side in (Side.BUY, Side.SELL))
        assert [one.priority for one in bids] == sorted(one.priority for one in bids)
        if market.rules.auction == "continuous" and bids and asks:
            assert bids[0].limit < asks[0].limit


def flow_of_orders(variant: dict[str, Any], actions: Sequence[Action]) -> None:
    """Check a market after every order, its trades against the limits, and that a second one has the same tape."""
    market, again = Market(rules(**variant), AGENTS, seed=3), Market(rules(**variant), AGENTS, seed=3)
    assert play(market, actions) == play(again, actions)
    assert (market.trades, market.flows) == (again.trades, again.flows)
    for trade in market.trades:
        assert trade.buyer != trade.seller and trade.quantity > 0
        assert trade.excess == 0 or market.rules.settle == "impact"
        cost = cents(trade.price * trade.quantity * market.rules.cost_rate)
        assert (trade.cost_buyer, trade.cost_seller) == (cost, cost)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: ",".join(one) or "plain")
@given(actions=ACTIONS)
@examples(60)
def test_accounts_balance_after_every_event(variant: dict[str, Any], actions: list[Action]) -> None:
    flow_of_orders(variant, actions)


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: ",".join(one) or "plain")
@given(actions=ACTIONS)
@examples(2_000)
def test_accounts_balance_over_many_flows(variant: dict[str, Any], actions: list[Action]) -> None:
    flow_of_orders(variant, actions)


@given(actions=ACTIONS)
@examples(60)
def test_trades_follow_price_and_time(actions: list[Action]) -> None:
    """A slow auctioneer of its own: the best price first, of equal ones the earliest."""
    market = Market(rules(), AGENTS)
    waiting: list[list[Any]] = []
    for agent, stock, side, quantity, limit, _ in actions:
        before = len(market.trades)
        order = market.submit(agent, stock, side, quantity, limit)
        if isinstance(order, Refusal):
            assert len(market.trades) == before
            continue
        expected, left = [], quantity
        others = [one for one in waiting if one[0].stock == stock and one[0].side is not side]
        sign = 1 if side is Side.BUY else -1
        for one in sorted(others, key=lambda one: (sign * one[0].limit, one[0].id)):
            if left == 0 or (limit is not None and sign * one[0].limit > sign * limit):
                break
            if one[0].agent == agent:
                one[1] = 0
                continue
            done = min(left, one[1])
            if limit is None and side is Side.BUY:
                spent = sum(price * count for price, count, _ in expected)
                cash = cash_before(market, agent, before) - spent
                done = min(done, int(cash / one[0].limit))
                if done == 0:
                    left = 0
                    break
            expected.append((one[0].limit, done, one[0].agent))
            one[1] -= done
            left -= done
        assert [(one.price, one.quantity, one.maker) for one in market.trades[before:]] == expected
        waiting = [one for one in waiting if one[1]]
        if left and limit is not None:
            waiting.append([order, left])


def cash_before(market: Market, agent: str, trades: int) -> Decimal:
    """Cash that was free for an agent's order before it traded; its own orders in the book may have been withdrawn."""
    done = market.trades[trades:]
    moved = sum(one.price * one.quantity for one in done if one.buyer == agent)
    return market.ledger.free_cash(agent) + moved


def test_presets_open_and_close_every_day() -> None:
    assert list(preset_names()) == ["constant", "paper", "paper-program", "ssw"]
    for name in preset_names():
        market = Market(load_rules(name), [f"agent {number}" for number in range(9)], seed=1)
        for _ in range(market.rules.days):
            market.open_day()
            market.close_day()
        assert market.submit("agent 0", market.rules.stocks[0].name, Side.BUY, 1, Decimal(1)) is Refusal.CLOSED
        cash, shares = market.ledger.balance()
        assert cash == 0 and set(shares.values()) == {0}


def test_the_papers_wealth_goes_to_dividends_over_the_fee() -> None:
    """89,400 of dividends a day against a fee of 3 % of all wealth: 2.98 m in the long run, 2.60 m at first."""
    paper = load_rules("paper").model_copy(update={"days": 400})
    market = Market(paper, [f"agent {number}" for number in range(9)])
    wealth = [sum(market.wealth(agent) for agent in market.agents)]
    for _ in range(paper.days):
        market.close_day()
        wealth.append(sum(market.wealth(agent) for agent in market.agents))
    assert round(wealth[0]) == 900_000 + round(1200 * 445.60 + 1000 * 465.80 + 1600 * 440.60)
    dividends = [one.amount for one in market.flows if one.kind is FlowKind.DIVIDEND and one.day == 1]
    assert sum(dividends) == 22 * 1200 + 23 * 1000 + 25 * 1600 == 89_400
    # The fee is charged after the dividends.
    assert abs(wealth[-1] - Decimal(89_400) * Decimal("0.97") / Decimal("0.03")) < 1_000


def test_impact_moves_the_reference_price_as_the_paper_says() -> None:
    paper = load_rules("paper")
    market = Market(paper, [f"agent {number}" for number in range(9)])
    reference = 445.60
    deals = ((10, "460"), (4, "431.5"), (60, "520"), (1, "100"))
    for number, (quantity, price) in enumerate(deals):
        market.submit(f"agent {number}", "A", Side.BUY, quantity, Decimal(price))
        market.submit(f"agent {number + 4}", "A", Side.SELL, quantity, Decimal(price))
        reference = (float(price) * quantity * 20 + reference * 1200) / (quantity * 20 + 1200)
        assert float(market.listings["A"].reference) == pytest.approx(reference, abs=1e-4)
        assert market.trades[-1].price == Decimal(price)
    # F = 20: ten of a thousand shares move the price 17 % of the way to the deal, a hundred 67 %.
    assert paper.moved(Decimal(0), Decimal(100), 10, 1000) == Decimal("16.666667")
    assert paper.moved(Decimal(0), Decimal(100), 100, 1000) == Decimal("66.666667")


def test_the_daily_cap_holds_the_reference_price() -> None:
    market = Market(load_rules("paper"), [f"agent {number}" for number in range(9)])
    market.submit("agent 0", "A", Side.BUY, 90, Decimal(1100))
    market.submit("agent 1", "A", Side.SELL, 90, Decimal(1100))
    market.submit("agent 2", "A", Side.BUY, 90, Decimal(1100))
    market.submit("agent 3", "A", Side.SELL, 90, Decimal(1100))
    assert market.listings["A"].reference == Decimal("445.60") * Decimal("1.7")
