"""What goes wrong on request: rules by method, path, symbol and event, a number of times or with a seeded chance.

    of answers   too_many_requests  429 with Retry-After
                 server_error       500 (or `status`) before anything happens
                 gateway_timeout    504 after the request was carried out
                 html               a page where JSON belongs (`status`, default 502)
                 hang               no answer for `seconds` (an hour); `after`: having carried the request out
                 reset              the connection breaks; `after`: having carried the request out
                 wrong_key          the keys are refused
    of orders    partial_fill       `fraction` fills; the rest fills a minute later, is canceled, or waits (`then`)
                 reject             taken, and rejected right away
                 refuse             403 with `message`
    of streams   lost_event, duplicate_event (by `event`: fill, new, q, b ...), disconnect
    of the world account_blocked, trading_blocked; halted, untradable (`symbol`); renamed (`symbol` to `then`)

A rule of the world stands until it is deleted; any other is used up after `count` uses (0: never).
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import Any

from connectors.sandbox.wire import invalid
from engine.domain.market import Symbol

ANSWERS = ("too_many_requests", "server_error", "gateway_timeout", "html", "hang", "reset", "wrong_key")
ORDERS = ("partial_fill", "reject", "refuse")
STREAMS = ("lost_event", "duplicate_event", "disconnect")
WORLD = ("account_blocked", "trading_blocked", "halted", "untradable", "renamed")
THEN = ("fill", "cancel", "expire")
_STATUS = {"too_many_requests": 429, "server_error": 500, "gateway_timeout": 504, "html": 502}
_LONG = 3600.0
_HALF = Decimal("0.5")
_NAME = re.compile(r"[A-Z][A-Z0-9.]{0,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One rule. `path`, `symbol` and `event` are shell patterns; `skip` is how many matches pass unharmed first, then
    each match is hit with `probability`, decided by `seed` and the match's number."""

    kind: str
    id: int = 0
    method: str = "*"
    path: str = "*"
    symbol: str = "*"
    side: str = "*"
    event: str = "*"
    count: int = 1
    skip: int = 0
    probability: float = 1.0
    seed: int = 0
    status: int = 0
    seconds: float = 1.0
    after: bool = False
    fraction: Decimal = _HALF
    then: str = "fill"
    message: str = ""
    since: str = ""
    matched: int = 0
    used: int = 0

    def json(self) -> dict[str, Any]:
        """The rule as it is kept and shown."""
        return asdict(self) | {"fraction": str(self.fraction)}


class Faults:
    """The rules that stand, in the order in which they came."""

    def __init__(self, kept: list[dict[str, Any]], next_id: int = 1) -> None:
        """Goes on with the rules that were kept."""
        self.rules = [Fault(**one | {"fraction": Decimal(one["fraction"])}) for one in kept]
        self.next_id = next_id

    def add(self, document: dict[str, Any], now: datetime) -> Fault:
        """Takes a rule. Raises Refusal for one that means nothing."""
        known = {
            name: getattr(Fault(kind="x"), name) for name in Fault.__slots__ if name not in ("matched", "used", "since")
        }
        for name in document:
            if name not in known or name == "id":
                raise invalid(f"a fault has no {name[:40]!r}; it has {', '.join(sorted(set(known) - {'id'}))}")
        kind = document.get("kind")
        if kind not in ANSWERS + ORDERS + STREAMS + WORLD:
            raise invalid(f"no fault {str(kind)[:40]!r}; there are {', '.join(ANSWERS + ORDERS + STREAMS + WORLD)}")
        values = dict(document)
        for name, value in values.items():
            values[name] = _like(name, value, known[name])
        if kind == "partial_fill" and (
            values.get("then", "fill") not in THEN or not 0 < values.get("fraction", _HALF) < 1
        ):
            raise invalid(f"partial_fill needs a fraction between 0 and 1 and then one of {', '.join(THEN)}")
        if kind in ("halted", "untradable", "renamed") and not values.get("symbol"):
            raise invalid(f"{kind} needs a symbol")
        if kind == "renamed" and not _NAME.fullmatch(values.get("then", "")):
            raise invalid("renamed needs the new name under then")
        if kind in WORLD:
            values["count"] = 0
        values.setdefault("after", kind == "gateway_timeout")
        values.setdefault("status", _STATUS.get(kind, 0))
        values.setdefault("seconds", _LONG if kind == "hang" else 1.0)
        rule = Fault(**values | {"id": self.next_id, "since": now.isoformat()})
        self.next_id += 1
        self.rules.append(rule)
        return rule

    def remove(self, rule_id: int | None) -> bool:
        """Takes a rule away, or all of them; whether there was one."""
        before = len(self.rules)
        self.rules = [rule for rule in self.rules if rule_id is not None and rule.id != rule_id]
        return len(self.rules) < before

    def for_answer(self, method: str, path: str) -> Fault | None:
        """The fault that an HTTP request meets."""
        return self._hit(ANSWERS, lambda r: fnmatchcase(method, r.method.upper()) and fnmatchcase(path, r.path))

    def for_order(self, symbol: str, side: str) -> Fault | None:
        """The fault that a new order meets."""
        return self._hit(ORDERS, lambda r: fnmatchcase(symbol, r.symbol) and fnmatchcase(side, r.side.lower()))

    def for_event(self, path: str, event: str) -> Fault | None:
        """The fault that an event on a stream meets."""
        return self._hit(STREAMS, lambda r: fnmatchcase(path, r.path) and fnmatchcase(event, r.event))

    def stands(self, kind: str, symbol: Symbol = "*") -> Fault | None:
        """The rule of the world that stands, for a symbol or at all."""
        return next((r for r in self.rules if r.kind == kind and r.symbol in ("*", symbol)), None)

    def halted_since(self, symbol: Symbol) -> datetime | None:
        """When a symbol was halted, None where it trades."""
        rule = self.stands("halted", symbol)
        return None if rule is None else datetime.fromisoformat(rule.since)

    def untradable(self, symbol: Symbol) -> bool:
        """Whether orders in a symbol are not taken."""
        return self.stands("untradable", symbol) is not None

    def renamed(self) -> dict[Symbol, str]:
        """New names by old ones."""
        return {rule.symbol: rule.then for rule in self.rules if rule.kind == "renamed"}

    def _hit(self, kinds: tuple[str, ...], matches: Any) -> Fault | None:
        for n, rule in enumerate(self.rules):
            if rule.kind not in kinds or (rule.count and rule.used >= rule.count) or not matches(rule):
                continue
            number = rule.matched + 1
            hit = number > rule.skip and _draw(rule.seed, rule.id, number) < rule.probability
            self.rules[n] = replace(rule, matched=number, used=rule.used + hit)
            if hit:
                return self.rules[n]
        return None


def _like(name: str, value: Any, default: Any) -> Any:
    """A value of the kind that a field has. Raises Refusal."""
    try:
        if isinstance(default, bool) or isinstance(value, bool):
            fits = isinstance(default, bool) and isinstance(value, bool)
        elif isinstance(default, Decimal):
            value, fits = Decimal(str(value)), True
        elif isinstance(default, float):
            value, fits = float(value), True
        else:
            fits = isinstance(value, type(default))
    except (ValueError, TypeError, InvalidOperation):
        fits = False
    if not fits or (isinstance(value, int | float | Decimal) and value < 0):
        raise invalid(f"invalid {name}: {str(value)[:40]!r}")
    return value


def _draw(seed: int, rule: int, number: int) -> float:
    """A number from 0 to below 1 that these three decide, on any machine the same."""
    digest = blake2b(f"{seed}/{rule}/{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
