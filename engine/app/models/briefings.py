"""A briefing: all that the user adds to a preset for a run. It is configured, kept with the run, and read again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.agents.tools import read_guidance
from engine.domain.json_text import from_json, to_json
from engine.domain.market import Symbol
from engine.domain.run import Briefing, DataSpec, ExpertNote
from engine.errors import ConfigError
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.preset import Preset, briefed, load_preset
from engine.services import Services
from engine.settings.config import Config

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
        guidance=configured_guidance(config, symbols),
    )


def desk_preset(services: Services) -> Preset:
    """The desk's preset with the configured briefing. Raises as `load_preset` and `configured_briefing` do."""
    briefing = configured_briefing(services, services.data, services.symbols)
    return briefed(load_preset(services.config.desk.preset), briefing)


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
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(f"desk.profile.{symbol}: {path} cannot be read ({reason}); correct the path") from None


def configured_guidance(config: Config, symbols: Sequence[Symbol]) -> tuple[ExpertNote, ...]:
    """The configured notes of experts on some symbols. Raises MissingData and MalformedData for a file of them that
    cannot be read."""
    if config.data.guidance is None:
        return ()
    notes = read_guidance(Path(config.data.guidance).expanduser())
    return tuple(note for note in notes if note.symbol in symbols)


def keep_briefing(journal: JournalWriter, run: str, briefing: Briefing) -> None:
    """Keep the briefing of a desk's run; one that goes on with a changed briefing keeps both."""
    journal.keep_version(run, _BRIEFING, to_json(briefing))


def recorded_briefing(reader: JournalReader, run: RunEntry) -> Briefing | None:
    """The briefing of a run's agents; None of a run that kept none."""
    if run.spec is not None:
        return run.spec.briefing
    known = reader.document_versions(run.id, _BRIEFING)
    return from_json(Briefing, known[-1]) if known else None
