"""The decision about one symbol; while it is made the answers of the agents, a pane per owner and step.

A pane streams the answer as it arrives, then shows the finished text with its model, tokens, seconds and cost.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, NamedTuple

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
from tui.widgets.trail_pane import TrailPane

if TYPE_CHECKING:
    from engine.messages.events import AgentAnswered

Part = str | tuple[str, str] | Content
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


def step_content(pane: Pane) -> Content:
    """A step: its mark and name, the model with its cost, and the answer, as far as it has come."""
    style, thinks = STYLES[pane.progress], pane.progress is Progress.THINKING
    head: list[Part] = [(f"{style.mark} {pane.name}", style.ink)]
    if note := "  ".join(part for part in (style.note, "" if thinks else facts(pane.answer)) if part):
        head.append((f"  {note}", style.ink.removeprefix("bold ") if style.note else FAINT))
    if pane.text:
        # The escapes of half a document stand for characters of any kind.
        head += ["\n", styled_answer(printable(streamed_text(pane.text)) if thinks else pane.text)]
    content = Content.assemble(*head)
    return content.stylize_before(FAINT) if style.ink == FAINT else content


class AgentPanes(TrailPane):
    """All steps of one symbol, one above another, and the decision in their place once that is read. Follows the
    streaming answer until the user scrolls."""

    BINDINGS: ClassVar[list[BindingType]] = [*pane_bindings("agents")]
    FITS = False

    def __init__(self, *, id: str, classes: str) -> None:
        super().__init__(id=id, classes=classes)
        self.panes: tuple[Pane, ...] = ()
        self._contents: list[Content] = []
        self._symbol = ""
        self._follows = True
        self._speaking = ""
        self._seen: tuple[Pane, Size] | None = None

    def show_steps(self, desk: DeskState, symbol: str) -> None:
        """Show the agents of a symbol at work, in the place of a decision."""
        panes = desk.panes_of(symbol)
        kept = dict(zip(self.panes, self._contents, strict=True))
        self._contents = [kept.get(pane) or step_content(pane) for pane in panes]
        self.trail, self.panes, self._wants_trail = None, panes, False
        self.show_blocks(self._contents)
        if symbol != self._symbol:
            self._symbol, self._follows, self._seen = symbol, True, None
            self.scroll_home(animate=False)
        speaking = next((pane.name for pane in panes if pane.progress is Progress.THINKING), "")
        if self._follows and speaking and desk.running:
            self.call_after_refresh(self._to, speaking)
        seen = panes[-1], self.virtual_size  # which changes once new text is wrapped
        if self._follows and not speaking and panes[-1].over and seen != self._seen:
            self.call_after_refresh(self._to, panes[-1].name, top=True)
        self._speaking, self._seen = speaking, seen
        marks = [
            "".join(STYLES[pane.progress].mark for pane in steps)
            for _, steps in groupby(panes, key=lambda pane: pane.owner)
        ]
        set_title(self, " ".join(part for part in ("Agents", symbol, *marks, speaking) if part))

    def show_error(self, text: str) -> None:
        """Keep the steps where there are any: what is wrong with a journal is said by the error bar."""
        if not any(pane.text for pane in self.panes):
            super().show_error(text)

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

    def _to(self, name: str, *, top: bool = False) -> None:
        """Scroll until the end of a pane can be seen, or until it is at the top."""
        number = next((n for n, pane in enumerate(self.panes) if pane.name == name), None)
        if number is not None and self.trail is None:
            end = self.first_row(number + 1)
            self.scroll_to(y=self.first_row(number) if top else max(0, end - self.size.height), animate=False)

    def action_scroll_lines(self, lines: int) -> None:
        """Scroll; stops following the streaming answer."""
        self._follows = False
        super().action_scroll_lines(lines)

    def action_edge(self, end: bool) -> None:
        """Scroll to the first agent or to the decision."""
        self._follows = False
        super().action_edge(end)

    def action_follow(self) -> None:
        """Follow the streaming answer again."""
        self._follows = True
        if self._speaking:
            self._to(self._speaking)
