"""Texts that others wrote, without their markup."""

from __future__ import annotations

import re
from html import unescape

_UNSEEN = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[/!?]?[a-zA-Z][^<>]*>")
_MARKUP = re.compile(r"</?[a-zA-Z][^<>]*>|<!--|&(?:#\d+|#x[0-9a-fA-F]+|[a-zA-Z]\w*);")


def plain(text: str) -> str:
    """Text without tags, entities and line breaks."""
    return " ".join(unescape(_TAG.sub(" ", _UNSEEN.sub(" ", text))).split())


def without_markup(text: str) -> str:
    """A text as `plain` makes it where it has markup, else to the letter."""
    return plain(text) if _MARKUP.search(text) else text
