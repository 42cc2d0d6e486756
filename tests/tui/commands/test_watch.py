"""`paperdesk --watch` as a process beside the sandbox: cycles on a schedule, a broken stream, a kill, and its end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from connectors.sandbox import SandboxServer
from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from engine.settings import places
from engine.settings.config import load_config
from tests.tui.commands.conftest import OpenBroker, Run

REPO = Path(__file__).parents[3]
START = datetime(2024, 3, 1, 21, 10, tzinfo=UTC)
PATIENCE = 600.0


@pytest.fixture
def sandbox(open_broker: OpenBroker) -> SandboxServer:
    more = "[watch]\nafter_close = 5\nevery = 120\n"
    return open_broker(START, through=date(2024, 3, 20), symbols=("ORVL", "TMBK", "HLXM"), more=more)


class Watching:
    """A watch that runs as a process of its own, and the documents that it has printed."""

    def __init__(self) -> None:
        code = "import sys; from tui.cli import main; main(sys.argv[1:])"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "--config", str(places.config_file()), "--watch", "--json"],
            env={**os.environ, "PYTHONPATH": str(REPO)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.printed: list[dict[str, Any]] = []
        self._more = threading.Condition()
        self._over = False
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._more:
                self.printed.append(json.loads(line))
                self._more.notify_all()
        with self._more:
            self._over = True
            self._more.notify_all()

    def wait(self, wanted: Callable[[dict[str, Any]], bool], since: int = 0) -> dict[str, Any]:
        """The first document, from a place on, that is wanted."""

        def found() -> dict[str, Any] | None:
            return next((one for one in self.printed[since:] if wanted(one)), None)

        with self._more:
            assert self._more.wait_for(lambda: found() or self._over, PATIENCE), self.printed[since:]
            document = found()
        assert document is not None, self.process.stderr and self.process.stderr.read()
        return document

    def finished(self, run: str) -> dict[str, Any]:
        return self.wait(lambda one: one["type"] == "RunFinished" and one["run"] == run)

    def waits_for(self, text: str, since: int = 0) -> dict[str, Any]:
        return self.wait(lambda one: one["type"] == "Noticed" and text in one["text"], since)

    def arrives(self, feed: str, delivery: str, since: int = 0) -> dict[str, Any]:
        def so(one: dict[str, Any]) -> bool:
            return one["type"] == "FeedState" and (one["feed"], one["delivery"]) == (feed, delivery)

        return self.wait(so, since)

    def ended(self, number: signal.Signals) -> tuple[int, str]:
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        assert self.process.stderr is not None
        return code, self.process.stderr.read()

    def killed(self) -> None:
        """Kill the process where it still runs; its pipes are closed."""
        self.process.kill()
        self._reader.join()
        self.process.communicate()


@pytest.fixture
def watching(fresh: Path) -> Iterator[Callable[[], Watching]]:
    """Starts watches by the configuration of the test's home; none outlives the test."""
    begun: list[Watching] = []

    def begin() -> Watching:
        begun.append(Watching())
        return begun[-1]

    yield begin
    for one in begun:
        one.killed()


def to(sandbox: SandboxServer, text: str) -> None:
    sandbox.advance(datetime.fromisoformat(text).replace(tzinfo=UTC))


