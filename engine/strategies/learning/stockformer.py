"""StockFormer, small (Gao et al., IJCAI 2023) [R8]: encoders that foresee the next session and the next five, and know
what moves together, are trained first; soft actor-critic decides on what they see.

Smaller than the paper's: an encoder has one layer and relates the stocks itself in the place of a third one, and the
share of each stock is decided by itself, as in all of our environments.
"""

from __future__ import annotations

import pickle

import numpy as np
import torch
from torch import Tensor, nn

from engine.market.indicators import Floats
from engine.strategies.learning import policies
from engine.strategies.learning.networks import Fit, begin, loaded, saved, tensor, trained
from engine.strategies.learning.samples import Samples
from engine.strategies.learning.training import Predict, Progress, Task
from engine.strategies.learning.transformer import waves

WIDTH, HEADS = 16, 4
HORIZONS = (1, 5)
"""Sessions that an encoder foresees."""
FIT = Fit(rate=1e-3, epochs=50, patience=5)


class Attention(nn.Module):
    """Attention whose heads have a feed-forward network each, so that they stay diverse."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.each_head = nn.Sequential(
            nn.Conv1d(WIDTH, 2 * WIDTH, 1, groups=HEADS), nn.ReLU(), nn.Conv1d(2 * WIDTH, WIDTH, 1, groups=HEADS)
        )
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, values: Tensor) -> Tensor:
        """Batch x items x WIDTH, the same shape."""
        attended, _ = self.attention(values, values, values, need_weights=False)
        return self.norm(values + attended + self.each_head(attended.transpose(1, 2)).transpose(1, 2))


class Encoder(nn.Module):
    """Each stock's sessions, then the stocks; `forward` foresees a return, of which `seen_in` is what it rests on."""

    places: Tensor

    def __init__(self, sessions: int, ratios: int) -> None:
        super().__init__()
        self.into = nn.Linear(ratios, WIDTH)
        self.times, self.stocks = Attention(), Attention()
        self.out = nn.Linear(WIDTH, 1)
        self.register_buffer("places", waves(sessions, WIDTH))

    def seen_in(self, seen: Tensor) -> Tensor:
        """Decisions x symbols x WIDTH."""
        last = self.times(self.into(seen.flatten(0, 1)) + self.places)[:, -1]
        return self.stocks(last.view(*seen.shape[:2], WIDTH))

    def forward(self, seen: Tensor) -> Tensor:
        """Decisions x symbols."""
        return self.out(self.seen_in(seen)).squeeze(-1)


def fit(task: Task, progress: Progress) -> bytes:
    """Train the encoders, then the policy on what they see."""
    begin(task.seed)
    whole = len(HORIZONS) * FIT.epochs + policies.EPOCHS

    def after(begun: int) -> Progress:
        return lambda done, total: progress(begun + done, whole)

    encoders = []
    for place, horizon in enumerate(HORIZONS):
        encoder = Encoder(*task.train.seen.shape[2:])
        parts = [_foreseen(part, horizon) for part in (task.train, task.held_out)]
        trained(encoder, FIT, parts[0], parts[1], after(place * FIT.epochs))
        encoders.append(encoder)
    train, held_out = (
        Samples(seen=_encoded(encoders, part.seen), overnight=part.overnight, held=part.held, label=part.label)
        for part in (task.train, task.held_out)
    )
    seen = Task(kind="sac", seed=task.seed, cost=task.cost, train=train, held_out=held_out)
    policy = policies.fit(seen, after(len(HORIZONS) * FIT.epochs))
    states = saved([encoder.state_dict() for encoder in encoders])
    return pickle.dumps((task.train.seen.shape[2:], states, policy))


def _foreseen(part: Samples, horizon: int) -> tuple[Tensor, Tensor]:
    """The features, and the return of so many sessions in percent, as far as the part reaches."""
    grown = np.cumsum(np.log1p(part.held) + np.log1p(part.overnight), axis=0)
    ahead = np.concatenate([grown[horizon - 1 : horizon], grown[horizon:] - grown[:-horizon]])
    return tensor(part.seen[: len(ahead)]), tensor(100 * ahead)


def _encoded(encoders: list[Encoder], seen: Floats) -> Floats:
    """The view of the encoders, decisions x symbols x encoders x WIDTH."""
    with torch.no_grad():
        found = torch.stack([encoder.seen_in(tensor(seen)) for encoder in encoders], dim=2)
    return np.asarray(found.numpy(), np.float64)


def load(kind: str, model: bytes) -> Predict:
    """The share of each stock that is wanted."""
    begin(0)
    shape, states, policy = pickle.loads(model)
    encoders = [Encoder(*shape) for _ in HORIZONS]
    for encoder, state in zip(encoders, loaded(states), strict=True):
        encoder.load_state_dict(state)
        encoder.eval()
    asked = policies.load("sac", policy)
    return lambda seen, held: asked(_encoded(encoders, seen[None])[0], held)
