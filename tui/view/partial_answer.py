"""The fields of a model's answer while it is still being written: half a JSON document as text for a person."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from engine.messages.answer_text import answer_text

_CLOSING = {"{": "}", "[": "]"}
_LACKING = ("", "null", '":null', ":null")
"""Parts that a document may lack before its brackets are closed: nothing, a value, or the rest of a key."""
_LAST_WORD = re.compile(r"[-+.\w]+$")
"""A number, or true, false or null, that may go on."""
_BROKEN_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{0,3})?$")


class _Scanned(NamedTuple):
    """A beginning of a document up to its end: the brackets that are open, and whether a text is."""

    text: str
    closing: str
    in_text: bool


def streamed_text(text: str) -> str:
    """The fields that have come so far, a line each; a text without JSON as it is; before the first field nothing."""
    start = text.find("{")
    if start < 0:
        return text
    fields = _completed(_scanned(text[start:]))
    if fields is None:
        return text[:start].strip()
    return answer_text({name: value for name, value in fields.items() if value not in (None, "")})


def _scanned(text: str) -> _Scanned:
    closing, in_text, escaped = list[str](), False, False
    for place, character in enumerate(text):
        if in_text:
            in_text, escaped = character != '"' or escaped, character == "\\" and not escaped
        elif character == '"':
            in_text = True
        elif character in _CLOSING:
            closing.append(_CLOSING[character])
        elif closing and character == closing[-1]:
            closing.pop()
            if not closing:
                return _Scanned(text[: place + 1], "", False)
    return _Scanned(text, "".join(reversed(closing)), in_text)


def _completed(begun: _Scanned) -> dict[str, Any] | None:
    """The object that a beginning makes once all that is open is closed; None where it makes none."""
    text = (_BROKEN_ESCAPE.sub("", begun.text) + '"' if begun.in_text else begun.text).rstrip()
    for attempt in (text, text.rstrip(","), _LAST_WORD.sub("", text)):
        for lacking in _LACKING:
            try:
                made = json.loads(f"{attempt}{lacking}{begun.closing}", strict=False)
            except ValueError:
                continue
            return made if isinstance(made, dict) else None
    return None
