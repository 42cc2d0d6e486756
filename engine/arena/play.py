"""The days of an arena: chat, analysis, rounds of orders, the close, reflection.

Source: Agent Trading Arena §3, §4.2 [R3, R4, R5].

Figures of an arena: what each agent earned, and what the market did.

Source: Agent Trading Arena §5 [R7]; deviations from the fundamental value after Stöckl, Huber and Kirchler (2010).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from random import Random
from statistics import fmean, stdev

from engine.arena.market import Market
from engine.arena.players import ChatMessage, Player
from engine.arena.rules import ArenaRules
from engine.arena.values import OpenAtClose, Refusal
from engine.arena.view import view_of
from engine.domain.order import Side


@dataclass(slots=True)
class Table:
    """A table of an arena after a day: the market, what was said, each agent's wealth at each close.

    wealth: by agent, of the beginning and of every close, shares at the price they were bought back at included.
    refused: counts of refused orders by agent and reason.
    books: orders that were open at each close, best first by stock and side.
    """

    market: Market
    messages: list[ChatMessage] = field(default_factory=list)
    wealth: dict[str, list[Decimal]] = field(default_factory=dict)
    refused: dict[str, dict[str, int]] = field(default_factory=dict)
    books: list[OpenAtClose] = field(default_factory=list)


async def play(
    rules: ArenaRules, players: Mapping[str, Player], seed: int, *, unsaid: Collection[str] = ()
) -> AsyncIterator[Table]:
    """Play all days; yields the table after each.

    Everybody decides a round at once, on the same prices; orders then arrive in an order that is drawn for the round
    and does not depend on the seats. `unsaid` names chat messages that nobody gets to read.
    """
    market = Market(rules, tuple(players), seed)
    table = Table(market, wealth={agent: [market.wealth(agent)] for agent in players})
    for _ in range(rules.days):
        market.open_day()
        await _talk(table, players, unsaid)
        for _ in range(rules.rounds):
            await _round(table, players, seed)
        table.books += _open_orders(market)
        market.close_day()
        await _look_back(table, players)
        yield table


async def _talk(table: Table, players: Mapping[str, Player], unsaid: Collection[str]) -> None:
    market = table.market
    said = await asyncio.gather(*(player.chat(market) for player in players.values()))
    messages = [
        ChatMessage(
            id=f"{market.day}-{agent}",
            day=market.day,
            agent=agent,
            to=tuple(name for name in players if name != agent),
            text=text,
            truth=truth,
        )
        for agent, (text, truth) in zip(players, said, strict=True)
        if text and f"{market.day}-{agent}" not in unsaid
    ]
    table.messages += messages
    heard = {agent: [one for one in messages if agent in one.to] for agent in players}
    await asyncio.gather(*(player.prepare(market, heard[agent]) for agent, player in players.items()))


async def _round(table: Table, players: Mapping[str, Player], seed: int) -> None:
    market = table.market
    views = {agent: view_of(market, agent, player.window) for agent, player in players.items()}
    wished = await asyncio.gather(*(player.orders(views[agent]) for agent, player in players.items()))
    wishes = dict(zip(players, wished, strict=True))
    for agent in _arrivals(tuple(players), seed, market):
        for resting in market.open_orders(agent):
            market.cancel(agent, resting.order.id)
        for wish in wishes[agent]:
            answer = market.submit(agent, *wish)
            refusal = answer if isinstance(answer, Refusal) else None
            if refusal is not None:
                counts = table.refused.setdefault(agent, {})
                counts[refusal.value] = counts.get(refusal.value, 0) + 1
            players[agent].answered(wish, refusal)
    market.end_round()


def _open_orders(market: Market) -> Iterator[OpenAtClose]:
    for name, listing in market.listings.items():
        for side in Side:
            for one in listing.book.orders(side):
                yield OpenAtClose(market.day, name, side, one.order.agent, one.limit, one.remaining)


async def _look_back(table: Table, players: Mapping[str, Player]) -> None:
    market = table.market
    for agent in players:
        table.wealth[agent].append(market.wealth(agent))
    returns = {agent: day_return(table.wealth[agent]) for agent in players}
    average = sum(returns.values(), Decimal(0)) / len(returns)
    await asyncio.gather(*(player.reflect(market, returns[agent], average) for agent, player in players.items()))


def day_return(wealth: Sequence[Decimal]) -> Decimal:
    """The change of wealth over the last day, 0 where there was none."""
    return wealth[-1] / wealth[-2] - 1 if wealth[-2] else Decimal(0)


def _arrivals(agents: tuple[str, ...], seed: int, market: Market) -> list[str]:
    order = sorted(agents)
    Random(f"{seed} {market.day} {market.round}").shuffle(order)
    return order


Figures = Mapping[str, float | None]


def agent_figures(wealth: Sequence[Decimal], trend: float | None) -> Figures:
    """Figures of one agent from its wealth at the beginning and at each close.

    The Sharpe ratio is mean over standard deviation of daily returns, with a risk-free rate of 0 and not annualized.
    `difference` is the total return less the average trend of the stocks.
    """
    returns = _returns(wealth)
    total = float(wealth[-1] / wealth[0]) - 1 if wealth[0] else None
    return {
        "total_return": total,
        "win_rate": sum(one > 0 for one in returns) / len(returns) if returns else None,
        "mean_return": fmean(returns) if returns else None,
        "standard_deviation": stdev(returns) if len(returns) > 1 else None,
        "sharpe": _sharpe(returns),
        "difference": None if total is None or trend is None else total - trend,
    }


def market_figures(market: Market) -> Figures:
    """Figures of the market: returns of stocks are those of reference prices, the index weights them equally.

    deviation and relative_deviation: mean absolute and mean difference of closes and fundamental value, in parts of the
    mean fundamental value (RAD and RD); None where a preset has none.
    """
    closes = [listing.closes for listing in market.listings.values()]
    trends = [float(one[-1] / one[0]) - 1 for one in closes]
    index = [fmean(day) for day in zip(*(_returns(one) for one in closes), strict=True)]
    traded = sum(one.quantity for one in market.trades)
    gaps, values = _gaps(market)
    worth = fmean(values) if values else 0.0
    return {
        "average_trend": fmean(trends),
        "index_sharpe": _sharpe(index),
        "volatility": stdev(index) if len(index) > 1 else None,
        "turnover": traded / sum(listing.shares for listing in market.listings.values()),
        "deviation": fmean(map(abs, gaps)) / worth if worth else None,
        "relative_deviation": fmean(gaps) / worth if worth else None,
    }


def most_volatile(market: Market) -> tuple[str, float] | None:
    """The stock whose daily returns have the greatest deviation, with its trend; None before the second day.

    Source: Agent Trading Arena, figure 5 [R7].
    """
    spreads = {
        name: stdev(_returns(one.closes)) for name, one in market.listings.items() if len(_returns(one.closes)) > 1
    }
    if not spreads:
        return None
    name = max(spreads, key=lambda one: spreads[one])
    closes = market.listings[name].closes
    return name, float(closes[-1] / closes[0]) - 1


def _gaps(market: Market) -> tuple[list[float], list[float]]:
    """Differences of closes and fundamental value, and the values, by stock and day."""
    gaps, values = [], []
    for listing in market.listings.values():
        for day, close in enumerate(listing.closes[1:], 1):
            value = market.rules.fundamental_value(listing.rules, day)
            if value is not None:
                gaps.append(float(close - value))
                values.append(float(value))
    return gaps, values


def _returns(values: Sequence[Decimal]) -> list[float]:
    return [float(b / a) - 1 if a else 0.0 for a, b in pairwise(values)]


def _sharpe(returns: Sequence[float]) -> float | None:
    spread = stdev(returns) if len(returns) > 1 else 0.0
    return fmean(returns) / spread if spread > 0 else None
