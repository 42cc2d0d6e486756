"""The run that an audit plays whole and in legs: a preset's agents, or a rule strategy.

Legs of an audited run in a process of their own, each on a copy of the data folder that is cut at its decision.

The files of a data folder that a run opens itself: code that does so sees what no cut of the loaded data removes.

An audit hook hears of every way in which Python opens files, and of commands that name the folder. What native code
opens it does not hear of; a process in which the folder is hidden shows that (engine.app.audit.hidden_folder).
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

from engine.app.audit.hidden_folder import show_instead
from engine.app.memory import run_memory
from engine.app.models.mask import mask_of
from engine.app.models.models import build_models
from engine.app.research.agent_run import AgentRun
from engine.app.research.market_data import load_macro
from engine.app.research.run_spec import Stop, preset_of, with_costs
from engine.conventions.catalog import convention
from engine.cycle.recall import ASKED, MemoryScope, TradingMemory
from engine.cycle.turn import CycleResult, Turn
from engine.domain.decision import Decision
from engine.domain.market import CorporateAction, PriceHistory, Symbol
from engine.domain.model_call import AnswerRecord, ModelRequest, ModelResult
from engine.domain.run import PriceBasis, RunPart, RunSpec
from engine.errors import MissingData, PaperdeskError
from engine.lab.audit import Leg, RuleSubject, Subject, Trace, failure, venue
from engine.lab.backtest import Checkpoint, play_to, run_agents
from engine.lab.certificate import Training
from engine.lab.watched_market import GUIDANCE, MARKERS, MEMORY, Inputs, WatchedMarket, planted, planted_notes
from engine.lab.window import decided_sessions, on_convention, windows
from engine.market.as_of import Market, load_market
from engine.market.trading_hours import decision_time
from engine.ports import Calendar, LanguageModel, MarketSource
from engine.services import Services
from engine.session.owner_books import BookOrders
from engine.session.recorder import Recorder
from engine.settings import places
from engine.settings.user_code import COMMANDS, OPENING, file_named, is_installed, line_at_work

TRAINED = 3
"""Sessions that a warm-up needs so that its marks of hindsight are looked at, in all of these but one."""


@contextmanager
def open_subject(services: Services, spec: RunSpec, market: Market, stop: Stop = lambda: False) -> Iterator[Subject]:
    """The subject of a settled spec over its market, until the block ends; after `stop` its agents play no session.
    Raises as a backtest does before it plays."""
    preset = preset_of(spec)
    if preset is None:
        yield RuleSubject(spec, market, *with_costs(spec, services.config))
        return
    mask = mask_of(spec, on_convention(spec, market))
    models = build_models(services, preset, spec.model, mask=mask and replace(mask, sent=[]))
    run = AgentRun(services=services, spec=spec, preset=preset, models=models, market=market, stop=stop)
    with run_memory(services, preset, run.calendar, embedder=spec.embedder) as memory:
        yield AgentSubject(run, memory)


class AgentSubject:
    """A preset's agents over their warm-up and test; `memory` is an empty one, of which every leg gets a copy."""

    def __init__(self, run: AgentRun, memory: TradingMemory | None) -> None:
        spec, preset = run.spec, run.preset
        self.name = preset.name
        basis = convention(spec.convention).price_basis
        self.market = _settled(on_convention(spec, run.market), basis)
        self.as_traded = basis is PriceBasis.RAW
        self.calendar = run.calendar
        self.beside = (*((GUIDANCE,) if "tools" in preset.steps else ()), *(() if memory is None else (MEMORY,)))
        self.hindsight = 0
        self._run, self._spec, self._preset = run, spec, preset
        self._empty = memory
        self._whole: TrainedTexts | None = None
        self.test: RunPart | None = None
        _, sessions = windows(spec, self.calendar)
        self._rules, _ = with_costs(spec, run.services.config)
        self.decided = decided_sessions(self.calendar, sessions, self._rules)

    async def whole(self) -> tuple[Trace, Mapping[str, Inputs]]:
        """The run as a backtest plays it."""
        records: list[AnswerRecord] = []
        watched = WatchedMarket.of(self.market)
        memory = None if self._empty is None else self._empty.copy()
        whole = replace(self._run, market=self.market)
        context = replace(whole.context(memory, records.append), market=watched)
        if memory is not None:
            context = replace(context, recorder=_Recollected(memory, self.calendar, watched.read))
        result = await run_agents(context)
        self.hindsight = 0 if memory is None else memory.written_with_hindsight()
        self._whole, self.test = TrainedTexts(memory, records), result.test
        warm_up = () if result.warm_up is None else result.warm_up.decisions
        return _trace((*warm_up, *result.test.decisions), records), watched.read

    @property
    def unmasked(self) -> tuple[str, ...] | None:
        """The words that the questions so far name though the run's mask hides it; None without a mask."""
        mask = self._run.models.mask
        return None if mask is None else tuple(mask.named())

    async def training(self, seed: int) -> Training | None:
        """Sessions of the warm-up with absurd prices from the next one on: what is written and asked then rests on what
        followed, and has to say so."""
        warming, _ = windows(self._spec, self.calendar)
        if len(warming) < TRAINED or self._whole is None:
            return None
        read = decided_sessions(self.calendar, warming, self._rules)
        chosen = tuple(sorted(Random(seed).sample(read[:-1], TRAINED - 1)))
        found = [self._whole.unmarked(await self._trained(day), day, self.calendar.number(day)) for day in chosen]
        return Training(chosen, tuple(text for texts in found for text in texts))

    async def _trained(self, read: date) -> TrainedTexts:
        """The texts until the decision of the warm-up that reads a session, with another future."""
        records: list[AnswerRecord] = []
        memory = None if self._empty is None else self._empty.copy()
        reached = _Reached(read)
        now = decision_time(self.calendar, read)
        run = replace(
            self._run, market=planted(self.market, ["bars"], now), stop=lambda: reached.done or self._run.stop()
        )
        # Orders fill at the real prices: crypto trades on after the close of the shares.
        context = replace(run.context(memory, records.append), recorder=reached, histories=self.market.histories)
        with suppress(LookupError, PaperdeskError):  # what comes after the decision is of no interest
            await run_agents(context)
        return TrainedTexts(memory, records)

    async def leg(self, market: Market, read: date, start: Checkpoint | None, plant: Sequence[str] = ()) -> Leg:
        """The run from a checkpoint on other data and without experts' later notes; what the agents see and say, and
        what its memory brings up at its end, is searched for planted words."""
        records: list[AnswerRecord] = []
        seen: set[str] = set()
        models = {agent: _Witness(model, seen) for agent, model in self._run.models.models.items()}
        before = self._empty if start is None else start.memory
        memory = None if before is None else before.copy()
        step = self.calendar.number(read)
        if memory is not None and MEMORY in plant:
            memory.plant(MARKERS[MEMORY], self._spec.symbols, tuple(self._preset.owners), step)
        notes = tuple(note for note in self._preset.guidance if GUIDANCE in plant or note.day < read)
        if GUIDANCE in plant:
            notes += planted_notes(self._spec.symbols, read)
        preset = self._preset.model_copy(update={"guidance": notes})
        cut = replace(self._run, market=market, models=replace(self._run.models, models=models), preset=preset)
        context = cut.context(memory, records.append)
        now = decision_time(self.calendar, read)
        context = replace(context, histories=venue(self.market, read, now, self._rules.fill_at))
        decisions, where = await play_to(context, read, start)
        shown = {source for source, word in MARKERS.items() if any(word in _text(record) for record in records)}
        if memory is not None and MEMORY in plant:
            places = [MemoryScope(s, owner, read, step) for s in self._spec.symbols for owner in self._preset.owners]
            shown |= {MEMORY} if memory.shows(MARKERS[MEMORY], places) else set()
        return Leg(_trace(decisions, records), where, frozenset(seen | shown))


