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
from datetime import datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, Field, FiniteFloat, StrictBool, ValidationError, create_model, model_validator

from connectors.sandbox.protocol import invalid
from engine.domain.market import Symbol
from engine.settings.values import Frozen, complaint

M = TypeVar("M", bound=BaseModel)

_STATUS = {
    "too_many_requests": 429,
    "server_error": 500,
    "gateway_timeout": 504,
    "html": 502,
    "redirect": 302,
    "body": 200,
}
ANSWERS = (*_STATUS, "hang", "reset", "wrong_key")
CHANGED = ("cut", "drip", "edit", "list")
ORDERS = ("partial_fill", "reject", "refuse")
STREAMS = ("lost_event", "duplicate_event", "disconnect")
WORLD = ("account_blocked", "trading_blocked", "halted", "untradable", "renamed", "bar", "account", "asset")
KINDS = ANSWERS + CHANGED + ORDERS + STREAMS + WORLD
THEN = ("fill", "cancel", "expire")
LISTS = ("double", "reverse", "repeat", "without")
_AMOUNT: Any = (Annotated[Decimal, Field(ge=0)] | None, None)
_FLAG: Any = (StrictBool | None, None)
_CHANGES: Mapping[str, type[BaseModel]] = {
    "bar": create_model("bar", __base__=Frozen, **dict.fromkeys("ohlcvn", _AMOUNT), vw=_AMOUNT),
    "asset": create_model(
        "asset",
        **dict.fromkeys(("min_trade_increment", "min_order_size", "price_increment"), _AMOUNT),
        **dict.fromkeys(("fractionable", "shortable", "easy_to_borrow"), _FLAG),
    ),
    "account": create_model(
        "account", buying_power=_AMOUNT, non_marginable_buying_power=_AMOUNT, shorting_enabled=_FLAG
    ),
}
"""Fields of `change` to which bars and orders are held; a bar has no others. A null is a value that a broker may
send."""
_LONG = 3600.0
_NAME = re.compile(r"[A-Z][A-Z0-9.]{0,9}")
Count = Annotated[int, Field(ge=0)]


class Fault(Frozen):
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
    count: Count = 1
    skip: Count = 0
    probability: Annotated[float, Field(ge=0, le=1)] = 1.0
    seed: Count = 0
    status: Count = 0
    seconds: Annotated[FiniteFloat, Field(ge=0)] = 1.0
    after: StrictBool = False
    fraction: Annotated[Decimal, Field(ge=0)] = Decimal("0.5")
    then: str = "fill"
    message: str = ""
    change: dict[str, Any] = {}
    since: str = ""
    matched: int = 0
    used: int = 0

    @model_validator(mode="after")
    def _means_something(self) -> Self:
        kind, then = self.kind, self.then
        refusals = {
            f"there are {', '.join(KINDS)}": kind not in KINDS,
            "a status goes from 200 to 599": self.status not in (0, *range(200, 600)),
            f"partial_fill needs a fraction between 0 and 1 and then one of {', '.join(THEN)}": (
                kind == "partial_fill" and (then not in THEN or not 0 < self.fraction < 1)
            ),
            f"{kind} needs a symbol": (
                kind in ("halted", "untradable", "renamed", "bar", "asset") and self.symbol in ("", "*")
            ),
            f"list needs then, one of {', '.join(LISTS)}": kind == "list" and then not in LISTS,
            "renamed needs the new name under then": kind == "renamed" and not _NAME.fullmatch(then),
        }
        for refusal, is_so in refusals.items():
            if is_so:
                raise ValueError(refusal)
        return self

    def matches(self, values: Mapping[str, str]) -> bool:
        """True where each value fits the pattern of its name; methods and sides in any case."""
        patterns = {name: getattr(self, name) for name in values} | {
            "method": self.method.upper(),
            "side": self.side.lower(),
        }
        return all(fnmatchcase(value, patterns[name]) for name, value in values.items())

    def document(self) -> dict[str, Any]:
        """The rule as stored and shown."""
        return self.model_dump() | {"fraction": str(self.fraction)}


class Faults:
    """Active rules, in the order of their creation."""

    def __init__(self, stored: list[dict[str, Any]], next_id: int = 1) -> None:
        """Continue with stored rules."""
        self.rules = [Fault(**one) for one in stored]
        self.next_id = next_id

    def add(self, document: dict[str, Any], now: datetime) -> Fault:
        """Add a rule. Raises ApiError for one without a meaning."""
        kind = document.get("kind")
        usual = {
            "after": kind == "gateway_timeout",
            "status": _STATUS.get(str(kind), 0),
            "seconds": _LONG if kind == "hang" else 1.0,
            "fraction": "1" if kind == "bar" else "0.5",
        }
        own = {"id": self.next_id, "since": now.isoformat(), "matched": 0, "used": 0}
        rule = _valid(Fault, usual | document | own | ({"count": 0} if kind in WORLD else {}))
        if rule.kind in _CHANGES:
            _valid(_CHANGES[rule.kind], rule.change)
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
            self.rules[n] = rule.model_copy(update={"matched": number, "used": rule.used + hit})
            if hit:
                return self.rules[n]
        return None


def _valid(model: type[M], values: dict[str, Any]) -> M:
    """Values as a model. Raises ApiError."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise invalid(f"invalid fault: {complaint(model, error)}") from None


def _draw(seed: int, rule: int, number: int) -> float:
    """A number from 0 to below 1, determined by the three on any machine."""
    digest = blake2b(f"{seed}/{rule}/{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
