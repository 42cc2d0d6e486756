"""The backtest's form: what it reads, and what it says about what it cannot read."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import click
import pytest
from click.testing import CliRunner

from engine.domain.run import DataSpec, RunSpec
from tui.commands.options import RunFlags, run_options
from tui.view.backtest_form import Filled, arguments_of, filled, values_of

TODAY = date(2025, 7, 1)
PROPOSAL = RunSpec(
    symbols=("AAA", "BBB"),
    first=date(2025, 1, 2),
    last=date(2025, 6, 30),
    warm_up_from=date(2024, 11, 1),
    preset="finvision",
    data=DataSpec(None, 7),
    seed=3,
)


def _read(**changes: str) -> Filled:
    values = {**values_of(PROPOSAL), **changes}
    return filled(values, PROPOSAL, TODAY, ("finvision",), ("sma-cross", "macd"))


def test_what_is_proposed_reads_back_the_same() -> None:
    assert _read() == Filled(PROPOSAL, {})


@pytest.mark.parametrize(
    "changes", [{}, {"decides": "macd"}, {"model": "openai:m", "cash": "50,000", "warm_up_from": ""}]
)
def test_the_command_of_a_form_means_the_same_run(changes: dict[str, str]) -> None:
    read: list[RunFlags] = []

    @click.command("backtest")
    @run_options
    def probe(flags: RunFlags) -> None:
        read.append(flags)

    spec = _read(**changes).spec
    assert spec is not None
    command, *arguments = arguments_of(spec)
    assert command == probe.name and CliRunner().invoke(probe, arguments).exit_code == 0
    (flags,) = read
    assert flags.symbols == ",".join(spec.symbols) and (flags.first, flags.last) == (spec.first, spec.last)
    for name in ("warm_up_from", "preset", "strategy", "model", "cash"):
        assert getattr(flags, name) == getattr(spec, name), name


def test_a_strategy_takes_no_warm_up_and_no_preset() -> None:
    spec = _read(decides="macd").spec
    assert spec == replace(PROPOSAL, preset=None, strategy="macd", warm_up_from=None)


def test_symbols_days_and_cash_are_read_as_people_write_them() -> None:
    spec = _read(symbols=" aaa , ccc ", cash="50,000", warm_up_from="").spec
    assert spec is not None
    assert (spec.symbols, spec.cash, spec.warm_up_from) == (("AAA", "CCC"), Decimal(50_000), None)


@pytest.mark.parametrize(
    ("field", "text", "complaint"),
    [
        ("symbols", " , ", "at least one"),
        ("symbols", "AAA,aaa", "AAA stands twice"),
        ("first", "2025-02-30", "write a day"),
        ("first", "2025-07-01", "after the last day"),
        ("last", "2026-01-01", "lies in the future; today is 2025-07-01"),
        ("warm_up_from", "2025-01-02", "before the first day"),
        ("decides", "finvison", "did you mean finvision?"),
        ("decides", "zzz", "there are finvision, sma-cross, macd"),
        ("decides", "", "name a preset or a strategy"),
        ("cash", "-1", "above zero"),
        ("cash", "NaN", "above zero"),
        ("cash", "much", "above zero"),
    ],
)
def test_every_field_says_what_is_wrong_with_it(field: str, text: str, complaint: str) -> None:
    form = _read(**{field: text})
    assert form.spec is None
    assert list(form.complaints) == [field] and complaint in form.complaints[field]


def test_a_strategy_asks_no_model() -> None:
    assert "asks no model" in _read(decides="macd", model="openai:x").complaints["model"]
