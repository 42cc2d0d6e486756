"""Values of the arena: orders, trades, flows of money and shares, and the reasons of a refused order."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from engine.domain.order import Side


class Refusal(StrEnum):
    """The reason why an order was not accepted; its agent learns it, and nobody else is affected."""

    UNKNOWN_STOCK = "no such stock"
    BAD_QUANTITY = "the quantity is not a positive whole number"
    BAD_LIMIT = "the limit is not a positive multiple of the tick"
    NO_CASH = "the cash does not cover it"
    NO_SHARES = "the shares are not held"
    CLOSED = "the market is closed"


class FlowKind(StrEnum):
    """The kind of a flow between an agent and the world outside the market."""

    INITIAL = "initial"
    DIVIDEND = "dividend"
    FEE = "fee"
    INTEREST = "interest"
    BUY_BACK = "buy_back"
    INCOME = "income"
    SHOCK = "shock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order as it was sent.

    id: counts from 1 over the whole market.
    quantity: whole shares.
    limit: the worst price; None trades at any price and never rests.
    day, round: when it was sent, both count from 1.
    """

    id: int
    agent: str
    stock: str
    side: Side
    quantity: int
    limit: Decimal | None
    day: int
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    """A trade between two agents.

    price: what was paid for a share.
    reference: the stock's reference price after the trade.
    cost_buyer, cost_seller: what each paid the house on top.
    maker: the agent whose order was in the book; empty in a call auction.
    excess: what was paid outside of the two limits, 0 unless trades settle at the price after impact.
    """

    day: int
    round: int
    stock: str
    buyer: str
    seller: str
    quantity: int
    price: Decimal
    reference: Decimal
    cost_buyer: Decimal
    cost_seller: Decimal
    maker: str
    excess: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Money, shares or both that came to an agent from outside (positive) or left it.

    stock: where shares move, or what a dividend is paid for.
    """

    day: int
    agent: str
    kind: FlowKind
    amount: Decimal
    stock: str | None = None
    shares: int = 0


@dataclass(frozen=True, slots=True)
class OpenAtClose:
    """An order that was open when a day's last round was over, and was canceled at the close; `price` is its limit."""

    day: int
    stock: str
    side: Side
    agent: str
    price: Decimal
    quantity: int
