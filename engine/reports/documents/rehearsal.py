"""The kept certificate of a desk's rehearsal, as `rehearse`, `status` and `doctor` show it."""

from __future__ import annotations

import json

from engine.errors import MalformedData
from engine.reports.amounts import percent, portion
from engine.reports.documents.row_json import Row
from engine.settings import places

_KEYS = {"time", "preset", "preset_hash", "prompts", "models", "missed", "passed"}


def stored_certificate(desk: str) -> Row | None:
    """The certificate of a desk's last rehearsal; None where there was none. Raises MalformedData for a damaged
    file."""
    path = places.desk_rehearsal(desk)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise MalformedData(f"{path} cannot be read ({error}): delete it, and run `paperdesk rehearse` again") from None
    if not isinstance(found, dict) or not found.keys() >= _KEYS:
        raise MalformedData(f"{path} is not a certificate: delete it, and run `paperdesk rehearse` again")
    return found


def rehearsal_summary(desk: str) -> Row | None:
    """The certificate in short: when, of which preset, passed or not, and the bounds that were missed."""
    kept = stored_certificate(desk)
    return None if kept is None else {name: kept[name] for name in ("time", "preset", "passed", "missed")}


def rehearsal_figure(name: str, value: float | None) -> str:
    """A figure of a rehearsal, or a bound of it, as a person reads it: a drawdown is a fall."""
    return percent(None if value is None else -value) if name == "drawdown" else portion(value)


def rehearsal_bound(name: str, value: float) -> str:
    """`at least -10.00%`."""
    return f"at {'most' if name == 'abstentions' else 'least'} {rehearsal_figure(name, value)}"


def rehearsal_words(certificate: Row) -> str:
    """`desk rehearsed on 2026-11-23: passed`."""
    told = "passed" if certificate["passed"] else f"missed {'; '.join(certificate['missed'])}"
    return f"{certificate['preset']} on {str(certificate['time'])[:10]}: {told}"
