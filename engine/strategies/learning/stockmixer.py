"""StockMixer, small (Fan and Shen, AAAI 2024) [R8]: indicators, then time on two scales, then the stocks are mixed by
perceptrons; trained by the squared error and the ranking of the stocks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.strategies.learning.networks import Fit

MARKET = 8
"""Width of what stands for the market between the stocks."""
RANKING = 0.1
"""Weight of the ranking in the loss."""


def loss(predicted: Tensor, label: Tensor) -> Tensor:
    """The squared error, and what every two stocks are out of order by."""
    apart = predicted.unsqueeze(1) - predicted.unsqueeze(2)
    really = label.unsqueeze(2) - label.unsqueeze(1)
    return nn.functional.mse_loss(predicted, label) + RANKING * torch.relu(apart * really).mean()


FIT = Fit(rate=1e-3, epochs=100, patience=5, loss=loss)


class Mixing(nn.Module):
    """A perceptron over the last dimension, beside what comes in."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.steps = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, hidden), nn.Hardswish(), nn.Linear(hidden, size))

    def forward(self, values: Tensor) -> Tensor:
        """The same shape."""
        mixed: Tensor = self.steps(values)
        return values + mixed


class EarlierSessions(nn.Module):
    """A layer over sessions, of which each is mixed with itself and earlier ones."""

    before: Tensor

    def __init__(self, sessions: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(sessions)
        self.first, self.second = nn.Linear(sessions, sessions), nn.Linear(sessions, sessions)
        self.register_buffer("before", torch.ones(sessions, sessions).tril())

    def forward(self, values: Tensor) -> Tensor:
        """... x sessions, the same shape."""
        inner = nn.functional.linear(self.norm(values), self.first.weight * self.before, self.first.bias)
        mixed = nn.functional.linear(nn.functional.hardswish(inner), self.second.weight * self.before, self.second.bias)
        return values + mixed


class StockMixer(nn.Module):
    """Every session, and means of two at a time, mixed; then the stocks by way of the market."""

    def __init__(self, symbols: int, sessions: int, ratios: int) -> None:
        super().__init__()
        scales = [sessions, sessions // 2]
        self.pools = nn.ModuleList([nn.Identity(), nn.AvgPool1d(2)])
        self.indicators = nn.ModuleList(Mixing(ratios, ratios) for _ in scales)
        self.times = nn.ModuleList(EarlierSessions(count) for count in scales)
        width = sum(scales) * ratios
        self.into_market = nn.Sequential(nn.LayerNorm(symbols), nn.Linear(symbols, MARKET), nn.Hardswish())
        self.from_market = nn.Linear(MARKET, symbols)
        self.own, self.through = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, seen: Tensor) -> Tensor:
        """Decisions x symbols x sessions x ratios to decisions x symbols."""
        by_ratio = seen.flatten(0, 1).transpose(1, 2)
        mixed = []
        for pool, indicators, times in zip(self.pools, self.indicators, self.times, strict=True):
            scaled = indicators(pool(by_ratio).transpose(1, 2)).transpose(1, 2)
            mixed.append(times(scaled).reshape(*seen.shape[:2], -1))
        stocks = torch.cat(mixed, dim=-1)
        market = self.from_market(self.into_market(stocks.transpose(1, 2))).transpose(1, 2)
        predicted: Tensor = self.own(stocks) + self.through(market)
        return predicted.squeeze(-1)


def network(symbols: int, sessions: int, ratios: int) -> nn.Module:
    """The network."""
    return StockMixer(symbols, sessions, ratios)
