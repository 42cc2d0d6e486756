"""Account and positions from the broker's JSON."""

from __future__ import annotations

from collections.abc import Sequence

from connectors.alpaca.json_fields import Raw, flag, number, number_or_none, required_text, text_of
from connectors.alpaca.symbols import from_wire
from engine.domain.brokerage import BrokerAccount
from engine.domain.market import Symbol
from engine.domain.portfolio import Position

_BLOCKS = (
    ("account_blocked", "the account is blocked"),
    ("trading_blocked", "trading is blocked"),
    ("trade_suspended_by_user", "trading is suspended in the account's settings"),
)
_NOT_TRADING = frozenset(
    {
        "INACTIVE",
        "ONBOARDING",
        "SUBMISSION_FAILED",
        "SUBMITTED",
        "APPROVAL_PENDING",
        "REJECTED",
        "DISABLED",
        "ACCOUNT_CLOSED",
        "ACCOUNT_CLOSED_PENDING",
    }
)
"""Statuses under which nothing trades. Any other status does not block: the broker refuses orders by itself."""


def broker_account(account: Raw, positions: Sequence[Raw]) -> BrokerAccount:
    """An account with its positions. Raises MalformedData naming a field that money depends on."""
    where = "the broker's account"
    status = text_of(account, "status")
    reasons = [reason for name, reason in _BLOCKS if flag(account, name)]
    if status.upper() in _NOT_TRADING:
        reasons.append(f"the account's status is {status}")
    equity = number_or_none(account, "equity", where)
    return BrokerAccount(
        id=required_text(account, "id", where),
        status=status,
        blocked="; ".join(reasons),
        currency=text_of(account, "currency") or "USD",
        cash=number(account, "cash", where),
        equity=number(account, "portfolio_value", where) if equity is None else equity,
        positions=dict(map(_position, positions)),
    )


def _position(raw: Raw) -> tuple[Symbol, Position]:
    name = required_text(raw, "symbol", "a position at the broker")
    where = f"the broker's position in {name}"
    quantity = number(raw, "qty", where)
    if text_of(raw, "side") == "short":
        quantity = -abs(quantity)
    cost = number(raw, "avg_entry_price", where)
    return from_wire(name, text_of(raw, "asset_class")), Position(quantity, cost)
