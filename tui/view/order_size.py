"""The size of an order as an operator types it."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from engine.domain.order import OrderSize

SIZE_HINT = "shares, or $amount"
SIZE_NOTE = "25 for shares, $5000 for an amount"


def order_size(text: str) -> OrderSize:
    """A size as it is typed: `25` shares, `$5000`. Raises ValueError that says how it is written."""
    plain = text.strip().replace(",", "")
    try:
        number = Decimal(plain.removeprefix("$"))
    except InvalidOperation:
        number = Decimal(0)
    if not number.is_finite() or number <= 0:
        wrong = f"{text.strip()} is no size: " if text.strip() else ""
        raise ValueError(f"{wrong}write 25 for shares, $5000 for an amount")
    return OrderSize(number, money=plain.startswith("$"))
