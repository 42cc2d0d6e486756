"""The price table, held against genai-prices on the table's own date, for every model that the vendors' packages name.

It fails when a package names a new model that has a price, never by the date on which it runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time
from decimal import Decimal
from functools import cache
from typing import Any, Literal, get_args, get_origin

import pytest

from connectors.llm.pricing import load_prices
from engine.domain.model_call import ModelPrice, Rates

data = pytest.importorskip("genai_prices.data", reason="genai-prices, of the development lock, is not installed")
TABLE = load_prices()
MOMENT = datetime.combine(TABLE.as_of, time(12), UTC)


def names(kind: Any) -> Iterator[str]:
    """The names in a type of literals."""
    for part in get_args(kind):
        yield from [part] if get_origin(kind) is Literal else names(part)


@cache
def models() -> set[tuple[str, str]]:
    """Providers and models; their packages take a second to be imported."""
    from anthropic.types import Model
    from openai.types import ChatModel

    named = {"openai": names(ChatModel), "anthropic": names(Model)}
    return {(provider, name) for provider, some in named.items() for name in some} | {*TABLE.models()}


def judged(provider: str, model: str) -> ModelPrice | None:
    """The judge's price; what the cache costs is the price of plain input where it names none."""
    (vendor,) = [one for one in data.providers if one.id == provider]
    known = vendor.find_model(model)
    price = None if known is None else known.get_prices(MOMENT)
    if price is None or not price.input_mtok:
        return None
    rates = {name: getattr(price, f"{name}_mtok", None) for name in ("input", "output", "cache_read", "cache_write")}
    tiers = {tier.start for rate in rates.values() for tier in getattr(rate, "tiers", ())}
    if not tiers:
        return ModelPrice(_rates(rates))
    (over,) = tiers
    base = _rates({name: getattr(rate, "base", rate) for name, rate in rates.items()})
    long = _rates({name: rate.tiers[0].price if hasattr(rate, "tiers") else rate for name, rate in rates.items()})
    return ModelPrice(base, long_over=over, long=long)


def _rates(rates: dict[str, Any]) -> Rates:
    plain: Decimal = rates["input"]
    read, written = (plain if rates[name] is None else rates[name] for name in ("cache_read", "cache_write"))
    return Rates(plain, rates["output"] or Decimal(0), read, written)


def test_a_price_is_the_judge_s() -> None:
    """None of both is a model without a price; of one, a price that the table lacks, or that nobody knows."""

    def figures(price: ModelPrice | None) -> tuple[Any, ...] | None:
        return None if price is None else (price.rates, price.long_over, price.long)

    for provider, model in sorted(models()):
        assert figures(TABLE.find(provider, model)) == figures(judged(provider, model)), f"{provider}:{model}"


def test_the_judge_is_asked_about_the_newest_models() -> None:
    assert {("anthropic", "claude-fable-5-2"), ("openai", "gpt-6.1-sol"), ("openai", "gpt-4o-2024-05-13")} <= models()
