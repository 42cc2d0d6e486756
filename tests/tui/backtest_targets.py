"""What the tests run as a backtest in another process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from multiprocessing.connection import Connection

from engine.domain.run import RunKind, RunOutcome, RunSpec
from engine.errors import StaleData
from engine.messages.events import DecisionMade, RunFinished, RunStarted, SessionOpened, SessionSettled, to_plain
from tests.decided import decided, settled
from tui.desk.backtest_process import goes_on, stop_wanted

START = date(2024, 1, 2)


def days(count: int) -> list[date]:
    """Consecutive days, taken for sessions."""
    return [START + timedelta(days=n) for n in range(count)]


def short(spec: RunSpec, connection: Connection) -> None:
    """Twelve sessions at once, with a baseline and a result."""
    play(spec, connection, 12, 0.0)


def slow(spec: RunSpec, connection: Connection) -> None:
    """Far more sessions than a test waits for, each with some computing."""
    play(spec, connection, 5000, 0.01)


def paid(spec: RunSpec, connection: Connection) -> None:
    """As `slow`, decided by a model that costs something."""
    play(spec, connection, 5000, 0.01, label="a model of a vendor")


def asks(spec: RunSpec, connection: Connection, resume: bool = False) -> None:
    """A question about its cost, and an error that says that it went on, and how."""
    connection.send({"type": "question", "text": "It may cost $12.00."})
    if goes_on(connection):
        raise StaleData("resumed" if resume else "begun")


def lingers(spec: RunSpec, connection: Connection) -> None:
    """Its end at once, and the end of the process once it is allowed."""
    connection.send({"type": "error", "text": "the result is known"})
    goes_on(connection)


def holds_result(spec: RunSpec, connection: Connection) -> None:
    """Three sessions, the end of the run, and its result once that is allowed."""
    play(spec, connection, 3, 0.0, allowed=lambda: goes_on(connection))


def fails(spec: RunSpec, connection: Connection) -> None:
    """Data that ends too early, and output that must not reach the terminal."""
    print("this must not reach the terminal")
    raise StaleData(f"the bars end on 2024-02-01, before 2024-03-01{', as others' * 12} do")


def tells_its_priority(spec: RunSpec, connection: Connection) -> None:
    """An error that is the priority of the process, once that is another than its parent's, which gives it."""
    import os
    import time

    parents = os.getpriority(os.PRIO_PROCESS, os.getppid())
    while os.nice(0) == parents < 19:
        time.sleep(0.01)
    raise StaleData(f"niceness {os.nice(0)}")


def dies(spec: RunSpec, connection: Connection) -> None:
    """A process that is gone without a word."""
    import os

    os._exit(9)


def deaf(spec: RunSpec, connection: Connection) -> None:
    """A process that never looks up."""
    time.sleep(60)


def play(
    spec: RunSpec,
    connection: Connection,
    count: int,
    pause: float,
    label: str = "rules, not a language model",
    allowed: Callable[[], bool] = bool,
) -> None:
    """Sessions on a gentle wave, until the end or the word."""
    wanted = stop_wanted(connection)
    sessions = days(count)
    now = datetime(2024, 1, 2, 21, tzinfo=UTC)

    def tell(event: object) -> None:
        connection.send(to_plain(event))  # type: ignore[arg-type]

    tell(
        RunStarted(
            run="r1",
            time=now,
            kind=RunKind.BACKTEST,
            name="test",
            label=label,
            symbols=spec.symbols,
            first=sessions[0],
            last=sessions[-1],
            sessions=count,
        )
    )
    baseline = [[day.isoformat(), str(100_000 + 40 * n)] for n, day in enumerate(sessions)]
    connection.send({"type": "baseline", "name": "buy-and-hold", "equity": baseline})
    equity = []
    for n, day in enumerate(sessions, 1):
        if wanted():
            break
        tell(SessionOpened(run="r1", time=now, session=day, index=n, total=count, part="test"))
        time.sleep(pause / 2)
        sum(math.sqrt(k) for k in range(int(pause * 1_000_000)))
        action = ("BUY", "HOLD", "SELL", "HOLD")[n % 4]
        tell(DecisionMade("r1", now, decided(spec.symbols[0], action, 5, day, reason="because")))
        value = Decimal(round(100_000 + 2_000 * math.sin(n / 9) + 60 * n))
        equity.append({"session": day.isoformat(), "value": str(value)})
        tell(SessionSettled("r1", now, settled(day, value, Decimal(20_000))))
    outcome = RunOutcome.DONE if len(equity) == count else RunOutcome.INTERRUPTED
    tell(RunFinished("r1", now, outcome, None, ""))
    metrics = {"total_return": 0.0123, "sharpe": 1.25, "max_drawdown": 0.034, "win_rate": None}
    held = {"metrics": {"total_return": 0.0044, "sharpe": 0.8}, "final_value": "100440", "trades": 1}
    document = {
        "run": "r1",
        "metrics": metrics,
        "equity": equity,
        "baselines": {"buy-and-hold": held},
        "trades": [],
        "initial_value": "100000",
        "final_value": equity[-1]["value"] if equity else "100000",
    }
    allowed()
    connection.send({"type": "result", "document": document})