class _Reached(Recorder):
    """Notes that the decision that reads a session was taken."""

    def __init__(self, read: date) -> None:
        self.done, self._read = False, read

    def decided(self, turn: Turn, result: CycleResult, books: BookOrders | None = None) -> None:
        """Note a cycle's decision."""
        self.done = self.done or turn.session >= self._read


class _Recollected(Recorder):
    """Counts what was recalled, and when it became available, among what was read."""

    def __init__(self, memory: TradingMemory, calendar: Calendar, read: dict[str, Inputs]) -> None:
        self._memory, self._calendar = memory, calendar
        self._inputs = read.setdefault(MEMORY, Inputs())

    def decided(self, turn: Turn, result: CycleResult, books: BookOrders | None = None) -> None:
        """Count what was recalled for a cycle's decisions."""
        for key, memories in result.recollections.items():
            for memory in memories:
                step = self._memory.available(memory)
                # What is stored of a session before its decision was known at its close.
                after = timedelta(days=step % 1 if step % 1 > ASKED else 0)
                since = decision_time(self._calendar, self._calendar.session_at(int(step))) + after
                self._inputs.add([(key.symbol, memory.id)], since, decision_time(self._calendar, key.session))


class _Witness:
    """A model that notes the planted words in the views of its questions."""

    def __init__(self, model: LanguageModel, seen: set[str]) -> None:
        self.spec, self.label, self.sees = model.spec, model.label, model.sees
        self._model, self._seen = model, seen

    async def answer(self, request: ModelRequest, on_delta: Callable[[str], None] | None = None) -> ModelResult:
        """The model's own answer."""
        view = repr(request.view)
        self._seen.update(source for source, word in MARKERS.items() if word in view)
        return await self._model.answer(request, on_delta)


