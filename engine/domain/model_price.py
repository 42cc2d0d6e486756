"""Prices of models: the cost of a call by the vendor's rates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from engine.domain.model_call import Usage

STALE_DAYS = 120
"""Days after which vendors' prices have probably changed."""
_MILLION = Decimal(1_000_000)
_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates in USD per million tokens."""

    input: Decimal
    output: Decimal
    cached_input: Decimal
    cache_write: Decimal


_FREE = Rates(*[Decimal(0)] * 4)


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """The price of one model.

    Calls with more input than `long_over` tokens pay the `long` rates for all of it. `training_cutoff` is a month
    (YYYY-MM), empty where the vendor names none.
    """

    rates: Rates
    long_over: int | None = None
    long: Rates | None = None
    training_cutoff: str = ""

    @property
    def is_free(self) -> bool:
        """True where no call costs anything, however many tokens it takes."""
        return self.long is None and self.rates == _FREE

    def cost(self, usage: Usage, cache_write_tokens: int = 0) -> Decimal:
        """USD for a call; `cache_write_tokens` is the part of the input that the provider wrote to its cache."""
        long = self.long is not None and self.long_over is not None and usage.input_tokens > self.long_over
        rates = self.long if long and self.long is not None else self.rates
        plain = usage.input_tokens - usage.cached_input_tokens - cache_write_tokens
        total = (
            plain * rates.input
            + usage.cached_input_tokens * rates.cached_input
            + cache_write_tokens * rates.cache_write
            + usage.output_tokens * rates.output
        )
        return total / _MILLION


class PriceTable:
    """Prices by provider and model, valid on `as_of`; a user's own (`with_own`) count as valid always."""

    def __init__(self, prices: Mapping[tuple[str, str], ModelPrice], as_of: date) -> None:
        self.as_of = as_of
        self._prices = dict(prices)
        self._own: dict[tuple[str, str], ModelPrice] = {}

    def with_own(self, prices: Mapping[tuple[str, str], ModelPrice]) -> PriceTable:
        """The table with a user's own prices in the place of its."""
        table = PriceTable({**self._prices, **prices}, self.as_of)
        table._own = dict(prices)
        return table

    def find(self, provider: str, model: str) -> ModelPrice | None:
        """The price of a model, or of the model that it is a dated snapshot of; None where it is unknown."""
        exact = self._prices.get((provider, model))
        return exact or self._prices.get((provider, _SNAPSHOT.sub("", model)))

    def stale(self, provider: str, model: str, today: date) -> bool:
        """True where a model's price is of this table, and the table is old by now."""
        return self.dated(provider, model) and (today - self.as_of).days > STALE_DAYS

    def dated(self, provider: str, model: str) -> bool:
        """True where a model's price is of this table, and no user's own."""
        return (provider, model) not in self._own and self.find(provider, model) is not None

    def models(self) -> list[tuple[str, str]]:
        """All pairs of provider and model with a price, sorted."""
        return sorted(self._prices)
