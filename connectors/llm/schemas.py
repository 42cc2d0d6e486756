"""Which JSON schemas a vendor can enforce while its model writes, and how to ask for the others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_OPENAI_KEYWORDS = frozenset(
    {
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "anyOf",
        "$ref",
        "$defs",
        "description",
        "pattern",
        "format",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minItems",
        "maxItems",
    }
)
_HARMLESS = frozenset({"title", "default", "examples", "$schema", "$id", "minLength", "maxLength", "uniqueItems"})
"""Keywords that strict mode refuses and that can be left out of it: the answer is checked by the agent as
well."""


def openai_strict(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema as OpenAI's strict mode takes it, or None where it cannot say the same.

    Strict mode wants every object closed and every property required, and knows a part of JSON schema only.
    """
    strict: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _HARMLESS:
            continue
        if keyword not in _OPENAI_KEYWORDS:
            return None
        if keyword in {"properties", "$defs"}:
            strict[keyword] = {}
            for name, child in value.items():
                copy = openai_strict(child)
                if copy is None:
                    return None
                strict[keyword][name] = copy
        elif keyword == "items":
            copy = openai_strict(value) if isinstance(value, Mapping) else None
            if copy is None:
                return None
            strict[keyword] = copy
        elif keyword == "anyOf":
            copies = [openai_strict(child) for child in value]
            if any(copy is None for copy in copies):
                return None
            strict[keyword] = copies
        else:
            strict[keyword] = value
    if _is_object(schema):
        properties = schema.get("properties", {})
        if not _is_closed_object(schema) or set(schema.get("required", ())) != set(properties):
            return None
        strict["additionalProperties"] = False
        strict["required"] = list(properties)
    return strict


def is_closed(schema: Any) -> bool:
    """Whether every object in the schema lists its properties and takes no others, so that Anthropic can
    enforce it."""
    if isinstance(schema, Mapping):
        if _is_object(schema) and not _is_closed_object(schema):
            return False
        return all(is_closed(value) for value in schema.values())
    if isinstance(schema, list | tuple):
        return all(is_closed(value) for value in schema)
    return True


def in_words(schema: Mapping[str, Any]) -> str:
    """The instruction that stands in for enforcement: the schema as part of the system prompt."""
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return f"Answer with one JSON object and nothing else. It must satisfy this JSON schema:\n{text}"


def _is_object(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list | tuple) and "object" in kind)


def _is_closed_object(schema: Mapping[str, Any]) -> bool:
    # An open object that lists properties is closed for the model's purposes: it needs no property that
    # nobody named.
    return bool(schema.get("properties")) and not isinstance(schema.get("additionalProperties"), Mapping)
