"""Random whole numbers, each determined by its key alone: the same on every machine and in any order."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from struct import Struct
from typing import TypeVar

_SHORTS = Struct("<32H")
_WORDS = Struct("<16I")
_SIGMA = 37837  # standard deviation of the sum of four uniform 16-bit numbers: 65536 x sqrt(4/12)
_MEAN = 131070

T = TypeVar("T")


def stream(*key: int | str) -> bytes:
    """Name of a series of draws; `shorts` gives its parts."""
    return "|".join(map(str, key)).encode() + b"|"


def shorts(name: bytes, part: int) -> tuple[int, ...]:
    """Thirty-two uniform numbers below 65536."""
    return _SHORTS.unpack(blake2b(name + b"%d" % part).digest())


def bell(first: int, second: int, third: int, fourth: int) -> int:
    """A nearly normal draw, in thousandths of a standard deviation, from four uniform ones; within 3.5 of them."""
    return (first + second + third + fourth - _MEAN) * 1000 // _SIGMA


class SeededRandom:
    """Successive draws under one key."""

    def __init__(self, *key: int | str) -> None:
        self._name = stream(*key)
        self._part = 0
        self._left: list[int] = []

    def below(self, limit: int) -> int:
        """Uniform in 0 .. limit - 1."""
        if not self._left:
            self._left = list(_WORDS.unpack(blake2b(self._name + b"%d" % self._part).digest()))
            self._part += 1
        return self._left.pop() * limit >> 32

    def between(self, low: int, high: int) -> int:
        """Uniform in low .. high, both included."""
        return low + self.below(high - low + 1)

    def chance(self, permille: int) -> bool:
        """True with a probability per thousand."""
        return self.below(1000) < permille

    def pick(self, choices: Sequence[T]) -> T:
        """One of several, with equal probability."""
        return choices[self.below(len(choices))]

    def normal(self) -> int:
        """A nearly normal draw, as `bell`."""
        return bell(*(self.below(65536) for _ in range(4)))
