"""What a command printed, without what differs by moment, machine or chance; how it is kept; and how two differ."""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

DROPPED = frozenset(
    {
        # Ids: made from contents, names and chance.
        "account",
        "cycle_id",
        "id",
        "run",
        # Moments of the wall clock, and how long something took.
        "ended",
        "latency",
        "since",
        "started",
        "time",
        # Fingerprints, hashes and what they are made of: prompts may be reworded, the answers may not.
        "fingerprint",
        "messages",
        "prompt_hash",
        "prompt_version",
        "system",
        "data_fingerprint",
        "preset_text",
        "prompts",
        # The session that is due today, and the load of the present minute.
        "due",
        "operation",
        # The sandbox's address: a free port.
        "environment",
        # The price table of models: data that is brought up to date.
        "prices",
        # Addresses of files.
        "journal",
        "version",
    }
)
"""Keys that are dropped wherever they stand."""

COUNTED = frozenset({"evidence", "rests_on"})
"""Keys that list ids of memories: how many they are is kept."""

OF_THE_MACHINE = frozenset({"Clock", "Places", "Terminal", "Versions"})
"""Areas that `doctor` reports on and that say nothing about the desk."""

_DIGITS = 10
_REASON = 60
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")


def normalized(value: Any, brief: bool, key: str = "") -> Any:
    """A printed value as it is kept: numbers to ten digits, and in a brief one digests for what is long."""
    if isinstance(value, Mapping):
        if brief and key == "positions" and not any("average_cost" in row for row in value.values()):
            # Of each close: the trades say the same in other words.
            return digest(" ".join(f"{name} {row['quantity']} {row['price']}" for name, row in sorted(value.items())))
        # A change of what was cited lists ids of memories under two names of their own.
        lists = {name: "evidence" for name in ("then", "now") if value.get("what") == "evidence"}
        # Beside the session that is due today: those since the last run, which become more every day.
        dropped = DROPPED | {"missed"} if "due" in value else DROPPED
        return {
            name: normalized(part, brief, lists.get(name, name)) for name, part in value.items() if name not in dropped
        }
    if isinstance(value, list):
        return _list(value, brief, key)
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if key == "detail" and isinstance(value, str):
        return _MOMENT.sub("MOMENT", value)
    if brief and key == "reason" and isinstance(value, str) and len(value) > _REASON:
        return digest(value)
    return value


def _list(rows: list[Any], brief: bool, key: str) -> Any:
    if key in COUNTED:
        return len(rows)
    if key == "checks":
        # Of doctor: the details name folders and versions.
        return [{k: row[k] for k in ("area", "name", "state")} for row in rows if row["area"] not in OF_THE_MACHINE]
    if brief and key == "equity" and rows and isinstance(rows[0], str):
        return digest(" ".join(rows))
    kept = [normalized(row, brief) for row in rows]
    if key == "memories" and all("importance" in row for row in kept):
        # The memories of a desk: those of one importance are listed by id.
        kept.sort(key=lambda row: (-row["importance"], row["symbol"], row["session"], row["kind"], row["text"]))
    return kept


def digest(text: str) -> str:
    """A short stand-in for a long text."""
    return "#" + hashlib.sha256(text.encode()).hexdigest()[:10]


def without_places(text: str, places: Mapping[str, str]) -> str:
    """A text with folders of this machine replaced by their names."""
    for folder, name in places.items():
        text = text.replace(folder, name)
    return text


def dumped(value: Any, indent: int = 0) -> str:
    """JSON with one row of a table in a line; rows of equal keys become a table with a head."""
    if isinstance(value, list):
        value = _folded(value)
    line = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if not isinstance(value, Mapping | list) or len(line) + indent <= 110:
        return line
    inner = " " * (indent + 1)
    if isinstance(value, Mapping):
        parts = [f"{inner}{json.dumps(key)}: {dumped(part, indent + 1)}" for key, part in value.items()]
        return "{\n" + ",\n".join(parts) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(inner + dumped(part, indent + 1) for part in value) + "\n" + " " * indent + "]"


def _folded(rows: list[Any]) -> Any:
    if len(rows) < 3 or not all(isinstance(row, Mapping) for row in rows):
        return rows
    columns = list(rows[0])
    plain = all(not isinstance(cell, Mapping | list) for row in rows for cell in row.values())
    if not plain or any(list(row) != columns for row in rows):
        return rows
    return {"columns": columns, "rows": [list(row.values()) for row in rows]}


def unfolded(value: Any) -> Any:
    """What `dumped` was given, from what `json` reads."""
    if isinstance(value, Mapping):
        if list(value) == ["columns", "rows"]:
            return [dict(zip(value["columns"], row, strict=True)) for row in value["rows"]]
        return {key: unfolded(part) for key, part in value.items()}
    return [unfolded(part) for part in value] if isinstance(value, list) else value


# What tells one row of a list from another, as far as both sides have it.
_NAMES = (
    *("session", "symbol", "owner", "side", "kind", "table", "strategy", "metric", "source", "area", "name", "layer"),
    *("agent", "view", "attempt", "handle"),
)


def differences(was: Any, now: Any, place: str = "") -> Iterator[str]:
    """What is otherwise than it was, a line each; keys that came in addition are none."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for key, part in was.items():
            inner = f"{place}.{key}" if place else key
            if key in now:
                yield from differences(part, now[key], inner)
            else:
                yield f"{inner}: was {_short(part)}, is missing"
    elif isinstance(was, list) and isinstance(now, list):
        yield from _of_lists(was, now, place)
    elif not _same(was, now):
        yield f"{place}: was {_short(was)}, is {_short(now)}"


def _of_lists(was: list[Any], now: list[Any], place: str) -> Iterator[str]:
    before, after = _labels(was, now), _labels(now, was)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        if kind == "equal" or (kind == "replace" and len(was) == len(now) and end - start == new_end - new_start):
            for label, old, new in zip(before[start:end], was[start:end], now[new_start:new_end], strict=True):
                yield from differences(old, new, f"{place}[{label}]")
            continue
        for label, old in zip(before[start:end], was[start:end], strict=True):
            yield f"{place}[{label}]: was {_short(old)}, is missing"
        for label, new in zip(after[new_start:new_end], now[new_start:new_end], strict=True):
            yield f"{place}[{label}]: was not there, is {_short(new)}"


def _labels(rows: Sequence[Any], others: Sequence[Any]) -> list[str]:
    """A row's names, or its number where it has none."""
    first, other = (side[0] if side else None for side in (rows, others))
    if not isinstance(first, Mapping) or not isinstance(other, Mapping | None):
        return [str(number) for number in range(len(rows))]
    names = [name for name in _NAMES if name in first and (other is None or name in other)]
    labels = [" ".join(str(row.get(name)) for name in names) for row in rows]
    return labels if names else [str(number) for number in range(len(rows))]


def _same(was: Any, now: Any) -> bool:
    numbers = [isinstance(side, int | float) and not isinstance(side, bool) for side in (was, now)]
    if all(numbers):
        return math.isclose(was, now, rel_tol=1e-8, abs_tol=1e-9)
    return type(was) is type(now) and was == now


def _short(value: Any) -> str:
    line = json.dumps(value, ensure_ascii=False)
    return line if len(line) <= 200 else f"{line[:200]}... ({len(line)} characters)"
