"""Lines of text with their ink: a console makes escape codes of it, a screen styles."""

from __future__ import annotations

from collections.abc import Iterator

from tui.plain_text import printable
from tui.text_table import wrapped

Line = tuple[str, str]
"""The text, and its ink: `strong`, `heading`, `quiet`, `warn`, `up`, `down`, or empty."""


def section(title: str) -> Iterator[Line]:
    """A heading under an empty line."""
    yield "", ""
    yield title, "heading"


def paragraph(text: str, width: int, indent: str = "  ", ink: str = "") -> Iterator[Line]:
    """A text of a model or of the news, safe to show, wrapped and indented."""
    for line in wrapped(printable(text).strip(), width - len(indent)):
        yield (indent + line).rstrip(), ink
