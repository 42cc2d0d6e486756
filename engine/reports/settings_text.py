"""Settings of a run in words, the same in every report and command."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from engine.domain.market import is_crypto
from engine.domain.text import cut_between_words, first_few, one_line, plain

Settings = Mapping[str, Any]
MOST_CHANGES = 8
"""Changed settings that are named; the rest is counted."""
_WORDS = {
    "code": "fingerprint of the code",
    "commission": "commission as a fraction",
    "data_fingerprint": "fingerprint of the data",
    "fast": "fast average",
    "fills": "filled at",
    "fractional": "fractional shares",
    "from": "first session",
    "lines": "K and D",
    "models": "models by agent",
    "overbought": "overbought above",
    "oversold": "oversold below",
    "period": "RSI period",
    "prompts": "prompt versions",
    "rows": "bars seen",
    "sample": "repeat",
    "signal": "signal line",
    "slippage_bp": "slippage in bp",
    "slow": "slow average",
    "to": "last session",
    "usd_per_day": "dollars a day",
    "without": "steps left out",
}
"""Settings, and parameters of strategies, whose own name a trader would not say."""


def costs_text(settings: Settings) -> str:
    """Fills, costs, cash and its floor, as they were in effect; those of an account at a broker are its own."""
    parts = ["fills and costs as the broker has them"]
    if settings["fills"] is not None:
        parts = [
            f"fills at the {settings['fills']}",
            f"slippage {settings['slippage_bp']} bp",
            f"commission {plain(100 * Decimal(settings['commission']))} %",
        ]
        for name, what in (("commission_per_order", "an order"), ("commission_per_share", "a share")):
            if Decimal(settings[name]):
                parts.append(f"{settings[name]} {what}")
        currency = settings.get("currency", "")  # a run that is still to begin has none
        parts.append(f"cash {Decimal(settings['cash']):,.2f} {currency}".rstrip())
    if settings["cash_floor"] is not None:
        parts.append(f"cash floor {plain(100 * Decimal(settings['cash_floor']))} %")
    return ", ".join(parts)


def short_costs(settings: Settings) -> str:
    """`next open, 5 bp slippage, 0 % commission`, for a place with little room: its end can be left out."""
    if settings["fills"] is None:
        return "broker's"
    commission = plain(100 * Decimal(settings["commission"]))
    return f"{settings['fills']}, {settings['slippage_bp']} bp slippage, {commission} % commission"


def version_text(settings: Settings) -> str:
    """Version of the program, seed, and the beginning of the data's fingerprint."""
    return f"{settings['version']}, seed {settings['seed']}, data {settings['data_fingerprint'][:12]}"


def key_title(name: str) -> str:
    """A setting by its whole name as a trader says it: `params.signal` is `signal line`."""
    path = name.removeprefix("params.").split(".")
    return " ".join(_WORDS.get(part, part.replace("_", " ")) for part in path)


def changed_text(changed: Mapping[str, Any]) -> str:
    """The settings that are not those of the run before."""
    told = [f"{key_title(row['setting'])} ({change_words(row, 40)})" for row in changed["settings"]]
    return f"since {changed['since']}: {first_few(told, MOST_CHANGES)}"


def change_words(row: Mapping[str, Any], longest: int) -> str:
    """Both values of a changed setting, each of so many characters at most."""
    return ", then ".join(_short(row[side], longest) for side in ("before", "now"))


def _short(value: object, longest: int) -> str:
    if isinstance(value, list) and not any(isinstance(one, list | dict) for one in value):
        value = ", ".join(map(str, value))
    return cut_between_words(one_line("" if value is None else str(value)), longest) or "none"


def as_of_text(document: Mapping[str, Any]) -> str:
    """The moment that value, cash and positions are of; empty where it is not known."""
    if document["as_of"] is None:
        return ""
    moment, close = (datetime.fromisoformat(document[name]) for name in ("as_of", "exchange_close"))
    text = f"{moment:%Y-%m-%d %H:%M} UTC, the close of {document['session']}"
    if moment != close and document["settings"]:
        pairs = [symbol for symbol in document["settings"]["symbols"] if is_crypto(symbol)]
        text += f": {', '.join(pairs)} among shares moves it from {close:%H:%M} UTC, when the exchange closed"
    return f"{text}; the next run books what fills later"
