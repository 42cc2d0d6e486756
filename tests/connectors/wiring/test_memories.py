"""A desk's memory on disk and a backtest's beside its journal: what days in a row leave there, and what refuses."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app import memory as app_memory
from engine.app.desk.run import run_daily
from engine.app.memory import memory_errors, memory_of_desk, memory_of_run
from engine.app.research.backtest import run_backtest
from engine.domain.run import DataSpec, RunSpec
from engine.errors import ConfigError, DataError, MissingData, PaperdeskError, TryAgainLater
from engine.journal.reader import JournalReader
from engine.journal.results import trail
from engine.journal.store import RowStore
from engine.messages.events import Event, Noticed, SessionSettled
from engine.session.context import DeskRunResult
from engine.settings import places
from engine.settings.config import Config
from memory import errors
from memory.embedders import HashEmbedder
from memory.in_memory_store import InMemoryStore
from memory.lancedb_store import LanceStore
from memory.recall import LayeredMemory
from memory.record import Cause, MemoryRecord, Touch
from tests.connectors.wiring.clocks import NOON, evening

SYMBOLS = ("TMBK", "BXWD")
# Days on which the rules buy, so that what was cited is rewarded.
DAYS = (date(2024, 2, 12), date(2024, 2, 13), date(2024, 2, 14), date(2024, 2, 15))


def desk(**memory: Any) -> Config:
    plain = {"desk": {"name": "mine", "symbols": list(SYMBOLS), "preset": "desk"}, "memory": memory}
    return Config.model_validate(plain)


def run(config: Config, day: date, publish: Callable[[Event], None] = lambda event: None) -> DeskRunResult:
    result = asyncio.run(run_daily(services(config, evening(day)), day, publish))
    assert isinstance(result, DeskRunResult)
    return result


def rows() -> tuple[dict[str, MemoryRecord], dict[str, Touch]]:
    """All that the desk's memory holds, by id; a row that appears twice is found out."""
    with memory_of_desk(services(desk())).opened() as memory:
        records = memory.records()
        touches = [t for record in records for t in memory.lifeline(record.id) if t.cause is not Cause.BORN]
    assert len({record.id for record in records}) == len(records)
    assert len({touch.id for touch in touches}) == len(touches)
    return {record.id: record for record in records}, {touch.id: touch for touch in touches}


def lived() -> dict[str, Any]:
    """All that the desk decided, and what was recalled for it."""
    with JournalReader(places.desk_journal("mine")) as reader:
        decisions = reader.decisions()
        return {
            "runs": [(run.id, run.outcome) for run in reader.runs()],
            "decisions": decisions,
            "recalled": [reader.recalled(made.key) for made in decisions],
            "outcomes": reader.outcomes(),
        }


def test_what_a_day_brought_is_recalled_and_cited_on_the_next() -> None:
    run(desk(), DAYS[0])
    born, _ = rows()
    assert {record.kind for record in born.values()} >= {"10-K", "10-Q", "low-level-reflection"}
    second = run(desk(), DAYS[1])
    with JournalReader(places.desk_journal("mine")) as reader:
        for decision in second.decisions:
            recalled = trail(reader, decision.key).recalled
            assert recalled and {one.memory.id for one in recalled} <= set(born)
            assert {one.memory.id for one in recalled if one.cited} == set(decision.evidence)
            assert all(one.memory.text == born[one.memory.id].text for one in recalled)
            days = {one.memory.session for one in recalled}
            assert max(days) == DAYS[0] and min(days) < DAYS[0], "a filing is of its own day"
            ranks: dict[str, list[int]] = {}
            for one in recalled:
                ranks.setdefault(one.memory.layer, []).append(one.memory.rank)
            assert all(found == list(range(1, len(found) + 1)) for found in ranks.values())
    after, touches = rows()
    assert set(born) < set(after)
    cited = {touch.record_id for touch in touches.values() if touch.cause is Cause.CITED}
    assert cited == {name for decision in second.decisions for name in decision.evidence} != set()
    # The filings of a year are read once.
    run(desk(), DAYS[2])
    filings = [record for record in rows()[0].values() if record.kind in ("10-K", "10-Q", "8-K")]
    assert len({(record.symbol, record.source) for record in filings}) == len(filings) > 4


class Killed(BaseException):
    """The process is gone."""


