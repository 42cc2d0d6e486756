"""Text of a filing's main document: plain text of its HTML, and its main sections cut to a length."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

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
_ITEM = re.compile(r"(?i)(?:part\s+[iv]+\s*[,.:–—-]*\s*)?item\s*(\d{1,2}[a-c]?|\d\.\d{2})\s*[.:)–—-]*\s*(.*)")
_LONGEST_HEADING = 160
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")


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


@dataclass(frozen=True, slots=True)
class SectionRule:
    """A section by the pattern of its heading; `share` is its weight in the text's budget."""

    title: str
    heading: re.Pattern[str]
    share: int


SECTIONS = (
    SectionRule("Management's discussion and analysis", re.compile(r"(?i)discussion\s+and\s+analysis"), 5),
    SectionRule("Risk factors", re.compile(r"(?i)risk\s+factors"), 3),
    SectionRule("Business", re.compile(r"(?i)(description\s+of\s+)?business\b\s*\.?$"), 2),
)
"""Main sections, in the order of the output. Source: InvestorBench [I1, I5] and TradingGPT [G2], insights of 10-K and
10-Q."""


def essence(text: str, characters: int) -> str:
    """The main sections under their titles, at most `characters` together.

    A report without any of their headings (an 8-K, an amendment of a part) gives its text from the beginning.
    """
    found = [(rule, body) for rule in SECTIONS if (body := section(text, rule.heading))]
    if not found:
        return cut(text, characters)
    parts: list[str] = []
    left = characters - sum(len(rule.title) + 3 for rule, _ in found)
    # The shortest first, so that what it leaves over goes to the others.
    budget: dict[str, int] = {}
    shares = sum(rule.share for rule, _ in found)
    for rule, body in sorted(found, key=lambda pair: len(pair[1]) / pair[0].share):
        budget[rule.title] = min(len(body), max(0, left) * rule.share // shares)
        left -= budget[rule.title]
        shares -= rule.share
    for rule, body in found:
        if excerpt := cut(body, budget[rule.title]):
            parts.append(f"{rule.title}\n{excerpt}")
    return "\n\n".join(parts)


def section(text: str, heading: re.Pattern[str]) -> str:
    """The longest text under a matching heading; empty where there is none.

    A table of contents, and references to the section, have little text below them.
    """
    lines = text.split("\n")
    headings = [
        (at, item) for at, line in enumerate(lines) if len(line) <= _LONGEST_HEADING and (item := _ITEM.match(line))
    ]
    best = ""
    for at, item in headings:
        number = item[1].lower()
        # Some filers repeat the item's number at the top of every page: only another item ends it.
        end = next((later for later, other in headings if later > at and other[1].lower() != number), len(lines))
        start = _below(lines, at, end, item, heading)
        if start is not None:
            body = "\n".join(line for line in lines[start:end] if not _is_running_head(line, number)).strip()
            best = max(best, body, key=len)
    return best or _untitled(lines, [at for at, _ in headings], heading)


def cut(text: str, characters: int) -> str:
    """The beginning of a text up to the last sentence, else word, that fits."""
    if len(text) <= characters:
        return text.strip()
    head = text[: max(0, characters)]
    ends = [match.start() for match in _SENTENCE_END.finditer(head)]
    at = ends[-1] if ends and ends[-1] > characters // 2 else head.rfind(" ")
    return head[: max(at, 0)].strip()


def _below(lines: list[str], at: int, end: int, item: re.Match[str], heading: re.Pattern[str]) -> int | None:
    """Line at which the text below a matching heading begins, or None.

    The heading is on the item's own line, or on the next where the number stands alone.
    """
    title = item[2].strip()
    if title:
        return at + 1 if heading.search(title) else None
    following = at + 1
    if following < end and len(lines[following]) <= _LONGEST_HEADING and heading.search(lines[following]):
        return following + 1
    return None


def _is_running_head(line: str, number: str) -> bool:
    item = _ITEM.match(line) if len(line) <= _LONGEST_HEADING else None
    return item is not None and item[1].lower() == number and not item[2].strip()


def _untitled(lines: list[str], headings: list[int], heading: re.Pattern[str]) -> str:
    """The section of a report without item numbers: it begins at a line that is the heading alone."""
    best = ""
    for at, line in enumerate(lines):
        found = heading.search(line)
        if found is None or len(line) > 80 or line.endswith((".", ",")) or found.end() < len(line) // 2:
            continue
        end = next((heading for heading in headings if heading > at), len(lines))
        body = "\n".join(lines[at + 1 : end]).strip()
        # A heading repeated at the top of every page must not start the section over.
        best = max(best, body, key=len)
    return best
