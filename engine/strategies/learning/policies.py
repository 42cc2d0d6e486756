"""Policies by reinforcement: the trading environment, and DQN, PPO and SAC of stable-baselines3 on it [A13, V10].

Settings are TradeMaster's and FinWorld's, by FinAgent's authors, but for what their programs got wrong: the target
network of DQN moves once an epoch (theirs never does), and the reward is that of the session, not of five ahead.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3 import DQN, PPO, SAC

from engine.market.indicators import Floats
from engine.strategies.learning.networks import begin
from engine.strategies.learning.samples import Samples, growth, log_growth
from engine.strategies.learning.training import Predict, Progress, Task

EPOCHS = 20
"""Passes over the training part; of the policies after each, the one that grows most on the part held out is kept."""
ALGORITHMS = {"dqn": DQN, "ppo": PPO, "sac": SAC}
SMALL = (64, 32)
PERCENT = 100.0
"""Rewards are in percent, of a size that networks learn from."""


class Trading(gymnasium.Env):
    """One stock after the other from its first decision to its last. An observation is what is seen, and the position;
    an action the position that is wanted, in or out, or (`shares`) any part. The reward is the log change of the
    capital net of costs. Source: FinAgent's environment [A10]."""

    def __init__(self, samples: Samples, cost: float, *, shares: bool) -> None:
        box = gymnasium.spaces.Box
        size = int(np.prod(samples.seen.shape[2:])) + 1
        self.observation_space = box(-np.inf, np.inf, (size,), np.float32)
        self.action_space = box(0.0, 1.0, (1,), np.float32) if shares else gymnasium.spaces.Discrete(2)
        self._samples, self._cost = samples, cost
        self._stock, self._row, self._held = -1, 0, 0.0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin with the next stock."""
        super().reset(seed=seed)
        self._stock = (self._stock + 1) % self._samples.seen.shape[1]
        self._row, self._held = 0, 0.0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take the position until the next decision."""
        wanted = float(np.asarray(action).item())
        rows = slice(self._row, self._row + 1)
        gain = log_growth(np.array([[self._held]]), np.array([[wanted]]), self._of_stock(rows), self._cost)
        self._row, self._held = self._row + 1, wanted
        ended = self._row >= len(self._samples)
        return self._observation(), PERCENT * gain.item(), ended, False, {}

    def _of_stock(self, rows: slice) -> Samples:
        part, only = self._samples.rows(rows), slice(self._stock, self._stock + 1)
        return Samples(
            seen=part.seen[:, only],
            overnight=part.overnight[:, only],
            held=part.held[:, only],
            label=part.label[:, only],
        )

    def _observation(self) -> Any:
        row = min(self._row, len(self._samples) - 1)
        return observations(self._samples.seen[row, self._stock : self._stock + 1], np.array([self._held]))[0]


def observations(seen: Floats, held: Floats) -> Any:
    """The features of several stocks beside the position of each."""
    return np.concatenate([seen.reshape(len(seen), -1), held[:, None]], axis=1).astype(np.float32)


def fit(task: Task, progress: Progress) -> bytes:
    """Train a policy."""
    begin(task.seed)
    env = Trading(task.train, task.cost, shares=task.kind == "sac")
    steps = task.train.label.size
    model = ALGORITHMS[task.kind]("MlpPolicy", env, seed=task.seed, device="cpu", **_settings(task.kind, steps))
    best, kept = -np.inf, b""
    for epoch in range(1, EPOCHS + 1):
        model.learn(steps, reset_num_timesteps=epoch == 1)
        grown = growth(_played(_asked(model), task.held_out), task.held_out, task.cost)
        if grown > best:
            best, kept = grown, _saved(model)
        progress(epoch, EPOCHS)
    return kept


def _settings(kind: str, steps: int) -> dict[str, Any]:
    """Settings of an algorithm whose epoch has `steps`."""
    if kind == "dqn":
        return {
            "learning_rate": 1e-3,
            "gamma": 0.9,
            "batch_size": 64,
            "buffer_size": EPOCHS * steps,
            "target_update_interval": steps,
            "exploration_initial_eps": 0.25,
            "exploration_final_eps": 0.25,
            "policy_kwargs": {"net_arch": [*SMALL]},
        }
    if kind == "ppo":
        return {"n_steps": steps, "gamma": 0.99, "gae_lambda": 0.95, "clip_range": 0.2, "ent_coef": 0.05}
    return {"gamma": 0.99, "tau": 0.005, "buffer_size": EPOCHS * steps, "policy_kwargs": {"net_arch": [*SMALL]}}


def _asked(model: Any) -> Callable[[Floats, Floats], Floats]:
    """The shares that a policy wants, without exploring."""

    def asked(seen: Floats, held: Floats) -> Floats:
        actions, _ = model.predict(observations(seen, held), deterministic=True)
        return np.asarray(actions, np.float64).reshape(len(seen))

    return asked


def _played(asked: Predict, samples: Samples) -> Floats:
    """The positions of a policy over consecutive decisions, decisions x symbols."""
    held, found = np.zeros(samples.label.shape[1]), np.empty_like(samples.label)
    for row, seen in enumerate(samples.seen):
        found[row] = held = asked(seen, held)
    return found


def _saved(model: Any) -> bytes:
    target = io.BytesIO()
    model.save(target)
    return target.getvalue()


def load(kind: str, model: bytes) -> Predict:
    """The share of each stock that is wanted."""
    begin(0)
    return _asked(ALGORITHMS[kind].load(io.BytesIO(model), device="cpu"))
