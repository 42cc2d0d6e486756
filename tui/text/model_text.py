"""A model in a few words: its price, how it reads charts, where it runs."""

from __future__ import annotations

from connectors.loopback import is_loopback
from engine.domain.model_call import ModelPrice, ModelSpec
from engine.settings.config import Config


def price_text(spec: ModelSpec, price: ModelPrice | None) -> str:
    """USD per million tokens that go in and come out; the rules cost nothing."""
    if not spec.model:
        return "free"
    return "unknown" if price is None else f"{price.rates.input} / {price.rates.output}"


def charts_text(spec: ModelSpec, sees: bool) -> str:
    """The form of charts in its prompts."""
    return "as pictures" if sees and spec.model else "as figures"


def place_text(spec: ModelSpec, config: Config) -> str:
    """The place where it runs: on this machine, or at a service."""
    endpoint = config.endpoints.get(spec.provider)
    address = endpoint.base_url if endpoint is not None else None
    return "on this machine" if not spec.model or (address and is_loopback(address)) else "hosted"
