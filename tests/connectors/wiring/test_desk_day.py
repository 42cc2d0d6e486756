"""A desk's daily run as it is wired: from the configuration to its journal, under a lock, over demo and own data."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app.desk.context import Finished
from engine.app.desk.run import run_daily
from engine.app.open_desk import OpenDesk
from engine.app.records.desk_journal import desk_lock
from engine.clock import BacktestClock
from engine.domain.model_call import ModelRequest, ModelResult
from engine.domain.run import RunKind
from engine.errors import ConfigError, MissingData, StaleData, TryAgainLater, UsageError
from engine.journal.reader import JournalReader
from engine.journal.store import RowStore
from engine.messages.events import Event, Noticed, RunFinished
from engine.ports import LanguageModel
from engine.session.context import DeskRunResult
from engine.settings import places
from engine.settings.config import Config
from tests.connectors.wiring.clocks import evening
from tests.connectors.wiring.few_symbols import FewSymbols
from tests.data_folders import write_folder
from tests.engine.desks import trade

SYMBOLS = ["ORVL", "TMBK"]
FRIDAY, MONDAY, TUESDAY = date(2024, 3, 1), date(2024, 3, 4), date(2024, 3, 5)


@pytest.fixture(autouse=True)
def by_this_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo market's data here, and none of the demo desk's own time."""
    for module in ("desk.run", "desk.demo_history", "open_desk"):
        monkeypatch.setattr(f"engine.app.{module}.is_demo", lambda services: False)


def desk(**changes: Any) -> Config:
    plain: dict[str, Any] = {"desk": {"name": "mine", "symbols": SYMBOLS, "preset": "finvision"}}
    for section, values in changes.items():
        plain[section] = plain.get(section, {}) | values
    return Config.model_validate(plain)


def run(config: Config, wall: BacktestClock, asked: date | None = None, **more: Any) -> DeskRunResult | Finished:
    return asyncio.run(run_daily(services(config, wall), asked, **more))


def books() -> dict[str, Any]:
    with JournalReader(places.desk_journal("mine")) as reader:
        return {
            "runs": [(r.session, r.outcome) for r in reader.runs(RunKind.DAILY)],
            "decisions": [(d.key.session, d.key.symbol, d.action) for d in reader.decisions()],
            "orders": [(o.order.id, o.order.state) for o in reader.orders()],
            "fills": reader.fills(),
            "equity": [(p.session, p.value, p.portfolio) for p in reader.equity()],
            "outcomes": reader.outcomes(),
        }


def test_a_day_is_done_once_and_the_next_day_settles_it() -> None:
    config = desk()
    with desk_lock("mine"), pytest.raises(TryAgainLater):
        run(config, evening(FRIDAY))

    first = run(config, evening(FRIDAY))
    assert isinstance(first, DeskRunResult)
    assert first.session == FRIDAY
    assert len(first.decisions) == 2
    with JournalReader(places.desk_journal("mine")) as reader:
        for decision in first.decisions:
            agents = [entry.agent for entry in reader.answers(decision.key)]
            assert agents[-1] == "decision" and "chart" in agents
        assert len(reader.calls(run=first.run)) == first.model.calls
        assert [type(e).__name__ for _, e in reader.events_after()][-1] == "RunFinished"
    before = books()
    for wall in (evening(FRIDAY, 22), evening(FRIDAY + timedelta(2)), evening(MONDAY, 20, 59)):
        assert run(config, wall) == Finished(first.run, FRIDAY)
    assert books() == before

    second = run(config, evening(MONDAY))
    assert isinstance(second, DeskRunResult)
    after = books()
    assert after["runs"] == [(FRIDAY, "done"), (MONDAY, "done")]
    assert [s for s, _, _ in after["equity"]] == [FRIDAY, MONDAY]
    assert {o.decision_session for o in after["outcomes"]} == {FRIDAY}
    for session, value, portfolio in after["equity"]:
        with JournalReader(places.desk_journal("mine")) as reader:
            (point,) = [p for p in reader.equity() if p.session == session]
        assert portfolio.value(point.prices) == value
    with pytest.raises(UsageError, match="can no longer be decided"):
        run(config, evening(TUESDAY), date(2024, 2, 29))
    assert books() == after


