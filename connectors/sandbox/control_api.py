"""The sandbox's own requests: its clock, its faults, its state. They need no key."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from connectors.sandbox.exchange import Exchange
from connectors.sandbox.market import next_session, session_open
from connectors.sandbox.protocol import Request, invalid, moment_of, not_found, route, stamp
from connectors.sandbox.streams import Streams
from engine.domain.order import CENT, SHARE_STEP, ZERO
from engine.domain.text import plain

PREFIX = "/sandbox/"
FASTEST = 100_000.0
_LENGTH = re.compile(r"(\d{1,4})(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class ControlApi:
    """Requests of the sandbox's operator."""

    def __init__(self, exchange: Exchange, streams: Streams) -> None:
        self._exchange = exchange
        self._streams = streams
        self.requests: Counter[str] = Counter()
        """Number of requests by method and path, since the start."""
        self.posts: Counter[str] = Counter()
        """Number of order submissions by client id, since the start, refused ones included."""

    @property
    def speed(self) -> float:
        """Simulated seconds per second; zero where the clock stands until it is moved."""
        return float(self._exchange.book.facts.get("speed", 0.0))

    def set_speed(self, speed: float) -> None:
        """Set the clock's speed; zero stops it."""
        self._exchange.book.facts["speed"] = speed
        self._exchange.book.commit()

    def count(self, request: Request) -> None:
        """Count a request."""
        self.requests[f"{request.method} {request.path}"] += 1
        if request.method == "POST" and request.path == "/v2/orders":
            try:
                self.posts[str(request.json().get("client_order_id"))] += 1
            except Exception:
                self.posts["unreadable"] += 1

    @route("GET", "/sandbox/state")
    def state(self, request: Request) -> dict[str, Any]:
        """Books, orders, faults and counts, at one moment."""
        exchange, book = self._exchange, self._exchange.book
        last = exchange.market.last_session
        return {
            "now": stamp(exchange.now),
            "speed": self.speed,
            "last_session": None if last is None else last.isoformat(),
            "cash": plain(book.portfolio.cash),
            "equity": plain(exchange.figures().equity),
            "positions": {s: plain(p.quantity) for s, p in sorted(book.portfolio.positions.items())},
            "orders": [order.json(exchange.market.listing(order.symbol)) for order in book.orders],
            "activities": book.activities,
            "requests": dict(self.requests),
            "posts": dict(self.posts),
            "faults": self.faults(request),
            "streams": dict(Counter(client.path for client in self._streams.clients)),
        }

    @route("GET", "/sandbox/clock")
    def clock(self, request: Request) -> dict[str, Any]:
        """The sandbox's time."""
        return {"now": stamp(self._exchange.now), "speed": self.speed}

    @route("POST", "/sandbox/clock")
    def move(self, request: Request) -> dict[str, Any]:
        """Move the clock to a time, or set its speed."""
        speed = request.json().get("speed")
        target = self.target(request)
        if target is not None:
            self._exchange.advance(target)
        elif speed is None:
            raise invalid('give {"to": MOMENT}, {"advance": "open", "close", "1d", "30m" ...} or {"speed": NUMBER}')
        if speed is not None:
            if isinstance(speed, bool) or not isinstance(speed, int | Decimal):
                raise invalid(f"invalid speed: {str(speed)[:40]!r}")
            if not 0 <= float(speed) <= FASTEST:
                raise invalid(f"speed goes from 0 to {FASTEST:.0f}")
            self.set_speed(float(speed))
        return self.clock(request)

    @route("POST", "/sandbox/transfers")
    def transfer(self, request: Request) -> dict[str, Any]:
        """Deposit cash, or with `symbol` shares, or (an amount below zero) withdraw them; `part` is `cash` (or
        `shares`) where the history has no entry of it yet, and `entry` for that entry alone."""
        document = request.json()
        symbol, step = str(document.get("symbol") or ""), CENT
        if symbol:
            symbol, step = self._exchange.market.require(symbol, "symbol").symbol, SHARE_STEP
        try:
            amount = Decimal(str(document.get("amount"))).quantize(step)
        except InvalidOperation:
            amount = ZERO
        if not amount:
            raise invalid('give {"amount": USD or shares}, above or below zero')
        part = document.get("part", "both")
        if part not in ("both", "cash", "shares", "entry"):
            raise invalid(f"invalid part: {str(part)[:40]!r}; cash or shares, entry, or both")
        self._exchange.transfer(amount, symbol, moved=part != "entry", entry=part in ("both", "entry"))
        return self.state(request)

    def target(self, request: Request) -> datetime | None:
        """The time to which a request moves the clock. Raises ApiError."""
        document = request.json()
        to, advance = document.get("to"), document.get("advance")
        now, calendar = self._exchange.now, self._exchange.market.exchange
        if to is not None:
            return moment_of(str(to), "to")
        if advance is None:
            return None
        if advance == "open":
            return calendar.opens_at(next_session(calendar, now))
        if advance == "close":
            return calendar.closes_at(session_open(calendar, now) or next_session(calendar, now))
        match = _LENGTH.fullmatch(str(advance))
        if match is None:
            raise invalid(f"invalid advance: {str(advance)[:40]!r}; open, close, or a length such as 30m, 6h, 1d")
        return now + timedelta(seconds=int(match[1]) * _SECONDS[match[2]])

    @route("GET", "/sandbox/faults")
    def faults(self, request: Request) -> list[dict[str, Any]]:
        """Active rules."""
        return [rule.document() for rule in self._exchange.faults.rules]

    @route("POST", "/sandbox/faults")
    def add_fault(self, request: Request) -> dict[str, Any]:
        """Add a rule."""
        exchange, document = self._exchange, request.json()
        if document.get("kind") in ("halted", "untradable", "renamed"):
            listing = exchange.market.find(str(document.get("symbol")))
            if listing is None or (listing.crypto and document["kind"] == "renamed"):
                raise invalid(f"{str(document.get('symbol'))[:40]!r} is no symbol that this can happen to")
            document["symbol"] = listing.symbol
        then = str(document.get("then"))
        if document.get("kind") == "renamed" and exchange.market.find(then) is not None:
            raise invalid(f"{then[:40]} is listed already")
        rule = exchange.faults.add(document, exchange.now)
        if rule.kind == "halted":
            self._streams.halted(rule.symbol, halted=True)
        self.save_faults()
        return rule.document()

    @route("DELETE", "/sandbox/faults", "/sandbox/faults/{fault}", status=204)
    def remove_faults(self, request: Request) -> None:
        """Remove one rule, or all."""
        name = request.parts.get("fault")
        if name is not None and not (name.isascii() and name.isdigit()):
            raise not_found(f"no fault {name[:40]}")
        halted = {rule.symbol for rule in self._exchange.faults.rules if rule.kind == "halted"}
        if not self._exchange.faults.remove(None if name is None else int(name)) and name is not None:
            raise not_found(f"no fault {name}")
        for symbol in halted:
            if self._exchange.faults.halted_since(symbol) is None:
                self._streams.halted(symbol, halted=False)
        self.save_faults()
        self._exchange.resume()

    def save_faults(self) -> None:
        """Write the rules with their remaining uses, and apply renamings to the market."""
        exchange = self._exchange
        rules: list[dict[str, Any]] = [rule.document() for rule in exchange.faults.rules]
        exchange.market.renamed = exchange.faults.renamed()
        exchange.book.facts |= {"faults": rules, "next_fault": exchange.faults.next_id}
        exchange.book.commit()