@contextmanager
def killed_at(write: int) -> Iterator[list[str]]:
    """Ends the process at the n-th write; tells where the writes went, to the journal or to the memory."""
    transaction, append = RowStore._transaction, LanceStore._append
    went: list[str] = []

    def counted(where: str) -> None:
        if 0 < write <= len(went):
            raise Killed  # whoever writes after it, as the run is taken down: nothing of it arrives
        went.append(where)
        if len(went) == write:
            raise Killed

    @contextmanager
    def dying(self: RowStore) -> Any:
        counted("journal")
        with transaction(self):
            yield

    def dying_append(self: LanceStore, table: Any, made: Any, values: Any) -> bool:
        if values:
            counted("memory")
        return append(self, table, made, values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RowStore, "_transaction", dying)
        patch.setattr(LanceStore, "_append", dying_append)
        yield went


@pytest.mark.slow
@pytest.mark.parametrize("homes", [1, 3])
def test_killed_around_any_write_and_gone_on_with_it_is_the_undisturbed_desk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, homes: int
) -> None:
    moments: dict[date, list[int]] = {}
    for day in DAYS:
        with killed_at(0) as went:
            run(desk(), day)
        to_memory = [n for n, where in enumerate(went, 1) if where == "memory"]
        assert to_memory, "a day writes into memory"
        # At each write into memory, and, where there is time, at the one after it and now and then in between.
        after = {*(n + 1 for n in to_memory), *range(3, len(went), 25)} if homes > 1 else ()
        moments[day] = sorted({*to_memory, *after, len(went) - 2})
    undisturbed, expected = rows(), lived()
    assert {touch.cause for touch in undisturbed[1].values()} >= {Cause.CITED}

    ends: Counter[str] = Counter()
    for home in range(homes):
        monkeypatch.setenv("PAPERDESK_HOME", str(tmp_path / f"killed-{home}"))
        for day in DAYS:
            for moment in (*moments[day][home::homes], 0):
                try:
                    with killed_at(moment) as went:
                        asyncio.run(run_daily(services(desk(), evening(day)), day))
                except Killed:
                    ends[went[-1]] += 1
        records, touches = rows()
        assert records == undisturbed[0]
        assert touches == undisturbed[1]
        assert lived() == expected
    assert ends["memory"] > homes and ends["journal"] > 3 * homes, ends


def test_nothing_is_decided_beside_another_writer_with_another_embedder_or_over_a_cut_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run(desk(), DAYS[0])
    before, kept = rows(), memory_of_desk(services(desk()))
    with kept.opened(writing=True), kept.opened() as reading:
        assert reading.records()
        with pytest.raises(TryAgainLater):
            run(desk(), DAYS[1])
    with monkeypatch.context() as patch:
        patch.setattr(HashEmbedder, "id", "hash-385")
        with pytest.raises(ConfigError, match="hash-384"):
            run(desk(), DAYS[1])
    assert rows() == before
    (file, *_) = sorted((places.desk_memory("mine") / "records.lance" / "data").glob("*.lance"))
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=file.name):
        run(desk(), DAYS[1])
    assert [(r.session, r.outcome) for r in _runs()] == [(DAYS[0], "done")]
    file.write_bytes(whole)
    run(desk(), DAYS[1])


def _runs() -> Any:
    with JournalReader(places.desk_journal("mine")) as reader:
        return reader.runs()


def test_minilm_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    with pytest.raises(ConfigError, match=r"paperdesk\[minilm\]"):
        run(desk(embedder="minilm"), DAYS[0])
    assert not memory_of_desk(services(desk())).exists


def test_a_memory_that_cannot_be_tidied_is_noticed_and_the_day_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Event] = []

    def stuck(self: LanceStore, *args: Any) -> Any:
        raise errors.StoreError("memory at here: compaction of records left 9 pieces")

    monkeypatch.setattr(LanceStore, "needs_compaction", property(lambda self: True))
    monkeypatch.setattr(LanceStore, "optimize", stuck)
    run(desk(), DAYS[0], heard.append)
    assert [e.text for e in heard if isinstance(e, Noticed)] == ["memory at here: compaction of records left 9 pieces"]
    assert [r.outcome for r in _runs()] == ["done"]


