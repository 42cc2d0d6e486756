"""Training of networks in torch, and their loading; each network is a module beside this one.

Such a module has `network(symbols, sessions, ratios)`, which takes decisions x symbols x sessions x ratios and gives
decisions x symbols (of a policy's encoder one more), and FIT, how it is trained.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from engine.market.indicators import Floats
from engine.strategies.learning.training import Predict, Progress, Task

BATCH = 64
"""Decisions in a batch."""


def squared(predicted: Tensor, label: Tensor) -> Tensor:
    """The mean squared error."""
    return nn.functional.mse_loss(predicted, label)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The training of a network by Adam: its rate and weight decay, the most epochs, how many without a smaller loss on
    the part held out end it, and the loss."""

    rate: float
    epochs: int
    patience: int
    decay: float = 0.0
    loss: Callable[[Tensor, Tensor], Tensor] = squared


def begin(seed: int) -> None:
    """Make what follows depend on the seed alone."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(seed)


def fit(task: Task, progress: Progress) -> bytes:
    """Train a network; of all epochs that with the smallest loss on the part held out is kept."""
    begin(task.seed)
    made = import_module(f"engine.strategies.learning.{task.kind}")
    _, symbols, *shape = task.train.seen.shape
    network = made.network(symbols, *shape)
    deviation = float(task.train.label.std()) or 1.0
    parts = [(tensor(part.seen), tensor(part.label / deviation)) for part in (task.train, task.held_out)]
    best = trained(network, made.FIT, parts[0], parts[1], progress)
    kept = {"state": best, "shape": (symbols, *shape), "deviation": deviation}
    return saved(kept)


def trained(
    network: nn.Module,
    how: Fit,
    train: tuple[Tensor, Tensor],
    held_out: tuple[Tensor, Tensor],
    progress: Progress,
) -> Any:
    """The best state of a network, which it is left in."""
    optimizer = torch.optim.Adam(network.parameters(), lr=how.rate, weight_decay=how.decay)
    least, best, since = float("inf"), network.state_dict(), 0
    for epoch in range(1, how.epochs + 1):
        network.train()
        for rows in _batches(len(train[0])):
            optimizer.zero_grad()
            how.loss(network(train[0][rows]), train[1][rows]).backward()
            optimizer.step()
        network.eval()
        with torch.no_grad():
            loss = float(how.loss(network(held_out[0]), held_out[1]))
        since += 1
        if loss < least:
            least, best, since = loss, {name: value.clone() for name, value in network.state_dict().items()}, 0
        progress(epoch, how.epochs)
        if since >= how.patience:
            break
    network.load_state_dict(best)
    return best


def _batches(count: int) -> Iterator[Tensor]:
    yield from torch.randperm(count).split(BATCH)


def load(kind: str, model: bytes) -> Predict:
    """The predicted return."""
    begin(0)
    kept = loaded(model)
    network = import_module(f"engine.strategies.learning.{kind}").network(*kept["shape"])
    network.load_state_dict(kept["state"])
    network.eval()

    def predict(seen: Floats, held: Floats) -> Floats:
        with torch.no_grad():
            found = network(tensor(seen.reshape(-1, *seen.shape[-3:]))).numpy()
        return np.asarray(found, np.float64).reshape(seen.shape[:-2]) * float(kept["deviation"])

    return predict


def tensor(values: Floats) -> Tensor:
    """An array as torch computes with it."""
    return torch.as_tensor(np.ascontiguousarray(values), dtype=torch.float32)


def saved(value: Any) -> bytes:
    """A value of tensors in bytes."""
    target = io.BytesIO()
    torch.save(value, target)
    return target.getvalue()


def loaded(model: bytes) -> Any:
    """The value of such bytes; nothing but tensors and plain values is read."""
    return torch.load(io.BytesIO(model), weights_only=True)


class EachStock(nn.Module):
    """A network of one stock's sessions, batch x sessions x ratios to batch, put to every stock alike."""

    def __init__(self, stock: nn.Module) -> None:
        super().__init__()
        self.stock = stock

    def forward(self, seen: Tensor) -> Tensor:
        """Decisions x symbols."""
        predicted: Tensor = self.stock(seen.flatten(0, 1))
        return predicted.view(seen.shape[:2])
