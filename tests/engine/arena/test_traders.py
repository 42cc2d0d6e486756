"""Traders by rules at every preset: whole days, one tape for one seed, a seat that changes nothing."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from engine.arena.market import Market
from engine.arena.play import play
from engine.arena.players import RulePlayer
from engine.arena.rules import load_rules, preset_names
from engine.arena.traders import RULES
from tests.engine.arena.zero_intelligence import efficiency

AGENTS = {f"{name} {number}": rule for number in (1, 2) for name, rule in RULES.items()}
SYMMETRIC = range(10, 120, 10)


def last_day(name: str, *, reverse: bool = False, seed: int = 5) -> Market:
    """The market of rules after the last day."""

    async def played() -> Market:
        agents = dict(reversed(AGENTS.items())) if reverse else AGENTS
        players = {agent: RulePlayer(rule, Random(f"{seed} {agent}")) for agent, rule in agents.items()}
        return [table async for table in play(load_rules(name), players, seed)][-1].market

    return asyncio.run(played())


@pytest.mark.parametrize("name", preset_names())
def test_rules_trade_every_preset_to_its_end(name: str) -> None:
    market = last_day(name)
    assert market.day == market.rules.days + 1
    traders = {one.buyer for one in market.trades} | {one.seller for one in market.trades}
    # The seats of `ssw` cannot pay a share at its first price, at which buy and hold buys.
    assert {agent.rpartition(" ")[0] for agent in traders} >= set(RULES) - {"buy-and-hold"}
    assert market.trades == last_day(name).trades
    assert market.trades != last_day(name, seed=6).trades
    cash, shares = market.ledger.balance()
    assert cash == 0 and set(shares.values()) == {0}


def test_the_seat_does_not_decide_who_comes_first() -> None:
    assert last_day("constant").trades == last_day("constant", reverse=True).trades


def test_a_bounded_market_ends_with_nothing_but_cash() -> None:
    for name, price in (("ssw", 0), ("constant", 14)):
        market = last_day(name)
        bought = [one for one in market.flows if one.kind == "buy_back"]
        assert sum(one.shares for one in bought) == -sum(one.shares for one in market.listings.values())
        assert all(one.amount == -price * one.shares for one in bought)
        assert all(market.ledger.shares(agent, "X") == 0 for agent in AGENTS)


def test_constrained_traders_find_the_gains_and_unconstrained_ones_all_pairs() -> None:
    """A schedule of eleven buyers and eleven sellers of one share, symmetric around its price. Five hundred seeds are
    in the bench."""
    constrained = [efficiency(SYMMETRIC, SYMMETRIC, seed, constrained=True) for seed in range(40)]
    assert sum(constrained) / len(constrained) >= 0.95
    # Whoever trades with whom, all 22 trade: what all buyers value less what all sellers pay is nothing.
    assert {efficiency(SYMMETRIC, SYMMETRIC, seed, constrained=False) for seed in range(10)} == {0}
    # Steep demand over flat supply: all pairs realise 110 of the 210 that there are to gain.
    steep, flat = range(20, 130, 10), [60] * 11
    gain = sum(value - 60 for value in steep) / sum(value - 60 for value in steep if value > 60)
    assert efficiency(steep, flat, 1, constrained=False) == pytest.approx(gain)
    assert efficiency(steep, flat, 1, constrained=True) == 1
