"""The look-ahead audit of a run of agents or of a rule strategy, on its whole data and on changed ones."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

from engine.app.audit_copies import folder_copies
from engine.app.audit_subjects import open_subject
from engine.app.look_index import count_looks, spec_look
from engine.app.market_data import load_run
from engine.app.models import build_models
from engine.app.run_spec import check_spec, preset_of, settled
from engine.domain.market import Symbol
from engine.domain.run import LookKind, RunSpec
from engine.errors import UsageError
from engine.lab.audit import OnStep, audit
from engine.lab.certificate import Certificate
from engine.lab.foretold import foretold
from engine.lab.opened_files import opened_files
from engine.preset import Preset
from engine.services import Services


def run_audit(
    services: Services, spec: RunSpec, cuts: int | None, on_step: OnStep = lambda done, steps: None
) -> Certificate:
    """Audit a run at so many cuts (None: at every session). Nothing is kept but the look at the window; `on_step` hears
    how far it is.

    Raises what a backtest raises, and UsageError for live models, which answer equal prompts differently.
    """
    check_spec(spec, services.clock.now())
    spec = settled(services, spec)
    certificate = asyncio.run(_audit(services, spec, cuts, on_step))
    count_looks([spec_look(LookKind.AUDIT, spec, services.clock.now())])
    return certificate


async def _audit(services: Services, spec: RunSpec, cuts: int | None, on_step: OnStep) -> Certificate:
    preset = preset_of(spec)
    models = None if preset is None else build_models(services, preset, spec.model, recorded=spec.models)
    if models is not None and models.spec != "offline" and services.config.models.replay == "live":
        raise UsageError("an audit compares answers to equal prompts: set models.replay = read-through for it")
    market = await load_run(services, spec)
    with (
        folder_copies(services, spec, market) as copies,
        opened_files(spec.data.folder) as opened,
        open_subject(services, spec, market) as subject,
    ):
        certificate = await audit(subject, cuts, on_step, spec.seed, copies)
    early: tuple[str, ...] = ()
    if copies is not None:
        opened, early = {**copies.opened, **opened}, copies.early if preset is not None else ()
    told = () if preset is None else tuple(foretold(market, spec.warm_up_from or spec.first, spec.last))
    undated = () if preset is None else tuple(_undated(preset, spec.symbols))
    return replace(certificate, opened=opened, undated=undated, foretold=told, early=early)


def _undated(preset: Preset, symbols: Sequence[Symbol]) -> Iterator[str]:
    """Texts of the user's own that a preset's agents read, each with its length: they may have been written later."""
    texts = {f"profile of {symbol}": preset.profiles.get(symbol, "") for symbol in symbols}
    texts["instruction"] = preset.instruction
    for name, owner in preset.owners.items():
        texts |= {f"character of {name}": owner.description, f"profile of {name}": owner.profile}
    yield from (f"{what} ({len(text.split())} words)" for what, text in texts.items() if text)
    if preset.guidance:
        yield f"guidance ({len(preset.guidance)} notes, dated by their file alone)"
