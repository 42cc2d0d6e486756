"""Schedules of a desk's life in an account: drawn from a seed, played, and where one fails cut down to the least."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from engine.domain.run import TradingMode
from tests.engine.account.account_life import KINDS, Cut, Fault, Life, Meanwhile, Wishes
from tests.engine.account.accounts import SYMBOLS


@dataclass(frozen=True)
class Step:
    """One call of a Life's method."""

    name: str
    given: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.given.items())})"


WRITING = ("runs", "books", "is_killed", "is_disturbed", "takes_the_brokers_side", "all_ends_well")
"""Steps after which journal and broker are looked at."""


@dataclass(frozen=True)
class Schedule:
    """What happens to one desk."""

    mode: str
    steps: tuple[Step, ...]

    def play(self) -> None:
        """Lives it. Raises AssertionError where something does not hold, and whatever the desk should not raise."""
        life = Life(self.mode)
        try:
            for step in self.steps:
                getattr(life, step.name)(**step.given)
                if step.name in WRITING:
                    life.witness.looks()
        finally:
            life.ends()


def schedule_of(seed: int) -> Schedule:
    """The schedule of a seed, on any machine the same. It ends well."""
    draw = Random(seed)
    mode = draw.choices(tuple(TradingMode), (12, 6, 1))[0]
    steps: list[Step] = []
    for _ in range(draw.randint(2, 5)):
        steps.append(_step(draw, _WEIGHTS))
        if steps[-1].name == "something_breaks":
            steps.append(_step(draw, _RUNS))
    if draw.random() < 0.5:
        steps.append(Step("time_passes", {"to": "close"}))
    return Schedule(mode, (*steps, Step("all_ends_well", {"wishes": _wishes(draw)})))


def with_bookings(schedule: Schedule, seed: int) -> Schedule:
    """The same life of a desk that books between its steps, by chance."""
    draw, steps = Random(seed), list[Step]()
    for step in schedule.steps:
        steps.append(Step("books", {"cut": draw.choice((None, None, _cut(draw)))}))
        steps.append(step)
    return Schedule(schedule.mode, tuple(steps))


def fault_of(schedule: Schedule) -> Exception | None:
    """What is wrong with a schedule's life, None where nothing is."""
    try:
        schedule.play()
    except Exception as error:
        return error
    return None


def cut_down(schedule: Schedule) -> Schedule:
    """The same failure with as few steps as leaving out one after the other comes to."""
    steps, kind = list(schedule.steps), type(fault_of(schedule))
    number = len(steps) - 1
    while number >= 0:
        fewer = Schedule(schedule.mode, tuple(steps[:number] + steps[number + 1 :]))
        if type(fault_of(fewer)) is kind:
            del steps[number]
        number -= 1
    return Schedule(schedule.mode, tuple(steps))


def report(seed: int, *, books: bool = False) -> str:
    """Why the life of a seed fails, and the shortest way there."""
    schedule = schedule_of(seed)
    schedule = cut_down(with_bookings(schedule, seed) if books else schedule)
    error = fault_of(schedule)
    steps = "\n".join(f"    {step}" for step in schedule.steps)
    return f"seed {seed}, mode {schedule.mode}: {type(error).__name__}: {error}\n{steps}"


_WEIGHTS = {
    "runs": 12,
    "is_killed": 26,
    "is_disturbed": 18,
    "something_breaks": 18,
    "all_works_again": 4,
    "time_passes": 16,
    "the_close_is_near": 3,
    "money_moves": 3,
    "somebody_trades_by_hand": 4,
    "what_was_late_arrives": 2,
    "halts": 2,
    "resumes": 4,
    "a_word": 8,
    "takes_the_brokers_side": 4,
}


_RUNS = {name: _WEIGHTS[name] for name in ("runs", "is_killed", "is_disturbed")}


def _step(draw: Random, weights: dict[str, int]) -> Step:
    name = draw.choices(list(weights), list(weights.values()))[0]
    return Step(name, _given(name, draw))


def _given(name: str, draw: Random) -> dict[str, Any]:
    makes: dict[str, Callable[[], dict[str, Any]]] = {
        "runs": lambda: {"wishes": _wishes(draw), "again": draw.random() < 0.15},
        "is_killed": lambda: {"wishes": _wishes(draw), "cut": _cut(draw)},
        "is_disturbed": lambda: {
            "wishes": _wishes(draw),
            "happens": [_meanwhile(draw) for _ in range(draw.choice((1, 1, 2)))],
            "late": draw.choice((0, 0, 0, 1, 1, 2, 3)),
        },
        "something_breaks": lambda: {"fault": _fault(draw)},
        "time_passes": lambda: {"to": draw.choices(("close", "open", "1m", "3h"), (12, 6, 1, 3))[0]},
        "the_close_is_near": lambda: {"seconds": draw.randint(1, 90)},
        "money_moves": lambda: {"amount": draw.randint(-500, 500) or 1},
        "somebody_trades_by_hand": lambda: {
            "symbol": draw.choice((*SYMBOLS, "GONE")),
            "side": draw.choice(("buy", "sell")),
            "quantity": draw.randint(1, 60),
        },
        "a_word": lambda: {"which": draw.randint(0, 3), "good": draw.random() < 0.7},
        "takes_the_brokers_side": lambda: {"cut": draw.choice((None, _cut(draw)))},
    }
    return makes[name]() if name in makes else {}


def _wishes(draw: Random) -> Wishes:
    return tuple((draw.choice("BBBSSH"), draw.randint(1, 10)) for _ in SYMBOLS)


def _cut(draw: Random) -> Cut:
    return Cut(draw.choice(("request", "commit")), draw.randint(1, 22), draw.random() < 0.5)


def _meanwhile(draw: Random) -> Meanwhile:
    what = ("halt", "veto", "transfer", "by hand", "minutes", "open", "close")
    return Meanwhile(draw.randint(1, 21), draw.choice(what), draw.randint(1, 9))


def _fault(draw: Random) -> Fault:
    return Fault(
        kind=draw.choice(KINDS),
        method=draw.choice(("POST", "POST", "GET", "*")),
        path=draw.choice(("/v2/orders*", "/v2/orders*", "/v2/*", "/v2/account*", "/v2/positions")),
        count=draw.choice((1, 1, 2, 3, 5, 12)),
        skip=draw.choice((0, 0, 0, 1, 2, 5, 9)),
        after=draw.random() < 0.5,
        long=draw.random() < 0.2,
    )
