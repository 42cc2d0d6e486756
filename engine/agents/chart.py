"""The agent that reads the chart. Source: FinVision §3.2 [V2]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.agents.agent import MARKET_ALONE, Agent, Answer, ChartedView, Part, Sentence, shortened
from engine.domain.chart import IndicatorTable


@dataclass(frozen=True, slots=True)
class ChartView(ChartedView):
    """The chart of kind `kline` to the last visible session, and its figures as a table for models that do not see.
    Source: FinVision §3.2, §4.1 [V2]."""

    table: IndicatorTable

    def summary(self) -> str:
        """The view in a few words."""
        return f"a chart of {len(self.chart.sessions)} sessions"

    def figures(self) -> str:
        """The table as text."""
        return self.table.text


class Reading(Part):
    """The reading of one strategy. Its word limits are wishes. Source: FinVision table 4 [V2]."""

    trend: Sentence
    """One observation about the trend, at most 10 words."""
    signal: Sentence
    """One signal that follows from it, at most 10 words."""
    side: Literal["bullish", "bearish", "neutral"] = "neutral"
    """The side that the signal takes: bullish, bearish, or neutral where there is none."""


class ChartReading(Answer):
    """A reading per strategy. Source: FinVision table 4 [V2]; the Bollinger reading is in its sample answer."""

    macd: Reading
    """MACD crossover: the side of the signal line that MACD is on, and a crossover if there is one."""
    kdj_rsi: Reading
    """KDJ, with RSI as a filter that confirms or denies it."""
    bollinger: Reading | None
    """Mean reversion between the Bollinger bands; null when the bands give no signal."""

    def lines(self) -> tuple[str, ...]:
        """The readings for a reader, one per strategy: trend, then signal."""
        named = (("MACD", self.macd), ("KDJ with RSI", self.kdj_rsi), ("Bollinger", self.bollinger))
        return tuple(
            f"{name}: {shortened(read.trend, 10)} | {shortened(read.signal, 10)}"
            for name, read in named
            if read is not None
        )

    def sentences(self) -> str:
        """The readings as prose: the trend of each strategy, and its signal unless that names the trend alone."""
        texts: list[str] = []
        for one in (self.macd, self.kdj_rsi, self.bollinger):
            if one is not None:
                goes_on = one.signal.partition(":")[0] == one.trend.partition(":")[0]
                texts += [one.trend] if goes_on else [one.trend, one.signal]
        return " ".join(f"{shortened(text, 10).rstrip('.')}." for text in texts)


CHART = Agent(
    name="chart",
    view=ChartView,
    answer=ChartReading,
    rule="engine.offline.moves:read_chart",
    reads=MARKET_ALONE,
)
