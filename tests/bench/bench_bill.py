"""Share of the list price that a preset costs through real requests, lever by lever, and its forecast beside the bill.

The model service on loopback (tests/servers/billing_server.py) bills as the vendors do and answers as the offline rules
do. *list* is the preset as it is, with each token at full price; then comes one lever after the other: beginnings from
the cache, the flex tier, one question about both terms of performance, and last, beside the aims, tables in place of
pictures. With 300 tokens of reasoning a call the forecast takes them from calls that were recorded before. Rules write
more than the models that the table of prices (docs/models.md) assumes: the last column has answers as long as there.
A beginning that could have come from the cache and did not, or a forecast that is off by more than 15 %, fails the
bench. Run as `python -m tests.bench.bench_bill [--weeks 4]`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

from connectors.wiring.services import services
from engine.app.bench.forecast import forecast
from engine.app.bench.jobs import Job
from engine.app.research.backtest import run_backtest
from engine.domain.model_call import AnswerOptions
from engine.domain.run import DataSpec, RunSpec
from engine.settings.config import Config
from tests.connectors.wiring.clocks import NOON
from tests.servers.billing_server import PRICES, SPECS, Billed, billing_server, rules_answers

MODEL = SPECS["openai"]
FIRST = date(2024, 3, 4)
ASSUMED = {"finvision": 300, "desk": 1_200}
"""Tokens of all answers to a decision that the table of prices assumes."""
REASONING = 300
AIMS = {0: 0.35, REASONING: 0.38}
NEAR = 0.15
"""How far a forecast may be off."""
ONE_QUESTION = "performance_questions = 1"
TABLES = f'{ONE_QUESTION}\nwithout = ["vision"]'


@dataclass(frozen=True)
class Arm:
    """A run's bill: its calls, the number of its decisions, and the dollars that were forecast."""

    calls: Sequence[Billed]
    decisions: int
    forecast: Decimal

    @property
    def usd(self) -> Decimal:
        """The bill."""
        return sum((one.usd for one in self.calls), Decimal(0))

    @property
    def out(self) -> float:
        """Tokens of all answers to a decision, without reasoning."""
        return sum(one.out - one.reasoned for one in self.calls) / self.decisions


def played(preset: str, changes: str, tier: str | None, reasoning: int, weeks: int) -> Arm:
    """A run in a home of its own; one with reasoning is forecast after two weeks of calls were recorded."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["PAPERDESK_HOME"] = home
        file = Path(home) / "own.toml"
        file.write_text(f'extends = "{preset}"\nname = "own"\n{changes}\n')
        config = Config.model_validate({"models": {"default": MODEL}})
        spec = RunSpec(
            symbols=("TMBK", "ORVL"),
            first=FIRST,
            last=FIRST + timedelta(weeks=weeks),
            preset=str(file),
            data=DataSpec(None, 7),
            run="bill",
            options=AnswerOptions(tier=tier),
        )
        before = replace(spec, first=FIRST - timedelta(weeks=2), last=FIRST - timedelta(days=1), run="before")
        _, answers = rules_answers(spec, config)
        _, earlier = rules_answers(before, config)
        with billing_server({**answers, **earlier}, reasoning=reasoning) as server:
            desk = services(config, NOON)
            if reasoning:
                run_backtest(desk, before)
                server.forget()
            expected = forecast(desk, [Job(spec, None, "bill")]).models[MODEL].cost
            result = run_backtest(desk, spec).result
        assert expected is not None
        return Arm(server.ledger, len(result.test.decisions), expected)


def priced(calls: Sequence[Billed], *, out: float = 1.0, reasoning: int = 0, cached: bool = True, flex: bool) -> float:
    """Dollars of some calls by other habits: answers `out` times as long, so much reasoning, with or without cache."""
    asked, read, _, written = map(float, PRICES[MODEL.partition(":")[2]])
    paid = sum(
        (one.tokens - one.read * cached) * asked
        + one.read * cached * read
        + ((one.out - one.reasoned) * out + reasoning) * written
        for one in calls
    )
    return paid / 1e6 / (2 if flex else 1)


def main() -> int:
    """Prints the levers of each preset; 1 for an unexplained miss or a forecast that is far off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weeks", type=int, default=4)
    weeks, failed = parser.parse_args().weeks, False
    print(f"\nShare of the list price through real requests ({MODEL}; demo market, two symbols, {weeks} weeks)")
    for preset, assumed in ASSUMED.items():
        plain = played(preset, "", None, 0, weeks)
        billed = {n: played(preset, ONE_QUESTION, "flex", n, weeks) for n in AIMS}
        tables = played(preset, TABLES, "flex", 0, weeks)
        print(f"{preset}: {len(plain.calls) / plain.decisions:.1f} calls and {plain.out:,.0f} tokens out a decision")
        print(f"  {'':34} {'rules':>16}   as long as in the table")
        for n, aim in AIMS.items():
            arms = {
                "list": (plain, {"cached": False, "flex": False}),
                "beginnings from the cache": (plain, {"flex": False}),
                "flex": (plain, {"flex": True}),
                "one question about performance": (billed[n], {"flex": True}),
                "tables in place of pictures": (tables, {"flex": True}),
            }
            for name, (arm, habits) in arms.items():
                shares = []
                for out in (1.0, assumed / plain.out):
                    whole = priced(plain.calls, out=out, reasoning=n, cached=False, flex=False) / plain.decisions
                    cost = priced(arm.calls, out=out, reasoning=n, **habits) / arm.decisions
                    shares.append(f"{cost * 1000:7.2f} $ {cost / whole:5.0%}")
                print(f"  {name:34} {shares[0]:>16} {shares[1]:>16}" + (f"  aim {aim:.0%}" if arm is billed[n] else ""))
            paid, expected = billed[n].usd, billed[n].forecast
            off, misses = float(expected / paid) - 1, sum(one.is_miss for one in billed[n].calls)
            read = sum(one.read for one in billed[n].calls) / sum(one.stable for one in billed[n].calls)
            print(
                f"  with {n} tokens of reasoning: billed ${paid:.3f}, forecast ${expected:.3f} ({off:+.0%});", end=" "
            )
            print(f"{read:.0%} of the stable tokens read from the cache, {misses} unexplained misses")
            failed |= bool(misses) or abs(off) > NEAR
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
