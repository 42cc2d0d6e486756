"""Foreign text made safe for prompts: plain characters, bounded length, a fence that it cannot leave."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from engine.domain.text import cut_between_words

_TAG = re.compile(r"<(?:!--.*?-->|[!/?]?[a-zA-Z][^<>]*>)", re.DOTALL)
_ESCAPE_SEQUENCE = re.compile(r"(?:\x1b|\x9b)\[?[0-9;?]*[ -/]*[@-~]?")
_BACKTICKS = re.compile(r"`{2,}")
# Controls, surrogates, private use, and what turns or hides text: soft hyphen, zero width, bidi, tags,
# joiners.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffc\ufffe\uffff\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
_MAY_NEED_WORK = re.compile("[^ !-%'-;=?-_a-~\u00a1-\u00ac\u00ae-\u033f\u2010-\u2027\u2030-\u205e\u20a0-\u20bf]|  ")
_BLOCK = re.compile(r"^<<<(?P<name>\w+)\n(?P<body>.*?)\n(?P=name)>>>$", re.DOTALL | re.MULTILINE)
_SHORT = 120
"""Characters from which a line is long enough to be cut."""
_MARKUP = re.compile("[<&\x1b\x9b]")


@lru_cache(maxsize=8192)  # the same news, memories and outcomes come back day after day
def plain(text: str, limit: int | None = None) -> str:
    """One line of visible text: markup, entities, escape sequences and unseen characters are gone, angle
    brackets cannot occur, white space is single blanks, and what passes `limit` characters is cut between
    two words with an ellipsis."""
    if _MAY_NEED_WORK.search(text):
        if _MARKUP.search(text):
            # Twice, because an entity may spell a tag; what is left of either is disarmed below.
            for _ in range(2):
                text = html.unescape(_TAG.sub(" ", _ESCAPE_SEQUENCE.sub(" ", text)))
            text = _ESCAPE_SEQUENCE.sub(" ", text)
        text = _UNSEEN.sub("", text)
        text = _BACKTICKS.sub("'", text.replace("<", "‹").replace(">", "›"))
        text = one_line(text)
    text = text.strip()
    return text if limit is None else cut_between_words(text, limit)


def one_line(text: str) -> str:
    """The text with every run of white space as one blank."""
    return " ".join(text.split())


def fenced(name: str, lines: Iterable[str], left_out: int = 0) -> str:
    """Lines of foreign text between an opening and a closing mark that no line can contain, because `plain`
    leaves neither line breaks nor angle brackets; what was left out is counted inside."""
    body = [f"- {plain(line)}" for line in lines]
    if left_out:
        body.append(f"... and {left_out} more")
    return "\n".join((f"<<<{name}", *(body or ["(none)"]), f"{name}>>>"))


def halved(text: str) -> str:
    """A text with about half of what stands in its fences: of many lines the first and the last ones, of a few the
    beginning of each."""
    return _BLOCK.sub(_halved_block, text)


def _halved_block(block: re.Match[str]) -> str:
    lines = block["body"].split("\n")
    kept = len(lines) // 4
    if kept:
        left = f"... {len(lines) - 2 * kept} lines left out here"
        lines = [*lines[:kept], left, *lines[-kept:]]
    else:
        lines = [line if len(line) < _SHORT else cut_between_words(line, len(line) // 2) for line in lines]
    return "\n".join((f"<<<{block['name']}", *lines, f"{block['name']}>>>"))


def count_words(text: str) -> int:
    """The number of words: runs of non-blanks with at least one letter or digit."""
    return sum(part.isalnum() or any(c.isalnum() for c in part) for part in text.split())


def shortened(text: str, wished: int) -> str:
    """The text for a reader, cut after twice the number of words that a model was asked to keep to."""
    words = text.split()
    return text if len(words) <= 2 * wished else f"{' '.join(words[: 2 * wished])} …"


def _plain_lines(text: str) -> str:
    return "\n".join(line for line in map(plain, text.splitlines()) if line)


def _not_empty(text: str) -> str:
    if not count_words(text):
        raise ValueError("must not be empty")
    return text


Sentence = Annotated[str, StringConstraints(max_length=2000), AfterValidator(plain), AfterValidator(_not_empty)]
"""Non-empty plain text of a model, of up to 2,000 characters."""
Prose = Annotated[str, StringConstraints(max_length=20_000), AfterValidator(_plain_lines), AfterValidator(_not_empty)]
"""Non-empty plain text of a model that keeps its line breaks, of up to 20,000 characters."""
