"""JSON answers: schemas in the forms that vendors can enforce, and the extraction of the object from a model's text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from connectors.llm.lenient_json import strict_json

_SHAPE = {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs"}
_LIMITS = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"}
_OPENAI_KEYWORDS = frozenset(_SHAPE | _LIMITS | {"description", "pattern", "format"})
_HARMLESS = frozenset({"title", "default", "examples", "$schema", "$id", "minLength", "maxLength", "uniqueItems"})
"""Keywords that strict mode refuses and that can be left out: the agent checks its answer as well."""
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_THOUGHT_BEGINS = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_ALTERNATIVE = re.compile(
    r"\A[\s`]*(?:[,;/|][\s`]*\Z|(?:if|unless|when)\b)|\b(?:or|alternative(?:ly)?|versus|vs|otherwise|else|opposite)\b",
    re.IGNORECASE,
)
"""Text between two objects of which either may be meant."""
_JSON_TYPES: dict[type, str] = {list: "array", str: "string", int: "number", float: "number"}
_FENCE = re.compile(r"```[a-zA-Z0-9_-]*[ \t]*\r?\n(.*?)\r?\n?[ \t]*```", re.DOTALL)
_OPENINGS = ("{", "[", '"')
_DEEPEST = 50
"""Objects and lists within each other; those of the schemas are fewer than ten."""
_MOST_OBJECTS = 100
"""Opening braces of a prose text that are tried as the beginning of an object."""


class _Unenforceable(Exception):
    """A part of a schema that strict mode cannot express."""


def openai_strict(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """The schema in the form of OpenAI's strict mode, or None where it has no equal there.

    Strict mode wants every object closed and every property required, and supports a part of JSON schema only.
    """
    try:
        return _strict(schema)
    except _Unenforceable:
        return None


def _strict(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        raise _Unenforceable
    strict = {keyword: _strict_value(keyword, schema[keyword]) for keyword in schema if keyword not in _HARMLESS}
    if _is_object(schema):
        properties = schema.get("properties", {})
        if not _is_closed_object(schema) or set(schema.get("required", ())) != set(properties):
            raise _Unenforceable
        strict["additionalProperties"] = False
        strict["required"] = list(properties)
    return strict


def _strict_value(keyword: str, value: Any) -> Any:
    if keyword not in _OPENAI_KEYWORDS:
        raise _Unenforceable
    if keyword in {"properties", "$defs"}:
        return {name: _strict(child) for name, child in value.items()}
    if keyword == "items":
        return _strict(value)
    return [_strict(child) for child in value] if keyword == "anyOf" else value


def is_closed(schema: Any) -> bool:
    """True where every object in the schema lists its properties and takes no others, so that Anthropic can enforce
    it."""
    if isinstance(schema, Mapping):
        if _is_object(schema) and not _is_closed_object(schema):
            return False
        return all(is_closed(value) for value in schema.values())
    if isinstance(schema, list | tuple):
        return all(is_closed(value) for value in schema)
    return True


def as_instruction(schema: Mapping[str, Any]) -> str:
    """The schema as an instruction of the system prompt, for models that do not enforce it."""
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return f"Answer with one JSON object and nothing else. It must satisfy this JSON schema:\n{text}"


def _is_object(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list | tuple) and "object" in kind)


def _is_closed_object(schema: Mapping[str, Any]) -> bool:
    # An open object that lists properties is closed for the model's purposes: it needs no property that
    # nobody named.
    return bool(schema.get("properties")) and not isinstance(schema.get("additionalProperties"), Mapping)


class NotAnAnswer(ValueError):
    """A text without a JSON object; the message says what it holds instead."""


def parse_answer(text: str) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The JSON object of a model's text, of its only code fence, or the one within its prose, and what was repaired.

    Reasoning that local models print before the answer is skipped. Raises NotAnAnswer, whatever the text is.
    """
    body, repairs = _THOUGHT.sub("", text.lstrip("\ufeff"), count=1).strip(), list[str]()
    if not body:
        raise NotAnAnswer("the answer is empty")
    try:
        value = _decoded(body)
    except NotAnAnswer:
        value = _found(body, repairs)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        repairs.append("a list of one")
        value = value[0]
    if not isinstance(value, dict):
        raise NotAnAnswer(f"the answer is a JSON {_JSON_TYPES.get(type(value), 'literal')}, not an object")
    return _as_text(value), tuple(repairs)


