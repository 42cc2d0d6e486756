"""Plain text of a filing's main document from its HTML, a line per paragraph or table row."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

# A tag ends at the next bracket of either kind, so that no broken page makes the search slow.
_TAG = re.compile(r"<(/?)([a-zA-Z][\w:.-]*)[^<>]*>|<[!?][^<>]*>")
_SPACES = re.compile(r"[\s\u00a0\u200b\ufeff]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")

_BREAKS = frozenset(
    {"address", "article", "blockquote", "br", "center", "dd", "div", "dl", "dt", "h1", "h2", "h3", "h4", "h5", "h6"}
    | {"hr", "li", "ol", "p", "section", "table", "tr", "ul", "page", "text", "document"}
)
_CELLS = frozenset({"td", "th"})
_HIDDEN = frozenset({"head", "script", "style", "ix:header", "xbrl"})
"""Elements that are never visible: inline XBRL has its contexts and units under ix:header."""

_FURNITURE = re.compile(r"(?i)(table of contents|index|(page )?[-–—]?\s?(f-)?\d{1,3}\s?[-–—]?|part [iv]+)")
"""Page numbers and running heads."""


def plain_text(document: str) -> str:
    """Visible text of a page, without blank lines and page furniture. Text without HTML passes unchanged."""
    lines = (_SPACES.sub(" ", line).strip() for line in _lines(document))
    return "\n".join(line for line in lines if line and not _FURNITURE.fullmatch(line))


def _lines(document: str) -> Iterator[str]:
    if "<" not in document:
        yield from _CONTROL.sub(" ", document).splitlines()
        return
    document = _without_comments(document)
    preformatted = not re.search(r"(?i)<(p|div|tr|br)\b", document)
    parts: list[str] = []
    for text, tag in _visible(document):
        parts.append(text)
        if tag in _CELLS:
            parts.append(" ")
        elif tag in _BREAKS:
            # A paragraph of some filers goes over several lines of their file: only tags end it.
            yield from _finished(parts, preformatted)
            parts = []
    yield from _finished(parts, preformatted)


def _visible(document: str) -> Iterator[tuple[str, str]]:
    """Visible text up to each visible tag, with the tag's name; the rest with an empty one."""
    at, hidden, depth, text = 0, "", 0, ""
    for tag in _TAG.finditer(document):
        if not hidden:
            text += document[at : tag.start()]
        at = tag.end()
        name = (tag[2] or "").lower()
        nesting = 0 if tag[0].endswith("/>") else -1 if tag[1] else 1
        if hidden:
            depth += nesting if name == hidden else 0
            hidden = hidden if depth else ""
        elif name in _HIDDEN and nesting == 1:
            hidden, depth = name, 1
        else:
            yield text, name
            text = ""
    yield text if hidden else text + document[at:], ""


def _finished(parts: list[str], preformatted: bool) -> list[str]:
    text = _CONTROL.sub(" ", html.unescape("".join(parts)))
    return text.splitlines() if preformatted else [text]


def _without_comments(document: str) -> str:
    parts: list[str] = []
    at = 0
    while (start := document.find("<!--", at)) >= 0 and (end := document.find("-->", start + 4)) >= 0:
        parts.append(document[at:start])
        at = end + 3
    return "".join((*parts, document[at:]))