def _settled(market: Market, basis: PriceBasis) -> Market:
    """The market with a paper's adjusted prices as its own: what they are adjusted by, which the paper knew only
    later, is no part of the audit, and cutting the data does not change it."""
    if basis is PriceBasis.RAW:
        return market
    return replace(market, histories={s: replace(h, adj_close=h.close) for s, h in market.histories.items()})


def _trace(decisions: Sequence[Decision], records: Sequence[AnswerRecord]) -> Trace:
    """Every decision with all that was asked and answered on the way to it."""
    asked: dict[tuple[date, Symbol, str], list[tuple[Any, ...]]] = {}
    for record in records:
        about = record.key
        call = (record.step, record.attempt, record.prompt_hash, record.outcome, json.dumps(record.answer, default=str))
        asked.setdefault((about.session, about.symbol, about.owner), []).append(call)
    keys = {(d.key.session, d.key.symbol, d.key.owner): d for d in decisions}
    return {key: (decision, tuple(asked.get(key, ()))) for key, decision in keys.items()}


def _text(record: AnswerRecord) -> str:
    answer = json.dumps(record.answer, ensure_ascii=False, default=str)
    return "\n".join((record.system, *(m.text for m in record.messages), record.view, answer, record.result.text))


MARKS = ("hindsight", "unknown on the day")
"""Words by which a line of a prompt says that it shows what followed."""


@dataclass(frozen=True, slots=True)
class TrainedTexts:
    """The memory of a warm-up, None without one, and its questions."""

    memory: TradingMemory | None
    records: Sequence[AnswerRecord]

    def unmarked(self, other: TrainedTexts, session: date, step: float) -> Iterator[str]:
        """The memories and prompts of a session (of a step) that differ from those of another warm-up, in which only
        the session's future is another, and that do not say that they rest on it; each in words."""
        if self.memory is not None and other.memory is not None:
            written, again = self.memory.written_at(step), other.memory.written_at(step)
            for key in sorted(written.keys() | again.keys()):
                both = [memories[key] for memories in (written, again) if key in memories]
                same = len(both) == 2 and both[0].text == both[1].text
                if not same and not all(one.hindsight for one in both):
                    kind, symbol, *_ = key
                    yield f"{session} {symbol}: a memory ({kind}) rests on what followed and is not marked"
        asked, again_asked = self._prompts(session), other._prompts(session)
        for key in sorted(asked.keys() & again_asked.keys()):
            changed = set(again_asked[key]).difference(asked[key])
            if not all(any(mark in line for mark in MARKS) for line in changed):
                agent, symbol, *_ = key
                yield f"{session} {symbol}: a question ({agent}) shows what followed and does not say so"

    def _prompts(self, session: date) -> Mapping[tuple[str, ...], Sequence[str]]:
        # A second attempt shows the answer to the first, which may tell of what followed in any words.
        of_session = (one for one in self.records if one.key.session == session and one.attempt == 1)
        return {
            (one.agent, one.key.symbol, one.key.owner, one.step): [
                line for text in (one.system, *(message.text for message in one.messages)) for line in text.splitlines()
            ]
            for one in of_session
        }


