"""The price table and what calls cost by it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from connectors.llm.pricing import load_prices
from engine.domain.model_call import Usage
from engine.errors import ConfigError

OWN = """
as_of = 2026-01-31
[local."qwen3:8b"]
input = 1
output = 2.5
[openai.tiered]
input = 1.00
cached_input = 0.10
cache_write = 1.25
output = 4.00
long = { over = 1000, input = 2.00, cached_input = 0.20, output = 6.00 }
training_cutoff = "2025-06"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "prices.toml"
    path.write_text(text, encoding="utf-8")
    return path


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
            assert Decimal(0) < rates.cached_input < rates.input <= rates.cache_write * 2
            assert rates.input < rates.output


def test_a_cost_is_exact_money_and_tells_cached_tokens_apart(tmp_path: Path) -> None:
    price = load_prices(written(tmp_path, OWN)).find("openai", "tiered")
    assert price is not None
    usage = Usage(input_tokens=1000, cached_input_tokens=400, output_tokens=10)
    assert price.cost(usage) == Decimal("0.00068")  # 600 x 1.00 + 400 x 0.10 + 10 x 4.00
    assert price.cost(usage, cache_write_tokens=100) == Decimal("0.000705")  # 100 of the 600 at 1.25
    assert price.training_cutoff == "2025-06"


def test_a_long_call_pays_the_long_rates_for_all_of_it(tmp_path: Path) -> None:
    price = load_prices(written(tmp_path, OWN)).find("openai", "tiered")
    assert price is not None
    assert price.cost(Usage(1001, 1, 10)) == Decimal("0.0020602")  # 1000 x 2.00 + 1 x 0.20 + 10 x 6.00


def test_a_rate_that_is_not_named_is_that_of_plain_input(tmp_path: Path) -> None:
    price = load_prices(written(tmp_path, OWN)).find("local", "qwen3:8b")
    assert price is not None
    assert price.cost(Usage(1_000_000, 500_000, 0)) == Decimal(1)


def test_a_dated_snapshot_costs_what_its_model_costs_and_an_unknown_model_has_no_price() -> None:
    table = load_prices()
    assert table.find("openai", "gpt-5.5-2026-04-23") == table.find("openai", "gpt-5.5") is not None
    assert table.find("anthropic", "claude-haiku-4-5-20251001") == table.find("anthropic", "claude-haiku-4-5")
    assert table.find("openai", "gpt-5.5-mini") is None
    assert table.find("anthropic", "gpt-5.5") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[openai.x]\ninput = 1\noutput = 1", "as_of"),
        ('as_of = 2026-01-01\n[openai."x"]\ninput = -1\noutput = 1', "'input'"),
        ('as_of = 2026-01-01\n[openai."x"]\ninput = 1', "'output'"),
        ('as_of = 2026-01-01\n[openai."x"]\ninput = "1"\noutput = 1', "'input'"),
        ('as_of = 2026-01-01\n[openai."x"]\ninput = nan\noutput = 1', "'input'"),
        ('as_of = 2026-01-01\n[openai."x"]\ninput = 1\noutput = 1\ninptu = 2', "'inptu'"),
        ('as_of = 2026-01-01\n[openai."x"]\ninput = 1\noutput = 1\nlong = 3', "'over'"),
        ("as_of = 2026-01-01\nopenai = 3", "'openai'"),
        ("as_of = ", "TOML"),
    ],
)
def test_a_bad_table_is_a_configuration_error_that_names_the_place(tmp_path: Path, text: str, says: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_prices(path)
    assert says in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_table_that_is_not_there_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_prices(tmp_path / "none.toml")
