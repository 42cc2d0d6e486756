"""What the cycle knows of a symbol, for agents that make their own view of it."""

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
    """What is held of the symbol and what cash there is: prices and amounts in the quote currency, `value` of
    the whole portfolio, fractions of 1; `unrealized` is the gain over average cost."""

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

    `bars`: visible bars, oldest first.
    `news`, `filings`, `macro`: new since the last decision, in order of availability.
    `outcomes`: results of the last decisions, oldest first.
    `holding`: the position and the cash.
    `recollections`: memories, best first within a layer.
    `answers`: other agents' answers by agent, of those that the agent's View has a field for.
    `now`: the moment of the cycle, UTC.
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
