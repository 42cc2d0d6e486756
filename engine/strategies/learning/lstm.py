"""LSTM by qlib's settings [A13]: two layers of 64, no dropout, rate 1e-3, at most 200 epochs, 10 without gain
end it."""

from __future__ import annotations

from torch import Tensor, nn

from engine.strategies.learning.networks import EachStock, Fit

FIT = Fit(rate=1e-3, epochs=200, patience=10)


class Lstm(nn.Module):
    """The last state, and a line through it."""

    def __init__(self, ratios: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(ratios, 64, num_layers=2, batch_first=True)
        self.out = nn.Linear(64, 1)

    def forward(self, seen: Tensor) -> Tensor:
        """Batch x sessions x ratios to batch."""
        states, _ = self.lstm(seen)
        return self.out(states[:, -1]).squeeze(-1)


def network(symbols: int, sessions: int, ratios: int) -> nn.Module:
    """The network."""
    return EachStock(Lstm(ratios))
