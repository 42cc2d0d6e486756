"""Text of bounded length."""

from __future__ import annotations

from collections.abc import Sequence


def cut_between_words(text: str, limit: int) -> str:
    """At most `limit` characters of a text, with an ellipsis where something is missing. The cut falls between two
    words, because half a figure is another figure; in a text without blanks it falls anywhere."""
    if len(text) <= limit:
        return text
    whole = text[:limit].rpartition(" ")[0] or text[: limit - 1]
    return f"{whole.rstrip(' ,;:-…')}…"


def listed(sessions: Sequence[str], most: int = 10) -> str:
    """Sessions on a line: each of a few, of more than `most` the first, the last and how many there are."""
    if len(sessions) <= most:
        return ", ".join(sessions)
    return f"{sessions[0]} to {sessions[-1]}, {len(sessions)} sessions"
