"""Every decision of a run, decided again from journal, data and the memory of that day, is the same decision."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app.desk.run import run_daily
from engine.app.redecision.redecision import AS_IT_WAS, Changes, Redecided, check_parity, redecide
from engine.app.research.backtest import run_backtest
from engine.app.research.market_data import load_run
from engine.domain.decision import Action, Decision
from engine.domain.model_call import FailureKind, ModelFailure, ModelRequest, ModelResult
from engine.domain.run import DataSpec, RunSpec
from engine.errors import CredentialsRefused, MissingData, UsageError
from engine.journal.entries import Trail
from engine.journal.reader import JournalReader
from engine.market.as_of import Market
from engine.ports import LanguageModel
from engine.services import Services
from engine.session.cost_meter import use_of
from engine.settings import places
from engine.settings.config import Config
from tests.connectors.wiring.clocks import evening

SYMBOLS = ("TMBK", "ORVL", "BXWD")
BACKTEST = RunSpec(
    symbols=SYMBOLS,
    first=date(2025, 2, 10),
    last=date(2025, 2, 18),
    warm_up_from=date(2025, 2, 3),
    preset="desk",
    data=DataSpec(None, 7),
    run="backtest-again",
)
# Days on which the rules buy, so that what was cited is rewarded; the third passes without a run.
DAYS = (date(2024, 2, 12), date(2024, 2, 13), date(2024, 2, 15), date(2024, 2, 16), date(2024, 2, 20))


def desk(preset: str = "desk", **data: Any) -> Config:
    plain = {"desk": {"name": "mine", "symbols": ["TMBK", "BXWD"], "preset": preset}, "data": data}
    return Config.model_validate(plain)


# One symbol on its own days; the long suite has more.
BRIEF = replace(BACKTEST, symbols=("TMBK",), first=DAYS[0], last=date(2024, 2, 15), warm_up_from=date(2024, 2, 8))


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Homes with a backtest, a brief one, or a desk of five days, each lived in once, and only where it is needed."""

    @cache
    def home(name: str) -> Path:
        made = tmp_path_factory.mktemp(name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(places.HOME, str(made))
            if name == "desk":
                for day in DAYS:
                    asyncio.run(run_daily(services(desk(), evening(day)), day))
            else:
                run_backtest(services(Config()), BACKTEST if name == "backtest" else BRIEF, baselines=())
        return made

    return home


@pytest.fixture
def backtested(homes: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(places.HOME, str(homes("backtest")))
    return places.run_journal(BACKTEST.run)


@pytest.fixture
def briefly(homes: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(places.HOME, str(homes("brief")))
    return places.run_journal(BRIEF.run)


@pytest.fixture
def lived(homes: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(places.HOME, str(homes("desk")))
    return places.desk_journal("mine")


def again(reader: JournalReader, made: Decision, config: Config, changes: Changes = AS_IT_WAS) -> Redecided:
    return redecide(services(config), reader, [made], changes)


def ordered(trail: Trail) -> list[tuple[Any, ...]]:
    orders = [entry.order for entry in trail.orders]
    return [(order.id, order.side, order.quantity, order.notional, order.reason) for order in orders]


def story(trail: Trail) -> dict[str, Any]:
    """All of a decision that has nothing to do with when it was written down."""
    return {
        "decision": trail.decision,
        "recalled": trail.recalled,
        "asked": [(a.agent, a.attempt, a.prompt_hash, a.answer, a.reason) for a in trail.answers],
        "orders": [
            (o.order.id, o.order.side, o.order.quantity, o.order.notional, o.order.reason) for o in trail.orders
        ],
    }


@pytest.fixture
def loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run's market is loaded for its first decision alone: every one would load the same."""
    markets: dict[RunSpec, Market] = {}

    async def load(given: Services, spec: RunSpec) -> Market:
        return markets[spec] if spec in markets else markets.setdefault(spec, await load_run(given, spec))

    monkeypatch.setattr("engine.app.redecision.decider.load_run", load)


EVERY = pytest.mark.parametrize("every", [4, 1], ids="each {}".format)
"""A quarter of the decisions in the usual suite, all of them in the long one."""


def assert_all_the_same(path: Path, config: Config, every: int = 1) -> Counter[str]:
    """Decides each so manieth decision of a journal again; returns how often each action and a memory was met."""
    met: Counter[str] = Counter()
    with JournalReader(path) as reader:
        for made in reader.decisions()[::every]:
            done = redecide(services(config), reader, [made])
            (one,) = done.comparisons
            assert one.then is not None and one.now is not None
            assert story(one.now) == story(one.then)
            assert one.same_throughout
            met[made.action.value] += 1
            met["memories"] += len(one.now.recalled)
            met["cited"] += len(made.evidence)
    return met


def digest(home: Path) -> dict[str, str]:
    """What is in every file of a home; SQLite's own companions of an open database are left out, and the index of
    looks, in which a redecision is counted."""
    files = (path for path in sorted(home.rglob("*")) if path.is_file() and not path.name.endswith(("-shm", "-wal")))
    files = (path for path in files if path.name != "looks.db")
    return {str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.slow
@EVERY
@pytest.mark.usefixtures("loaded_once")
def test_every_decision_of_a_backtest_with_a_warm_up_comes_out_the_same(backtested: Path, every: int) -> None:
    met = assert_all_the_same(backtested, Config(), every)
    with JournalReader(backtested) as reader:
        parts = {part: len(reader.decisions(part=part)) for part in ("warm-up", "test")}
    assert parts == {"warm-up": 3 * 5, "test": 3 * 6}
    assert met["BUY"] > 3 // every and met["HOLD"] > 3 // every
    assert met["memories"] > 100 // every and met["cited"] > 20 // every


@pytest.mark.slow
def test_every_decision_of_a_desk_comes_out_the_same(lived: Path, homes: Callable[[str], Path]) -> None:
    before = digest(homes("desk"))
    met = assert_all_the_same(lived, desk())
    assert met["BUY"] and met["memories"] > 20 and met["cited"]
    with JournalReader(lived) as reader:
        assert [run.session for run in reader.runs() if run.outcome == "done"] == list(DAYS)
        assert len(reader.outcomes()) >= 6
    assert digest(homes("desk")) == before


@pytest.mark.slow
@EVERY
@pytest.mark.usefixtures("loaded_once")
def test_a_convention_that_trades_at_the_close_of_its_decision_comes_out_the_same(real_data: Path, every: int) -> None:
    spec = RunSpec(
        symbols=("AAPL", "MSFT"),
        first=date(2023, 6, 5),
        last=date(2023, 6, 9),
        warm_up_from=date(2023, 5, 22),
        preset="finagent",
        data=DataSpec(str(real_data)),
        convention="finagent",
        run="backtest-close",
    )
    run_backtest(services(Config()), spec, baselines=())
    met = assert_all_the_same(places.run_journal(spec.run), Config(), every)
    assert met["BUY"] and met["memories"]


def test_a_step_left_out_or_another_preset_shows_what_it_changed(briefly: Path) -> None:
    with JournalReader(briefly) as reader:
        made = reader.decisions(part="test")
        bought = next(one for one in made if one.action is Action.BUY)
        blind = again(reader, bought, Config(), Changes(without=("chart", "tools")))
        other = again(reader, bought, Config(), Changes(preset="finvision"))
    (without,), (new,) = blind.comparisons, other.comparisons
    assert without.then is not None and without.now is not None and new.now is not None
    assert "chart" not in {answer.agent for answer in without.now.answers}
    gone = {change.agent for change in without.answers if change.now is None}
    assert gone == {"chart"}
    assert "explanation" in {change.what for change in without.decision}
    assert not without.memories  # what is known today did not change, nor what it is searched by
    assert other.preset == "finvision"
    assert new.now.answers[-1].agent == "decision"
    assert not new.now.recalled and len(new.memories) == len(without.then.recalled)


def test_what_was_not_there_then_is_said(briefly: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "copy"
    shutil.copytree(briefly.parents[2], home)
    monkeypatch.setenv(places.HOME, str(home))
    shutil.rmtree(places.run_memory(BACKTEST.run))
    with JournalReader(places.run_journal(BACKTEST.run)) as reader:
        made = reader.decisions()[-1]
        with pytest.raises(MissingData, match="remembered is gone from"):
            again(reader, made, Config())
        assert again(reader, made, Config(), Changes(preset="finvision")).comparisons
        with pytest.raises(UsageError, match="no preset finvsion; did you mean finvision"):
            again(reader, made, Config(), Changes(preset="finvsion"))
        with pytest.raises(UsageError, match="no such step"):
            again(reader, made, Config(), Changes(without=("nosuch",)))
        with pytest.raises(UsageError, match="unknown model spec"):
            again(reader, made, Config(), Changes(model="nosuch"))


def test_a_longer_chart_than_the_bars_that_a_desk_kept_is_said(lived: Path, tmp_path: Path) -> None:
    file = tmp_path / "longer.toml"
    file.write_text('extends = "desk"\nname = "longer"\ntitle = "l"\n[windows]\nchart = 400\n', encoding="utf-8")
    with JournalReader(lived) as reader:
        made = reader.decisions()[-1]
        said = again(reader, made, desk(), Changes(preset=str(file))).notes
        assert [note.partition(" bars of ")[2] for note in said] == [
            f"{made.key.symbol} were kept for a chart of 60 sessions: one of 400 has no more to show"
        ]
        assert again(reader, made, desk(), Changes(preset="finagent")).notes == ()


def test_a_memory_that_the_run_had_none_of_begins_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    day = DAYS[0]
    asyncio.run(run_daily(services(desk("finvision"), evening(day)), day))
    with JournalReader(places.desk_journal("mine")) as reader:
        made = reader.decisions()[0]
        done = again(reader, made, desk("finvision"), Changes(preset="desk"))
    assert done.notes == ("finvision has no memory: desk begins with an empty one",)
    assert not places.desk_memory("mine").exists()


class Remote:
    """The rules under the name of a service's model, whose answer about TMBK's chart is cut off."""

    spec = "local:m1"
    label = "m1 (local)"
    sees = True

    def __init__(self, inner: LanguageModel) -> None:
        self._inner = inner

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        if request.purpose == "chart" and request.symbol == "TMBK":
            return ModelResult(
                model=self.spec, failure=ModelFailure(FailureKind.CUT_OFF, "cut at the token limit"), cost=Decimal(0)
            )
        result = await self._inner.answer(request, on_delta)
        return replace(result, model=self.spec, cost=Decimal("0.25"), latency=2.0)


def test_what_a_service_said_is_said_again_for_free_its_failures_included() -> None:
    for day in DAYS[:2]:
        asyncio.run(run_daily(services(desk(), evening(day)), day, through=Remote))
    endpoint = {"base_url": "http://127.0.0.1:9/v1", "vision": True}
    later = desk().model_dump() | {"models": {"default": "local:m1"}, "endpoints": {"local": endpoint}}
    config, replay = Config.model_validate(later), Changes(model="replay")
    with JournalReader(places.desk_journal("mine")) as reader:
        for made in reader.decisions():
            (one,) = again(reader, made, config, replay).comparisons
            assert one.then is not None and one.now is not None
            assert story(one.now) == story(one.then)
            assert use_of(one.then.answers).cost == Decimal("0.25") * sum(
                answer.result.failure is None for answer in one.then.answers
            )
            use = use_of(one.now.answers)
            assert (use.cost, use.cached_calls) == (0, use.calls)
        assert check_parity(services(config), reader, DAYS[1]).same
        with pytest.raises(MissingData, match="no answer of local:m1 is recorded for evidence-decision of"):
            again(reader, made, config, Changes(model="replay", without=("tools",)))
        # Another model that is configured by now does not matter to a replay of that day.
        other = Config.model_validate(later | {"models": {"default": "local:m2"}})
        (one,) = again(reader, made, other, replay).comparisons
        assert one.now is not None and story(one.now) == story(one.then)
        assert {answer.result.model for answer in one.now.answers} == {"local:m1"}
        assert check_parity(services(other), reader, DAYS[1]).same
        # A key is needed for a question that is new, and for no other.
        keyed = later | {"endpoints": {"local": endpoint | {"key_env": "A_KEY_THAT_NOBODY_HAS"}}}
        config = Config.model_validate(keyed)
        (one,) = again(reader, made, config).comparisons
        assert one.now is not None and one.then is not None and story(one.now) == story(one.then)
        for new in (Changes(without=("tools",)), Changes(model="local:m2")):
            with pytest.raises(CredentialsRefused, match="A_KEY_THAT_NOBODY_HAS"):
                again(reader, made, config, new)


@pytest.mark.usefixtures("loaded_once")
def test_a_desk_does_not_need_its_data_again(lived: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "again"
    shutil.copytree(lived.parents[2], home)
    monkeypatch.setenv(places.HOME, str(home))
    gone, journal = desk(folder=str(tmp_path / "nowhere")), places.desk_journal("mine")
    with JournalReader(journal) as reader:
        assert again(reader, reader.decisions()[-1], gone).comparisons[0].same_throughout
    with closing(sqlite3.connect(journal)) as kept, kept:
        kept.execute("DROP TRIGGER inputs_no_delete")
        kept.execute("DELETE FROM inputs")
    with JournalReader(journal) as reader, pytest.raises(MissingData, match="recorded no inputs"):
        again(reader, reader.decisions()[-1], gone)
