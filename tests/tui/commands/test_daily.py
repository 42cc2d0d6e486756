"""The daily run from the command line: once per session, by one process at a time, and never half."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app.desk.context import desk_context
from engine.app.desk.demo_history import by_desk_time
from engine.app.records.desk_journal import DeskJournal, desk_lock
from engine.domain.order import OrderState, Portfolio
from engine.journal.integrity import quick_check
from engine.journal.reader import JournalReader
from engine.settings.config import Config, load_config
from tests.tui.commands.conftest import FEW_AGENTS, SESSIONS, Run, contents
from tui.commands.due import due_session
from tui.settings.invocation import Invocation

REPO = Path(__file__).parents[3]
COMMAND = (sys.executable, "-c", "from tui.cli import main; main()")


def process(home: Path, *arguments: str) -> subprocess.Popen[str]:
    environ = {**os.environ, "PAPERDESK_HOME": str(home), "PYTHONPATH": str(REPO)}
    return subprocess.Popen(
        [*COMMAND, *arguments], env=environ, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_first_run_decides_and_a_second_has_nothing_to_do(run: Run, fresh: Path) -> None:
    first = run("--daily", "--session", "2025-03-11", "--json")
    assert (first.code, first.err) == (0, "")
    document = first.json
    assert {
        "schema": 1,
        "desk": "demo",
        "run": "daily-demo-20250311",
        "session": "2025-03-11",
        "outcome": "done",
        "fills": [],
        "cash_flows": [],
        "skipped": [],
        "value": "100000.00",
        "cash": "100000.00",
        "positions": {},
    }.items() <= document.items()
    assert [row["symbol"] for row in document["decisions"]] == ["ORVL", "BXWD", "HLXM", "WRNN-USD"]
    assert document["model"]["spec"] == "offline" and document["model"]["calls"] > 0
    before = contents(fresh)
    again = run("--daily", "--session", "2025-03-11", "--json")
    assert again.code == 0
    assert again.json == {**document, "outcome": "nothing to do"}
    text = run("--daily", "--session", "2025-03-11").out
    assert text.startswith("Nothing to do: the desk demo has decided for 2025-03-11 already")
    assert contents(fresh) == before


def test_the_summary_says_who_what_and_that_it_is_paper(run: Run, fresh: Path) -> None:
    said = run("--daily", "--session", "2025-03-11").out
    assert "Desk demo, session 2025-03-11   paper money" in said
    assert "rules, not a language model (preset desk)" in said
    for symbol in ("ORVL", "BXWD", "HLXM", "WRNN-USD"):
        assert symbol in said
    assert "Value       100,000.00, of it cash 100,000.00" in said
    assert max(len(line) for line in said.splitlines()) <= 100


@pytest.mark.parametrize(
    ("symbols", "as_of"), [("ORVL,HLXM", "2025-03-11T20:00:00+00:00"), ("ORVL,WRNN-USD", "2025-03-12T00:00:00+00:00")]
)
def test_a_report_tells_the_moment_of_its_positions_and_cash(
    run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch, symbols: str, as_of: str
) -> None:
    monkeypatch.setenv("PAPERDESK_DESK__SYMBOLS", symbols)
    said = run("--daily", "--session", "2025-03-11").out
    document = run("--daily", "--session", "2025-03-11", "--json").json
    assert (document["as_of"], document["exchange_close"]) == (as_of, "2025-03-11T20:00:00+00:00")
    kept = run("report", "--session", "2025-03-11").out
    for text in (" ".join(text.split()) for text in (said, kept)):
        assert "As of" in text and f"{as_of[:10]} {as_of[11:16]} UTC, the close of 2025-03-11" in text
        assert ("WRNN-USD among shares moves it from 20:00 UTC" in text) is ("WRNN-USD" in symbols)


def test_many_skipped_sessions_are_told_by_the_first_and_the_last(run: Run, fresh: Path) -> None:
    assert run("--daily", "--session", "2025-03-11").code == 0
    said = run("--daily", "--session", "2025-06-12").out
    assert "Skipped     2025-03-12 to 2025-06-11, 64 sessions" in said


def test_skipped_sessions_and_what_happened_since_are_told(run: Run, desk: Path) -> None:
    document = run("--daily", "--session", "2025-03-14", "--json").json
    assert document["outcome"] == "nothing to do"
    assert document["skipped"] == ["2025-03-13"]
    status = run("status", "--json").json
    assert (document["value"], document["positions"]) == (status["value"], status["positions"])
    orders = run("orders", "--json").json["orders"]
    earlier = [fill for order in orders for fill in order["fills"] if "2025-03-13" <= fill["session"] <= "2025-03-14"]
    assert document["fills"] == earlier


@pytest.mark.parametrize(
    ("session", "said"),
    [
        ("2999-01-04", "is not completed; the last completed session is"),
        ("2025-03-15", "XNYS was closed that day"),
        ("2025-13-01", "not a date"),
        ("2025-03-13", "the books of demo are closed through 2025-03-14"),
    ],
)
def test_a_day_that_cannot_be_decided_is_a_usage_error(run: Run, desk: Path, session: str, said: str) -> None:
    journal = desk / "data" / "desks" / "demo.db"
    before = _lived(journal)
    ended = run("--daily", "--session", session)
    assert ended.code == 2
    assert said in ended.err and ended.err.count("\n") == 1
    assert _lived(journal) == before


def test_stale_data_is_said_with_the_session_it_lacks(run: Run, fresh: Path, real_data: Path) -> None:
    (fresh / "config.toml").write_text(f'[desk]\nsymbols = ["AAPL"]\n[data]\nfolder = "{real_data}"\n')
    ended = run("--daily")
    assert ended.code == 65
    assert "AAPL: its bars end on" in ended.err and ended.err.count("\n") == 1


def test_a_broken_configuration_is_no_nothing_to_do(run: Run, desk: Path) -> None:
    (desk / "config.toml").write_text("[desk]\ncash = -1\n")
    assert run("--daily", "--session", "2025-03-14").code == 78


def test_without_the_kept_sessions_it_takes_longer_and_is_the_same(run: Run, desk: Path) -> None:
    quick = run("--daily", "--session", "2025-03-14", "--json").json
    (desk / "cache" / "sessions-XNYS.json").unlink()
    assert run("--daily", "--session", "2025-03-14", "--json").json == quick
    assert quick["outcome"] == "nothing to do"


def test_what_is_due_is_what_the_wiring_runs(fresh: Path) -> None:
    for text in ("", '[desk]\nsymbols = ["AAPL"]\n', '[desk]\nsymbols = ["BTC-USD"]\n'):
        (fresh / "config.toml").write_text(text)
        config = load_config(fresh / "config.toml", environ={}).config
        given = services(config)
        with DeskJournal(config.desk.name) as journal:
            assert due_session(Invocation().services()) == desk_context(by_desk_time(given), journal).session
    with DeskJournal("demo") as journal:
        assert due_session(None) == desk_context(by_desk_time(services(Config())), journal).session


def test_a_finished_run_is_found_without_heavy_libraries(desk: Path) -> None:
    loaded = (
        "import sys\nfrom tui.cli import main\ntry:\n    main(['--daily', '--session', '2025-03-14'])\n"
        "except SystemExit as ended:\n    print(ended.code, [m for m in sys.modules if m in "
        "('pandas', 'pydantic', 'openai', 'matplotlib', 'sqlite_utils', 'connectors.wiring')])\n"
    )
    environ = {**os.environ, "PAPERDESK_HOME": str(desk), "PYTHONPATH": str(REPO)}
    done = subprocess.run(
        [sys.executable, "-c", loaded], env=environ, capture_output=True, text=True, check=True, timeout=600
    )
    assert done.stdout.splitlines()[-1] == "0 []"


def test_a_held_lock_ends_the_run_while_it_is_held(run: Run, fresh: Path) -> None:
    with desk_lock("demo"):
        ended = run("--daily", "--session", "2025-03-11")
    assert ended.code == 75 and "another run of the desk demo is in progress" in ended.err
    assert run("--daily", "--session", "2025-03-11").code == 0


@pytest.mark.slow
def test_of_two_runs_at_once_one_works(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in FEW_AGENTS.items():
        monkeypatch.setenv(name, value)
    # Started together they may still not overlap; then the later one has nothing to do. Both working is what never is.
    both = [process(fresh, "--daily", "--session", "2025-03-11", "--json") for _ in range(2)]
    printed = [one.communicate(timeout=600)[0] for one in both]
    assert sorted(one.returncode for one in both) in ([0, 75], [0, 0])
    outcomes = [json.loads(out).get("outcome") for out in printed if out]
    assert outcomes.count("done") == 1
    with JournalReader(fresh / "data" / "desks" / "demo.db") as reader:
        assert len(reader.decisions()) == 4
    assert quick_check(fresh / "data" / "desks" / "demo.db") == ()


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, 3])
def test_killed_at_any_moment_it_goes_on_and_does_nothing_twice(
    run: Run, fresh: Path, desk_home: Path, monkeypatch: pytest.MonkeyPatch, kills: int
) -> None:
    for name, value in FEW_AGENTS.items():
        monkeypatch.setenv(name, value)
    journal = fresh / "data" / "desks" / "demo.db"
    draw = random.Random(20250311)
    assert run("--daily", "--session", str(SESSIONS[0])).code == 0
    a_run = _written(journal)
    for session in SESSIONS[1:]:
        killed = 0
        for _ in range(kills):
            before = _written(journal)
            one = process(fresh, "--daily", "--session", str(session))
            # Rows tell how far it is: somewhere between its first and its last.
            target = before + draw.randrange(1, a_run)
            while one.poll() is None and _written(journal) < target:
                time.sleep(0.002)
            one.send_signal(signal.SIGKILL)
            one.communicate(timeout=600)
            killed += one.returncode == -signal.SIGKILL
        assert killed
        assert run("--daily", "--session", str(session)).code == 0
    assert quick_check(journal) == ()
    assert _lived(journal) == _lived(desk_home / "data" / "desks" / "demo.db")
    _books_add_up(journal)


@pytest.mark.slow
def test_killed_with_a_memory_it_remembers_what_it_would_have_remembered(
    fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERDESK_DESK__PRESET", "desk")
    assert _finish(fresh, SESSIONS[0]) == 0
    homes = {name: tmp_path / name for name in ("undisturbed", *(f"killed-{n}" for n in range(8)))}
    for home in homes.values():
        shutil.copytree(fresh, home)
    undisturbed = homes.pop("undisturbed")
    assert _finish(undisturbed, SESSIONS[1]) == 0
    whole = undisturbed / "data" / "desks" / "demo.db"
    lived, remembered = _lived(whole), _remembered(undisturbed)
    draw = random.Random(20250312)
    killed = 0
    for home in homes.values():
        journal = home / "data" / "desks" / "demo.db"
        before = _written(journal)
        one = process(home, "--daily", "--session", str(SESSIONS[1]))
        target = draw.randrange(before + 1, _written(whole))
        while one.poll() is None and _written(journal) < target:
            time.sleep(0.001)
        one.send_signal(signal.SIGKILL)
        one.communicate(timeout=600)
        killed += one.returncode == -signal.SIGKILL
        assert _finish(home, SESSIONS[1]) == 0
        assert _lived(journal) == lived
        assert _remembered(home) == remembered
    assert killed >= 3


def _remembered(home: Path) -> list[dict[str, Any]]:
    """Every memory with its changes; one that stood twice would be there twice."""
    file = home / "memories.jsonl"
    one = process(home, "memory", "export", str(file))
    assert (one.communicate(timeout=600)[1], one.returncode) == ("", 0)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert rows
    return sorted(rows, key=lambda row: str(row["id"]))


def _written(journal: Path) -> int:
    """How many rows there are of all that a run writes as it goes."""
    with JournalReader(journal) as reader:
        return sum(reader.counts().values())


def _finish(home: Path, session: date) -> int:
    one = process(home, "--daily", "--session", str(session))
    one.communicate(timeout=600)
    return int(one.returncode)


def _lived(journal: Path) -> dict[str, Sequence[object]]:
    """All that a desk decided, ordered, traded and came to, without the times at which it was written."""
    with JournalReader(journal) as reader:
        return {
            "runs": [(run.id, run.outcome) for run in reader.runs()],
            "decisions": reader.decisions(),
            "orders": [entry.order for entry in reader.orders()],
            "moves": [[move.state for move in reader.order_moves(o.order.id)] for o in reader.orders()],
            "fills": reader.fills(),
            "cash_flows": reader.cash_flows(),
            "equity": reader.equity(),
            "outcomes": reader.outcomes(),
        }


def _books_add_up(journal: Path) -> None:
    """Every fill of every order, applied once to the money that the desk began with, is what the books say."""
    with JournalReader(journal) as reader:
        points, fills, orders = reader.equity(), reader.fills(), reader.orders()
        portfolio = Portfolio(points[0].portfolio.cash)
        for fill in fills:
            portfolio = portfolio.filled(fill)
        assert portfolio.cash + sum(flow.amount for flow in reader.cash_flows()) == points[-1].portfolio.cash
    assert {s: p.quantity for s, p in portfolio.positions.items()} == {
        s: p.quantity for s, p in points[-1].portfolio.positions.items()
    }
    assert len({(o.order.session, o.order.symbol, o.order.side) for o in orders}) == len(orders) > 0
    assert len({fill.order_id for fill in fills}) == len(fills)
    assert all(o.order.state in (OrderState.FILLED, OrderState.ACKNOWLEDGED) for o in orders)
