"""The inputs of the user's own agents, from which each makes its own view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from engine.agents.view import A, Answer
from engine.domain.decision import Outcome
from engine.domain.macro import MacroRelease
from engine.domain.market import Filing, NewsItem, PriceHistory, Symbol
from engine.domain.recollection import Recollection


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """The position in the symbol and the cash, in the quote currency.

    shares: quantity held, negative when short.
    price, average_cost: per share.
    value: of the whole portfolio.
    cash, cash_fraction: free cash, and its part of the value as a fraction of 1.
    unrealized, unrealized_fraction: gain over average cost, and the same as a fraction of the cost.
    """

    shares: Decimal
    price: Decimal
    average_cost: Decimal
    value: Decimal
    cash: Decimal
    cash_fraction: Decimal
    unrealized: Decimal
    unrealized_fraction: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The inputs of one agent. What its registration does not say that it reads is empty.

    now: moment of the cycle, UTC.
    bars: visible bars, oldest first.
    news, filings, macro: new since the last decision, in order of availability.
    outcomes: results of the last decisions, oldest first.
    holding: the position and the cash.
    recollections: memories, best first within a layer.
    answers: answers by agent, of those that the agent's View has a field for.
    """

    symbol: Symbol
    session: date
    owner: str
    now: datetime
    bars: PriceHistory
    news: tuple[NewsItem, ...] = ()
    filings: tuple[Filing, ...] = ()
    macro: tuple[MacroRelease, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    holding: Holding | None = None
    recollections: tuple[Recollection, ...] = ()
    answers: Mapping[str, Answer]

    def answer(self, kind: type[A]) -> A | None:
        """The answer of a class; None where its agent was not asked or abstained."""
        return next((answer for answer in self.answers.values() if isinstance(answer, kind)), None)
