"""An order of the sandbox, and its form on the wire."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import Any

from connectors.sandbox.market import Listing
from connectors.sandbox.protocol import stamp, stamp_or_none
from engine.domain.decimal_text import plain
from engine.domain.market import Symbol
from engine.domain.order import Side
from engine.domain.portfolio import EXACT, SHARE_STEP, ZERO

OPEN = frozenset({"accepted", "new", "pending_new", "partially_filled"})
"""Statuses that are not final."""


@dataclass(slots=True, kw_only=True)
class SandboxOrder:
    """One order. Amounts are Decimal, times aware UTC.

    seq: its number.
    status: Alpaca's.
    intent: of the position, such as buy_to_open.
    session: ISO date of the one session for which a day order is good.
    cost: exact sum of quantity times price over its fills.
    replaced_by, replaces: order ids.
    part: fraction that fills first, where a fault says so.
    rest: what then becomes of the remainder.
    rest_due: when it fills.
    """

    seq: int
    id: str
    client_order_id: str
    symbol: Symbol
    side: Side
    type: str
    time_in_force: str
    created_at: datetime
    updated_at: datetime
    status: str
    intent: str
    qty: Decimal | None = None
    notional: Decimal | None = None
    limit_price: Decimal | None = None
    session: str = ""
    filled_qty: Decimal = ZERO
    cost: Decimal = ZERO
    filled_at: datetime | None = None
    canceled_at: datetime | None = None
    expired_at: datetime | None = None
    failed_at: datetime | None = None
    replaced_at: datetime | None = None
    replaced_by: str | None = None
    replaces: str | None = None
    part: Decimal | None = None
    rest: str = ""
    rest_due: datetime | None = None

    @property
    def is_open(self) -> bool:
        """True while the order is not final."""
        return self.status in OPEN

    @property
    def remaining(self) -> Decimal:
        """Shares still to fill; zero for an order by notional, whose shares depend on the price."""
        return ZERO if self.qty is None else self.qty - self.filled_qty

    @property
    def average_price(self) -> Decimal | None:
        """Average price of its fills."""
        if not self.filled_qty:
            return None
        return EXACT.divide(self.cost, self.filled_qty).quantize(SHARE_STEP, context=EXACT)

    def json(self, listing: Listing) -> dict[str, Any]:
        """The order on the wire."""
        average = self.average_price
        return {
            "id": self.id,
            "client_order_id": self.client_order_id,
            "created_at": stamp(self.created_at),
            "updated_at": stamp(self.updated_at),
            "submitted_at": stamp(self.created_at),
            "filled_at": stamp_or_none(self.filled_at),
            "expired_at": stamp_or_none(self.expired_at),
            "canceled_at": stamp_or_none(self.canceled_at),
            "failed_at": stamp_or_none(self.failed_at),
            "replaced_at": stamp_or_none(self.replaced_at),
            "replaced_by": self.replaced_by,
            "replaces": self.replaces,
            "asset_id": listing.asset_id,
            "symbol": listing.wire,
            "asset_class": "crypto" if listing.crypto else "us_equity",
            "notional": None if self.notional is None else plain(self.notional),
            "qty": None if self.qty is None else plain(self.qty),
            "filled_qty": plain(self.filled_qty),
            "filled_avg_price": None if average is None else plain(average),
            "order_class": "",
            "order_type": self.type,
            "type": self.type,
            "side": self.side.value.lower(),
            "position_intent": self.intent,
            "time_in_force": self.time_in_force,
            "limit_price": None if self.limit_price is None else plain(self.limit_price),
            "stop_price": None,
            "status": self.status,
            "extended_hours": False,
            "legs": None,
            "trail_percent": None,
            "trail_price": None,
            "hwm": None,
            "subtag": None,
            "source": None,
        }

    def row(self) -> str:
        """All fields as text, for the store."""
        return json.dumps({name: getattr(self, name) for name in _NAMES}, default=str)

    @classmethod
    def of_row(cls, text: str) -> SandboxOrder:
        """The order that `row` wrote."""
        values = json.loads(text)
        for name in _DECIMALS:
            values[name] = None if values[name] is None else Decimal(values[name])
        for name in _MOMENTS:
            values[name] = None if values[name] is None else datetime.fromisoformat(values[name])
        return cls(**values | {"side": Side(values["side"])})


_NAMES = [field.name for field in fields(SandboxOrder)]
_DECIMALS = [field.name for field in fields(SandboxOrder) if "Decimal" in str(field.type)]
_MOMENTS = [field.name for field in fields(SandboxOrder) if "datetime" in str(field.type)]