@pytest.mark.parametrize(
    ("raised", "ours", "code"),
    [
        (errors.MemoryLocked, TryAgainLater, 75),
        (errors.EmbedderMismatch, ConfigError, 78),
        (errors.EmbedderUnavailable, ConfigError, 78),
        (errors.UnknownPreset, ConfigError, 78),
        (errors.StoreDamaged, DataError, 65),
        (errors.StoreFull, DataError, 65),
        (errors.StoreError, DataError, 65),
        (errors.InvalidRecord, DataError, 65),
        (errors.TimeOrder, DataError, 65),
        (errors.UnknownRecord, MissingData, 65),
    ],
)
def test_the_memorys_errors_end_a_command_as_ours(
    raised: type[Exception], ours: type[PaperdeskError], code: int
) -> None:
    with pytest.raises(ours, match="what, where, what to do") as ended, memory_errors():
        raise raised("what, where, what to do")
    assert ended.value.exit_code == code


SPEC = RunSpec(
    symbols=SYMBOLS,
    first=DAYS[1],
    last=DAYS[3],
    warm_up_from=date(2024, 2, 5),
    preset="desk",
    data=DataSpec(None, 7),
    model="offline",
)


def of_run(name: str) -> tuple[list[MemoryRecord], int]:
    """What a run remembered, and how many changes there were."""
    with JournalReader(places.run_journal(name)) as reader:
        kept = memory_of_run(services(Config()), reader.run(name))
    with kept.opened() as memory:
        return memory.records(), sum(len(memory.lifeline(record.id)) for record in memory.records())


def test_a_backtests_memory_is_kept_whole_and_lets_itself_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[LayeredMemory] = []
    honest = app_memory.InMemoryStore

    class Watched(honest):  # type: ignore[misc, valid-type]
        def __init__(self, dimension: int) -> None:
            super().__init__(dimension)
            made.append(self)

    monkeypatch.setattr(app_memory, "InMemoryStore", Watched)
    report = run_backtest(services(Config(), NOON), replace(SPEC, run="whole"))
    (store,) = made
    records, changes = of_run("whole")
    assert records == store.records()
    assert changes == len(store.records()) + len(store.touches())
    warm_up = report.result.warm_up
    assert warm_up is not None and any(record.hindsight for record in records)
    assert all(record.available_at > record.born_step for record in records if record.hindsight)
    assert not list(places.runs_dir().glob("*.part"))


@pytest.mark.slow
def test_a_backtest_that_is_stopped_or_fails_keeps_what_it_remembered() -> None:
    asked = iter([False] * 4 + [True] * 9)
    run_backtest(services(Config(), NOON), replace(SPEC, run="stopped"), stop=lambda: next(asked))
    stopped, _ = of_run("stopped")
    assert stopped

    def publish(event: Event) -> None:
        if isinstance(event, SessionSettled) and event.books.session == DAYS[1]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_backtest(services(Config(), NOON), replace(SPEC, run="cut"), publish)
    cut, _ = of_run("cut")
    assert len(cut) > len(stopped)
    assert {record.id for record in stopped} < {record.id for record in cut}


def test_a_memory_that_cannot_be_kept_does_not_cost_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: LanceStore, records: Any) -> None:
        raise errors.StoreFull("memory at here: no room to write")

    monkeypatch.setattr(LanceStore, "append_records", full)
    result = run_backtest(services(Config(), NOON), replace(SPEC, run="full")).result
    assert len(result.test.equity) == 3
    assert [note for note in result.notes if "could not be kept: memory at here: no room" in note]
    assert not places.run_memory("full").exists() and not list(places.runs_dir().glob("*.part"))


def test_a_copied_memory_knows_nothing_of_what_happens_to_the_other() -> None:
    embedder = HashEmbedder()
    one = LayeredMemory(InMemoryStore(embedder.dimension), embedder, "desk")
    from memory.record import Item

    (name,) = one.remember([Item(symbol="ORVL", kind="news", text="orders rose")], 1)
    other = one.copy_to(InMemoryStore(embedder.dimension))
    one.reinforce([name], 1, 2, "a decision")
    other.remember([Item(symbol="ORVL", kind="news", text="orders fell")], 2)
    assert (len(one.records()), len(other.records())) == (1, 2)
    assert (len(one.lifeline(name)), len(other.lifeline(name))) == (2, 1)
    with pytest.raises(errors.StoreError, match="empty place"):
        one.write_to(other._store)
