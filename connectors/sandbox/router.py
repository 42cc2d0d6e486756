"""Which function answers which request."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from connectors.sandbox.wire import Refusal, Request, Response

Handler = Callable[[Request], Response]


class Router:
    """Patterns such as `/v2/orders/{order}`; a part in braces matches anything up to the next slash, and the last one
    anything at all (BTC/USD)."""

    def __init__(self) -> None:
        self._routes: list[tuple[str, re.Pattern[str], str, Handler]] = []

    def add(self, method: str, pattern: str, handler: Handler) -> None:
        """Has a function answer a method at a pattern; the first that fits does."""
        text = re.sub(r"\{(\w+)\}$", r"(?P<\1>.+)", pattern)
        text = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", text)
        self._routes.append((method, re.compile(text), pattern, handler))

    @property
    def patterns(self) -> list[tuple[str, str]]:
        """Every method with its pattern."""
        return [(method, pattern) for method, _, pattern, _ in self._routes]

    def answer(self, request: Request) -> Response:
        """The answer of the function that the request is for. Raises Refusal."""
        known = False
        for method, pattern, _, handler in self._routes:
            match = pattern.fullmatch(request.path)
            if match is None:
                continue
            known = True
            if method == request.method:
                return handler(replace(request, parts=match.groupdict()))
        if known:
            raise Refusal(405, 40510000, "method not allowed")
        raise Refusal(404, 40410000, "endpoint not found")