def _decoded(body: str) -> Any:
    try:
        return _DECODER.decode(body)
    except NotAnAnswer:
        raise
    except (ValueError, RecursionError) as error:
        raise NotAnAnswer(f"the answer is not valid JSON: {_complaint(error)}") from None


def _found(body: str, repairs: list[str]) -> Any:
    """The value that is meant by a text that is not JSON as a whole; `repairs` gets what was repaired."""
    ended = [closing.span() for closing in _THOUGHT_ENDS.finditer(body)]
    if ended and (rest := body[ended[-1][1] :].strip()):
        opened = _THOUGHT_BEGINS.search(body, 0, ended[-1][0])
        repairs.append("a second thinking block" if opened else "no opening tag of thinking")
        body = rest
    fences = list(_FENCE.finditer(body))
    if not body.startswith(_OPENINGS[:2]) and len(fences) == 1 and "{" not in body[fences[0].end() :]:
        body = fences[0][1].strip()
    values = list(_values(body))
    found = list(filter(_holds_object, values))
    if not found:
        if body.startswith(_OPENINGS):
            return _decoded(body)
        raise NotAnAnswer("the answer is prose, not JSON")
    last = found[-1]
    # A draft and then the answer; an object that something is said about, or an alternative, may be neither. One that
    # cannot be read is an alternative as well.
    before = max((one.end for one in values if one.end <= last.start), default=last.start)
    between = body[before : last.start], body[last.end : max(last.end, body.find("{", last.end))]
    said = len(found) > 1 and body[last.end :].strip("` \t\r\n")
    if said or any(map(_ALTERNATIVE.search, between)):
        raise NotAnAnswer("the answer is prose with several JSON objects, not one")
    if len(found) > 1:
        repairs.append("the last of several objects")
    repairs.extend(last.repairs)
    return last.value


class _Value(NamedTuple):
    """A JSON value within a text, from `start` to `end`; None where it cannot be read."""

    value: Any
    start: int
    end: int
    repairs: tuple[str, ...] = ()


def _holds_object(found: _Value) -> bool:
    value = found.value
    return bool(value) and (isinstance(value, dict) or (isinstance(value, list) and isinstance(value[0], dict)))


def _values(body: str) -> Iterator[_Value]:
    """The objects within a text, outermost only, and the list that it may begin with. Nothing is looked for inside
    braces that hold no object, nor behind some that do not close."""
    start = 0 if body.startswith("[") else body.find("{")
    for _ in range(_MOST_OBJECTS):
        found = None if start < 0 else _value_at(body, start)
        if found is None:
            return
        yield found
        start = body.find("{", found.end)


def _value_at(body: str, start: int) -> _Value | None:
    with suppress(ValueError, RecursionError):
        value, end = _DECODER.raw_decode(body, start)
        return _Value(value, start, end)
    written = strict_json(body, start)
    if written is None:
        return None
    text, end, repairs = written
    with suppress(ValueError, RecursionError):
        return _Value(_DECODER.decode(text), start, end, repairs)
    return _Value(None, start, end)


def _as_text(value: dict[str, Any]) -> Mapping[str, Any]:
    """The object, if it can be stored: JSON can spell halves of characters, which no file takes, and nests deeper than
    they do."""
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        level = [one for each in level for one in (each.values() if isinstance(each, dict) else each)]
        level = [one for one in level if isinstance(one, dict | list)]
    if level:
        raise NotAnAnswer("the answer is nested too deep")
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise NotAnAnswer("the answer holds half a character (a lone surrogate)") from None
    return value


def _refuse_constant(name: str) -> float:
    raise NotAnAnswer(f"the answer holds {name}, which is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise NotAnAnswer("the answer holds a number that is too large")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a key may stand twice in it with one value alone."""
    value = dict(pairs)
    if len(value) < len(pairs) and (twice := next((key for key, one in pairs if value[key] != one), None)) is not None:
        raise NotAnAnswer(f"the answer has {ascii(twice)[:80]} twice, with different values")
    return value


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_once)


def _complaint(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return error.msg
    return "nested too deep" if isinstance(error, RecursionError) else "it holds a number that is too long"
