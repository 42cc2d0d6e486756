"""Routing of requests to handlers, and the base of the handlers' classes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from connectors.sandbox.exchange import Exchange
from connectors.sandbox.protocol import ApiError, Request, Response

Handler = Callable[[Request], Response]
H = TypeVar("H", bound=Callable[..., Response])


def route(method: str, *patterns: str) -> Callable[[H], H]:
    """Mark a method as the handler of requests; Router.serve registers it.

    Patterns are such as `/v2/orders/{order}`: a part in braces matches anything up to the next slash, and the last one
    anything at all (BTC/USD).
    """

    def marked(handler: H) -> H:
        handler.__dict__["routes"] = [(method, pattern) for pattern in patterns]
        return handler

    return marked


class Api:
    """Base of a part of the protocol, over one account and its market."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._matching = exchange.matching
        self._market = exchange.market
        self._book = exchange.book


class Router:
    """Handlers by method and pattern; the first match answers."""

    def __init__(self) -> None:
        self._routes: list[tuple[str, re.Pattern[str], str, Handler]] = []

    def serve(self, api: Api) -> None:
        """Register the marked methods of an API."""
        for name, member in vars(type(api)).items():
            for method, pattern in getattr(member, "routes", ()):
                self.add(method, pattern, getattr(api, name))

    def add(self, method: str, pattern: str, handler: Handler) -> None:
        """Register a handler."""
        text = re.sub(r"\{(\w+)\}$", r"(?P<\1>.+)", pattern)
        text = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", text)
        self._routes.append((method, re.compile(text), pattern, handler))

    @property
    def patterns(self) -> list[tuple[str, str]]:
        """All methods with their patterns."""
        return [(method, pattern) for method, _, pattern, _ in self._routes]

    def answer(self, request: Request) -> Response:
        """The response of a request's handler. Raises ApiError."""
        known = False
        for method, pattern, _, handler in self._routes:
            match = pattern.fullmatch(request.path)
            if match is None:
                continue
            known = True
            if method == request.method:
                return handler(replace(request, parts=match.groupdict()))
        if known:
            raise ApiError(405, 40510000, "method not allowed")
        raise ApiError(404, 40410000, "endpoint not found")
