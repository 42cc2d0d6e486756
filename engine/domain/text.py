"""Text of bounded length.

Decimals as text in plain notation: how JSON documents write money, prices and quantities.

Text of models, news and brokers made safe for a terminal and for storage: no control codes, no hidden characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from difflib import get_close_matches

from engine.domain.order import ZERO
from engine.errors import InvariantBroken

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


def did_you_mean(name: str, names: Sequence[str], otherwise: str = "") -> str:
    """`did you mean X?` with the name that is nearest; where none is near `otherwise`, by default all of them."""
    near = get_close_matches(name, names, 1)
    return f"did you mean {near[0]}?" if near else otherwise or f"available: {', '.join(names)}"


def first_few(items: Sequence[object], most: int = 3) -> str:
    """The first of some items on a line, with how many more there are: a, b, c and 2 more."""
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return f"{', '.join(map(str, items[:most]))}{more}"


def listed(sessions: Sequence[str], most: int = 10) -> str:
    """Sessions on a line: each of a few, of more than `most` the first, the last and how many there are."""
    if len(sessions) <= most:
        return ", ".join(sessions)
    return f"{sessions[0]} to {sessions[-1]}, {len(sessions)} sessions"


def plain(number: Decimal, places: int = 0) -> str:
    """A decimal in plain notation, exact, without zeros at the end beyond `places` decimals."""
    text = str(number)  # a third of the time of formatting, which only an exponent needs
    whole, _, part = text.partition(".")
    if len(part) >= places and part[-1:] != "0" and part.isdigit():
        return text  # most prices and quantities
    if not number.is_finite():
        raise InvariantBroken(f"{number} among the figures of a run")
    if not number:
        number = ZERO  # there is a negative zero
    whole, _, part = f"{number:f}".partition(".")
    part = part.rstrip("0").ljust(places, "0")
    return f"{whole}.{part}" if part else whole


def money(amount: Decimal) -> str:
    """An amount or a price: at least two decimals."""
    return plain(amount, 2)


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


STATE_WORDS = {"intended": "not sent yet", "submitting": "being sent", "unknown": "sent, no answer yet"}
"""A trader's words for states of an order that the journal has names of its own for."""


def state_words(state: str, detail: str = "") -> str:
    """A state of an order with its reason: `acknowledged`, `expired: the session has closed`; of a veto that alone."""
    detail = one_line(detail)
    return detail if detail.startswith("vetoed") else ": ".join(filter(None, (STATE_WORDS.get(state, state), detail)))
