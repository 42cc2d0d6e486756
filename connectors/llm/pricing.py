"""Reader of the dated price table, a TOML file that users can replace."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from importlib import resources
from pathlib import Path
from typing import Any

from engine.domain.model_price import ModelPrice, PriceTable, Rates
from engine.errors import ConfigError

_RATES = ("input", "output", "cached_input", "cache_write")


def load_prices(path: Path | None = None) -> PriceTable:
    """Read a price table: Paperdesk's own, or a file of the user's.

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
