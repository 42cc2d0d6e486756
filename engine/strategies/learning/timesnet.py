"""TimesNet, small (Wu et al., ICLR 2023) [R8]: a window is laid out in two dimensions by its strongest periods, and
each layout is read by convolutions of several sizes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.strategies.learning.networks import EachStock, Fit

WIDTH = 16
PERIODS = 2
"""Periods that a window is laid out by."""
SIZES = (1, 3, 5)
"""Sizes of the convolutions."""
FIT = Fit(rate=1e-3, epochs=100, patience=5)


class Inception(nn.Module):
    """The mean of convolutions of several sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes = nn.ModuleList(nn.Conv2d(WIDTH, WIDTH, size, padding=size // 2) for size in SIZES)

    def forward(self, laid_out: Tensor) -> Tensor:
        """The same shape."""
        return torch.stack([convolution(laid_out) for convolution in self.sizes]).mean(0)


class TimesBlock(nn.Module):
    """One layer: layouts by period, weighted by how strong each period is in the window."""

    def __init__(self) -> None:
        super().__init__()
        self.read = nn.Sequential(Inception(), nn.GELU(), Inception())
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, values: Tensor) -> Tensor:
        """Batch x sessions x WIDTH, the same shape."""
        sessions = values.shape[1]
        strengths = torch.fft.rfft(values, dim=1).abs().mean(-1)
        # By the window itself, not by the batch as in the paper: a decision depends on nothing that stands beside it.
        strongest, frequencies = strengths[:, 1:].topk(PERIODS, dim=1)
        weights = strongest.softmax(dim=1)
        mixed = torch.zeros_like(values)
        for frequency in range(1, strengths.shape[1]):
            chosen, place = torch.nonzero(frequencies == frequency - 1, as_tuple=True)
            if len(chosen):
                read = self._laid_out(values[chosen], -(-sessions // frequency))
                mixed = mixed.index_add(0, chosen, read * weights[chosen, place].view(-1, 1, 1))
        return self.norm(values + mixed)

    def _laid_out(self, values: Tensor, period: int) -> Tensor:
        """The reading of windows that are laid out with a line for each period."""
        batch, sessions, width = values.shape
        lines = -(-sessions // period)
        padded = nn.functional.pad(values, (0, 0, 0, lines * period - sessions))
        read = self.read(padded.view(batch, lines, period, width).permute(0, 3, 1, 2))
        return read.permute(0, 2, 3, 1).reshape(batch, -1, width)[:, :sessions]


class TimesNet(nn.Module):
    """Two layers, and a line through the last session."""

    def __init__(self, ratios: int) -> None:
        super().__init__()
        self.into = nn.Linear(ratios, WIDTH)
        self.blocks = nn.Sequential(TimesBlock(), TimesBlock())
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, seen: Tensor) -> Tensor:
        """Batch x sessions x ratios to batch."""
        return self.out(self.blocks(self.into(seen))[:, -1]).squeeze(-1)


def network(symbols: int, sessions: int, ratios: int) -> nn.Module:
    """The network."""
    return EachStock(TimesNet(ratios))
