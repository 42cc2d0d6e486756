"""Rules that answer a trader's questions without a model: simple, deterministic, labelled as rules.

A strategy follows the trend or trades against it; one that did badly is changed for the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_DOWN, Decimal
from typing import Any

from engine.agents.rendering import money, signed_percent
from engine.arena.agents import AnalysisView, ChatView, OrdersView, ReflectionView, TraderView
from engine.arena.view import StockView

FOLLOW = "Follow the trend: buy what rose over the window, sell what fell."
CONTRARY = "Trade against the trend: buy what fell over the window, sell what rose."
SPREAD = Decimal("0.01")
"""Distance of a limit from the price, on the side that trades."""
PART = Decimal("0.25")
"""Part of the cash, or of the shares, of an order."""


def chat(view: ChatView) -> Mapping[str, Any]:
    """Tell the others of the stock that is held most."""
    held = max(view.market.stocks, key=lambda one: (view.market.shares[one.name] * one.price, one.name))
    change = signed_percent(_trend(held))
    text = f"{held.name} pays {money(held.dividend)} a share and day and moved {change} over the window; I hold it."
    return {"message": text if view.market.shares[held.name] else "", "invented": False}


def analyse(view: AnalysisView) -> Mapping[str, Any]:
    """Rank by trend, or against it."""
    ranked = sorted(view.market.stocks, key=lambda one: (-_liking(view, one), one.name))
    findings = [
        {
            "finding": f"{one.name} stands at {money(one.price)}, {signed_percent(_trend(one))} over the window.",
            "bearing": "It is to be bought." if _liking(view, one) > 0 else "It is to be sold.",
        }
        for one in ranked[:3]
    ]
    return {"findings": findings, "ranking": [one.name for one in ranked]}


def order(view: OrdersView) -> Mapping[str, Any]:
    """Buy the best of the ranking with a part of the cash, sell a part of what is liked least."""
    liked = sorted(view.market.stocks, key=lambda one: (-_liking(view, one), one.name))
    best, worst = liked[0], liked[-1]
    orders = []
    limit = _ticks(best.price * (1 + SPREAD), view.market.tick)
    quantity = _part(view.market.cash / limit) if limit else 0
    if quantity and _liking(view, best) >= 0:
        orders.append({"stock": best.name, "action": "BUY", "quantity": quantity, "limit": str(limit)})
    limit, quantity = (
        _ticks(worst.price * (1 - SPREAD), view.market.tick),
        _part(Decimal(view.market.shares[worst.name])),
    )
    if quantity and limit and _liking(view, worst) <= 0:
        orders.append({"stock": worst.name, "action": "SELL", "quantity": quantity, "limit": str(limit)})
    names = ", ".join(f"{one['action']} {one['stock']}" for one in orders) or "nothing"
    return {"reason": f"By the trend of the window and the strategy: {names}.", "orders": orders}


def reflect(view: ReflectionView) -> Mapping[str, Any]:
    """Keep a strategy that beat the table, change one that did not."""
    won = view.day_return >= view.average_return
    changed = FOLLOW if _contrary(view) else CONTRARY
    judged = f"{signed_percent(view.day_return)} against {signed_percent(view.average_return)} of all traders"
    return {
        "evaluation": f"The strategy {'did well' if won else 'did badly'}: {judged}.",
        "strategy": view.strategy if won else changed,
    }


def _contrary(view: TraderView) -> bool:
    """True for a strategy against the trend. One that names no side leaves it to the name, so that a table of rules
    has both: a market of one opinion does not trade."""
    if view.strategy in (FOLLOW, CONTRARY):
        return view.strategy == CONTRARY
    return bool(sum(view.name.encode()) % 2)


def _liking(view: TraderView, stock: StockView) -> Decimal:
    """The trend with the strategy's sign, and the discount to the fundamental value where that is known."""
    trend = -_trend(stock) if _contrary(view) else _trend(stock)
    if stock.fundamental is None or not stock.price:
        return trend
    # Estimates of one value differ between people, or nobody would sell to another.
    estimate = stock.fundamental * (1 + Decimal(sum(view.name.encode()) % 7 - 3) / 20)
    return trend + estimate / stock.price - 1


def _part(shares: Decimal) -> int:
    """A part of the shares that are possible, at least one where one is."""
    return max(int(shares * PART), min(1, int(shares)))


def _trend(stock: StockView) -> Decimal:
    return stock.price / stock.closes[0] - 1 if stock.closes[0] else Decimal(0)


def _ticks(price: Decimal, tick: Decimal) -> Decimal:
    return (price / tick).to_integral_value(ROUND_DOWN) * tick
