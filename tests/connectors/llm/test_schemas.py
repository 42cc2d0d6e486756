"""Which schemas can be enforced, and that enforcing does not change what they say."""

from __future__ import annotations

from typing import Any

import pytest

from connectors.llm.answer_json import as_instruction, is_closed, openai_strict

LEAF = {"type": "string"}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def test_strict_mode_takes_a_closed_schema_and_loses_only_what_it_does_not_know() -> None:
    schema = closed(
        action={"type": "string", "enum": ["BUY", "SELL"], "title": "Action", "default": "BUY"},
        why=LEAF | {"minLength": 1, "maxLength": 400},
        levels={"type": "array", "items": closed(price={"type": "number", "minimum": 0}), "maxItems": 3},
        note={"anyOf": [LEAF, {"type": "null"}]},
    ) | {"title": "Decision", "$defs": {"X": closed(a=LEAF)}}
    assert openai_strict(schema) == closed(
        action={"type": "string", "enum": ["BUY", "SELL"]},
        why=LEAF,
        levels={"type": "array", "items": closed(price={"type": "number", "minimum": 0}), "maxItems": 3},
        note={"anyOf": [LEAF, {"type": "null"}]},
    ) | {"$defs": {"X": closed(a=LEAF)}}


def test_a_property_may_be_called_like_a_keyword() -> None:
    schema = closed(type=LEAF, title=LEAF, required=LEAF, properties=LEAF)
    assert openai_strict(schema) == schema
    assert is_closed(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": LEAF, "b": LEAF}, "required": ["a"]},
        {"type": "object", "additionalProperties": LEAF},
        {"type": "object"},
        closed(a={"type": "object", "additionalProperties": {"type": "number"}}),
        closed(a={"type": "array", "items": {"type": "object"}}),
        closed(a={"anyOf": [LEAF, {"type": "object"}]}),
        closed(a=LEAF) | {"allOf": [closed(a=LEAF)]},
        closed(a={"type": "array", "prefixItems": [LEAF]}),
    ],
)
def test_strict_mode_is_not_used_where_it_would_say_something_else(schema: dict[str, Any]) -> None:
    assert openai_strict(schema) is None


def test_optional_properties_are_no_hindrance_at_anthropic_and_open_objects_are() -> None:
    assert is_closed({"type": "object", "properties": {"a": LEAF, "b": LEAF}, "required": ["a"]})
    assert not is_closed(closed(a={"type": "array", "items": {"type": "object", "additionalProperties": LEAF}}))


def test_in_words_the_whole_schema_is_there() -> None:
    assert '"enum":["BUY","SELL"]' in as_instruction(closed(action=LEAF | {"enum": ["BUY", "SELL"]}))
