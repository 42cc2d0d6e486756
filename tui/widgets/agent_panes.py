"""The answers of the agents about one symbol, a pane per owner and step, under the card of the decision.

A pane streams the answer as it arrives, then shows the finished text with its model, tokens, seconds and cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from engine.reports import amounts
from tui.settings.keys import pane_bindings
from tui.text.plain_text import one_line, printable
from tui.view.partial_answer import streamed_text
from tui.view.state import DeskState, Pane, Progress
from tui.widgets.border_text import set_title
from tui.widgets.folds import inked
from tui.widgets.text_lines import TextLines

if TYPE_CHECKING:
    from engine.messages.events import AgentAnswered

Part = str | tuple[str, str] | Content
NARROWEST = 34
"""Columns of a decision's card at least."""
MUTED, FAINT = "$foreground 55%", "$foreground 45%"
OFFLINE = "rules, not a language model"


class StepStyle(NamedTuple):
    """The style of a step: its mark, ink and note."""

    mark: str
    ink: str
    note: str = ""


STYLES = {
    Progress.WAITING: StepStyle("○", FAINT),
    Progress.THINKING: StepStyle("●", "bold $primary", "thinking"),
    Progress.ANSWERED: StepStyle("✓", "$success"),
    Progress.ABSTAINED: StepStyle("✗", "$warning", "abstained"),
    Progress.LEFT_OUT: StepStyle("–", FAINT, "nothing to do"),
}


def facts(answer: AgentAnswered | None) -> str:
    """Join model, tokens, seconds and cost of a finished answer; empty before."""
    if answer is None:
        return ""
    model = one_line(answer.model)
    parts = [OFFLINE if model.split(":", maxsplit=1)[0] == "offline" else model]
    if answer.usage.counted:
        parts.append(f"{answer.usage.total:,} tok")
    parts.append("recorded" if answer.cached else f"{answer.seconds:.1f}s")
    if answer.cost is None or answer.cost:
        parts.append(amounts.cost(answer.cost))
    return "  ".join(part for part in parts if part)


def styled_answer(text: str) -> Content:
    """Style a finished answer: the names of its fields muted, the rest plain. Nothing in it is read as markup."""
    lines: list[Content] = []
    for line in text.split("\n"):
        name, colon, rest = line.partition(": ")
        field = bool(colon) and len(name) < 32 and name.islower()
        lines.append(Content.assemble((f"{name}: ", MUTED), rest) if field else Content(line))
    return Content("\n").join(lines)


def answer_content(pane: Pane) -> Content:
    """Style the answer of a step, as far as it has come."""
    thinks = pane.progress is Progress.THINKING
    # The escapes of half a document stand for characters of any kind.
    return styled_answer(printable(streamed_text(pane.text)) if thinks else pane.text)


def step_content(pane: Pane) -> Content:
    """A step: its mark and name, the model with its cost, and the answer."""
    style, thinks = STYLES[pane.progress], pane.progress is Progress.THINKING
    head: list[Part] = [(f"{style.mark} {pane.name}", style.ink)]
    if note := "  ".join(part for part in (style.note, "" if thinks else facts(pane.answer)) if part):
        head.append((f"  {note}", style.ink.removeprefix("bold ") if style.note else FAINT))
    if pane.text:
        head += ["\n", answer_content(pane)]
    content = Content.assemble(*head)
    return content.stylize_before(FAINT) if style.ink == FAINT else content