@pytest.mark.slow
def test_two_sessions_with_cycles_a_broken_stream_and_a_kill(
    sandbox: SandboxServer, watching: Callable[[], Watching]
) -> None:
    watch = watching()
    assert watch.finished("daily-paper-20240301")["outcome"] == "done"
    for feed in ("shares", "news", "orders"):
        watch.arrives(feed, "stream")
    watch.waits_for("cycle 2 within the session after 2024-03-01, at 2024-03-04 16:30 UTC")
    to(sandbox, "2024-03-04T14:35")  # no run is due: what fills at the open is booked when the feed says so
    filled = watch.wait(lambda one: one["type"] == "OrderFilled" and one["run"] == "daily-paper-20240301")
    with JournalReader(places.desk_journal("paper")) as reader:
        assert [str(fill.session) for fill in reader.fills(order_id=filled["order_id"])] == ["2024-03-04"]
    to(sandbox, "2024-03-04T16:30")
    assert watch.finished("session-paper-20240301-2")["outcome"] == "done"
    assert watch.wait(lambda one: one["type"] == "Headline")["symbols"]

    sandbox.fault("disconnect", path="/v2/iex", event="q")
    to(sandbox, "2024-03-04T16:40")
    down = watch.arrives("shares", "down")
    assert down["since"][:13] == "2024-03-04T16"
    watch.arrives("shares", "stream", watch.printed.index(down))

    # Killed while its next cycle is at work, at the request that places an order or the one before.
    sandbox.fault("hang", path="/v2/stocks/quotes/latest", seconds=30)
    to(sandbox, "2024-03-04T18:30")
    watch.wait(lambda one: one["type"] == "RunStarted" and one["run"] == "session-paper-20240301-3")
    watch.killed()
    sandbox.clear_faults()
    with JournalReader(places.desk_journal("paper")) as reader:
        assert reader.run("session-paper-20240301-3").outcome is None

    watch = watching()
    assert watch.finished("session-paper-20240301-3")["outcome"] == "done"
    watch.waits_for("cycle 4 within the session after 2024-03-01, at 2024-03-04 20:30 UTC")
    to(sandbox, "2024-03-04T20:30")
    assert watch.finished("session-paper-20240301-4")["outcome"] == "done"
    watch.waits_for("the cycle for 2024-03-04, at 2024-03-04 21:05 UTC")
    to(sandbox, "2024-03-04T21:05")
    assert watch.finished("daily-paper-20240304")["outcome"] == "done"
    watch.waits_for("cycle 2 within the session after 2024-03-04")
    to(sandbox, "2024-03-05T16:30")
    assert watch.finished("session-paper-20240304-2")["outcome"] == "done"
    assert watch.ended(signal.SIGINT) == (130, "paperdesk: watch ended; finished work is kept\n")

    state = sandbox.state()
    assert set(state["posts"].values()) <= {1}
    with JournalReader(places.desk_journal("paper")) as reader:
        assert [(run.id, run.outcome) for run in reader.runs()] == [
            ("daily-paper-20240301", "done"),
            ("session-paper-20240301-2", "done"),
            ("session-paper-20240301-3", "done"),
            ("session-paper-20240301-4", "done"),
            ("daily-paper-20240304", "done"),
            ("session-paper-20240304-2", "done"),
        ]
        assert {entry.order.id for entry in reader.orders()} == set(state["posts"])
        rows = [(row.decision_session, row.symbol) for row in reader.outcomes()]
        assert len(rows) == len(set(rows)) == 3
    assert quick_check(places.desk_journal("paper")) == ()


@pytest.mark.slow
def test_sigterm_is_the_ordinary_end_and_cron_works_beside_a_watch(
    sandbox: SandboxServer, watching: Callable[[], Watching]
) -> None:
    watch = watching()
    watch.finished("daily-paper-20240301")
    watch.waits_for("next: ")
    to(sandbox, "2024-03-04T21:03")  # the watch has it due at 21:05
    done = asyncio.run(run_daily(services(load_config(places.config_file()).config)))
    assert done.run == "daily-paper-20240304"
    to(sandbox, "2024-03-04T21:05")
    watch.waits_for("2024-03-04 is already decided (daily-paper-20240304)")
    assert watch.ended(signal.SIGTERM) == (0, "")


def test_what_is_wrong_is_said_before_anything(run: Run, tmp_path: Path) -> None:
    assert run("--watch", "--daily").code == 2
    assert run("--watch", "--session", "2024-03-01").code == 2
    assert run("--watch", "--run", "daily-demo-1").code == 2
    assert run("--watch", "status").code == 2
    path = tmp_path / "config.toml"
    path.write_text("[watch]\nevery = 2\n")
    said = run("--config", str(path), "--watch")
    assert said.code == 78
    assert "at least 5 minutes" in said.err


@pytest.mark.slow
def test_the_demo_desk_watches_closes_alone_and_says_so(watching: Callable[[], Watching]) -> None:
    places.config_file().write_text('[desk]\npreset = "finvision"\n[watch]\nevery = 60\n')
    watch = watching()
    assert "needs a broker" in watch.waits_for("watch.every")["text"]
    watch.wait(lambda one: one["type"] == "RunFinished")
    assert "the cycle for" in watch.waits_for("next: ")["text"]
    assert {one["type"] for one in watch.printed}.isdisjoint({"FeedState", "Headline"})
    assert watch.ended(signal.SIGTERM)[0] == 0


@pytest.mark.slow
def test_a_watch_whose_configuration_has_changed_ends_before_its_next_cycle(
    sandbox: SandboxServer, watching: Callable[[], Watching], tmp_path: Path
) -> None:
    file, notified = places.config_file(), tmp_path / "notified"
    command = f'[notify]\ncommand = ["sh", "-c", "cat >> {notified}"]\n'
    file.write_text(f"{file.read_text('utf-8')}\n{command}", encoding="utf-8")
    watch = watching()
    assert watch.finished("daily-paper-20240301")["outcome"] == "done"
    watch.waits_for("cycle 2 within the session after 2024-03-01")
    file.write_text(file.read_text("utf-8").replace("after_close = 5", "after_close = 7"), encoding="utf-8")
    to(sandbox, "2024-03-04T16:30")
    assert watch.process.wait(PATIENCE) == 78
    assert watch.process.stderr is not None
    said = watch.process.stderr.read()
    assert "has changed since the desk was opened (watch.after_close)" in said and said.count("\n") == 1
    with JournalReader(places.desk_journal("paper")) as reader:
        assert [run.id for run in reader.runs()] == ["daily-paper-20240301"]
    assert "(watch.after_close)" in notified.read_text("utf-8"), "nobody looks at a watch"
