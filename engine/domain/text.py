"""Text of bounded length."""

from __future__ import annotations


def cut_between_words(text: str, limit: int) -> str:
    """At most `limit` characters of a text, with an ellipsis where something is missing. The cut falls between two
    words, because half a figure is another figure; in a text without blanks it falls anywhere."""
    if len(text) <= limit:
        return text
    whole = text[:limit].rpartition(" ")[0] or text[: limit - 1]
    return f"{whole.rstrip(' ,;:-…')}…"
