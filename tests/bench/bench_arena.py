"""Arenas of rules and of personas with the offline model: days a second and memory, and what zero-intelligence traders
realise over 500 seeds.

Beside the figures of Gode and Sunder's schedules: constrained traders at least 96 %, unconstrained ones all pairs.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from resource import RUSAGE_SELF, getrusage
from statistics import mean, quantiles
from time import perf_counter

from connectors.wiring.services import services
from engine.app.arena.arena import run_arena
from engine.app.arena.record import ArenaSpec
from engine.arena.play import Table, play
from engine.arena.players import RulePlayer
from engine.arena.rules import PRESETS, ArenaRules, load_rules
from engine.arena.traders import RULES
from engine.settings.config import Config
from tests.engine.arena.zero_intelligence import efficiency

DAYS, STOCKS, AGENTS, SEEDS = 250, 4, 12, 500
LIMIT = 30.0
"""Seconds for the days of twelve agents."""
OFFLINE_LIMIT = 120.0
"""Seconds where they ask the offline model."""
GROWTH = 30
"""Megabytes that an arena may grow by in its last four fifths: its tape, its chat and its strategies."""
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
    failed = _rules()
    failed |= _personas()
    failed |= _zero_intelligence()
    return 1 if failed else 0


def _rules() -> bool:
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
    return seconds > LIMIT or memory - after_a_fifth > GROWTH


def _personas() -> bool:
    """As many personas, each asking the offline model, as the command plays and records them."""
    memory: dict[int, int] = {}

    def note(table: Table) -> None:
        memory[table.market.day] = getrusage(RUSAGE_SELF).ru_maxrss // 1024

    with tempfile.TemporaryDirectory() as home:
        os.environ["PAPERDESK_HOME"] = home
        market, seats = Path(home, "market.toml"), Path(home, "seats.toml")
        paper = (PRESETS / "paper.toml").read_text("utf-8").replace("days = 30", f"days = {DAYS}")
        fourth = '[[stocks]]\nname = "D"\nshares = 1200\nfirst_price = 450\ndividends = [22]\n\n[[seats]]'
        market.write_text(paper.replace("[[seats]]", fourth), "utf-8")
        seats.write_text("".join(f'[[agents]]\nname = "P{number}"\n' for number in range(AGENTS)), "utf-8")
        spec, began = ArenaSpec(run="arena-bench", preset=str(market), agents=str(seats)), perf_counter()
        document = run_arena(services(Config()), spec, on_day=note)
    seconds, first, last = perf_counter() - began, memory[DAYS // 5], memory[max(memory)]
    print(
        f"\nArena: {AGENTS} personas, the offline model, x {STOCKS} stocks x {DAYS} days (limit {OFFLINE_LIMIT:.0f} s)"
    )
    made = f"{document['model']['calls']} calls, {len(document['trades'])} trades"
    print(f"  {seconds:.1f} s, {made}, {first} MB after a fifth, {last} MB at the end")
    return seconds > OFFLINE_LIMIT or last - first > GROWTH


def _zero_intelligence() -> bool:
    failed = False
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
    return failed


if __name__ == "__main__":
    sys.exit(main())
