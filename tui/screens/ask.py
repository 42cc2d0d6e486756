"""A question that is answered by a line of text, over another screen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import date
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from tui.desk.desk_app import ShowsFailures
from tui.screens.dialog import Dialog
from tui.widgets.clickable import clickable_keys

KEYS = clickable_keys([("enter confirms", "confirm"), ("esc cancels", "leave")])


def session_of(text: str) -> date:
    """A session as it is typed. Raises ValueError that says how it is written."""
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text.strip() or 'nothing'} is not a date: write it as 2026-11-20") from None


class AskScreen(ShowsFailures, Dialog[str]):
    """A line to type. Ends with it once it passes the check, with None on escape."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Cancel", show=False)]

    def __init__(
        self,
        title: str,
        hint: str,
        *,
        text: str = "",
        check: Callable[[str], object] = str,
        note: Callable[[str], str] = lambda text: "",
        refusal: Callable[[str], Awaitable[str]] | None = None,
    ) -> None:
        """`hint` stands in the empty line, below it `note` of what is typed, with why it would not be taken, where
        `refusal` finds anything; `check` raises ValueError with a line for the user."""
        super().__init__()
        self._title, self._hint, self._text, self._check, self._note = title, hint, text, check, note
        self._refusal = refusal

    def compose(self) -> ComposeResult:
        """Mount the line and a place for what is wrong with it."""
        with Vertical() as box:
            box.border_title = Content(self._title)
            yield Input(self._text, placeholder=self._hint, compact=True)
            yield Static(_with_keys(self._note(self._text)), id="complaint", markup=False)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show the note of what is typed now."""
        self._say(self._note(event.value))
        if self._refusal is not None:
            self._look(self._refusal, event.value)

    @work(exclusive=True, exit_on_error=False)
    async def _look(self, refusal: Callable[[str], Awaitable[str]], text: str) -> None:
        if refused := await refusal(text):
            self._say(f"{self._note(text)}\n\nNOT TAKEN: {refused}")

    def _say(self, note: str) -> None:
        self.query_one("#complaint", Static).update(_with_keys(note))

    @on(Input.Submitted)
    def action_confirm(self) -> None:
        """End with the text, or say what is wrong with it."""
        text = self.query_one(Input).value
        try:
            self._check(text)
        except ValueError as error:
            self._say(str(error))
        else:
            self.dismiss(text)


def _with_keys(note: str) -> Content:
    return Content.assemble(note, "\n\n", KEYS) if note else KEYS
