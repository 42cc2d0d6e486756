"""Learned baselines as strategies: fitted on the warm-up, all in or all out, or at the share that a policy wants.

Source: FinAgent §5.3 [A13], FinVision §4.3 [V10], Agent Trading Arena §5.1 [R8]; settings beside each model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import numpy as np

from engine.domain.market import Symbol
from engine.market.indicators import Floats
from engine.program_files import need_extra
from engine.strategies.learning.samples import (
    LOOKBACK,
    RATIOS,
    Thresholds,
    best_thresholds,
    features,
    horizon_of,
    samples_of,
)
from engine.strategies.learning.training import Task, predicted, trained
from engine.strategies.strategy import StrategyView, TrainingHistory, check, choice, number, registered

PERMUTED = "permuted"


@dataclass
class Learner:
    """A strategy whose model is trained on the training part. Every symbol has the same share of the portfolio, of
    which the model says how much is held: see `_position`.

    extra, library: what installs it, and the library that is looked for.
    sessions: that the model sees.
    notes: on the model, once it is trained.
    """

    name: ClassVar[str]
    extra: ClassVar[str]
    library: ClassVar[str]
    sessions: ClassVar[int] = 5

    seed: int = number(0, "seed of the training", 0, 2**31 - 1, tuned=False)
    labels: str = choice("true", f"{PERMUTED}: the outcomes of other sessions, a control", ("true", PERMUTED))
    notes: tuple[str, ...] = field(default=(), init=False)
    _model: Path = field(default=Path(), init=False)
    _mean: Floats = field(default_factory=lambda: np.zeros(RATIOS), init=False)
    _deviation: Floats = field(default_factory=lambda: np.ones(RATIOS), init=False)
    _held: Floats = field(default_factory=lambda: np.zeros(0), init=False)

    def __post_init__(self) -> None:
        check(self)
        need_extra(self.extra, self.library, used_by=f"strategy {self.name}")

    @classmethod
    def is_installed(cls) -> bool:
        """True where its extra is."""
        return find_spec(cls.library) is not None

    def fit(self, history: TrainingHistory) -> None:
        """Train the model. Raises UsageError for a training part that is too short, and what `trained` raises."""
        samples = samples_of(history, self.sessions)
        if self.labels == PERMUTED:
            samples = samples.permuted(self.seed)
        horizon = horizon_of(history.fill_at)
        train, held_out = samples.split(horizon)
        self._mean, self._deviation = train.seen.mean(axis=(0, 1, 2)), train.seen.std(axis=(0, 1, 2))
        self._deviation[self._deviation == 0] = 1.0
        self._held = np.zeros(len(history.symbols))
        task = Task(
            kind=self.name,
            seed=self.seed,
            cost=float(history.cost),
            train=replace(train, seen=self._standardized(train.seen)),
            held_out=replace(held_out, seen=self._standardized(held_out.seen)),
        )
        self._model = trained(task, history.report)
        self.notes = (
            f"{self._model.name}, seed {self.seed}, {self.labels} labels: trained on {len(train)} sessions, {horizon} "
            f"left out, {len(held_out)} held out{self._chosen(task)}",
        )

    def weights(self, view: StrategyView) -> Mapping[Symbol, float] | None:
        """The shares of symbols whose position changes; nothing until each has bars enough."""
        count = LOOKBACK + self.sessions
        if any(view.market.count(symbol) < count for symbol in view.symbols):
            return None
        bars = [view.market.bars(symbol, count) for symbol in view.symbols]
        seen = self._standardized(np.stack([features(one, self.sessions)[-1] for one in bars]))
        before = self._held
        self._held = self._position(predicted(self._model, seen, before))
        shares = zip(view.symbols, before, self._held / len(bars), self._held, strict=True)
        return {symbol: float(share) for symbol, held, share, wanted in shares if wanted != held}

    def _standardized(self, seen: Floats) -> Floats:
        found: Floats = (seen - self._mean) / self._deviation
        return found

    def _chosen(self, task: Task) -> str:
        """The choice that is made on the part held out, in words."""
        return ""

    def _position(self, answer: Floats) -> Floats:
        """The part of each symbol's share that is held after a decision, from 0 to 1."""
        return answer


@dataclass
class Predictor(Learner):
    """A model of the return that follows: a symbol is held from one prediction on, and until another."""

    _thresholds: Thresholds = field(default=Thresholds(0.0, 0.0), init=False)

    def _chosen(self, task: Task) -> str:
        found = predicted(self._model, task.held_out.seen, self._held)
        self._thresholds = best_thresholds(found, task.held_out, task.cost)
        return f", on which it buys from {self._thresholds.enter:+.3%} and sells below {self._thresholds.leave:+.3%}"

    def _position(self, answer: Floats) -> Floats:
        return self._thresholds.position(answer, self._held)


@registered
@dataclass
class Lgbm(Predictor):
    """Boosted trees. Settings of FinWorld, by FinAgent's authors."""

    name: ClassVar[str] = "lgbm"
    extra: ClassVar[str] = "ml"
    library: ClassVar[str] = "lightgbm"


@dataclass
class Torch(Learner):
    """A model in torch; a policy by reinforcement unless it is a Predictor too."""

    extra: ClassVar[str] = "rl"
    library: ClassVar[str] = "stable_baselines3"


@registered
@dataclass
class Lstm(Torch, Predictor):
    """LSTM. Settings of qlib."""

    name: ClassVar[str] = "lstm"
    sessions: ClassVar[int] = 20


@registered
@dataclass
class Transformer(Torch, Predictor):
    """Transformer. Settings of qlib."""

    name: ClassVar[str] = "transformer"
    sessions: ClassVar[int] = 20


@registered
@dataclass
class StockMixer(Torch, Predictor):
    """StockMixer, small."""

    name: ClassVar[str] = "stockmixer"
    sessions: ClassVar[int] = 16


@registered
@dataclass
class TimesNet(Torch, Predictor):
    """TimesNet, small."""

    name: ClassVar[str] = "timesnet"
    sessions: ClassVar[int] = 20


@registered
@dataclass
class Dqn(Torch):
    """Deep Q-network, in or out."""

    name: ClassVar[str] = "dqn"


@registered
@dataclass
class Ppo(Torch):
    """Proximal policy optimization, in or out."""

    name: ClassVar[str] = "ppo"


@registered
@dataclass
class Sac(Torch):
    """Soft actor-critic, whose action is the share."""

    name: ClassVar[str] = "sac"


@registered
@dataclass
class StockFormer(Torch):
    """StockFormer, small: soft actor-critic on what encoders see."""

    name: ClassVar[str] = "stockformer"
    sessions: ClassVar[int] = 20
