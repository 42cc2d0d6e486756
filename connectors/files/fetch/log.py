"""Keeps in fetched.json how far a service was asked, so that a question whose answer was nothing is not asked again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from connectors.files.write import write_text
from engine.domain.market import Symbol

NAME = "fetched.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked for of one symbol, dates and moments as ISO 8601 text, empty where never. `bars_from`: bars
    since; `feed`: whose; `computed`: adj_close is ours, computed from the actions; `news_from` and `news_through`:
    news between; `filings_on`: the day on which filings were asked for last."""

    bars_from: str = ""
    feed: str = ""
    computed: bool = False
    news_from: str = ""
    news_through: str = ""
    filings_on: str = ""


class FetchLog:
    """The log of one data folder. Only a shortcut: where it is lost or damaged, more is asked than had to be."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._asked = _read(self._path)

    def of(self, symbol: Symbol) -> Asked:
        """What was asked for of a symbol."""
        return self._asked.get(symbol, Asked())

    def note(self, symbol: Symbol, **changes: Any) -> Asked:
        """Writes down what was asked for now, and says it together with what was known."""
        changed = replace(self.of(symbol), **changes)
        if changed == self.of(symbol):
            return changed
        self._asked[symbol] = changed
        plain = {name: asdict(one) for name, one in sorted(self._asked.items())}
        write_text(self._path, json.dumps({"schema": 1, "symbols": plain}, indent=1) + "\n")
        return changed


def _read(path: Path) -> dict[Symbol, Asked]:
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))["symbols"]
        return {name: _known(one) for name, one in plain.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _known(plain: dict[str, Any]) -> Asked:
    """A log of a later program may know more. Raises TypeError for values of another kind."""
    kept = {name: value for name, value in plain.items() if name in Asked.__dataclass_fields__}
    if any(type(value) is not type(Asked.__dataclass_fields__[name].default) for name, value in kept.items()):
        raise TypeError
    return Asked(**kept)
