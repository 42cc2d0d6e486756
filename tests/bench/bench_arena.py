"""The arena of rule agents: days a second, and what zero-intelligence traders realise over 500 seeds.

Beside the figures of Gode and Sunder's schedules: constrained traders at least 96 %, unconstrained ones all pairs.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from random import Random
from resource import RUSAGE_SELF, getrusage
from statistics import mean, quantiles
from time import perf_counter

from engine.arena.play import play
from engine.arena.players import RulePlayer
from engine.arena.rules import ArenaRules, load_rules
from engine.arena.traders import RULES
from tests.engine.arena.zero_intelligence import efficiency

DAYS, STOCKS, SEEDS = 250, 4, 500
LIMIT = 30.0
"""Seconds for the days of twelve agents."""
SCHEDULES: dict[str, tuple[Sequence[int], Sequence[int], str]] = {
    "symmetric 11 x 11": (range(10, 120, 10), range(10, 120, 10), "97.2 %"),
    "steep over flat": (range(20, 130, 10), [60] * 11, "100 %"),
}
"""Values, costs, and what constrained traders realise with another book on a schedule of that shape."""


def year() -> ArenaRules:
    """The paper's economy with four stocks over 250 days."""
    paper = load_rules("paper").model_dump()
    paper["stocks"] = [paper["stocks"][0] | {"name": name} for name in "ABCD"][:STOCKS]
    return ArenaRules.model_validate(paper | {"days": DAYS})


def main() -> int:
    agents = {f"{name} {number}": rule for number in (1, 2) for name, rule in RULES.items()}
    began, memory, after_a_fifth = perf_counter(), 0, 0
    trades = 0

    async def whole() -> None:
        nonlocal trades, memory, after_a_fifth
        players = {agent: RulePlayer(rule, Random(agent)) for agent, rule in agents.items()}
        async for table in play(year(), players, 1):
            trades, memory = len(table.market.trades), getrusage(RUSAGE_SELF).ru_maxrss // 1024
            after_a_fifth = memory if table.market.day == DAYS // 5 else after_a_fifth

    asyncio.run(whole())
    seconds = perf_counter() - began
    print(f"\nArena: {len(agents)} rule agents x {STOCKS} stocks x {DAYS} days (limit {LIMIT:.0f} s)")
    print(f"  {seconds:.1f} s, {trades} trades, {after_a_fifth} MB after a fifth, {memory} MB at the end")
    failed = seconds > LIMIT
    print(f"\nZero-intelligence traders, {SEEDS} seeds: part of the possible gains")
    for name, (values, costs, elsewhere) in SCHEDULES.items():
        constrained = [efficiency(values, costs, seed, constrained=True) for seed in range(SEEDS)]
        free = mean(efficiency(values, costs, seed, constrained=False) for seed in range(SEEDS))
        low = quantiles(constrained, n=20)[0]
        pairs = (sum(values) - sum(costs)) / sum(max(0, v - c) for v, c in zip(values[::-1], costs, strict=True))
        print(
            f"  {name}: constrained {mean(constrained):.1%} (p5 {low:.1%}; elsewhere {elsewhere}), "
            f"unconstrained {free:.1%} (all pairs {pairs:.1%})"
        )
        failed |= mean(constrained) < 0.96 or abs(free - pairs) > 1e-9
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
