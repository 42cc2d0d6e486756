"""JSON as models write it, in strict JSON: trailing commas, single quotes, comments and Python's literals put right."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""
    (?P<text>"(?:[^"\\]|\\.)*+")
    |(?P<quoted>(?<=[\s{\[,:])'(?P<said>(?:[^\\\n]|\\.)*?)'(?=\s*[,:}\]/\#]))
    |(?P<comment>//[^\n]*+|\#[^\n]*+|/\*.*?\*/)
    |(?P<unclosed>"|/\*|(?<=[\s{\[,:])')
    |(?P<word>\w++)
    |(?P<space>\s++)
    |(?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_QUOTES = re.compile(r"\\.|\"", re.DOTALL)
_OPENING, _CLOSING = frozenset("{["), frozenset("}]")
_LITERALS = {"True": "true", "False": "false", "None": "null"}


def strict_json(body: str, start: int) -> tuple[str, int, tuple[str, ...]] | None:
    """The object or list that begins at `start` as strict JSON, where it ends, and what was put right; None where it
    has no end. What is no JSON in any manner stays as it is."""
    parts, manners, depth, comma = list[str](), dict[str, None](), 0, -1
    for token in _TOKEN.finditer(body, start):
        kind, (text, manner) = token.lastgroup, _put_right(token)
        if kind == "unclosed":
            return None
        if text in _CLOSING and comma >= 0:
            parts[comma], manner = " ", "trailing comma"
        if manner:
            manners[manner] = None
        if kind not in ("space", "comment"):
            comma = len(parts) if text == "," else -1
        parts.append(text)
        depth += (text in _OPENING) - (text in _CLOSING)
        if depth == 0:
            return "".join(parts), token.end(), tuple(manners)
    return None


def _put_right(token: re.Match[str]) -> tuple[str, str]:
    """A token in strict JSON, and the manner in which it was none."""
    match token.lastgroup:
        case "comment":
            return " ", "comments"
        case "quoted":
            return f'"{_IN_QUOTES.sub(_in_double_quotes, token["said"])}"', "single quotes"
        case "word" if token[0] in _LITERALS:
            return _LITERALS[token[0]], "Python's literals"
    return token[0], ""


def _in_double_quotes(found: re.Match[str]) -> str:
    return {"\\'": "'", '"': '\\"'}.get(found[0], found[0])
