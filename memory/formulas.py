"""Scores of a memory as closed forms of time; `now` is an argument.

Scalar forms serve the life of one record, array forms the ranking of many; both take steps of the agent's clock.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FULL_IMPORTANCE = 100.0
"""Importance that counts as 1 in a composite; values above count as 1 too. The paper states no divisor [I2]."""


def recency(now: float, recency_step: float, stability: float) -> float:
    """exp(-age / Q), in (0, 1]. Source: InvestorBench A (3) [I2], TradingGPT (1) [G1]."""
    return math.exp(-(now - recency_step) / stability)


def importance(now: float, value: float, importance_step: float, alpha: float) -> float:
    """value x alpha^age, before any scaling. Source: InvestorBench A (7) [I2]."""
    return float(value * alpha ** (now - importance_step))


def recencies(now: float, recency_step: Floats, stability: float) -> Floats:
    """`recency` of many records of one layer."""
    return np.asarray(np.exp((recency_step - now) / stability))


def importances(now: float | Floats, value: Floats, importance_step: Floats, alpha: float) -> Floats:
    """`importance` of many records of one layer."""
    # exp of a product takes a quarter of the time of a power and is as exact here.
    return value if alpha == 1 else np.asarray(value * np.exp((now - importance_step) * math.log(alpha)))


def unit_importance(value: Floats) -> Floats:
    """Importance on [0, 1], as it enters a composite. Source: InvestorBench A [I2]."""
    return np.clip(value / FULL_IMPORTANCE, 0.0, 1.0)


def composite(recency: Floats, relevancy: Floats, importance: Floats) -> Floats:
    """gamma = recency + relevancy + importance, importance on [0, 1]. Source: InvestorBench A (2) [I2]."""
    return recency + relevancy + importance


def min_max(values: Floats) -> Floats:
    """Scale to [0, 1] over these values; all are 1 where all are equal."""
    if not len(values):
        return values
    low, high = values.min(), values.max()
    return np.ones_like(values) if high <= low else (values - low) / (high - low)


def retention_scores(recency: Floats, importance: Floats, weights: tuple[float, float, float]) -> Floats:
    """TradingGPT's ranking score between prompts, on [0, 100]: the score that the thresholds of its layers bound.

    *Ours:* without a query there is no relevancy and no population, so it is left out, the other two weights are
    rescaled to 100, and importance is taken on its full range. Source: TradingGPT §4.1.1 [G1].
    """
    a, _, c = weights
    return np.asarray(100 * (a * recency + c * unit_importance(importance)) / (a + c))