def test_the_last_completed_session_is_decided_and_a_later_one_refused() -> None:
    config = desk()
    with pytest.raises(UsageError, match="last completed session is 2024-03-01"):
        run(config, evening(MONDAY, 12), MONDAY)
    with pytest.raises(UsageError, match="closed that day"):
        run(config, evening(MONDAY, 12), FRIDAY - timedelta(5))
    assert not places.desk_journal("mine").exists()

    earlier = run(config, evening(MONDAY, 12))
    assert isinstance(earlier, DeskRunResult)
    assert earlier.session == FRIDAY


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("data") / "demo"
    asyncio.run(write_folder(FewSymbols(SYMBOLS, date(2024, 3, 20)), target))
    return target


@pytest.fixture
def folder(tmp_path: Path, written: Path) -> Callable[[date], Path]:
    """Writes the demo market as a data folder of the desk's symbols whose bars end on a day."""

    def write(through: date) -> Path:
        target = tmp_path / "data"
        (target / "prices").mkdir(parents=True)
        for part in ("actions", "news", "filings"):
            shutil.copytree(written / part, target / part)
        for symbol in SYMBOLS:
            header, *rows = (written / "prices" / f"{symbol}.csv").read_text().splitlines()
            kept = [header, *(row for row in rows if row[:10] <= f"{through}")]
            (target / "prices" / f"{symbol}.csv").write_text("\n".join(kept) + "\n")
        return target

    return write