class AgentPanes(TextLines):
    """All steps of one symbol, one above another. Follows the streaming answer, and then shows the decision, until the
    user scrolls."""

    BINDINGS: ClassVar[list[BindingType]] = [*pane_bindings("agents")]

    def __init__(self, *, id: str, classes: str) -> None:
        super().__init__(id=id, classes=classes)
        self.panes: tuple[Pane, ...] = ()
        self._contents: list[Content] = []
        self._trail: Mapping[str, Any] | None = None
        self._card: list[Content] = []
        self._symbol = ""
        self._follows = True
        self._speaking = ""
        self._last: tuple[Pane, Size] | None = None

    def on_mount(self) -> None:
        """Show the steps of a desk without events."""
        self._show_steps(DeskState().panes_of(""))

    def show(self, desk: DeskState, symbol: str) -> None:
        """Show the agents of a symbol."""
        panes = desk.panes_of(symbol)
        self._show_steps(panes)
        if symbol != self._symbol:
            self._symbol, self._follows, self._last = symbol, True, None
            self.scroll_home(animate=False)
        speaking = next((pane.name for pane in panes if pane.progress is Progress.THINKING), "")
        if self._follows and speaking and desk.running:
            self.call_after_refresh(self._to, speaking)
        last = panes[-1], self.virtual_size  # which changes once new text is wrapped
        if self._follows and not speaking and panes[-1].over and last != self._last:
            self.call_after_refresh(self._to, panes[-1].name, top=True)
        self._speaking, self._last = speaking, last
        self._title(panes, symbol)

    def show_card(self, trail: Mapping[str, Any] | None) -> None:
        """Show first what counts of a decision, by its document of `paperdesk why`; None for nothing."""
        self._trail = trail
        self._lay_out_card()
        if self._follows and not self._speaking:
            self._to(self.panes[-1].name, top=True)

    def on_resize(self) -> None:
        """Fit the card."""
        self._lay_out_card()

    def _lay_out_card(self) -> None:
        self._card = []
        if self._trail is not None and self.text_width >= NARROWEST:
            from tui.text.trail_summary import FEWEST_ROWS, first_lines

            (shown,) = self._trail["decisions"]
            rows = max(2 * FEWEST_ROWS, self.size.height)  # the pane scrolls: nothing needs to be cut
            self._card = [inked(first_lines(self._trail, shown, self.text_width, rows)), Content("")]
        self.show_blocks([*self._card, *self._contents])

    def _show_steps(self, panes: tuple[Pane, ...]) -> None:
        kept = dict(zip(self.panes, self._contents, strict=True))
        self._contents = [kept.get(pane) or step_content(pane) for pane in panes]
        self.panes = panes
        self.show_blocks([*self._card, *self._contents])

    def _set_rows(self, rows: int) -> None:
        """Note the number of rows without a layout of the screen, which Textual makes with each change of it: text
        comes all the time while a cycle runs, and no key is answered meanwhile. The scrollbar is always there."""
        size = Size(0, rows)
        if not self.container_size or self.styles.auto_dimensions:
            self.virtual_size = size
        elif size != self.virtual_size:
            self.set_reactive(Widget.virtual_size, size)
            self.vertical_scrollbar.window_virtual_size = rows
            self.scroll_y = self.validate_scroll_y(self.scroll_y)

    def as_text(self) -> str:
        """Join the card and all answers, for the clipboard."""
        answers = [f"{pane.name} ({pane.progress})\n{pane.text}" for pane in self.panes if pane.text]
        return "\n\n".join([*(card.plain for card in self._card[:1]), *answers])

    def _title(self, panes: tuple[Pane, ...], symbol: str) -> None:
        marks = [
            "".join(STYLES[pane.progress].mark for pane in steps)
            for _, steps in groupby(panes, key=lambda pane: pane.owner)
        ]
        label = " ".join(part for part in ("Agents", symbol, *marks, self._speaking) if part)
        set_title(self, label)

    def _to(self, name: str, *, top: bool = False) -> None:
        """Scroll until the end of a pane can be seen, or until it is at the top, where the card would be."""
        if top and self._card:
            self.scroll_home(animate=False)
            return
        number = next((n for n, pane in enumerate(self.panes) if pane.name == name), None)
        if number is not None:
            number += len(self._card)
            end = self.first_row(number + 1)
            self.scroll_to(y=self.first_row(number) if top else max(0, end - self.size.height), animate=False)

    def action_scroll_lines(self, lines: int) -> None:
        """Scroll; stops following the streaming answer."""
        self._follows = False
        self.scroll_relative(y=lines, animate=False)

    def action_edge(self, end: bool) -> None:
        """Scroll to the first agent or to the decision."""
        self._follows = False
        self.scroll_to(y=self.max_scroll_y if end else 0, animate=False)

    def action_follow(self) -> None:
        """Follow the streaming answer again."""
        self._follows = True
        if self._speaking:
            self._to(self._speaking)
