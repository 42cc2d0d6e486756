"""The briefing of agents by a configuration: profiles, risk, preference, tools, experts' notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from engine.agents.tools import read_guidance
from engine.config import Config
from engine.domain.briefing import Briefing, ExpertNote
from engine.domain.market import Symbol
from engine.domain.run import DataSpec, RunSpec
from engine.errors import ConfigError
from engine.journal.codec import from_json, to_json
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.preset import Preset, briefed, load_preset
from engine.services import Services

_FILES = (".txt", ".md")
_BRIEFING = "briefing"


def configured_briefing(services: Services, data: DataSpec, symbols: Sequence[Symbol]) -> Briefing:
    """The configured briefing on some symbols; on the demo market each listing has a profile. Raises ConfigError for
    a profile's file that cannot be read, MissingData and MalformedData for one of notes."""
    config, desk = services.config, services.config.desk
    return Briefing(
        profiles=tuple(_profiles(services, data, symbols)),
        risk=desk.risk,
        preference=desk.preference,
        tools=desk.tools,
        instruction=desk.instruction or "",
        guidance=_guidance(config, symbols),
    )


def settled(services: Services, spec: RunSpec) -> RunSpec:
    """The spec of a run of agents, completed by the configuration so that it can be run again without it. Raises as
    `configured_briefing` does."""
    if spec.preset is None:
        return spec
    briefing = spec.briefing
    if briefing is None:
        briefing = configured_briefing(services, spec.data, spec.symbols)
    return replace(spec, briefing=briefing, embedder=spec.embedder or services.config.memory.embedder)


def preset_of(spec: RunSpec) -> Preset | None:
    """The preset of a run as its agents follow it; None for a rule strategy. Raises UsageError for a preset or a step
    that there is not."""
    if spec.preset is None:
        return None
    return briefed(load_preset(spec.preset).without(spec.without), spec.briefing)


def _profiles(services: Services, data: DataSpec, symbols: Sequence[Symbol]) -> Iterator[tuple[Symbol, str]]:
    for symbol in symbols:
        own = services.config.desk.profile.get(symbol)
        text = services.profile_of(data, symbol) if own is None else _text(symbol, own)
        if text:
            yield symbol, text


def _text(symbol: Symbol, own: str) -> str:
    if not own.lower().endswith(_FILES) or "\n" in own:
        return own
    path = Path(own).expanduser()
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(f"desk.profile.{symbol}: {path} cannot be read ({said}); correct the path") from None


def _guidance(config: Config, symbols: Sequence[Symbol]) -> tuple[ExpertNote, ...]:
    if config.data.guidance is None:
        return ()
    notes = read_guidance(Path(config.data.guidance).expanduser())
    return tuple(note for note in notes if note.symbol in symbols)


def keep_briefing(journal: JournalWriter, reader: JournalReader, run: str, briefing: Briefing) -> None:
    """Keep the briefing of a desk's run; one that goes on with a changed briefing keeps both."""
    text, known = to_json(briefing), _known(reader, run)
    if not known or known[-1] != text:
        journal.document(run, f"{_BRIEFING}{len(known) or ''}", text)


def kept_briefing(reader: JournalReader, run: RunEntry) -> Briefing | None:
    """The briefing of a run's agents; None of a run that kept none."""
    if run.spec is not None:
        return run.spec.briefing
    known = _known(reader, run.id)
    return from_json(Briefing, known[-1]) if known else None


def _known(reader: JournalReader, run: str) -> list[str]:
    """Every briefing of a run, the latest last."""
    texts: list[str] = []
    while (text := reader.document(run, f"{_BRIEFING}{len(texts) or ''}")) is not None:
        texts.append(text)
    return texts
