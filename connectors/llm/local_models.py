"""Models that a server on this machine has, for whoever chooses one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from connectors.loopback import is_loopback
from engine.settings.config import EndpointConfig

_TIMEOUT = 0.5
"""Seconds; what is on this machine answers at once."""


def local_models(endpoints: Mapping[str, EndpointConfig]) -> Iterator[str]:
    """The models of the local endpoints that answer, as specs. Nobody beyond this machine is asked."""
    for name, endpoint in endpoints.items():
        if endpoint.local and endpoint.base_url and is_loopback(endpoint.base_url):
            yield from (f"{name}:{model}" for model in _models(endpoint.base_url))


def _models(address: str) -> list[str]:
    """The models that a server lists, without those that make vectors."""
    import httpx

    try:
        with httpx.Client(timeout=_TIMEOUT, trust_env=False) as client:
            listed: Any = client.get(f"{address.rstrip('/')}/models").json()["data"]
        names = [str(one["id"]) for one in listed]
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
        return []
    return [name for name in names if name.isprintable() and name.strip() and "embed" not in name.lower()]