def test_own_data_gives_the_same_day_as_the_demo_market_that_it_was_written_from(
    folder: Callable[[date], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    demo = run(desk(), evening(FRIDAY))
    monkeypatch.setenv("PAPERDESK_HOME", str(tmp_path / "another"))
    # The folder knows more than the day: nothing of it is seen.
    own = run(desk(data={"folder": str(folder(date(2024, 3, 20)))}), evening(FRIDAY))

    assert isinstance(demo, DeskRunResult)
    assert isinstance(own, DeskRunResult)
    assert own.decisions == demo.decisions
    assert own.orders == demo.orders


def test_stale_bars_are_said_and_nothing_is_begun(folder: Callable[[date], Path]) -> None:
    config = desk(data={"folder": str(folder(FRIDAY))})
    with pytest.raises(StaleData, match="end on 2024-03-01, and 2024-03-04 is to be decided"):
        run(config, evening(MONDAY))
    with JournalReader(places.desk_journal("mine")) as reader:
        assert reader.runs() == ()
    assert isinstance(run(config, evening(FRIDAY)), DeskRunResult)


def frozen_by(config: Config) -> str:
    """Why a run freezes TMBK, of which it decides nothing, while it decides the others."""
    done = run(config, evening(FRIDAY))
    assert isinstance(done, DeskRunResult)
    (frozen,) = done.frozen
    assert frozen.symbol == "TMBK" and not frozen.halted
    assert {made.key.symbol for made in done.decisions} == set(config.desk.symbols) - {"TMBK"}
    return frozen.why


def test_a_symbol_whose_bars_begin_later_is_frozen(folder: Callable[[date], Path]) -> None:
    data = folder(MONDAY)
    prices = data / "prices" / "TMBK.csv"
    header, *rows = prices.read_text().splitlines()
    prices.write_text("\n".join([header, *(row for row in rows if row >= "2024-03-04")]) + "\n")

    assert "TMBK: no bar from 2024-03-01" in frozen_by(desk(data={"folder": str(data)}))


def test_a_symbol_with_a_gap_in_what_the_decision_needs_is_frozen(folder: Callable[[date], Path]) -> None:
    data = folder(FRIDAY)
    prices = data / "prices" / "TMBK.csv"
    prices.write_text("".join(r for r in prices.read_text().splitlines(True) if not r.startswith("2024-02-14")))

    assert "TMBK: no bar for session 2024-02-14" in frozen_by(desk(data={"folder": str(data)}))


class Failing:
    """A model that is wrongly configured for one symbol, and the model that it wraps for others."""

    def __init__(self, inner: LanguageModel) -> None:
        self.spec, self.label, self.sees, self._inner = inner.spec, inner.label, inner.sees, inner

    async def answer(self, request: ModelRequest, on_delta: Any = None) -> ModelResult:
        if request.symbol == "TMBK":
            raise ConfigError("m takes no temperature")
        return await self._inner.answer(request, on_delta)


def test_a_run_that_fails_says_so_and_goes_on_when_it_can() -> None:
    events: list[Event] = []
    with pytest.raises(ConfigError):
        run(desk(), evening(FRIDAY), publish=events.append, through=Failing)

    assert books()["runs"] == [(FRIDAY, "failed")]
    assert [e.outcome for e in events if isinstance(e, RunFinished)] == ["failed"]
    assert books()["decisions"] == []
    again = run(desk(), evening(FRIDAY))
    assert isinstance(again, DeskRunResult)
    assert books()["runs"] == [(FRIDAY, "done")]
    assert len(books()["decisions"]) == 2


class Killed(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("commit", [1, 2, 3])
def test_a_first_run_that_was_killed_before_its_first_row_goes_on(commit: int) -> None:
    transaction, count = RowStore._transaction, [0]

    @contextmanager
    def dying(self: RowStore) -> Any:
        count[0] += 1
        if count[0] >= commit:
            raise Killed
        with transaction(self):
            yield

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RowStore, "_transaction", dying)
        with pytest.raises(Killed):
            run(desk(), evening(FRIDAY))
    assert places.desk_journal("mine").exists()

    assert isinstance(run(desk(), evening(FRIDAY)), DeskRunResult)


def test_an_empty_journal_file_is_left_for_a_person_to_see() -> None:
    path = places.desk_journal("mine")
    path.parent.mkdir(parents=True)
    path.touch()

    with pytest.raises(MissingData, match="is empty: delete it and what begins with its name, or restore a backup"):
        run(desk(), evening(FRIDAY))
    assert path.stat().st_size == 0


def test_what_is_held_of_a_symbol_that_was_taken_off_the_list_stays_in_the_books(
    folder: Callable[[date], Path],
) -> None:
    class Buying:
        """Buys what it is asked about."""

        spec = label = "buying"
        sees = True

        async def answer(self, request: ModelRequest, on_delta: Any = None) -> ModelResult:
            return ModelResult(model="buying", answer=trade(request, "BUY", 5, "strong uptrend"))

    data = {"folder": str(folder(TUESDAY))}
    run(desk(data=data), evening(FRIDAY), through=lambda model: Buying())
    # TMBK stops trading; its bars end, and it is taken off the list.
    prices = Path(data["folder"]) / "prices" / "TMBK.csv"
    prices.write_text("".join(r for r in prices.read_text().splitlines(True) if not r.startswith("2024-03-05")))
    short = desk(data=data, desk={"symbols": ["ORVL"]})
    for day in (MONDAY, TUESDAY):
        result = run(short, evening(day))
        assert isinstance(result, DeskRunResult)
        assert [d.key.symbol for d in result.decisions] == ["ORVL"]
        assert result.books.portfolio.quantity("TMBK") > 0
    with JournalReader(places.desk_journal("mine")) as reader:
        earned = [(o.symbol, o.decision_session) for o in reader.outcomes()]
    assert earned == [("ORVL", FRIDAY), ("TMBK", FRIDAY), ("ORVL", MONDAY)]


def test_a_desk_with_a_coin_waits_for_the_coins_day() -> None:
    config = desk(desk={"symbols": ["ORVL", "WRNN-USD"]})

    friday = run(config, evening(FRIDAY))
    assert isinstance(friday, DeskRunResult)
    assert friday.session == date(2024, 2, 29)
    saturday = run(config, evening(FRIDAY + timedelta(1), 0, 1))
    assert isinstance(saturday, DeskRunResult)
    assert saturday.session == FRIDAY
    assert not [d for d in saturday.decisions if d.abstained]


async def test_an_open_desk_runs_a_cycle_for_an_app_and_leaves_a_finished_one_alone() -> None:
    app = OpenDesk(services(desk()))
    app.clock = evening(FRIDAY)
    events: list[Event] = []

    async def gate() -> None:
        pass

    await app.run_cycle(events.append, gate)
    assert [e.outcome for e in events if isinstance(e, RunFinished)] == ["done"]
    events.clear()
    await app.run_cycle(events.append, gate)
    (notice,) = events
    assert isinstance(notice, Noticed)
    assert notice.level == "info" and "2024-03-01" in notice.text
    assert app.symbols == tuple(SYMBOLS)
