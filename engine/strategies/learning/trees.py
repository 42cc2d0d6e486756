"""Boosted trees: the only module that imports LightGBM. Its settings are FinWorld's, by FinAgent's authors [A13]."""

from __future__ import annotations

import lightgbm
import numpy as np

from engine.market.indicators import Floats
from engine.strategies.learning.training import Predict, Progress, Task

TREES = 1000
SETTINGS = {
    "objective": "regression",
    "learning_rate": 0.05,
    "num_leaves": 31,
    "min_data_in_leaf": 50,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "feature_fraction": 0.8,
    "lambda_l2": 1.0,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbosity": -1,
}


def fit(task: Task, progress: Progress) -> bytes:
    """Boost trees on every decision and symbol alike."""
    data = lightgbm.Dataset(_flat(task.train.seen), task.train.label.ravel())
    booster = lightgbm.train(
        {**SETTINGS, "seed": task.seed},
        data,
        num_boost_round=TREES,
        callbacks=[lambda env: progress(env.iteration + 1, TREES)],
    )
    model: bytes = booster.model_to_string().encode()
    return model


def load(kind: str, model: bytes) -> Predict:
    """The predicted return."""
    booster = lightgbm.Booster(model_str=model.decode())

    def predict(seen: Floats, held: Floats) -> Floats:
        return np.asarray(booster.predict(_flat(seen), num_threads=1)).reshape(seen.shape[:-2])

    return predict


def _flat(seen: Floats) -> Floats:
    return seen.reshape(-1, seen.shape[-2] * seen.shape[-1])
