"""The process of the models: trains, keeps and asks them (engine.strategies.learning.training)."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

from engine.market.indicators import Floats
from engine.settings import places
from engine.strategies.learning.training import Predict, Task

MODULES = {"lgbm": "trees", "dqn": "policies", "ppo": "policies", "sac": "policies", "stockformer": "stockformer"}
"""Modules with `fit(task, progress)`, the model in bytes, and `load(kind, model)`, which gives its Predict; every other
kind is a network."""
MOST_HELD = 64
EVERY = 0.5
"""Seconds between two words about progress."""


def main() -> None:
    """Answer requests until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Libraries print; only answers may go to the parent.
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

        def say(*word: Any) -> None:
            pickle.dump(word, answers)
            answers.flush()

        while True:
            try:
                name, *request = pickle.load(sys.stdin.buffer)
            except EOFError:
                return
            try:
                say("done", REQUESTS[name](say, *request))
            except OSError as error:  # a model that cannot be written, or a library that lacks one of the system
                say("unusable", f"{name}: {error}")
            except Exception as error:  # whatever a library does not like; the parent tells it in its own words
                say("failed", f"{type(error).__name__}: {error}".splitlines()[0])


def _module(kind: str) -> Any:
    return import_module(f"engine.strategies.learning.{MODULES.get(kind, 'networks')}")


def _train(say: Callable[..., None], task: Task, file: Path) -> None:
    said = perf_counter()

    def progress(done: int, total: int) -> None:
        nonlocal said
        if perf_counter() - said > EVERY:
            say("progress", done, total)
            said = perf_counter()

    model: bytes = _module(task.kind).fit(task, progress)
    places.make_folder(file.parent)
    part = places.part_of(file)
    part.write_bytes(model)
    part.replace(file)


def _predict(say: Callable[..., None], file: Path, seen: Floats, held: Floats) -> Floats:
    return _loaded(file)(seen, held)


@lru_cache(MOST_HELD)
def _loaded(file: Path) -> Predict:
    kind = file.name.partition("-")[0]
    predict: Predict = _module(kind).load(kind, file.read_bytes())
    return predict


REQUESTS: Mapping[str, Callable[..., Any]] = {"train": _train, "predict": _predict}

if __name__ == "__main__":
    main()
