"""Runs, orders, trades and halts of a document in words, the same in every command and screen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from engine.domain.order import YOU
from engine.domain.text import counted, state_words
from engine.reports import amounts
from engine.reports.card import action_words, rule_and_reason
from engine.reports.documents.row_json import minute, use_words
from tui.text.plain_text import one_line

Row = Mapping[str, Any]
COMBINED = re.compile(r"(?:Vote|Weighted mean) of \d+: [a-z ]+ \(([^)]*)\)")
"""The beginning of a reason that is combined of several owners', with their votes."""


def decided_by(run: Row) -> str:
    """The label of who decided, with its kind, so that rules are never taken for a model."""
    return f"{run['label']} ({run['decider']} {run['name']})"


def combined_opinions(decided: Row) -> list[Row]:
    """The opinions of several owners that a decision was combined of; none where one owner decides."""
    return [one for one in decided["opinions"] if one["owner"] != decided["owner"]]


def opinions_line(decided: Row) -> str:
    """`bull BUY 7 %, bear HOLD`; empty where one owner decides."""
    return ", ".join(f"{one_line(one['owner'])} {action_words(one)}" for one in combined_opinions(decided))


def terms(order: Row) -> str:
    """`BUY ORVL for 7,000.00`, `SELL 12 ORVL, yours`, `SELL 12 ORVL (edited from 40 by the operator)`."""
    words = f"{order['side']} {order['symbol']} for {_size(order)}"
    if order["notional"] is None:
        words = f"{order['side']} {_size(order)} {order['symbol']}"
    if order.get("owner") == YOU:
        words += ", yours"
    before = order["edited_from"]
    return words if before is None else f"{words} (edited from {_size(before)} by the operator)"


def _size(order: Row) -> str:
    if order["notional"] is not None:
        return amounts.money(amounts.number(order["notional"]))
    return amounts.quantity(Decimal(order["quantity"]))


def effect_facts(effect: Row | None, source: str = "") -> list[tuple[str, str]]:
    """Price, shares, share of the portfolio and cash of an order that waits, as labelled lines; none without a
    price. `source` tells where that comes from, in place of the session of a close."""
    if effect is None:
        return []
    shares, value = amounts.quantity(Decimal(effect["shares"])), amounts.money(amounts.number(effect["value"]))
    # An amount buys more shares, or fewer, as the price of the fill turns out.
    shares = f"{shares}, worth {value}" if effect["amount"] is None else f"about {shares}, bought for {value}"
    if effect["time"] is not None:
        source = f"live at {moment(effect['time'])}"
    source = source or f"the close of {effect['session']}"
    count = effect["open_orders"]
    beside = f" and what {counted(count, 'open order')} may take" if count else ""
    parts = ("-" if part is None else f"{part:.1%}" for part in (effect["before"], effect["after"]))
    return [
        ("Price", f"{amounts.price(amounts.number(effect['price']))}, {source}"),
        ("Shares", shares),
        ("Part", f"{' to '.join(parts)} of the portfolio"),
        ("Cash", f"{amounts.money(amounts.number(effect['cash_after']))} after it{beside}"),
        *([("Fills", f"at the open of {moment(effect['fills_at'])}")] if effect["fills_at"] else []),
    ]


def order_words(order: Row) -> str:
    """An order with its state on one line, and the reason of the state where the row has one as `detail`."""
    return f"{terms(order)}: {state_words(order['state'], order.get('detail') or '')}"


def trade_words(fill: Row) -> str:
    """A trade on one line."""
    fee, quantity, price = (Decimal(fill[name]) for name in ("fee", "quantity", "price"))
    shares = f"{fill['session']} {fill['side']} {amounts.quantity(quantity)} {fill['symbol']}"
    return f"{shares} at {amounts.price(price)}" + (f", fee {amounts.money(fee)}" if fee else "")


def model_words(use: Row | None) -> str:
    """Calls of models and their cost; empty where none was asked."""
    return f"{use['spec']}: {use_words(use)}" if use is not None and use["calls"] else ""


def reason_words(action: str, reason: str) -> str:
    """The reason on one line without the action that it begins with, which stands beside it; of a combined one the
    votes."""
    text = one_line(reason)
    votes = COMBINED.match(text)
    if votes:
        return f"{votes[1]}{text[votes.end() :]}"
    rule, rest = rule_and_reason(action, text)
    return f"{rule}: {rest}" if rule else rest


def moment(time: str) -> str:
    """A time of a document (ISO, UTC) to the minute."""
    return minute(datetime.fromisoformat(time))


def halt_words(halt: Row) -> str:
    """`since 2026-11-21 14:02 UTC: news`."""
    return f"since {moment(halt['since'])}" + (f": {one_line(halt['reason'])}" if halt["reason"] else "")
