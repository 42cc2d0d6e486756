"""Extraction of the JSON object from a model's text: wrapping is stripped, nothing else is repaired."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```[a-zA-Z0-9_-]*[ \t]*\r?\n(.*?)\r?\n?[ \t]*```", re.DOTALL)


class NotAnAnswer(ValueError):
    """A text without a JSON object; the message says what it holds instead."""


def parse_answer(text: str) -> Mapping[str, Any]:
    """The JSON object of a model's text, or of its only code fence.

    Reasoning that local models print before the answer is skipped. Braces in prose are ignored: they may be an example.
    Raises NotAnAnswer.
    """
    body = _THOUGHT.sub("", text.lstrip("\ufeff"), count=1).strip()
    if not body:
        raise NotAnAnswer("the answer is empty")
    fences = _FENCE.findall(body)
    if not body.startswith(("{", "[")) and len(fences) == 1:
        body = fences[0].strip()
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
    except (json.JSONDecodeError, RecursionError) as error:
        if not body.startswith(("{", "[", '"')):
            raise NotAnAnswer("the answer is prose, not JSON") from None
        detail = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deep"
        raise NotAnAnswer(f"the answer is not valid JSON: {detail}") from None
    if not isinstance(value, dict):
        raise NotAnAnswer(f"the answer is a JSON {_json_type(value)}, not an object")
    return value


def _refuse_constant(name: str) -> float:
    raise NotAnAnswer(f"the answer holds {name}, which is not JSON")


def _json_type(value: Any) -> str:
    if isinstance(value, list):
        return "array"
    if isinstance(value, str):
        return "string"
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else "literal"
