"""An arena at the close of a day, or after one of its rounds, from its document: anyone can add it up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AgentAtClose:
    """One agent at the close of a day: money in the arena's currency, shares by stock, the return since the start,
    the place by wealth."""

    name: str
    kind: str
    cash: Decimal
    shares: Mapping[str, int]
    wealth: Decimal
    growth: float
    place: int = 0


@dataclass(frozen=True, slots=True)
class ArenaDay:
    """An arena at the close of day `number` of `count`, or before that after a `round` of it; 0 is the beginning.

    Within a day its trades so far are known with what they did to cash and shares; prices, wealth, open orders and
    messages are those of the close before.
    """

    document: Document
    number: int
    round: int | None = None

    @property
    def closed(self) -> int:
        """The last day that is over."""
        return self.number if self.round is None else self.number - 1

    @property
    def moment(self) -> str:
        """Day and round, in a few words."""
        if self.round is not None:
            return f"day {self.number} of {self.count}, round {self.round}"
        return f"close of day {self.number} of {self.count}" if self.number else "before the first day"

    @property
    def count(self) -> int:
        """The days that were played."""
        days: int = self.document["days"]
        return days

    @property
    def title(self) -> str:
        """Run and preset."""
        return f"{self.document['run']}  {self.document['preset']}, seed {self.document['seed']}"

    def prices(self) -> dict[str, list[float | None]]:
        """The price of every stock at the start and at each close so far, then its fundamental value where there is
        one."""
        found: dict[str, list[float | None]] = {}
        for stock in self.document["stocks"]:
            rows = self._until("prices", self.closed, stock=stock["name"])
            found[stock["name"]] = [float(stock["first_price"]), *(float(row["close"]) for row in rows)]
            if rows and rows[0]["fundamental"] is not None:
                found[f"{stock['name']} fundamental"] = [None, *(float(row["fundamental"]) for row in rows)]
        return found

    def wealth(self) -> dict[str, list[float | None]]:
        """The wealth of every agent at the start and at each close so far."""
        return {
            agent["name"]: [float(amount) for amount in agent["equity"][: self.closed + 1]]
            for agent in self.document["agents"]
        }

    def agents(self) -> list[AgentAtClose]:
        """Every agent, the wealthiest first."""
        cash: dict[str, Decimal] = {agent["name"]: Decimal(0) for agent in self.document["agents"]}
        shares: dict[str, dict[str, int]] = {name: {} for name in cash}
        begun = [flow for flow in self.document["flows"] if flow["kind"] == "initial" and not self.closed]
        for flow in begun or self._until("flows", self.closed):
            cash[flow["agent"]] += Decimal(flow["amount"])
            if "shares" in flow:
                held = shares[flow["agent"]]
                held[flow["stock"]] = held.get(flow["stock"], 0) + flow["shares"]
        for trade in (*self._until("trades", self.number - 1), *self.trades()):
            for name, sign, cost in ((trade["buyer"], 1, "cost_buyer"), (trade["seller"], -1, "cost_seller")):
                cash[name] -= sign * trade["quantity"] * Decimal(trade["price"]) + Decimal(trade[cost])
                shares[name][trade["stock"]] = shares[name].get(trade["stock"], 0) + sign * trade["quantity"]
        found = []
        for agent in self.document["agents"]:
            name, equity = agent["name"], agent["equity"]
            now = Decimal(equity[min(self.closed, len(equity) - 1)])
            grown = float(now / Decimal(equity[0]) - 1) if Decimal(equity[0]) else 0.0
            found.append(AgentAtClose(name, agent["kind"], cash[name], shares[name], now, grown))
        return [replace(one, place=n) for n, one in enumerate(sorted(found, key=lambda one: -one.wealth), 1)]

    def trades(self) -> Sequence[Document]:
        """The trades of the day so far, the latest first; at the beginning none."""
        of_day = [row for row in self.document["trades"] if row["day"] == self.number]
        return [row for row in of_day if self.round is None or row["round"] <= self.round][::-1]

    def book(self) -> Sequence[Document]:
        """The orders that were open at the last close, by stock, asks above bids."""
        rows = [row for row in self.document.get("books", ()) if row["day"] == self.closed]
        return sorted(rows, key=lambda row: (row["stock"], row["side"] == "BUY", -Decimal(row["price"])))

    def messages(self) -> Sequence[Document]:
        """The messages so far, the latest first."""
        return self._until("messages", self.closed)[::-1]

    def strategies(self, agent: str) -> Sequence[Document]:
        """The strategies of an agent so far, the latest first."""
        rows = next(one["strategies"] for one in self.document["agents"] if one["name"] == agent)
        return [row for row in rows if row["day"] <= self.number][::-1]

    def decisions(self, agent: str) -> Sequence[Document]:
        """The decisions of a preset or a strategy at the table so far, the latest first."""
        known: Sequence[Document] = self.document.get("decisions", ())
        return [row for row in known if row["agent"] == agent and row["day"] <= self.number][::-1]

    def _until(self, part: str, last: int, **wanted: str) -> list[Document]:
        return [
            row
            for row in self.document[part]
            if row["day"] <= last and all(row[name] == value for name, value in wanted.items())
        ]


def arena_moments(document: Document) -> list[ArenaDay]:
    """Every moment of an arena in order: the beginning, then of each day the rounds with a trade, and its close."""
    rounds: dict[int, set[int]] = {}
    for trade in document["trades"]:
        rounds.setdefault(trade["day"], set()).add(trade["round"])
    found = [ArenaDay(document, 0)]
    for day in range(1, document["days"] + 1):
        found += [ArenaDay(document, day, one) for one in sorted(rounds.get(day, ()))]
        found.append(ArenaDay(document, day))
    return found