@dataclass(frozen=True, slots=True)
class LegsTask:
    """A run whose legs are played, with its whole data, which brokers fill at; its data folder, and the folder in which
    the copies come to lie."""

    services: Services
    spec: RunSpec
    market: Market
    folder: Path
    copy: Path


@dataclass(frozen=True, slots=True)
class CopiedLeg:
    """One leg on a copy: its trace, or what went wrong, and the files of the folder, and `outside` of it, that were
    opened so far, each with the line of the user's code that did it."""

    trace: Trace | str
    opened: Mapping[str, str]
    outside: Mapping[str, str]


def serve(connection: Connection, own_mounts: bool) -> None:
    """Play the legs of the task that comes first, up to the sessions that come after it, until the connection ends.
    The first answer is True where the folder is hidden from all that runs here, False where Python's opening of its
    files is refused."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A strategy that prints would write into the command's document.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        asyncio.run(_serve(connection, connection.recv(), own_mounts))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the audit has ended


async def _serve(connection: Connection, task: LegsTask, own_mounts: bool) -> None:
    services, spec, market = task.services, task.spec, task.market
    # A folder that holds recorded answers as well cannot go out of sight.
    hidden = own_mounts and not own_folders(task.folder) and show_instead(task.folder, task.copy)
    connection.send(hidden)
    if own_mounts:
        _hide_earlier_runs(task.copy)
    copied = replace(spec, data=replace(spec.data, folder=str(task.copy)))
    start: Any = None
    # The user's code is first loaded here, so that what it reads then is seen as well.
    with (
        files_outside() as outside,
        opened_files(str(task.folder), refuse=not hidden) as opened,
        open_subject(services, spec, market) as subject,
    ):
        while True:
            read: date = connection.recv()
            now = decision_time(subject.calendar, read)
            copy = _adjusted_as(market, await _load_copy(services, copied, tuple(market.holdings)))
            cut = copy if subject.as_traded else subject.market.cut(now)
            try:
                leg = await subject.leg(cut, read, start)
            except (LookupError, PaperdeskError) as error:
                connection.send(CopiedLeg(failure(error), opened, outside))
            else:
                start = leg.where
                connection.send(CopiedLeg(leg.trace, opened, outside))


def _hide_earlier_runs(copy: Path) -> None:
    """Show the copy in the place of the journals of desks and runs to whatever runs here; Python code of the user's is
    refused all of the program's own folders besides."""
    for folder in (places.desks_dir(), places.runs_dir(), places.arenas_dir()):
        if folder.is_dir():
            show_instead(folder, copy)


def _adjusted_as(whole: Market, copy: Market) -> Market:
    """The data of a copy with the adjusted closes that it was written without: the data access shows their returns
    alone, and a file that is read beside it shows none."""
    histories = {
        symbol: replace(history, adj_close=whole.histories[symbol].adj_close[: len(history)])
        for symbol, history in copy.histories.items()
    }
    return replace(copy, histories=histories)


async def _load_copy(services: Services, spec: RunSpec, funds: Sequence[str]) -> Market:
    """The data of a copy, with the holdings of some funds; a symbol that begins to trade after the cut has no bars
    yet."""
    source = services.open_source(spec.data, spec.last)
    macro = {} if spec.preset is None else await load_macro(services, spec.data, spec.last)
    holdings = await source.holdings()
    return await load_market(
        _Begun(source),
        source,
        spec.symbols,
        services.calendar_for,
        macro=macro,
        holdings={fund: rows for fund, rows in holdings.items() if fund in funds},
    )


