"""A model's training as a value, and the process that trains models and asks them.

Models are trained and held in one process beside the program, in one thread: their libraries take long to load, keep
threads and random states of their own, and are not to disturb those of the program. The process answers one request
at a time, pickled over its standard input and output, and ends with its parent.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np

from engine.errors import ConfigError, InvariantBroken
from engine.market.indicators import Floats
from engine.settings import places
from engine.strategies.learning.samples import Samples

LIBRARIES = ("numpy", "lightgbm", "torch", "stable_baselines3")
Progress = Callable[[int, int], None]
"""A listener to what is done and the whole of it."""
Predict = Callable[[Floats, Floats], Floats]
"""A loaded model, called with what is seen and what is held, as `predicted` is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A model to be trained.

    kind: its name.
    seed: of everything that is drawn.
    cost: of a trade as a fraction of its amount.
    train, held_out: features standardized, by the part that is trained on.
    """

    kind: str
    seed: int
    cost: float
    train: Samples
    held_out: Samples

    @property
    def data_hash(self) -> str:
        """SHA-256 over everything that the model is trained on."""
        digest = hashlib.sha256()
        for part in (self.train, self.held_out):
            for values in (part.seen, part.overnight, part.held, part.label):
                digest.update(f"{values.shape}".encode() + np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()

    @property
    def described(self) -> dict[str, Any]:
        """Everything that decides what the model becomes, but for the code: data by its hash, settings, versions."""
        code = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))))
        return {
            "kind": self.kind,
            "seed": self.seed,
            "cost": self.cost,
            "data": self.data_hash,
            "settings": code.hexdigest(),
            "libraries": {name: found for name in LIBRARIES if (found := _version(name))},
        }


@cache
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def trained(task: Task, report: Callable[[str], None]) -> Path:
    """The file of a model, which is trained unless one of the same data, settings and libraries was. `report` hears how
    far it is. Raises ConfigError where it cannot be kept or its library cannot be loaded, and InvariantBroken where its
    process fails otherwise."""
    described = task.described
    name = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
    file = places.learned_models() / f"{task.kind}-{name[:16]}"
    if not file.exists():
        _Worker.of_process().ask(("train", task, file), _progress(task.kind, report))
        places.write_whole(file.with_suffix(".json"), json.dumps(described, indent=2))
    return file


def _progress(name: str, report: Callable[[str], None]) -> Progress:
    began = perf_counter()

    def heard(done: int, total: int) -> None:
        left = (perf_counter() - began) / done * (total - done)
        report(f"{name} is trained: {done} of {total}, {left:.0f} s left")

    return heard


def predicted(file: Path, seen: Floats, held: Floats) -> Floats:
    """The answer of a model, decisions x symbols or by symbol as `seen` is: the predicted return, or of a policy the
    share that it wants, given that `held` is held. Raises InvariantBroken as `trained` does."""
    answer: Floats = _Worker.of_process().ask(("predict", file, seen, held), lambda done, total: None)
    return answer


class _Worker:
    """The process of the models; begun when it is first asked."""

    def __init__(self) -> None:
        self._lock = Lock()
        # Python's own flags aside, its surroundings are the program's; a library's threads are counted at its import.
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-m", "engine.strategies.learning.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **one_thread, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        atexit.register(self._end)

    @staticmethod
    @cache
    def of_process() -> _Worker:
        """The worker of this process."""
        return _Worker()

    def ask(self, request: tuple[Any, ...], progress: Progress) -> Any:
        """The answer to a request. An interruption and whatever `progress` raises end the process, and the next request
        begins another."""
        with self._lock:
            return self._answer(request, progress)

    def _answer(self, request: tuple[Any, ...], progress: Progress) -> Any:
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None and answers is not None
        try:
            pickle.dump(request, asked)
            asked.flush()
            while True:
                word, *rest = pickle.load(answers)
                if word == "done":
                    return rest[0]
                if word == "unusable":
                    raise ConfigError(f"the process of learned models could not {rest[0]}")
                if word == "failed":
                    raise InvariantBroken(f"a bug: {rest[0]}")
                progress(*rest)
        except (EOFError, OSError, pickle.UnpicklingError):
            self._end()
            raise InvariantBroken(f"a bug: the process of {request[0]} ended without an answer") from None
        except (ConfigError, InvariantBroken):
            raise
        except BaseException:  # an interruption, or a failure of the listener: what comes yet would answer the next one
            self._end()
            raise

    def _end(self) -> None:
        atexit.unregister(self._end)
        self._process.kill()
        self._process.communicate()
        _Worker.of_process.cache_clear()
