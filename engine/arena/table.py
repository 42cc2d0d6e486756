"""The days of an arena whose agents follow rules: who comes when, and what comes of their orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

from engine.arena.market import Market
from engine.arena.rules import ArenaRules
from engine.arena.traders import Rule
from engine.arena.view import view_of


def play(rules: ArenaRules, agents: Mapping[str, Rule], seed: int) -> Iterator[Market]:
    """Play all days; yields the market after each. The order of arrival is drawn for every round and does not depend on
    the seats."""
    market = Market(rules, tuple(agents), seed)
    draws = {name: Random(f"{seed} {name}") for name in agents}
    for day in range(1, rules.days + 1):
        market.open_day()
        for count in range(1, rules.rounds + 1):
            for agent in arrivals(tuple(agents), seed, day, count):
                for open_order in market.open_orders(agent):
                    market.cancel(agent, open_order.order.id)
                for wish in agents[agent](view_of(market, agent), draws[agent]):
                    market.submit(agent, *wish)
            market.end_round()
        market.close_day()
        yield market


def arrivals(agents: tuple[str, ...], seed: int, day: int, count: int) -> list[str]:
    """The agents in their order of arrival in a round."""
    order = sorted(agents)
    Random(f"{seed} {day} {count}").shuffle(order)
    return order
