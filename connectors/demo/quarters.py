"""Quarterly results of a company, one quarter after the other, drawn from the seed."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import date

from connectors.demo.listings import Company
from connectors.demo.seeded_random import SeededRandom

IN_LINE = 20  # per thousand by which earnings may miss what was expected and still be called close
_BEFORE = 5  # quarters that are drawn before the first one reported, so that each has a year-ago figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarter:
    """A fiscal quarter as it will be reported.

    number: counts calendar quarters since the year 0, by the month in which the fiscal quarter ends.
    revenue, year_ago, year_revenue: of the quarter, the one a year before, and the last four; in thousands.
    income: in thousands.
    earnings, expected: per share, in cents at the number of shares of the beginning; `expected` by analysts.
    margin: per thousand.
    guidance: 1: the outlook was raised, -1: cut, 0: confirmed.
    released: first day on which it is reported; without a session, the next one.
    filed: likewise, of the 10-Q or 10-K.
    """

    number: int
    ended: date
    fiscal_year: int
    fiscal_quarter: int
    revenue: int
    year_ago: int
    year_revenue: int
    income: int
    earnings: int
    expected: int
    margin: int
    guidance: int
    released: date
    filed: date

    @property
    def form(self) -> str:
        """10-K for the quarter that ends the fiscal year, else 10-Q."""
        return "10-K" if self.fiscal_quarter == 4 else "10-Q"

    @property
    def growth(self) -> int:
        """Revenue against the year before, per thousand."""
        return (self.revenue - self.year_ago) * 1000 // self.year_ago

    @property
    def surprise(self) -> int:
        """Earnings against the expected ones, per thousand."""
        return (self.earnings - self.expected) * 1000 // max(self.expected, 1)


class Business:
    """Quarters of one company, in order and without end."""

    def __init__(self, seed: int, company: Company, since: date) -> None:
        self._seed = seed
        self._company = company
        # Month of the fiscal quarter's end within its three months: 0, 1 or 2 after the calendar's first.
        self._phase = (company.year_ends - 1) % 3
        self._number = since.year * 4 + (since.month - 1) // 3 - 1 - _BEFORE
        self._trend = company.revenue * 1000
        self._revenues: list[int] = []
        for _ in range(_BEFORE):
            self.next()

    def next(self) -> Quarter:
        """The next quarter."""
        company, number = self._company, self._number
        random = SeededRandom(self._seed, company.symbol, "quarter", number)
        self._number += 1
        self._trend = self._trend * (1000 + company.growth * 6 // 10 + random.normal() * 18 // 1000) // 1000
        surprise = random.normal() * 55 // 1000
        guidance = (
            random.pick((-1, 0, 0, 1)) if abs(surprise) < IN_LINE else (1 if surprise > 0 else -1) * random.below(2)
        )
        revenue = self._trend * (1000 + surprise // 4) // 1000
        margin = max(company.margin + random.normal() * 9 // 1000 + surprise // 6, 8)
        income = revenue * margin // 1000
        earnings = max(income * 100 // (company.shares * 1000), 1)
        self._revenues.append(revenue)
        ended = self._end(number)
        fiscal_quarter = ((ended.month - company.year_ends - 1) % 12) // 3 + 1
        released = date.fromordinal(ended.toordinal() + random.between(19, 36))
        wait = random.between(9, 24) if fiscal_quarter == 4 else random.between(1, 6)
        return Quarter(
            number=number,
            ended=ended,
            fiscal_year=ended.year + (ended.month > company.year_ends),
            fiscal_quarter=fiscal_quarter,
            revenue=revenue,
            year_ago=self._revenues[-5] if len(self._revenues) >= _BEFORE else revenue,
            year_revenue=sum(self._revenues[-4:]),
            income=income,
            earnings=earnings,
            expected=max(earnings * 1000 // (1000 + surprise), 1),
            margin=margin,
            guidance=guidance,
            released=released,
            filed=date.fromordinal(released.toordinal() + wait),
        )

    def _end(self, number: int) -> date:
        year, quarter = divmod(number, 4)
        month = quarter * 3 + self._phase + 1
        return date(year, month, monthrange(year, month)[1])
