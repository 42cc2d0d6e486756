"""Sandboxes for tests: over a small market, without slippage, on a clock that stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from connectors.sandbox import SandboxServer
from tests.connectors.alpaca.sandbox_markets import sandbox

Open = Callable[..., SandboxServer]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Starts sandboxes with any settings, and stops them at the end."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(sandbox(**settings))


@pytest.fixture
def broker(opened: Open) -> SandboxServer:
    """A sandbox after the close of 2024-01-31."""
    return opened()


@pytest.fixture
def connected() -> Iterator[Callable[[SandboxServer], httpx.Client]]:
    """HTTP clients with the sandbox's keys."""
    with ExitStack() as stack:

        def connect(server: SandboxServer) -> httpx.Client:
            client = httpx.Client(base_url=server.url, headers=keys(server), timeout=600, verify=False)
            return stack.enter_context(client)

        yield connect


@pytest.fixture
def http(broker: SandboxServer, connected: Callable[[SandboxServer], httpx.Client]) -> httpx.Client:
    """A client of that sandbox."""
    return connected(broker)


def keys(server: SandboxServer) -> dict[str, Any]:
    """The headers of a client that may come in."""
    return {"APCA-API-KEY-ID": server.settings.key, "APCA-API-SECRET-KEY": server.settings.secret}
