"""The figure of a backtest, by matplotlib without its global state."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from engine.reports.documents.backtest import growth_of
from engine.reports.performance import BENCHMARK
from engine.reports.summary import name_of

if TYPE_CHECKING:
    import pandas as pd


class GrowthFigure(Figure):
    """A matplotlib figure that a notebook shows without pyplot."""

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", bbox_inches="tight")
        return out.getvalue()


def growth_figure(document: Mapping[str, Any], equity: pd.DataFrame) -> GrowthFigure:
    """Growth of one unit of money by session beside the baselines, and the drawdown below."""
    figure = GrowthFigure(figsize=(9, 5), layout="constrained")
    growth, fall = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    others = [name for name in document["baselines"] if name != BENCHMARK]
    for name in (*others, *(document["baselines"].keys() & {BENCHMARK})):
        one, ink = document["baselines"][name], "0.35" if name == BENCHMARK else "0.8"
        label = name if name == BENCHMARK else "other rules" if name == others[0] else None
        values = [float(value) / float(one["initial_value"]) for value in one["equity"]]
        growth.plot(equity.index, values, color=ink, linewidth=1, label=label)
    growth.plot(equity.index, growth_of(document)[1:], linewidth=2, label=name_of(document))
    growth.legend(loc="upper left", fontsize="small")
    growth.set_ylabel("growth")
    fall.fill_between(equity.index, equity["drawdown"], 0, alpha=0.4)
    fall.set_ylabel("drawdown")
    fall.tick_params(axis="x", labelrotation=20)
    return figure
