"""Tables that the terminal, screens, pages and files of values share."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

from engine.domain.decision import LAYERS
from engine.reports import amounts
from engine.reports.table import Cell, Column, action_ink, count, plain, sign_ink

SHORT_ID = 8
"""Characters of a memory's id that a list shows; as many as tell it from all others are enough to name one."""

SESSION = Column("SESSION", "session")
SYMBOL = Column("SYM", "symbol", ink="strong", max_width=9, long="SYMBOL")
SIDE = Column("SIDE", "side", ink=action_ink, max_width=5)
QUANTITY = Column("QTY", "quantity", amounts.quantity, max_width=12)
COST = Column("COST", "cost", amounts.price, drop_order=2)
PRICE = Column("PRICE", "price", amounts.price)


def _decimal(column: Column, one: Any) -> Decimal | None:
    return amounts.number(column.value(one))


def worth(one: Any) -> Decimal | None:
    """The value of a position or a trade, as a value or of a document; None without a price."""
    price = _decimal(PRICE, one)
    return None if price is None else Decimal(QUANTITY.value(one)) * price


def _profit(one: Any) -> Decimal | None:
    """The gain of a position over its cost; None where one of both is not known."""
    value, cost = worth(one), _decimal(COST, one)
    return None if value is None or cost is None else value - Decimal(QUANTITY.value(one)) * cost


def _gained(one: Any) -> Decimal | None:
    """The gain as a fraction of what was paid."""
    gain, cost = _profit(one), _decimal(COST, one)
    return gain / abs(Decimal(QUANTITY.value(one)) * cost) if gain is not None and cost else None


def _requested(one: Any) -> Cell:
    """The amount of an order, or its shares."""
    notional, shares = _decimal(_NOTIONAL, one), _decimal(QUANTITY, one)
    return Cell(amounts.requested(notional, shares), order=shares if notional is None else notional)


_NOTIONAL = Column("", "notional")
REQUESTED = Column("AMOUNT", _requested, str, max_width=12, long="ASKED")
VALUE = Column("VALUE", worth, amounts.money, drop_order=2)
PROFIT = Column("P&L", _profit, amounts.gain, sign_ink)
GAINED = Column("P&L%", _gained, partial(amounts.percent, digits=1), sign_ink, drop_order=3)
POSITIONS = (
    SYMBOL,
    QUANTITY,
    COST,
    Column("LAST", "price", amounts.price, drop_order=1, long="PRICE"),
    replace(VALUE, drop_order=0),
    Column("WEIGHT", "share", "{:.1%}".format, drop_order=4),
    PROFIT,
    GAINED,
)
TRADES = (
    SESSION,
    SYMBOL,
    SIDE,
    QUANTITY,
    PRICE,
    VALUE,
    Column("FEE", "fee", amounts.money, "muted", drop_order=3),
    Column("WHY", "reason", ink="muted", drop_order=4, stretch=True, min_width=12, long="REASON"),
)
FLOWS = (
    SESSION,
    SYMBOL,
    Column("KIND", "kind", ink="muted", max_width=16),
    Column("AMOUNT", "amount", amounts.gain, sign_ink, stretch=True, min_width=10),
)
DAY = Column("DAY", "day", str)
STOCK = Column("STOCK", "stock", ink="strong", max_width=6)
SHARES = Column("QTY", "quantity", count, long="SHARES")
TAPE = (
    Column("ROUND", "round", str, "muted"),
    STOCK,
    SHARES,
    PRICE,
    Column("BUYER", "buyer", max_width=12, drop_order=1),
    Column("SELLER", "seller", max_width=12, drop_order=2),
    Column("VALUE", worth, amounts.money, "muted", stretch=True, min_width=10, drop_order=3),
)
"""The trades of an arena."""
ARENA_ORDERS = (STOCK, SIDE, PRICE, SHARES, Column("AGENT", "agent", max_width=12, drop_order=1), TAPE[-1])
ARENA_AGENTS = (
    Column("AGENT", "name", ink="strong"),
    Column("WEALTH", "wealth", amounts.money),
    Column("RETURN", "metrics.total_return", amounts.percent, sign_ink),
    Column("SHARPE", "metrics.sharpe", amounts.ratio),
    Column("WON", "metrics.win_rate", amounts.portion),
    Column("TO TREND", "metrics.difference", amounts.percent, sign_ink, drop_order=1),
    Column("OF 100", lambda one: one["relative"]["return"] if one["relative"] else "", amounts.ratio),
    Column("SHARES", lambda one: amounts.held(one["holdings"]) or None),
    Column("KIND", "kind"),
)
WRITTEN = Column("WRITTEN", "session", ink="muted", drop_order=2)


def _layer(one: Any) -> Cell:
    """A layer, which sorts in the order of the layers; a memory that is forgotten has none."""
    if not (layer := one.get("layer")):
        return Cell("forgotten", "warn", len(LAYERS))
    return Cell(layer, order=(*LAYERS, layer).index(layer), brief=f"{layer[:6]}.")


def _kind(one: Any) -> Cell:
    """A kind, that of a reflection in brief without the word that its layer says."""
    kind = plain(one["kind"])
    return Cell(kind, "muted", brief=kind.removesuffix("-reflection").removeprefix("market-"))


LAYER = Column("LAYER", _layer, max_width=12)
KIND = Column("KIND", _kind, max_width=14, drop_order=3)
PINNED = Column("PIN", lambda one: "pin" if one.get("pinned") else "", ink="mark", drop_order=1)
IMPORTANCE = Column("IMP", lambda one: one.get("importance", ""), "{:.1f}".format, long="IMPORTANCE")
RECENCY = Column("REC", lambda one: one.get("recency", ""), "{:.2f}".format, "muted", drop_order=1, long="RECENCY")
REWARDS = Column("REW", lambda one: one.get("rewards") or "", str, "up", drop_order=4, long="REWARDS")
