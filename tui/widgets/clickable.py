"""Parts of texts that run an action where they are clicked, in a widget or in its border. The app runs it."""

from __future__ import annotations

from collections.abc import Iterable

from textual.content import Content
from textual.events import Click
from textual.style import Style

_ACTION = "action"
"""The name under which a part of a text has its action; Textual's own would have it look like a link."""


def clickable(text: Content, action: str) -> Content:
    """A text that runs an action where it is clicked, wherever it is wrapped to; it looks as it did."""
    return text.stylize(Style.from_meta({_ACTION: action}))


def clickable_keys(keys: Iterable[tuple[str, str]], gap: int = 3) -> Content:
    """Texts that name a key each, with their actions, beside each other."""
    return Content(" " * gap).join([clickable(Content(text), action) for text, action in keys])


def clicked_action(event: Click) -> str:
    """The action of the text under the pointer; empty for none."""
    return str(event.style.meta.get(_ACTION, ""))
