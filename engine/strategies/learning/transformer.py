"""Transformer by qlib's settings [A13]: width 64, two heads, two layers, rate 1e-4, weight decay 1e-3, at most 100
epochs, 5 without gain end it."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from engine.strategies.learning.networks import EachStock, Fit

WIDTH = 64
FIT = Fit(rate=1e-4, epochs=100, patience=5, decay=1e-3)


class Transformer(nn.Module):
    """Sessions with their places, encoded; a line through the last."""

    places: Tensor

    def __init__(self, sessions: int, ratios: int) -> None:
        super().__init__()
        self.into = nn.Linear(ratios, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, nhead=2, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.out = nn.Linear(WIDTH, 1)
        self.register_buffer("places", waves(sessions, WIDTH))

    def forward(self, seen: Tensor) -> Tensor:
        """Batch x sessions x ratios to batch."""
        return self.out(self.encoder(self.into(seen) + self.places)[:, -1]).squeeze(-1)


def waves(sessions: int, width: int) -> Tensor:
    """The places of sessions as sines and cosines, sessions x width."""
    angles = torch.arange(sessions).unsqueeze(1) * torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def network(symbols: int, sessions: int, ratios: int) -> nn.Module:
    """The network."""
    return EachStock(Transformer(sessions, ratios))
