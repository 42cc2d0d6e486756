"""The portfolio agent: it reflects on the day, analyses the prices of all stocks, and orders in all of them at once.

The cycle asks about each symbol; these questions are about the whole batch and do not name one, so that they are the
same for every symbol of a session and are answered once.
Source: Agent Trading Arena §4.2, §5.2, appendix C [R4, R5, R6, R8].
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_UP, Decimal
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from engine.agents.agent import Agent, Answer, Part, Reads, Sentence, View, plain
from engine.agents.rendering import money, signed_percent
from engine.domain.chart import ChartSpec
from engine.domain.market import Symbol
from engine.settings.values import Band

HUNDRED = Decimal(100)


@dataclass(frozen=True, slots=True, kw_only=True)
class StockFigures:
    """A stock of the portfolio after a session. Amounts in the quote currency.

    about: what it is, in a few words; empty where nothing is known.
    price: the last close, within a session the price of the moment.
    change: of the price since the close before, a fraction.
    high, low, mean: of the last session; its mean is that of high, low and close, since a bar holds no trades.
    volume: of the last session, shares; None where it is not known.
    closes: of the window, oldest first.
    shares, cost: held, and their average cost.
    weight: of the position, a fraction of the portfolio.
    chart, candles: closes of the window with the own trades; candles, volume and own volume for the reflection.
    """

    symbol: Symbol
    price: Decimal
    change: Decimal
    high: Decimal
    low: Decimal
    mean: Decimal
    volume: float | None
    closes: tuple[Decimal, ...]
    shares: Decimal
    cost: Decimal
    weight: Decimal
    chart: ChartSpec
    candles: ChartSpec
    about: str = ""

    @property
    def trend(self) -> Decimal:
        """The change of the price over the window, a fraction."""
        return self.price / self.closes[0] - 1 if self.closes[0] else Decimal(0)

    @property
    def percent(self) -> Decimal:
        """The position in percent of the portfolio."""
        return self.weight * HUNDRED

    def line(self, figures: bool) -> str:
        """The stock on one line; the closes only where they are not shown as a chart alone."""
        parts = [
            f"{self.symbol}: price {money(self.price)} ({signed_percent(self.change)} since the close before)",
            f"high {money(self.high)}, low {money(self.low)}, mean {money(self.mean)}",
        ]
        if self.volume is not None:
            parts.append(f"volume {self.volume:.0f}")
        if figures:
            last = "the price" if self.closes[-1] == self.price else money(self.closes[-1])
            closes = ", ".join((*map(money, self.closes[:-1]), last))
            parts.append(f"closes of the last {len(self.closes)} sessions, oldest first: {closes}")
            parts.append(f"{signed_percent(self.trend)} over them")
        return "; ".join(parts)

    def holding(self) -> str:
        """The position on one line."""
        gain = self.price / self.cost - 1 if self.cost else Decimal(0)
        return (
            f"{self.symbol}: {self.shares.normalize():f} shares, {self.percent:.1f} % of the portfolio, average cost "
            f"{money(self.cost)}, gain {signed_percent(gain)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioView(View):
    """The part that all questions about the portfolio share.

    stocks: those that have a price, in the order of the batch.
    cash, value: of the portfolio.
    cash_floor: part of the value that stays cash.
    band: sizes of an order, in percent of the portfolio; None where any is taken.
    index_change: mean change of all stocks since the close before, a fraction.
    input: what a model that sees is shown of prices: figures, charts or both.
    strategy: in force.
    record: chart of the own trades and results over the window; None before the first.
    moment: time within the session that follows, UTC; None: after the close.
    """

    stocks: tuple[StockFigures, ...]
    cash: Decimal
    value: Decimal
    cash_floor: Decimal
    index_change: Decimal
    input: Literal["text", "charts", "both"]
    strategy: str
    record: ChartSpec | None = None
    moment: datetime | None = None
    band: Band | None = None

    @property
    def charts(self) -> tuple[ChartSpec, ...]:
        """A chart of every stock, then the record; none where figures alone are shown."""
        shown = (*self.stock_charts(), self.record)
        return () if self.input == "text" else tuple(one for one in shown if one is not None)

    def stock_charts(self) -> tuple[ChartSpec, ...]:
        """The closes of every stock."""
        return tuple(one.chart for one in self.stocks)

    @property
    def cash_percent(self) -> Decimal:
        """The cash in percent of the portfolio."""
        return self.cash / self.value * HUNDRED if self.value > 0 else Decimal(0)

    @property
    def spare_percent(self) -> Decimal:
        """The cash above the floor in percent of the portfolio: what purchases may take."""
        return max(Decimal(0), self.cash_percent - self.cash_floor * HUNDRED)

    @property
    def holdings(self) -> tuple[str, ...]:
        """A line per stock that is held."""
        return tuple(one.holding() for one in self.stocks if one.shares)

    def stock_lines(self, sees: bool) -> tuple[str, ...]:
        """A line per stock."""
        figures = self.input != "charts" or not sees
        return tuple(one.line(figures) for one in self.stocks)

    def summary(self) -> str:
        """The view in a few words."""
        return f"{len(self.stocks)} stocks, {self.input}"


# Reflection.


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioReflectionView(PortfolioView):
    """The view after a session in which decisions traded.

    decisions: those of the session before, each with what it earned.
    day_return, market_return: of the portfolio, and the mean of all stocks, over the session; fractions.
    best, worst: strategies with their scores.
    """

    decisions: tuple[str, ...]
    day_return: float
    market_return: float
    best: tuple[str, ...]
    worst: tuple[str, ...]

    def stock_charts(self) -> tuple[ChartSpec, ...]:
        """Candles, volume and the own trades of every stock."""
        return tuple(one.candles for one in self.stocks)


class PortfolioReflection(Answer):
    """A judgement and the next strategy. Source: Agent Trading Arena §4.2 [R5]."""

    evaluation: Sentence
    """A judgement of how the strategy did in this session, with the reasons."""
    strategy: Annotated[Sentence, StringConstraints(max_length=1_200)]
    """The strategy for the coming sessions, concrete enough to follow; at most 120 words."""


# Analysis.


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioAnalysisView(PortfolioView):
    """The view for the analysis; `reflection` is of the same session, None where there is none."""

    reflection: PortfolioReflection | None = None


class PortfolioFinding(Part):
    """A finding and its use."""

    finding: Sentence
    """The finding, with its figures."""
    bearing: Sentence
    """The meaning of it for your strategy."""


class PortfolioAnalysis(Answer):
    """Findings and a ranking. Source: Agent Trading Arena §4.2 [R4]."""

    findings: list[PortfolioFinding] = Field(min_length=1, max_length=6)
    """The three findings that are worth most."""
    ranking: list[str]
    """The tickers of all stocks, the one that you want most first."""

    def check(self, view: PortfolioAnalysisView) -> None:
        """Every stock is ranked once."""
        names = sorted(stock.symbol for stock in view.stocks)
        if sorted(self.ranking) != names:
            raise ValueError(f"ranking: rank each of {', '.join(names)} once")

    def lines(self) -> tuple[str, ...]:
        """The ranking and the findings for a reader."""
        listed = (f"{one.finding} For the strategy: {one.bearing}" for one in self.findings)
        return (f"Ranking: {', '.join(self.ranking)}", *listed)


# Orders.


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioDecisionView(PortfolioView):
    """The view for the orders.

    analysis: of the same session, None where there is none.
    decisions: those of the session before, each with what it earned.
    absent: agents that abstained or are switched off, and stocks without a price, each with the reason.
    """

    analysis: PortfolioAnalysis | None = None
    reflection: PortfolioReflection | None = None
    decisions: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


class PortfolioOrder(Part):
    """An order in one stock."""

    symbol: str
    """The ticker of the stock."""
    reason: Sentence
    """The reason, in at most 30 words."""
    action: Literal["BUY", "SELL"]
    """BUY or SELL."""
    percent: Annotated[int, Field(strict=True, ge=1, le=100)]
    """Percent of the portfolio to trade, a whole number."""


class PortfolioDecision(Answer):
    """The orders of a session; a stock without one is held. Source: Agent Trading Arena §4.2 [R4]."""

    explanation: Sentence
    """The reasons of all orders together, in at most 80 words. Quote only figures that are in the input."""
    orders: list[PortfolioOrder] = Field(max_length=60)
    """Your orders, at most one for each stock; an empty list keeps everything as it is."""

    def check(self, view: PortfolioDecisionView) -> None:
        """Known stocks, each once; purchases that the cash covers, sales that the shares cover."""
        stocks = {stock.symbol: stock for stock in view.stocks}
        bought = 0
        for order in self.orders:
            stock = stocks.pop(order.symbol, None)
            if stock is None:
                known = ", ".join(one.symbol for one in view.stocks)
                raise ValueError(f"orders: {plain(order.symbol, 20)!r} is named twice or is none of {known}")
            if order.action == "BUY":
                bought += order.percent
            elif order.percent > _whole(stock.percent):
                held = f"{stock.percent:.1f} % of the portfolio"
                raise ValueError(f"orders: {order.symbol} is {held}, and {order.percent} % cannot be sold")
        if bought > _whole(view.spare_percent):
            raise ValueError(f"orders: the purchases take {bought} %, {view.spare_percent:.1f} % can be spent")

    def of(self, symbol: Symbol) -> PortfolioOrder | None:
        """The order in a stock; None where it is held as it is."""
        return next((order for order in self.orders if order.symbol == symbol), None)

    def lines(self) -> tuple[str, ...]:
        """The orders for a reader."""
        told = (f"{one.action} {one.symbol} {one.percent} %: {one.reason}" for one in self.orders)
        return (*told, f"Explanation: {self.explanation}")


def _whole(percent: Decimal) -> Decimal:
    """Percent rounded up: all of it can be named in whole percents, and the limits cut what is beyond."""
    return percent.quantize(Decimal(1), ROUND_UP)


_READS = frozenset({Reads.MARKET, Reads.HISTORY})

PORTFOLIO_REFLECTION = Agent(
    name="portfolio-reflection",
    view=PortfolioReflectionView,
    answer=PortfolioReflection,
    rule="engine.offline.portfolio:reflect",
    reads=_READS,
    group="reflections",
)
PORTFOLIO_ANALYSIS = Agent(
    name="portfolio-analysis",
    view=PortfolioAnalysisView,
    answer=PortfolioAnalysis,
    rule="engine.offline.portfolio:analyse",
    reads=_READS,
)
PORTFOLIO_STEPS = frozenset({PORTFOLIO_REFLECTION.step, PORTFOLIO_ANALYSIS.step})
"""The steps before the orders."""
PORTFOLIO_DECISION = Agent(
    name="portfolio-decision",
    step="decision",
    view=PortfolioDecisionView,
    answer=PortfolioDecision,
    rule="engine.offline.portfolio:decide",
    reads=_READS,
    questions=("decision",),
    decides=frozenset({"portfolio"}),
)
