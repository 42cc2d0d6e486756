"""Reader of the dated price table that comes with Paperdesk."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from engine.domain.model_call import ModelPrice, PriceTable, Rates
from engine.program_files import program_text
from engine.settings.config import PriceConfig


@cache
def load_prices() -> PriceTable:
    """The prices of prices.toml."""
    text = program_text(Path(__file__).with_name("prices.toml"))
    # Decimal straight from the text: 0.1 dollars is a tenth.
    content = tomllib.loads(text, parse_float=Decimal)
    as_of = content.pop("as_of")
    prices = {
        (provider, model): ModelPrice(
            _rates(entry),
            long_over=entry["long"]["over"] if "long" in entry else None,
            long=_rates(entry["long"]) if "long" in entry else None,
            training_cutoff=entry.get("training_cutoff", ""),
        )
        for provider, models in content.items()
        for model, entry in models.items()
    }
    return PriceTable(prices, as_of)


def own_price(entry: PriceConfig) -> ModelPrice:
    """A configured price."""
    return ModelPrice(_rates(entry.model_dump(exclude_none=True)))


def _rates(entry: Mapping[str, Any]) -> Rates:
    """Rates of an entry; what the cache costs is the price of plain input where it is not named."""
    plain = entry["input"]
    cached, written = entry.get("cached_input", plain), entry.get("cache_write", plain)
    return Rates(*map(Decimal, (plain, entry["output"], cached, written)))
