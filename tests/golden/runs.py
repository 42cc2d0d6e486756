"""The runs whose results are kept: command lines alone, so that they mean the same to every version."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

PRESETS = ("desk", "finagent", "finmem", "finvision", "finvision-no-reflection", "tradinggpt")
STRATEGIES = ("buy-and-hold", "sma-cross", "macd", "kdj-rsi", "z-score", "random", "equal-weight", "cash")
CONVENTIONS = ("finvision", "finagent", "investorbench", "arena")

DEMO = "--from 2024-12-02 --to 2025-03-14"  # a split of HLXM on 2024-12-16, a dividend of BXWD on 2025-02-26
DEMO_LONG = "--from 2024-09-03 --to 2025-03-14"
DEMO_SHORT = "--symbols ORVL,HLXM --from 2025-03-03 --to 2025-03-14 --warm-up-from 2025-02-24"
STOCKS_2020 = "--data {data} --symbols MSFT,JNJ --from 2020-10-01 --to 2021-05-06"
STOCKS_2023 = "--data {data} --symbols AAPL,AMZN,MSFT --from 2023-06-01 --to 2023-12-29"
CRYPTO = "--data {data} --symbols BTC-USD,ETH-USD --from 2023-06-01 --to 2023-08-31"
PAPER_WINDOW = "--data {data} --symbols MSFT --from 2020-10-01 --to 2020-12-31"

DESK_SESSIONS = ("2025-03-11", "2025-03-12", "2025-03-14", "2025-03-17", "2025-03-18", "2025-03-19")
"""Sessions that the recorded desk decides for; 2025-03-13 passes without a run."""


@dataclass(frozen=True)
class Run:
    """Commands that share a home, by the name of the file that keeps what each printed.

    `{data}` stands for the folder of real data, `{memory}` for the id of a memory that was listed before.
    """

    name: str
    commands: Mapping[str, str]
    brief: bool = True
    """Long explanations and portfolios are kept as digests: for backtests, which have thousands of them."""
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def needs_data(self) -> bool:
        """Whether a command reads the folder of real data."""
        return any("{data}" in line for line in self.commands.values())

    def file_of(self, command: str) -> str:
        """The file of a command's record, below the folder of records."""
        return f"{self.name}/{command}.json" if len(self.commands) > 1 else f"{self.name}.json"


def _backtest(name: str, flags: str) -> Run:
    return Run(name, {"backtest": f"backtest {flags} --json"})


def _backtests() -> Iterator[Run]:
    for preset in (*PRESETS, "leaky-test"):
        yield _backtest(f"demo/{preset}", f"{DEMO} --warm-up-from 2024-11-01 --preset {preset}")
    for strategy in STRATEGIES:
        yield _backtest(f"demo/{strategy}", f"{DEMO_LONG} --strategy {strategy}")
    yield _backtest("demo/short", f"{DEMO_SHORT} --preset desk")
    yield _backtest("demo/without-reflection", f"{DEMO_SHORT} --preset desk --without low-level,tools")
    yield _backtest("demo/costs", f"{DEMO_SHORT} --preset finvision --commission 0.001 --slippage 20 --cash 25000")
    yield _backtest("demo/macd-fast", f"{DEMO_LONG} --strategy macd --param fast=6 --commission 0.001")
    yield _backtest("demo/random-seed-3", f"{DEMO_LONG} --strategy random --seed 3")
    for preset in PRESETS:
        yield _backtest(f"stocks-2020/{preset}", f"{STOCKS_2020} --warm-up-from 2020-07-01 --preset {preset}")
    for strategy in STRATEGIES:
        yield _backtest(f"stocks-2020/{strategy}", f"{STOCKS_2020} --warm-up-from 2020-07-01 --strategy {strategy}")
    yield _backtest("stocks-2023/finvision", f"{STOCKS_2023} --warm-up-from 2023-04-03 --preset finvision")
    for strategy in STRATEGIES:
        yield _backtest(f"stocks-2023/{strategy}", f"{STOCKS_2023} --strategy {strategy}")
    for preset in ("desk", "finvision", "finmem"):
        yield _backtest(f"crypto/{preset}", f"{CRYPTO} --warm-up-from 2023-05-01 --preset {preset}")
    for strategy in STRATEGIES:
        yield _backtest(f"crypto/{strategy}", f"{CRYPTO} --strategy {strategy}")
    for convention in CONVENTIONS:
        flags = f"{PAPER_WINDOW} --convention {convention}"
        yield _backtest(f"convention/{convention}-desk", f"{flags} --warm-up-from 2020-07-01 --preset desk")
        yield _backtest(f"convention/{convention}-macd", f"{flags} --strategy macd")


