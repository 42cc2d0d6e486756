"""The certificate of a desk's rehearsal: kept beside its journal, and checked before a run at an account.

It holds for one preset text, its prompts and its models. What a rehearsal was played on, data and program, is written
down and not compared: both move on every day."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from engine.app.desk.settings import prompt_versions
from engine.app.models.models import chosen_models, desk_preset
from engine.domain.run import TradingMode
from engine.errors import ConfigError, MalformedData
from engine.preset import Preset
from engine.reports.documents.rehearsal import stored_certificate
from engine.reports.documents.row_json import Row
from engine.services import Services
from engine.settings import places

COMMAND = "run `paperdesk rehearse`"


def subject_of(services: Services, preset: Preset) -> Row:
    """The subject of a certificate: the preset's text by its hash, the prompts and models of its agents."""
    specs = chosen_models(preset, services.config)[1]
    return {
        "preset": preset.name,
        "preset_hash": hashlib.sha256(preset.model_dump_json().encode()).hexdigest(),
        "prompts": prompt_versions(preset),
        "models": {agent.name: specs[agent.name] for agent in preset.active_agents},
    }


def refusal(services: Services, preset: Preset) -> str:
    """The reason why a desk may not trade its account; empty where it may. Raises MalformedData for a damaged
    certificate."""
    if preset.rehearsal is None:
        return ""
    kept = stored_certificate(services.desk)
    if kept is None:
        return f"the preset {preset.name} must pass its rehearsal before it trades an account: {COMMAND}"
    changed = ", ".join(_changed(kept, subject_of(services, preset)))
    day = str(kept["time"])[:10]
    if changed:
        return f"the rehearsal of {day} was of another {changed}: {COMMAND} again"
    if kept["missed"]:
        missed = "; ".join(kept["missed"])
        return f"the rehearsal of {day} missed its bounds ({missed}): change the preset, then {COMMAND}"
    return ""


def trades_account(services: Services) -> bool:
    """True for a desk that sends orders to an account at a broker."""
    return services.broker is not None and services.config.broker.mode is not TradingMode.OBSERVE


def check_rehearsed(services: Services, preset: Preset) -> None:
    """Raise ConfigError, with the bound that was missed, for a desk that would trade an account before its
    rehearsal."""
    reason = refusal(services, preset) if trades_account(services) else ""
    if reason:
        raise ConfigError(f"the desk {services.desk} sends no order: {reason}")


class RehearsalCheck:
    """The refusal of an open desk, judged anew when another certificate lies there."""

    def __init__(self, services: Services) -> None:
        self._services, self._seen, self._reason = services, -1, ""
        self._preset = desk_preset(services) if trades_account(services) else None

    @property
    def reason(self) -> str:
        """The reason why the desk may not trade its account; empty where it may, or trades none."""
        if self._preset is None or self._preset.rehearsal is None:
            return ""
        path = places.desk_rehearsal(self._services.desk)
        seen = path.stat().st_mtime_ns if path.is_file() else 0
        if seen != self._seen:
            self._seen = seen
            try:
                self._reason = refusal(self._services, self._preset)
            except MalformedData as error:
                self._reason = str(error)
        return self._reason


def keep_certificate(desk: str, certificate: Row) -> None:
    """Keep a certificate in the place of the desk's last one. Raises ConfigError or DataError for a file that cannot be
    written."""
    places.write_whole(places.desk_rehearsal(desk), json.dumps(certificate, indent=1, allow_nan=False))


def _changed(kept: Mapping[str, Any], subject: Row) -> Iterator[str]:
    """The parts of a subject that are not those of a certificate."""
    if kept["preset"] != subject["preset"]:
        yield f"preset ({kept['preset']})"
    elif kept["preset_hash"] != subject["preset_hash"]:
        yield "preset text"
    for name, called in (("prompts", "prompt"), ("models", "model")):
        then, now = kept[name], subject[name]
        other = [agent for agent in dict.fromkeys((*then, *now)) if then.get(agent) != now.get(agent)]
        if other:
            yield f"{called} of {', '.join(other)}"
