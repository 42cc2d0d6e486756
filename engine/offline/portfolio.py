"""Rules for the portfolio agent: it follows the trend of the window or trades against it, and changes sides after a
session below the mean of all stocks. Source: Agent Trading Arena §4.2 [R4, R5]."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from typing import Any

from engine.agents.portfolio import (
    PortfolioAnalysisView,
    PortfolioDecisionView,
    PortfolioReflectionView,
    PortfolioView,
    StockFigures,
)
from engine.agents.rendering import money, signed_percent

FOLLOW = "Follow the trend: hold the stocks that rose most over the window, sell those that fell."
CONTRARY = "Trade against the trend: hold the stocks that fell most over the window, sell those that rose."
MOST_STOCKS = 3
"""Stocks that are bought."""
SHARE = 30
"""Percent of the portfolio that each of them is to have."""
ONE = Decimal(1)


def reflect(view: PortfolioReflectionView) -> Mapping[str, Any]:
    """Keep a strategy that did as well as the mean of all stocks, change one that did not."""
    did_well = view.day_return >= view.market_return
    judged = f"{signed_percent(view.day_return)} against {signed_percent(view.market_return)} of all stocks"
    other = FOLLOW if view.strategy == CONTRARY else CONTRARY
    return {
        "evaluation": f"The strategy did {'well' if did_well else 'badly'}: {judged}.",
        "strategy": view.strategy if did_well else other,
    }


def analyse(view: PortfolioAnalysisView) -> Mapping[str, Any]:
    """Rank by trend, or against it."""
    ranked = _ranked(view)
    findings = [
        {
            "finding": f"{one.symbol} stands at {money(one.price)}, {signed_percent(one.trend)} over the window.",
            "bearing": "It is to be held." if _liking(view, one) > 0 else "It is to be sold.",
        }
        for one in ranked[:3]
    ]
    return {"findings": findings, "ranking": [one.symbol for one in ranked]}


def decide(view: PortfolioDecisionView) -> Mapping[str, Any]:
    """Sell what is disliked, and spend the cash on the best of the ranking, an equal share each."""
    orders, cash = [], int(view.spare_percent.quantize(ONE, ROUND_DOWN))
    for stock in view.stocks:
        if stock.shares > 0 and _liking(view, stock) < 0:
            everything = max(1, int(stock.percent.quantize(ONE, ROUND_UP)))
            orders.append(_order(stock, "SELL", everything))
    for stock in _chosen(view):
        wanted = min(SHARE - int(stock.percent.quantize(ONE, ROUND_UP)), cash)
        if wanted > 0:
            orders.append(_order(stock, "BUY", wanted))
            cash -= wanted
    named = ", ".join(f"{one['action']} {one['symbol']}" for one in orders) or "nothing changes"
    side = "against the trend" if view.strategy == CONTRARY else "with the trend"
    return {"explanation": f"By the trend of the window, {side}: {named}.", "orders": orders}


def _chosen(view: PortfolioDecisionView) -> list[StockFigures]:
    """The stocks that are to be held; by the analysis, where there is one."""
    ranked = {stock.symbol: stock for stock in _ranked(view)}
    if view.analysis is not None:
        ranked = {symbol: ranked[symbol] for symbol in view.analysis.ranking}
    return [stock for stock in ranked.values() if _liking(view, stock) > 0][:MOST_STOCKS]


def _order(stock: StockFigures, action: str, percent: int) -> dict[str, Any]:
    reason = f"{stock.symbol} moved {signed_percent(stock.trend)} over the window."
    return {"symbol": stock.symbol, "action": action, "percent": percent, "reason": reason}


def _ranked(view: PortfolioView) -> list[StockFigures]:
    return sorted(view.stocks, key=lambda one: (-_liking(view, one), one.symbol))


def _liking(view: PortfolioView, stock: StockFigures) -> Decimal:
    return -stock.trend if view.strategy == CONTRARY else stock.trend
