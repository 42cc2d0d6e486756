"""The record of a bench that may be stopped and gone on with: its request, the runs that are done, and what is spent.

A run that was stopped is played again from its first session. The answers that were given to it are given again as they
were, cost included, so that the whole comes to what an unbroken bench comes to.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from sys import maxsize
from typing import Any, TypeVar

from engine.app.bench.jobs import Played
from engine.app.bench.plan import BenchRequest
from engine.app.records.lock import one_process
from engine.domain.json_text import from_json, to_json
from engine.errors import BudgetReached, MalformedData, MissingData
from engine.services import SpendingLimit, Spent
from engine.settings import places
from engine.settings.config import BudgetConfig

ENDLESS = Decimal("Infinity")
"""The dollars of a bench without a --budget."""


@dataclass(frozen=True, slots=True)
class BenchRecord:
    """A bench as it was begun: its id, its request, and the specs of the models that answer it."""

    run: str
    request: BenchRequest
    models: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Its folder. Raises ConfigError for an id that cannot be part of a file's name."""
        return places.bench_folder(self.run)

    def begin(self) -> None:
        """Write the record, unless it is there."""
        file = self.folder / "bench.json"
        if not file.exists():
            places.write_whole(file, to_json(self))

    def lock(self) -> AbstractContextManager[None]:
        """Hold the bench until the block ends. Raises TryAgainLater where another process plays it."""
        return one_process(self.folder / "bench.lock", f"the bench {self.run} is being played by another process")

    def began(self, number: int) -> Path:
        """The file of the moment at which a run was begun first."""
        return self.folder / f"{number}.begun"

    def result(self, number: int) -> Path:
        """The file of the result of a run, which is there once the run has come to its end."""
        return self.folder / f"{number}.json"

    def done(self, number: int) -> Played | None:
        """The outcome of a run that has come to its end. Raises MalformedData."""
        file = self.result(number)
        return _read(file, Played) if file.exists() else None

    def keep(self, number: int, played: Played) -> None:
        """Keep the result of a run; one without a result is played again."""
        if played.result is not None:
            places.write_whole(self.result(number), to_json(played))

    def limit(self, budget: BudgetConfig, usd: Decimal | None) -> SharedLimit:
        """The limit of its models, `usd` with what earlier parts have spent; calls that were in flight when a part was
        killed may have cost all that was reserved for them."""
        tokens = budget.tokens_per_day if usd is not None else maxsize
        dollars = ENDLESS if usd is None else usd
        limit = SharedLimit(
            budget.model_copy(update={"usd_per_day": dollars, "tokens_per_day": tokens}), self.folder / "spent.json"
        )
        limit.settle_all()
        return limit

    def remove(self) -> None:
        """Remove the record of a bench that is done."""
        shutil.rmtree(self.folder)


def load_record(run: str) -> BenchRecord:
    """The record of a bench that was stopped. Raises MissingData where there is none, MalformedData."""
    file = places.bench_folder(run) / "bench.json"
    if not file.exists():
        raise MissingData(f"--resume {run}: there is no bench of that name to go on with")
    return _read(file, BenchRecord)


@dataclass(frozen=True, slots=True)
class _Account:
    spent: Spent
    reserved: Spent
    in_flight: int


class SharedLimit(SpendingLimit):
    """A limit that the processes of a bench share through a file, where it outlives them."""

    def __init__(self, budget: BudgetConfig, file: Path) -> None:
        super().__init__(budget, Spent(), of_flag=True)
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return SharedLimit, (self.budget, self._file)

    def reserve(self, most: Spent, least: Spent | None = None, *, first: bool = True) -> Spent | BudgetReached:
        """Reserve what a call may cost beside those of all processes."""
        with self._account():
            return super().reserve(most, least, first=first)

    def settle(self, reserved: Spent, used: Spent) -> None:
        """Put what a question has used in the place of what was reserved for it."""
        with self._account():
            super().settle(reserved, used)

    def settle_all(self) -> None:
        """Count what is still reserved as spent: nobody is left to settle it."""
        with self._account():
            self.spent, self.reserved, self.in_flight = self.spent + self.reserved, Spent(), 0

    @contextmanager
    def _account(self) -> Iterator[None]:
        from filelock import FileLock

        places.make_folder(self._file.parent)
        with FileLock(f"{self._file}.lock"):
            kept = _read(self._file, _Account) if self._file.exists() else _Account(Spent(), Spent(), 0)
            self.spent, self.reserved, self.in_flight = kept.spent, kept.reserved, kept.in_flight
            yield
            places.write_whole(self._file, to_json(_Account(self.spent, self.reserved, self.in_flight)))


T = TypeVar("T")


def _read(file: Path, kind: type[T]) -> T:
    try:
        return from_json(kind, file.read_text(encoding="utf-8"))
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as error:
        raise MalformedData(f"{file}: no record of a bench ({type(error).__name__}); remove its folder") from None
