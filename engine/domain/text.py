"""Text of bounded length."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SENTENCE_END = re.compile(r"""[.!?…]["'”’)]?(?=\s)""")
_NOTE = 60
"""Characters that the note on a cut may take."""


def cut_between_words(text: str, limit: int) -> str:
    """At most `limit` characters of a text, with an ellipsis where something is missing. The cut falls between two
    words, because half a figure is another figure; in a text without blanks it falls anywhere."""
    if len(text) <= limit:
        return text
    whole = text[:limit].rpartition(" ")[0] or text[: limit - 1]
    return f"{whole.rstrip(' ,;:-…')}…"


def cut_between_sentences(text: str, limit: int) -> str:
    """At most `limit` characters of a text, with a note in brackets where something is missing. The cut falls after a
    sentence, or between two words where the last half has no end of one."""
    if len(text) <= limit:
        return text
    room = limit - _NOTE
    ends = [end.end() for end in _SENTENCE_END.finditer(text, room // 2, room + 1)]
    kept = text[: ends[-1]] if ends else cut_between_words(text, room)
    return f"{kept} (the first {len(kept):,} of {len(text):,} characters)"


def counted(count: int, noun: str, several: str = "") -> str:
    """A number with its noun: 1 session, 2 sessions; `several` where an s does not make the plural."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {several or f'{noun}s'}"


def first_few(items: Sequence[object], most: int = 3) -> str:
    """The first of some items on a line, with how many more there are: a, b, c and 2 more."""
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return f"{', '.join(map(str, items[:most]))}{more}"


def listed(sessions: Sequence[str], most: int = 10) -> str:
    """Sessions on a line: each of a few, of more than `most` the first, the last and how many there are."""
    if len(sessions) <= most:
        return ", ".join(sessions)
    return f"{sessions[0]} to {sessions[-1]}, {len(sessions)} sessions"
