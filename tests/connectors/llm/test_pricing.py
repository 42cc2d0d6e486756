"""The price table and what calls cost by it."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from connectors.llm.pricing import load_prices
from engine.domain.model_call import STALE_DAYS, ModelPrice, PriceTable, Rates, Usage

REPO = Path(__file__).parents[3]
TIERED = ModelPrice(
    Rates(input=Decimal("1.00"), output=Decimal("4.00"), cached_input=Decimal("0.10"), cache_write=Decimal("1.25")),
    long_over=1000,
    long=Rates(Decimal("2.00"), Decimal("6.00"), Decimal("0.20"), Decimal("2.00")),
)


def test_the_table_that_comes_along_is_dated_and_whole() -> None:
    table = load_prices()
    assert table.as_of >= date(2026, 11, 1)
    assert len(table.models()) >= 12
    for provider, model in table.models():
        price = table.find(provider, model)
        assert price is not None
        if model.startswith("text-embedding"):
            assert price.rates.output == 0 < price.rates.input
            continue
        for rates in filter(None, (price.rates, price.long)):
            assert Decimal(0) < rates.cached_input <= rates.input <= rates.cache_write * 2
            assert rates.input < rates.output


def test_every_model_that_our_help_and_the_papers_tables_name_has_a_price() -> None:
    files = [REPO / "README.md", REPO / "config.example.toml"]
    for folder, kind in (("docs", "md"), ("tui/commands", "py"), ("engine/lab/paper_tables", "toml")):
        files += (REPO / folder).rglob(f"*.{kind}")
    texts = [file.read_text(encoding="utf-8") for file in files]
    named = {match for text in texts for match in re.findall(r"\b(openai|anthropic):([a-z][a-z0-9.-]*[a-z0-9])", text)}
    assert {("openai", "gpt-5-mini"), ("openai", "gpt-4-0613"), ("openai", "o1-preview-2024-09-12")} <= named
    table = load_prices()
    assert [spec for spec in sorted(named) if table.find(*spec) is None] == []


def test_a_cost_is_exact_money_and_tells_cached_tokens_apart() -> None:
    usage = Usage(input_tokens=1000, cached_input_tokens=400, output_tokens=10)
    assert TIERED.cost(usage) == Decimal("0.00068")  # 600 x 1.00 + 400 x 0.10 + 10 x 4.00
    assert TIERED.cost(usage, cache_write_tokens=100) == Decimal("0.000705")  # 100 of the 600 at 1.25


def test_a_long_call_pays_the_long_rates_for_all_of_it() -> None:
    assert TIERED.cost(Usage(1001, 1, 10)) == Decimal("0.0020602")  # 1000 x 2.00 + 1 x 0.20 + 10 x 6.00


def test_an_entry_is_read_with_its_tier_and_a_rate_that_is_not_named_is_that_of_plain_input() -> None:
    haiku = load_prices().find("anthropic", "claude-haiku-5-5")
    assert haiku is not None
    assert haiku.rates == Rates(Decimal("0.10"), Decimal("0.50"), Decimal("0.01"), Decimal("0.125"))
    assert (haiku.long_over, haiku.training_cutoff) == (100_000, "2026-06")
    assert haiku.long == Rates(Decimal("0.50"), Decimal("2.50"), Decimal("0.05"), Decimal("0.625"))


def test_a_dated_snapshot_costs_what_its_model_costs_and_an_unknown_model_has_no_price() -> None:
    table = load_prices()
    assert table.find("openai", "gpt-5.5-2026-04-23") == table.find("openai", "gpt-5.5") is not None
    assert table.find("anthropic", "claude-haiku-4-5-20251001") == table.find("anthropic", "claude-haiku-4-5")
    assert table.find("openai", "gpt-5.5-mini") is None
    assert table.find("anthropic", "gpt-5.5") is None


def test_a_table_is_old_after_thirty_days_but_never_a_price_of_one_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.domain.model_call.STALE_DAYS", STALE_DAYS)
    table = PriceTable({("openai", "m"): TIERED}, date(2026, 11, 6))
    assert [table.stale("openai", "m", date(2026, 12, day)) for day in (6, 7)] == [False, True]
    assert not table.stale("openai", "unknown", date(2030, 1, 1))
    assert not table.with_own({("openai", "m"): TIERED}).stale("openai", "m", date(2030, 1, 1))
