"""Repair of answers by the type of each field, where one value alone can be meant: `buy` for BUY, "5" for 5.

What could mean two things is left as it is, so that the answer goes back with the complaint.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_CALL = ("arguments", "parameters", "input")
"""Keys of a tool's call, beside its name, under which an answer may stand."""
_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15})?")
_BOOLEANS = {"true": True, "false": False}


def repaired(answer: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The answer as its JSON schema wants it, as far as that is certain, and what was repaired, field by field."""
    repairs = _Repairs(schema.get("$defs", {}))
    return repairs.value(repairs.unwrapped(answer, schema), schema, ""), tuple(repairs.made)


@dataclass(slots=True)
class _Repairs:
    """The repairs of one answer; `shared` are the parts that its schema refers to."""

    shared: Mapping[str, Any]
    made: dict[str, None] = field(default_factory=dict)

    def unwrapped(self, answer: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
        """The answer out of a wrapper of one key, or of a tool's call that was written as text."""
        inner = [key for key in answer if len(answer) == 1 or (set(answer) == {"name", key} and key in _CALL)]
        known = set(map(_letters, schema.get("properties", {})))
        if not inner or known.intersection(map(_letters, answer)) or not isinstance(answer[inner[0]], dict | list):
            return answer
        self._note("", "a wrapper of one key" if len(answer) == 1 else "an answer as a tool call")
        return answer[inner[0]]

    def value(self, value: Any, schema: Mapping[str, Any], name: str, description: str = "") -> Any:
        """The value of a field; `description` is the field's own."""
        description = schema.get("description", description)
        if "$ref" in schema:
            return self.value(value, self.shared[schema["$ref"].rpartition("/")[2]], name, description)
        if "anyOf" in schema:
            choices = [one for one in schema["anyOf"] if one.get("type") != "null"]
            return value if value is None or len(choices) > 1 else self.value(value, choices[0], name, description)
        kind = schema.get("type")
        if isinstance(value, list) and len(value) == 1 and kind != "array":
            self._note(name, "a list of one")
            value = value[0]
        if isinstance(value, dict) and kind == "object":
            return self._object(value, schema, name)
        if isinstance(value, list) and kind == "array":
            return [self.value(one, schema.get("items", {}), name) for one in value]
        meant = _meant(value, schema, _is_percent(name, description))
        if meant is not value:
            self._note(name, f"{meant} in another form")
        return meant

    def _object(self, given: Mapping[str, Any], schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        properties = schema.get("properties", {})
        by_letters = {_letters(key): key for key in properties}
        named = {key: key if key in properties else by_letters.get(_letters(key), key) for key in given}
        times = Counter(named.values())
        made = {}
        for key, value in given.items():
            known = named[key] if times[named[key]] == 1 else key
            path = f"{name}.{known}".strip(".")
            if known != key:
                self._note(path, "its key in other letters")
            made[known] = self.value(value, properties[known], path) if known in properties else value
        return made

    def _note(self, name: str, manner: str) -> None:
        self.made[f"{name}: {manner}" if name else manner] = None


def _letters(text: str) -> str:
    """A key or a word without what models change in it: case, blanks, underscores and hyphens."""
    return re.sub(r"[\s_-]+", "", text).casefold()


def _is_percent(name: str, description: str) -> bool:
    return "percent" in (name.rpartition(".")[2].casefold(), description.partition(" ")[0].casefold())


def _meant(value: Any, schema: Mapping[str, Any], percent: bool) -> Any:
    """The only value of a type that a text can mean; else the value itself."""
    kind, allowed = schema.get("type"), schema.get("enum", [schema["const"]] if "const" in schema else [])
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, str) or value in allowed:
        return value
    if allowed:
        near = [one for one in allowed if isinstance(one, str) and _letters(one) == _letters(value)]
        return near[0] if len(near) == 1 else value
    said = value.strip()
    if kind == "boolean":
        return _BOOLEANS.get(said.casefold(), value)
    # 5% of a share of one is .05 or a slip: a field in percent alone takes the sign.
    number = said.removesuffix("%").rstrip() if percent else said
    if kind not in ("integer", "number") or not _NUMBER.fullmatch(number):
        return value
    if kind == "integer":
        return int(float(number)) if float(number).is_integer() else value
    return float(number)
