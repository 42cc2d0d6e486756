"""Faults on request: rules by method, path, symbol and event, a number of times or with a seeded probability.

    of answers   too_many_requests  429 with Retry-After
                 server_error       500 (or `status`) before anything happens
                 gateway_timeout    504 after the request was carried out
                 html               a page in place of JSON (`status`, default 502)
                 hang               no answer for `seconds` (an hour); `after`: having carried the request out
                 reset              the connection breaks; `after`: having carried the request out
                 wrong_key          the keys are refused
                 redirect           `status` (302) to the address `then`
                 body               `message` as it is, with `status` (200)
    of right     cut, drip          half of the answer and the end; a byte every `seconds`
    answers      edit               the fields of `change` in an object, or in every one of a list; `then`: content type
                 list               its entries twice, in reverse order, or the first page again (`then`: double,
                                    reverse, repeat); without entries of a history whose type fits `event` (without)
    of orders    partial_fill       `fraction` fills; the rest fills a minute later, is canceled, or waits (`then`)
                 reject             accepted, and rejected right away
                 refuse             403 with `message`
    of streams   lost_event, duplicate_event (by `event`: fill, new, q, b ...), disconnect
    of the world account_blocked, trading_blocked; halted, untradable (`symbol`); renamed (`symbol` to `then`)
                 account, asset     the fields of `change` in the account, or in the asset `symbol`, to which orders
                                    are held: increments, minima, fractionable, shortable, easy_to_borrow, buying power
                 bar                of the daily bars of `symbol` from its day on: prices times `fraction`, and the
                                    fields of `change`

A rule of the world is active until it is deleted; any other is used up after `count` uses (0: never).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from hashlib import blake2b
from math import isfinite
from typing import Any

from connectors.sandbox.protocol import invalid
from engine.domain.market import Symbol
from engine.domain.order import ZERO

ANSWERS = (
    "too_many_requests",
    "server_error",
    "gateway_timeout",
    "html",
    "hang",
    "reset",
    "wrong_key",
    "redirect",
    "body",
)
CHANGED = ("cut", "drip", "edit", "list")
ORDERS = ("partial_fill", "reject", "refuse")
STREAMS = ("lost_event", "duplicate_event", "disconnect")
WORLD = ("account_blocked", "trading_blocked", "halted", "untradable", "renamed", "bar", "account", "asset")
KINDS = ANSWERS + CHANGED + ORDERS + STREAMS + WORLD
THEN = ("fill", "cancel", "expire")
_STATUS = {
    "too_many_requests": 429,
    "server_error": 500,
    "gateway_timeout": 504,
    "html": 502,
    "redirect": 302,
    "body": 200,
}
LISTS = ("double", "reverse", "repeat", "without")
_CHANGES: Mapping[str, Mapping[str, Any]] = {
    "bar": dict.fromkeys(("o", "h", "l", "c", "v", "n", "vw"), ZERO),
    "asset": dict.fromkeys(("min_trade_increment", "min_order_size", "price_increment"), ZERO)
    | dict.fromkeys(("fractionable", "shortable", "easy_to_borrow"), True),
    "account": {"buying_power": ZERO, "non_marginable_buying_power": ZERO, "shorting_enabled": True},
}
"""Fields of `change` to which bars and orders are held, each with a value of its type; a bar has no others."""
_LONG = 3600.0
_HALF = Decimal("0.5")
_OWN = ("id", "since", "matched", "used")
_NAME = re.compile(r"[A-Z][A-Z0-9.]{0,9}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One rule.

    id: its number.
    method, path, symbol, side, event: shell patterns of what it matches.
    count: uses; 0: without end.
    skip: matches that pass unharmed first.
    probability, seed: of a hit after that, decided with the match's number.
    status: HTTP status of the answer.
    seconds: of the delay or the Retry-After.
    after: True where the request is carried out first.
    fraction: of a partial fill, or of a bar's prices.
    then: the rest of a partial fill, a new name, an address, a content type, or what becomes of a list.
    message: of a refusal, or a whole body.
    change: fields with their new values.
    since: ISO time.
    matched, used: counts so far.
    """

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
    change: dict[str, Any] = field(default_factory=dict)
    since: str = ""
    matched: int = 0
    used: int = 0

    def matches(self, values: Mapping[str, str]) -> bool:
        """True where each value fits the pattern of its name; methods and sides in any case."""
        patterns = {name: getattr(self, name) for name in values} | {
            "method": self.method.upper(),
            "side": self.side.lower(),
        }
        return all(fnmatchcase(value, patterns[name]) for name, value in values.items())

    def json(self) -> dict[str, Any]:
        """The rule as stored and shown."""
        return asdict(self) | {"fraction": str(self.fraction)}


