"""The look-ahead audit of a run of agents or of a rule strategy, on its whole data and on changed ones.

Copies of the data folder, cut at the decisions of an audited run, and the process that plays its legs on them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from importlib.util import cache_from_source
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.app.audit.legs_process import begin
from engine.app.audit.subjects import AgentSubject, CopiedLeg, LegsTask, files_outside, open_subject, opened_files
from engine.app.models.models import build_models
from engine.app.records.own_process import begin_process
from engine.app.records.trial_index import check_trial_index, count_trials, spec_hash, spec_trial
from engine.app.research.backtest import recorded_spec
from engine.app.research.market_data import load_run
from engine.app.research.run_spec import Stop, check_spec, preset_of, settled, user_code
from engine.domain.market import Symbol
from engine.domain.run import RunSpec, TrialKind
from engine.errors import InvariantBroken, UsageError
from engine.lab.audit import OnStep, Trace, audit, leaked_prices
from engine.lab.certificate import Bound, Certificate
from engine.lab.window import comparison_notes, windows
from engine.market.as_of import Market, data_fingerprint
from engine.market.trading_hours import decision_time
from engine.preset import Preset
from engine.reports.documents.backtest import Document, fingerprint
from engine.reports.stored import stored_document
from engine.services import FolderCuts, Services
from engine.settings.user_code import code_hash, surroundings


def run_audit(
    services: Services,
    spec: RunSpec,
    cuts: int | None,
    on_step: OnStep = lambda done, steps: None,
    *,
    of: str | None = None,
    stop: Stop = lambda: False,
) -> Certificate:
    """Audit a run at so many cuts (None: at every session), and say whether a recorded run (`of`) is the same. Nothing
    is kept but the look at the window; `on_step` hears how far it is, after `stop` before the sessions that are left
    are played, and is the one to raise then.

    Raises what a backtest raises, UsageError for live models, which answer equal prompts differently, and MissingData
    where there is no recorded run of that name.
    """
    recorded = None if of is None else (recorded_spec(of), stored_document(of, light=True))
    with files_outside() as outside:  # from the first import of the user's code on
        check_spec(spec, services.clock.now())
        check_trial_index()
        spec = settled(services, spec)
        certificate = asyncio.run(_audit(services, spec, cuts, on_step, outside, stop=stop))
    count_trials([spec_trial(TrialKind.AUDIT, spec, services.clock.now())])
    if recorded is None:
        return certificate
    return replace(certificate, bound=_held_against(certificate.bound, spec, *recorded))


def _held_against(bound: Bound, spec: RunSpec, recorded: RunSpec, document: Document) -> Bound:
    """The certificate held against a recorded run: whether that is the same, and in what it differs."""
    # What was interrupted has a part of a fingerprint alone.
    then = {**document["settings"], "fingerprint": None if document["interrupted"] else document["fingerprint"]}
    names = ("version", "data_fingerprint", "code", "fingerprint")
    differs = [] if spec_hash(spec) == spec_hash(recorded) else ["settings"]
    differs += [name for name in names if then.get(name) is not None and then[name] != getattr(bound, name)]
    lacking = any(then.get(name) is None for name in names if getattr(bound, name))
    same = False if differs else None if lacking else True
    return replace(bound, run=recorded.run, same=same, differs=tuple(differs))


async def _audit(
    services: Services, spec: RunSpec, cuts: int | None, on_step: OnStep, outside: dict[str, str], *, stop: Stop
) -> Certificate:
    preset = preset_of(spec)
    models = None if preset is None else build_models(services, preset, spec.model, recorded=spec.models)
    if models is not None and models.spec != "offline" and services.config.models.replay == "live":
        raise UsageError("an audit needs recorded answers to identical prompts: set models.replay = read-through")
    market = await load_run(services, spec)
    with (
        folder_copies(services, spec, market) as copies,
        opened_files(spec.data.folder) as opened,
        open_subject(services, spec, market, stop) as subject,
    ):
        certificate = await audit(subject, cuts, on_step, spec.seed, copies)
        if isinstance(subject, AgentSubject):
            certificate = replace(certificate, unmasked=subject.unmasked)
    early: tuple[str, ...] = ()
    if copies is not None:
        opened, early = {**copies.opened, **opened}, copies.early if preset is not None else ()
        outside |= copies.outside
    code = user_code(spec)
    last = decision_time(subject.calendar, windows(spec, subject.calendar)[1][-1])
    bound = Bound(
        version=spec.version,
        data_fingerprint=data_fingerprint(market, last),
        code=code_hash(code),
        fingerprint="" if subject.test is None else fingerprint(subject.test),
    )
    hashed = {*map(str, code), *(cache_from_source(str(path)) for path in code)}
    unseen = (*sorted(outside.keys() - hashed), *surroundings(code))
    told = () if preset is None else tuple(leaked_prices(market, spec.warm_up_from or spec.first, spec.last))
    undated = () if preset is None else tuple(_undated(preset, spec.symbols))
    certificate = replace(certificate, bound=bound, not_audited=unseen)
    notes = tuple(comparison_notes(spec, market))
    return replace(certificate, opened=opened, undated=undated, leaked_prices=told, early=early, notes=notes)


def _undated(preset: Preset, symbols: Sequence[Symbol]) -> Iterator[str]:
    """Texts of the user's own that a preset's agents read, each with its length: they may have been written later."""
    texts = {f"profile of {symbol}": preset.profiles.get(symbol, "") for symbol in symbols}
    texts["instruction"] = preset.instruction
    for name, owner in preset.owners.items():
        texts |= {f"character of {name}": owner.description, f"profile of {name}": owner.profile}
    yield from (f"{what} ({len(text.split())} words)" for what, text in texts.items() if text)
    if preset.guidance:
        yield f"guidance ({len(preset.guidance)} notes, dated by their file alone)"


class FolderCopies:
    """Legs on copies (CutLegs): the copy is written here, and a process without sight of the original plays the leg.

    early: texts of the folder that are stamped before their release, in words.
    hidden: True where nothing that runs there can open the original, False where only Python cannot.
    opened: files of the folder that were opened nevertheless, each with the line of the user's code that did it;
        `outside` those beside it.
    """

    def __init__(self, connection: Connection, cuts: FolderCuts, task: LegsTask) -> None:
        self._connection, self._cuts, self._task = connection, cuts, task
        self.early = tuple(cuts.early)
        self.hidden: bool | None = None
        self.opened: dict[str, str] = {}
        self.outside: dict[str, str] = {}

    async def leg(self, read: date, now: datetime) -> Trace | str:
        """The trace of the leg to the decision that reads a session, taken at `now`; or what went wrong."""
        self._cuts.write(self._task.copy, now)
        leg = await asyncio.to_thread(self._played, read)
        self.opened.update(leg.opened)
        self.outside.update(leg.outside)
        return leg.trace

    def _played(self, read: date) -> CopiedLeg:
        try:
            if self.hidden is None:
                self._connection.send(self._task)
                self.hidden = self._connection.recv()
            self._connection.send(read)
            leg: CopiedLeg = self._connection.recv()
        except (EOFError, OSError):
            raise InvariantBroken(f"the process that plays legs on copies of the folder ended before {read}") from None
        return leg


@contextmanager
def folder_copies(services: Services, spec: RunSpec, market: Market) -> Iterator[FolderCopies | None]:
    """Legs of a run of a market on copies of its data folder, until the block ends; None on the demo market, which has
    none. Raises MalformedData for a file of the folder that cannot be read."""
    if spec.data.folder is None:
        yield None
        return
    folder = Path(spec.data.folder).expanduser().resolve()
    cuts = services.open_cuts(folder, spec.symbols)
    with TemporaryDirectory(prefix="paperdesk-audit-") as copy:
        ours, process = begin_process(begin, (), "audit", niceness=0)
        try:
            yield FolderCopies(ours, cuts, LegsTask(services, spec, market, folder, Path(copy)))
        finally:
            ours.close()
            process.terminate()
            process.join()
