"""Answers that fit a question's JSON schema, with one text in every field of prose."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

ITEM = re.compile(r"^- \[(\S+)\] ", re.MULTILINE)


def asked(body: Mapping[str, Any]) -> tuple[str, Mapping[str, Any], str]:
    """The name of the answer that a request asks for, its schema, and the question's text."""
    wanted = body["response_format"]["json_schema"]
    content = body["messages"][1]["content"]
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    return wanted["name"], wanted["schema"], text


def answer(body: Mapping[str, Any], text: str, **fields: Any) -> str:
    """An answer to a request; `fields` of the outer object are taken where it has them."""
    _, schema, question = asked(body)
    made = _filled(schema, schema.get("$defs", {}), text)
    items = ITEM.findall(question.partition("<<<items")[2].partition("items>>>")[0])
    if items and "items" in made:
        judged = _filled(schema["$defs"]["ItemJudgement"], {}, text)
        made["items"] = [judged | {"id": name} for name in items]
    if "queries" in made:
        made["queries"] = {name: f"{text} {name}" for name in made["queries"]}
    known = re.search(r"Asset: ([^.\s,]+)", question)
    if "symbol" in made and known:
        made["symbol"] = known[1]
    return json.dumps({name: fields.get(name, value) for name, value in made.items()})


def _filled(schema: Mapping[str, Any], shared: Mapping[str, Any], text: str) -> Any:
    if "$ref" in schema:
        return _filled(shared[schema["$ref"].rpartition("/")[2]], shared, text)
    if "anyOf" in schema:
        return _filled(schema["anyOf"][0], shared, text)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: _filled(part, shared, text) for name, part in schema.get("properties", {}).items()}
        case "array":
            return [_filled(schema["items"], shared, text) for _ in range(schema.get("minItems", 0))]
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
    return text