@dataclass(frozen=True, slots=True)
class _Begun:
    """Bars of a source; none, in place of an error, of a symbol without any."""

    source: MarketSource

    async def symbols(self) -> Sequence[Symbol]:
        """As the source has them."""
        return await self.source.symbols()

    async def history(self, symbol: Symbol) -> PriceHistory:
        """All bars of a symbol."""
        try:
            return await self.source.history(symbol)
        except MissingData:
            return PriceHistory.of(symbol, ())

    async def actions(self, symbol: Symbol) -> Sequence[CorporateAction] | None:
        """As the source has them."""
        return await self.source.actions(symbol)


_CODE = (".py", ".pyc")
"""Code may lie in the folder and is imported when it is first needed."""


@dataclass(frozen=True, slots=True)
class _Observed:
    """A folder under observation, with a separator at its end, but for the program's own folders in it (`ours`).
    `opened` has its files, each with the line of the user's code that opened it first; where `refused` it could not."""

    folder: str
    ours: tuple[str, ...]
    refused: bool
    opened: dict[str, str] = field(default_factory=dict)


_observed: list[_Observed] = []
_outside: list[dict[str, str]] = []
"""An audit hook stays for the life of the process."""


@contextmanager
def files_outside() -> Iterator[dict[str, str]]:
    """The files that code of the user's opens within the context and that belong neither to the program nor to Python
    and its packages, each with the line that opened it first; files of a folder under observation are told there."""
    _install_hook()
    found: dict[str, str] = {}
    _outside.append(found)
    try:
        yield found
    finally:
        _outside.remove(found)


@contextmanager
def opened_files(folder: str | None, *, refuse: bool = False) -> Iterator[dict[str, str]]:
    """The files opened in a folder within the context, each with the line of the user's code that did it (empty where
    none was at work); none of no folder. With `refuse` opening raises PermissionError."""
    if folder is None:
        yield {}
        return
    _install_hook()
    path = Path(folder).expanduser().resolve()
    observed = _Observed(f"{path}{os.sep}", tuple(f"{own}{os.sep}" for own in own_folders(path)), refuse)
    _observed.append(observed)
    try:
        yield observed.opened
    finally:
        _observed.remove(observed)


def own_folders(folder: Path) -> list[Path]:
    """The program's own folders that lie in a data folder: journals, recorded answers, tables of sessions."""
    ours = (places.data_dir(), places.cache_dir(), places.logs_dir())
    return [own for own in (one.resolve() for one in ours) if own.is_relative_to(folder)]


@cache
def _install_hook() -> None:
    sys.addaudithook(_on_event)


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    if not (_observed or _outside):
        return
    if event in OPENING:
        _on_file(file_named(event, arguments[0]))
    elif event in COMMANDS:
        words = repr(arguments)
        for observed in _observed:
            if observed.folder.rstrip(os.sep) in words:
                _note(observed, f"{observed.folder} (by a command)")
        _note_outside(f"a command: {words[:200]}")


def _on_file(file: str) -> None:
    if not file:
        return
    if not any(file.startswith(observed.folder) for observed in _observed) and not _is_ours(file):
        _note_outside(file)
    for observed in _observed:
        if file.startswith(observed.folder) and not file.endswith(_CODE) and not file.startswith(observed.ours):
            _note(observed, file)


def _is_ours(file: str) -> bool:
    """True for a file of the program or of Python, and for a table of sessions, which is read when first needed."""
    tables = os.path.realpath(places.cache_dir())
    return file == os.devnull or file.startswith(f"{tables}{os.sep}sessions-") or is_installed(Path(file))


def _note_outside(file: str) -> None:
    line = line_at_work() if _outside else ""
    for found in _outside if line else ():
        found.setdefault(file, line)


def _note(observed: _Observed, file: str) -> None:
    observed.opened.setdefault(file, line_at_work())
    if observed.refused:
        raise PermissionError(errno.EACCES, "the audit hides the data folder from the run", file)