class Faults:
    """Active rules, in the order of their creation."""

    def __init__(self, stored: list[dict[str, Any]], next_id: int = 1) -> None:
        """Continue with stored rules."""
        self.rules = [Fault(**one | {"fraction": Decimal(one["fraction"])}) for one in stored]
        self.next_id = next_id

    def add(self, document: dict[str, Any], now: datetime) -> Fault:
        """Add a rule. Raises ApiError for one without a meaning."""
        values = _checked(document)
        kind = values["kind"]
        if kind in WORLD:
            values["count"] = 0
        if kind == "bar":
            values.setdefault("fraction", Decimal(1))
        values.setdefault("after", kind == "gateway_timeout")
        values.setdefault("status", _STATUS.get(kind, 0))
        values.setdefault("seconds", _LONG if kind == "hang" else 1.0)
        rule = Fault(**values | {"id": self.next_id, "since": now.isoformat()})
        self.next_id += 1
        self.rules.append(rule)
        return rule

    def remove(self, rule_id: int | None) -> bool:
        """Remove a rule, or all; False where there was none."""
        before = len(self.rules)
        self.rules = [rule for rule in self.rules if rule_id is not None and rule.id != rule_id]
        return len(self.rules) < before

    def for_answer(self, method: str, path: str, symbol: str = "", side: str = "") -> Fault | None:
        """The fault of an HTTP request; an order has a symbol and a side."""
        return self._hit(ANSWERS + CHANGED, method=method, path=path, symbol=symbol, side=side)

    def for_order(self, symbol: str, side: str) -> Fault | None:
        """The fault of a new order."""
        return self._hit(ORDERS, symbol=symbol, side=side)

    def for_event(self, path: str, event: str) -> Fault | None:
        """The fault of an event on a stream."""
        return self._hit(STREAMS, path=path, event=event)

    def active(self, kind: str, symbol: Symbol = "*") -> Fault | None:
        """The active rule of the world, for a symbol or in general."""
        return next((r for r in self.rules if r.kind == kind and r.symbol in ("*", symbol)), None)

    def changed(self, kind: str, symbol: Symbol = "*") -> dict[str, Any]:
        """The fields that a rule of the world changes in the account, or in an asset."""
        rule = self.active(kind, symbol)
        return {} if rule is None else dict(rule.change)

    def halted_since(self, symbol: Symbol) -> datetime | None:
        """Time of a symbol's halt, None where it trades."""
        rule = self.active("halted", symbol)
        return None if rule is None else datetime.fromisoformat(rule.since)

    def renamed(self) -> dict[Symbol, str]:
        """New names by old ones."""
        return {rule.symbol: rule.then for rule in self.rules if rule.kind == "renamed"}

    def _hit(self, kinds: tuple[str, ...], **values: str) -> Fault | None:
        """The first rule of some kinds whose patterns match and whose turn it is; counts the matches."""
        for n, rule in enumerate(self.rules):
            if rule.kind not in kinds or (rule.count and rule.used >= rule.count) or not rule.matches(values):
                continue
            number = rule.matched + 1
            hit = number > rule.skip and _draw(rule.seed, rule.id, number) < rule.probability
            self.rules[n] = replace(rule, matched=number, used=rule.used + hit)
            if hit:
                return self.rules[n]
        return None


def _checked(document: dict[str, Any]) -> dict[str, Any]:
    """Fields of a rule. Raises ApiError for a rule without a meaning."""
    allowed = {name: getattr(Fault(kind="x"), name) for name in Fault.__slots__ if name not in _OWN}
    for name in document:
        if name not in allowed:
            raise invalid(f"a fault has no {name[:40]!r}; it has {', '.join(sorted(allowed))}")
    kind = document.get("kind")
    if kind not in KINDS:
        raise invalid(f"no fault {str(kind)[:40]!r}; there are {', '.join(KINDS)}")
    values = {name: _like(name, value, allowed[name]) for name, value in document.items()}
    _check_change(kind, values.get("change", {}))
    then = values.get("then", "fill")
    refusals = {
        "a fault's status goes from 200 to 599, and its probability from 0 to 1": (
            values.get("status", 200) not in range(200, 600) or values.get("probability", 0) > 1
        ),
        f"partial_fill needs a fraction between 0 and 1 and then one of {', '.join(THEN)}": (
            kind == "partial_fill" and (then not in THEN or not 0 < values.get("fraction", _HALF) < 1)
        ),
        f"{kind} needs a symbol": (
            kind in ("halted", "untradable", "renamed", "bar", "asset") and not values.get("symbol")
        ),
        f"list needs then, one of {', '.join(LISTS)}": kind == "list" and then not in LISTS,
        "renamed needs the new name under then": kind == "renamed" and not _NAME.fullmatch(then),
    }
    for refusal, is_so in refusals.items():
        if is_so:
            raise invalid(refusal)
    return values


def _check_change(kind: str, change: Mapping[str, Any]) -> None:
    known = _CHANGES.get(kind, {})
    for name, value in change.items():
        if name in known and value is not None:  # null is a value that a broker may send
            _like(name, value, known[name])
        elif name not in known and kind == "bar":
            raise invalid(f"a bar has no {name[:40]!r}; it has {', '.join(known)}")


def _like(name: str, value: Any, default: Any) -> Any:
    """A value converted to the type of its field. Raises ApiError."""
    try:
        if isinstance(default, Decimal | float) and not isinstance(value, bool):
            value = type(default)(str(value))
            fits = isfinite(value)
        else:
            fits = type(value) is type(default)
    except (ValueError, InvalidOperation):
        fits = False
    if not fits or (isinstance(value, int | float | Decimal) and value < 0):
        raise invalid(f"invalid {name}: {str(value)[:40]!r}")
    return value


def _draw(seed: int, rule: int, number: int) -> float:
    """A number from 0 to below 1, determined by the three on any machine."""
    digest = blake2b(f"{seed}/{rule}/{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