READ = {
    "status": "status --json",
    "positions": "positions --json",
    "orders": "orders --json",
    "decisions": "decisions --json",
    "equity": "equity --json",
    "parity": "parity --json",
    "journal-check": "journal check --json",
}
"""Commands that read any desk's journal."""

LABORATORY = {
    "backtest": f"backtest {DEMO_SHORT} --preset desk --run golden --json",
    "report": "report --run golden --json",
    "report-csv": "report --run golden --format csv --table trades",
    "backtest-decisions": "decisions --run golden --json",
    "backtest-warm-up-decisions": "decisions --run golden --warm-up --json",
    "backtest-memory-list": "memory list --run golden --json",
    "backtest-why": "why ORVL 2025-03-07 --run golden --json",
    "audit": f"audit {DEMO_SHORT} --preset desk --cuts 3 --json",
    "audit-leak": f"audit {DEMO_SHORT} --preset leaky-test --cuts 3 --json",
    "audit-strategy": f"audit {DEMO_SHORT} --strategy macd --cuts 3 --json",
    "tune": "tune macd --symbols ORVL,HLXM --from 2024-06-03 --to 2024-12-31"
    " --test-from 2025-01-02 --test-to 2025-03-14 --trials 20 --json",
}

DESK = (
    {f"daily-{session}": f"--daily --session {session} --json" for session in DESK_SESSIONS}
    | {"daily-again": f"--daily --session {DESK_SESSIONS[-1]} --json"}
    | READ
    | {
        "orders-open": "orders --open --json",
        "orders-of-symbol": "orders --symbol HLXM --json",
        "decisions-buy": "decisions --action buy --from 2025-03-12 --json",
        "equity-window": "equity --from 2025-03-12 --to 2025-03-17 --json",
        "why": "why ORVL 2025-03-14 --json",
        "why-nothing-held": "why BXWD 2025-03-12 --json",
        "why-redecide": "why ORVL 2025-03-14 --redecide --json",
        "why-redecide-without": "why HLXM 2025-03-17 --redecide --without chart --json",
        "why-redecide-preset": "why HLXM 2025-03-17 --redecide --preset finvision --json",
        "parity-earlier": "parity 2025-03-14 --json",
        "memory-list": "memory list --json",
        "memory-list-deep": "memory list --symbol ORVL --layer deep --json",
        "memory-list-earlier": "memory list --session 2025-03-12 --json",
        "memory-lifeline": "memory lifeline {memory} --json",
        "memory-preview": "memory preview --json",
        "report-session": "report --session 2025-03-18 --json",
        "models": "models --json",
        "doctor": "doctor --json",
        "halt": 'halt --reason "a look at the books" --json',
        "status-halted": "status --json",
        "daily-halted": "--daily --session 2025-03-20 --json",
        "resume": "resume --json",
        "approve": "approve --json",
        "veto": "veto --json",
        "reconcile": "reconcile --json",
    }
)


def _all() -> Iterator[Run]:
    yield from _backtests()
    yield Run("desk", DESK, brief=False)
    few = (*(f"daily-{session}" for session in DESK_SESSIONS[:3]), "status", "orders", "decisions", "equity")
    yield Run(
        "desk-finvision",
        {command: DESK[command] for command in few},
        environment={"PAPERDESK_DESK__PRESET": "finvision"},
    )
    yield Run("laboratory", LABORATORY)
    yield Run("paper-demo", {"sandbox": "sandbox --start 2025-03-10 --sessions 10 --json", **READ})
    for table in ("finagent", "investorbench", "finvision"):
        yield Run(f"bench/{table}", {"bench": f"bench {table} --baselines --data {{data}} --json"})


RUNS: Mapping[str, Run] = {run.name: run for run in _all()}
"""Every run by its name."""

SAMPLE = ("demo/short", "demo/macd", "desk-finvision")
"""Runs of a second or two each, for the suite that runs every time, which carries them out in its own process."""


def chosen(patterns: str | None) -> list[Run]:
    """The runs that a comma-separated list of names or patterns (`demo/*`) means: all without one.

    Raises ValueError for a pattern that fits none.
    """
    if patterns is None:
        return list(RUNS.values())
    wanted = [pattern.strip() for pattern in patterns.split(",") if pattern.strip()]
    for pattern in wanted:
        if not any(fnmatchcase(name, pattern) for name in RUNS):
            raise ValueError(f"no run {pattern}; there are {', '.join(RUNS)}")
    return [run for name, run in RUNS.items() if any(fnmatchcase(name, pattern) for pattern in wanted)]


def words_of(line: str, values: Mapping[str, str]) -> list[str]:
    """The arguments of a command line, with its placeholders filled in."""
    return [word.format_map(values) for word in shlex.split(line)]
