"""Daily runs that are killed: `paperdesk --daily` as processes of their own against a broker that fails, ended by
SIGKILL at random moments and at the worst ones, and started again until the session is done.

The broker is the sandbox over HTTP, the model a service over HTTP that trades in every symbol and every session, both
in this process; what is measured is at the end found nowhere but in their books and in the desk's journal. Run as
`python -m tests.bench.bench_kills [SEED]`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any
from unittest import mock

from connectors.demo.market import DemoMarket
from connectors.sandbox import SandboxSettings
from connectors.sandbox.http_server import Answer
from connectors.sandbox.protocol import Request
from connectors.wiring.sandbox import build_sandbox
from connectors.wiring.sources import calendars
from engine.domain.order import OrderState
from engine.domain.run import DataSpec, RunKind
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from engine.market.trading_hours import exchange_calendar
from engine.settings import places
from tests.data_folders import write_folder
from tests.servers.fake_llm_server import FakeLLMServer, Say, Turn, fake_llm_server
from tests.snapshots import snapshot

REPO = Path(__file__).resolve().parent.parent.parent
START, LAST = datetime(2024, 3, 1, 21, 5, tzinfo=UTC), date(2024, 6, 15)
SYMBOLS = ("ORVL", "TMBK", "KSTO", "VDRL", "BXWD", "FABX")
PRESET = """
extends = "finvision"
name = "every-day"
without = ["news", "vision", "chart", "reflections"]
"""
CONFIG = """
[desk]
name = "paper"
symbols = {symbols}
preset = "{preset}"
[data]
folder = "{folder}"
refresh = false
[broker]
kind = "alpaca"
clock = "broker"
timeout = 1
[models]
default = "here:trader"
[endpoints.here]
base_url = "{url}"
"""
FAULTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("gateway_timeout", {"method": "POST"}),
    ("server_error", {"method": "POST"}),
    ("server_error", {"method": "POST", "after": True}),
    ("reset", {"method": "POST", "after": True}),
    ("reset", {"method": "GET"}),
    ("hang", {"method": "POST", "after": True, "seconds": 30}),
    ("html", {"method": "POST", "after": True}),
    ("html", {"method": "GET"}),
    ("too_many_requests", {"method": "POST", "seconds": 0}),
    ("too_many_requests", {"method": "GET", "seconds": 0, "count": 2}),
    ("server_error", {"method": "GET"}),
)
OF_ORDERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("partial_fill", {"fraction": "0.4", "then": "fill"}),
    ("partial_fill", {"fraction": "0.3", "then": "cancel"}),
    ("partial_fill", {"fraction": "0.6", "then": "expire"}),
    ("reject", {}),
    ("refuse", {"message": "not today"}),
)


MOST_RUNS = 60
"""Of one session, killed or not: enough for any."""


@dataclass(kw_only=True)
class Report:
    """What was done and found. `asked` counts model calls that reached the service, `answers` those in the journal,
    `intents` the orders that were meant, `sent` those of them that were handed over, `refused` those that the broker
    did not take, `there` those that it has."""

    sessions: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    runs: Counter[int] = field(default_factory=Counter)
    posts: int = 0
    intents: int = 0
    sent: int = 0
    refused: int = 0
    there: int = 0
    asked: int = 0
    answers: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)

    def lines(self) -> tuple[str, ...]:
        """The report for a reader."""
        return (
            f"{self.sessions} sessions x {len(SYMBOLS)} symbols in {self.seconds:.0f} s, "
            f"{self.kills.total()} kills ({', '.join(f'{n} {what}' for what, n in sorted(self.kills.items()))})",
            f"runs by exit code: {', '.join(f'{code}: {n}' for code, n in sorted(self.runs.items()))}",
            f"orders meant {self.intents}, handed over {self.sent}, refused {self.refused}, at the broker {self.there} "
            f"({self.there - self.sent + self.refused} too many), sent {self.posts} times in all",
            f"model calls that reached the service {self.asked}, answers in the journal {self.answers}",
            *(self.faults or ["journal and broker agree to the cent; the journal is sound"]),
        )


@dataclass
class Blow:
    """When a process is killed: `start` seconds after it was started, at its Nth request of a kind (`order`, `any`,
    `model`), before it is carried out or after and before its answer leaves, and at the latest `seconds` after its
    first request for anything but time and calendar: what follows these is reading, which takes longest."""

    kind: str
    start: float
    seconds: float
    number: int
    after: bool

    @classmethod
    def drawn(cls, draw: Random, *, at_requests: bool) -> Blow:
        """Any of them, or one at a request alone; orders leave within the second after the first request."""
        if at_requests:
            kind = draw.choice(("order", "any", "model"))
            return cls(kind, 120.0, 120.0, draw.choice((1, 2, 4)), draw.random() < 0.6)
        kind = draw.choices(("start", "time", "order", "any", "model"), (2, 6, 7, 5, 2))[0]
        most = {"order": (1, 1, 1, 1, 2, 3), "any": (1, 3, 6, 10, 15, 25), "model": (1, 2, 4, 6)}.get(kind, (1,))
        start = draw.uniform(0.05, 0.7) if kind == "start" else 120.0
        seconds = draw.uniform(0.8, 1.2)
        if kind == "time":
            seconds = draw.choice((10 ** draw.uniform(-3.0, 0.0), draw.uniform(0.1, 1.0)))
        return cls(kind, start, seconds, draw.choice(most), draw.random() < 0.6)


class Executioner:
    """Kills the process that is at work when its moment has come; stands between it and the two services."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.blow: Blow | None = None
        self.fell = ""
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def watches(self, process: subprocess.Popen[bytes] | None, blow: Blow | None) -> None:
        """The process that is at work from now on."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self.process, self.blow, self.fell, self._timer = process, blow, "", None
            self._seen.clear()

    def comes_by(self, *kinds: str, after: bool) -> None:
        """A request of these kinds is about to be carried out, or has been."""
        with self._lock:
            blow = self.blow
            if blow is not None and self._timer is None:
                self._timer = threading.Timer(blow.seconds, self.strikes_now)
                self._timer.start()
            for kind in kinds:
                self._seen[f"{kind} {after}"] += 1
                due = blow is not None and (blow.kind, blow.after, blow.number)
                if due == (kind, after, self._seen[f"{kind} {after}"]):
                    self._strike(f"{'after' if after else 'before'} a request ({kind})")

    def strikes_now(self) -> None:
        """Its time is up."""
        with self._lock:
            self._strike("at a random moment")

    def _strike(self, how: str) -> None:
        if self.process is not None and self.process.poll() is None and not self.fell:
            self.process.send_signal(signal.SIGKILL)
            self.fell = how


class Trader(FakeLLMServer):
    """A model that trades in every symbol in every session: buys, and sells a part of it again."""

    def __init__(self, executioner: Executioner) -> None:
        super().__init__()
        self.executioner = executioner
        self.asked: Counter[tuple[str, str]] = Counter()
        self.calendar = exchange_calendar()

    def next_turn(self, body: dict[str, Any], headers: dict[str, str]) -> Turn:
        """The decision on the asset and date that are asked about."""
        self.executioner.comes_by("model", after=False)
        found = re.search(r"Asset: ([A-Z.]+)\. Date: ([0-9-]+),", json.dumps(body["messages"]))
        assert found is not None
        symbol, day = found.groups()
        self.asked[symbol, day] += 1
        number = self.calendar.number(date.fromisoformat(day)) - self.calendar.number(START.date())
        buys = number % 2 == 0
        answer = {
            "symbol": symbol,
            "recommendation": "BUY" if buys else "SELL",
            "position_size": 5 if number else 8,
            "rule": "strong uptrend" if buys else "reversal",
            "explanation": "It is the turn.",
        }
        self.executioner.comes_by("model", after=True)
        return Say(text=json.dumps(answer))


class Killing:
    """A desk, its broker and its model in a folder; `work` is what is done to them."""

    def __init__(self, folder: Path, seed: int, *, at_requests: bool = False) -> None:
        """Kill at requests alone where no moment may depend on the machine's speed."""
        self.folder, self.draw, self.report = folder, Random(seed), Report()
        self.at_requests = at_requests
        self.executioner = Executioner()
        (folder / "preset.toml").write_text(PRESET)
        asyncio.run(write_folder(DemoMarket(7, calendars(), LAST), folder / "data"))

    @contextmanager
    def services(self) -> Iterator[None]:
        """Broker and model at work."""
        sandbox = build_sandbox(DataSpec(str(self.folder / "data")), SandboxSettings(start=START))
        carried_out = sandbox.answer

        def answer(request: Request) -> Answer:
            if request.path in ("/v2/clock", "/v2/calendar") or request.path.startswith("/sandbox"):
                return carried_out(request)
            kinds = ("any", "order") if (request.method, request.path) == ("POST", "/v2/orders") else ("any",)
            self.executioner.comes_by(*kinds, after=False)
            given = carried_out(request)
            self.executioner.comes_by(*kinds, after=True)
            return given

        sandbox.answer = answer  # type: ignore[method-assign]
        model = Trader(self.executioner)
        with fake_llm_server(model), sandbox:
            self.sandbox, self.model = sandbox, model
            config = CONFIG.format(
                symbols=json.dumps(SYMBOLS),
                preset=self.folder / "preset.toml",
                folder=self.folder / "data",
                url=model.openai_url,
            )
            (self.folder / "config.toml").write_text(config)
            yield

    def work(self, sessions: int, kills: int) -> Report:
        """So many sessions with at least so many kills, spread over them; then everything is looked at."""
        begun, report = perf_counter(), self.report
        with self.services():
            for session in range(sessions):
                if session:
                    self.sandbox.advance("close")
                    self.sandbox.advance("5m")
                self._session(-(-kills * (session + 1) // sessions))
                report.sessions += 1
            self._look()
        report.seconds = perf_counter() - begun
        return report

    def _session(self, kills: int) -> None:
        """One session: killed until there were so many kills in all, then let live until it is done."""
        self._breaks()
        before, attempts, dies = self.report.kills.total(), 0, True
        while self.run(Blow.drawn(self.draw, at_requests=self.at_requests) if dies else None) != 0:
            attempts += 1
            if attempts > MOST_RUNS:
                self.report.faults.append(f"not done after {attempts} runs")
                break
            dies = self.report.kills.total() < kills
            if not dies:
                self.sandbox.clear_faults()
        self.sandbox.clear_faults()
        # An answer whose process is killed before it is kept has to be given again; no other is.
        most = 1 + self.report.kills.total() - before
        often = [key for key, count in self.model.asked.items() if count > most]
        if often:
            self.report.faults.append(f"asked more often than {most} times: {often}")
        asked, posts = self.model.asked.total(), self.sandbox.state()["posts"]
        if self.run(None) != 0 or (self.model.asked.total(), self.sandbox.state()["posts"]) != (
            asked,
            posts,
        ):
            self.report.faults.append("a second run of a finished session did something")
        self.model.asked.clear()
        self.report.asked += asked

    def run(self, blow: Blow | None) -> int:
        """One process; its exit code, or minus the signal that ended it."""
        command = [sys.executable, "-c", "from tui.cli import main; main()"]
        process = subprocess.Popen(
            [*command, "--config", str(self.folder / "config.toml"), "--daily"],
            env=self.environment(),
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self.executioner.watches(process, blow)
        said = b""
        try:
            _, said = process.communicate(timeout=600 if blow is None else blow.start)
        except subprocess.TimeoutExpired:
            self.executioner.strikes_now()
            process.communicate()
        fell = self.executioner.fell
        self.executioner.watches(None, None)
        if process.returncode == -signal.SIGKILL:
            self.report.kills[fell] += 1
        else:
            self.report.runs[process.returncode] += 1
            if process.returncode not in (0, 74, 75):
                self.report.faults.append(f"exit code {process.returncode}: {said.decode()[-300:]}")
        return process.returncode

    def environment(self) -> dict[str, str]:
        """What a process needs to find the services and a home."""
        ours = {"PYTHONPATH": str(REPO), "PAPERDESK_HOME": str(self.folder / "home")}
        return {**os.environ, **self.sandbox.environment, **ours}

    def _breaks(self) -> None:
        """A few faults for this session."""
        for kind, rule in self.draw.sample(FAULTS, 3):
            path = "/v2/orders*" if rule["method"] == "POST" else "/v2/*"
            seed = self.draw.randrange(10**6)
            self.sandbox.fault(kind, **{"path": path, "probability": 0.4, "seed": seed, "count": 3} | rule)
        if self.draw.random() < 0.5:
            kind, rule = self.draw.choice(OF_ORDERS)
            self.sandbox.fault(kind, **{"skip": self.draw.randrange(4)} | rule)

    def _look(self) -> None:
        """What the books of both sides say in the end."""
        report, state = self.report, self.sandbox.state()
        with mock.patch.dict(os.environ, {"PAPERDESK_HOME": str(self.folder / "home")}):
            journal = places.desk_journal("paper")
        with JournalReader(journal) as reader:
            orders = [entry.order for entry in reader.orders()]
            sent, decisions = reader.orders_sent(), reader.decisions()
            answers = [reader.answers(decision.key) for decision in decisions]
            moves = {order.id: reader.order_moves(order.id) for order in orders}
            runs = reader.runs(RunKind.DAILY)
        there = Counter(order["client_order_id"] for order in state["orders"])
        report.intents, report.sent, report.there = len(orders), len(sent), there.total()
        report.posts = sum(state["posts"].values())
        report.answers = sum(map(len, answers))
        wrong = report.faults
        refused = {o.id for o in orders if o.state is OrderState.REJECTED and o.id not in there}
        report.refused = len(refused)
        if set(there) != set(sent) - refused or max(there.values()) > 1:
            wrong.append(f"handed over and at the broker differ: {sorted(set(there) ^ (set(sent) - refused))}")
        for order in orders:
            if order.id not in sent:
                wrong.append(f"{order.id} was never handed over ({order.state}: {moves[order.id][-1].detail})")
            elif order.session < max(o.session for o in orders) and order.state in (
                OrderState.INTENDED,
                OrderState.SUBMITTING,
                OrderState.UNKNOWN,
            ):
                wrong.append(f"{order.id} is still {order.state}")
        ours = snapshot(journal).portfolio()
        held = {symbol: position.quantity for symbol, position in ours.positions.items()}
        if ours.cash != Decimal(state["cash"]):
            wrong.append(f"cash: {ours.cash} in the journal and {state['cash']} at the broker")
        if held != {symbol: Decimal(quantity) for symbol, quantity in state["positions"].items()}:
            wrong.append(f"positions: {held} in the journal and {state['positions']} at the broker")
        wrong += quick_check(journal)
        if [run.outcome for run in runs] != ["done"] * report.sessions:
            wrong.append(f"runs: {[run.outcome for run in runs]}")
        if len(decisions) != report.sessions * len(SYMBOLS):
            wrong.append(f"{len(decisions)} decisions")
        if any(len(found) != 1 for found in answers):
            wrong.append(f"answers per decision: {Counter(map(len, answers))}")
        counted = [run.model.calls if run.model is not None else 0 for run in runs]
        if counted != [len(SYMBOLS)] * report.sessions:
            wrong.append(f"model calls by run: {counted}")


def main(arguments: list[str]) -> int:
    """40 sessions, 300 kills and some more, since not every blow falls; the seed is printed, and may be given."""
    seed = int(arguments[0]) if arguments else int.from_bytes(os.urandom(3), "big")
    print(f"\nKilled daily runs (seed {seed})")
    with tempfile.TemporaryDirectory() as folder, suppress(KeyboardInterrupt):
        report = Killing(Path(folder), seed).work(sessions=40, kills=360)
        print("\n".join(f"  {line}" for line in report.lines()))
        return 1 if report.faults else 0
    return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
