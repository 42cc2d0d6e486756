"""Text of models, news and brokers made safe for a terminal and for storage: no control codes, no hidden characters."""

from __future__ import annotations

import re
import unicodedata

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_BREAK = re.compile("\r\n|[\r\u2028\u2029]")
"""Line ends that are not a line feed, those of Unicode among them."""
_KEPT = frozenset("\n")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
"""Categories of characters that show nothing themselves but change what others show."""


def printable(text: str) -> str:
    """The text as it may reach a screen: line feeds stay, tabs become blanks, control codes are removed."""
    text = _BREAK.sub("\n", _ESCAPE.sub("", text)).replace("\t", "    ")
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c for c in text if c in _KEPT or unicodedata.category(c) not in _HIDDEN)


def one_line(text: str) -> str:
    """The text on one line, safe to show."""
    return " ".join(printable(text).split())
