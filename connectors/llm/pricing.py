"""What a call costs, from a dated table that anybody can edit."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from importlib import resources
from pathlib import Path
from typing import Any

from engine.domain.model_call import Usage
from engine.errors import ConfigError

_MILLION = Decimal(1_000_000)
_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")
_RATES = ("input", "output", "cached_input", "cache_write")


@dataclass(frozen=True, slots=True)
class Rates:
    """USD per million tokens."""

    input: Decimal
    output: Decimal
    cached_input: Decimal
    cache_write: Decimal


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """The price of one model. Calls with more input than `long_over` tokens pay the `long` rates for all of
    it. `training_cutoff` is a month (YYYY-MM), empty where the vendor names none."""

    rates: Rates
    long_over: int | None = None
    long: Rates | None = None
    training_cutoff: str = ""

    def cost(self, usage: Usage, cache_write_tokens: int = 0) -> Decimal:
        """USD for a call; `cache_write_tokens` is the part of the input that the provider wrote to its
        cache."""
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
    """Prices by provider and model, as they stood on `as_of`."""

    def __init__(self, prices: Mapping[tuple[str, str], ModelPrice], as_of: date) -> None:
        self.as_of = as_of
        self._prices = dict(prices)

    def find(self, provider: str, model: str) -> ModelPrice | None:
        """The price of a model, or of the model that it is a dated snapshot of; None where it is not
        known."""
        exact = self._prices.get((provider, model))
        return exact or self._prices.get((provider, _SNAPSHOT.sub("", model)))

    def models(self) -> list[tuple[str, str]]:
        """Every provider and model with a price, sorted."""
        return sorted(self._prices)


def load_prices(path: Path | None = None) -> PriceTable:
    """Reads a price table: the one that comes with Paperdesk, or a file of the user's own in its place.

    Raises ConfigError that names the file and the entry.
    """
    where = "the price table" if path is None else str(path)
    try:
        if path is None:
            text = resources.files(__package__).joinpath("prices.toml").read_text(encoding="utf-8")
        else:
            text = path.read_text(encoding="utf-8")
        # Decimal straight from the text: 0.1 dollars is a tenth.
        content = tomllib.loads(text, parse_float=Decimal)
    except OSError as error:
        raise ConfigError(f"{where} cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where} is not valid TOML: {error}") from None
    as_of = content.pop("as_of", None)
    if not isinstance(as_of, date):
        raise ConfigError(f"{where} has no date: write as_of = YYYY-MM-DD on top")
    prices: dict[tuple[str, str], ModelPrice] = {}
    for provider, models in content.items():
        if not isinstance(models, dict):
            raise ConfigError(f"{where}: {provider!r} should be a table [PROVIDER.MODEL]")
        for model, entry in models.items():
            prices[provider, model] = _price(entry, f'{where}, [{provider}."{model}"]')
    return PriceTable(prices, as_of)


def _price(entry: Any, where: str) -> ModelPrice:
    if not isinstance(entry, dict):
        raise ConfigError(f"{where}: should be a table of prices")
    unknown = set(entry) - {*_RATES, "long", "training_cutoff"}
    if unknown:
        raise ConfigError(
            f"{where}: unknown {sorted(unknown)[0]!r}; possible are {', '.join(_RATES)}, long, training_cutoff"
        )
    long = entry.get("long")
    if long is None:
        return ModelPrice(_rates(entry, where), training_cutoff=str(entry.get("training_cutoff", "")))
    if not isinstance(long, dict) or not isinstance(long.get("over"), int):
        raise ConfigError(f"{where}: long needs 'over', a number of tokens, beside its rates")
    return ModelPrice(
        _rates(entry, where),
        long_over=long["over"],
        long=_rates(long, f"{where}, long"),
        training_cutoff=str(entry.get("training_cutoff", "")),
    )


def _rates(entry: Mapping[str, Any], where: str) -> Rates:
    values: dict[str, Decimal] = {}
    for name in _RATES:
        value = entry.get(name)
        if value is None and name in {"cached_input", "cache_write"}:
            values[name] = values["input"]
            continue
        if (
            isinstance(value, bool)
            or not isinstance(value, int | Decimal)
            or not Decimal(value).is_finite()
            or value < 0
        ):
            raise ConfigError(f"{where}: {name!r} should be dollars per million tokens, a number from 0 up")
        values[name] = Decimal(value)
    return Rates(**values)
