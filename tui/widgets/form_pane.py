"""The backtest's form on the screen: fields, a complaint beside each, and the names that can decide."""

from __future__ import annotations

import asyncio
from datetime import date

from rich.cells import cell_len
from rich.segment import Segment
from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.strip import Strip
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static

from engine.domain.run import RunSpec
from tui.desk.desk_app import ShowsFailures
from tui.view.backtest_form import FIELDS, deciders, filled, values_of


class MarkedInput(Input):
    """A field that shows its beginning, and ends with a mark where its text goes on, while nobody types in it."""

    def on_blur(self) -> None:
        """Go back to the beginning, unless the whole terminal is left: for a while, or as the app ends."""
        if self.app.app_focus and self.app.is_running:
            self.cursor_position = 0

    def render_line(self, y: int) -> Strip:
        """Draw a line."""
        line, width = super().render_line(y), self.content_size.width
        if self.has_focus or cell_len(self.value) <= width or width < 2:
            return line
        return Strip.join([line.crop(0, width - 1), Strip([Segment("…", next(iter(line)).style)])])


class FormPane(ShowsFailures, VerticalScroll, can_focus=False):
    """Fields under labels."""

    def compose(self) -> ComposeResult:
        """Mount the fields, the costs that follow from the configuration, and the deciders."""
        self.border_title = "Backtest"
        for field in FIELDS:
            with Horizontal(classes="field"):
                yield Static(field.label, classes="label", markup=False)
                yield MarkedInput(placeholder=field.hint, id=f"field-{field.id}", compact=True)
            yield Static("", classes="complaint", id=f"wrong-{field.id}", markup=False)
        with Horizontal(classes="field"):
            yield Static("Costs", classes="label", markup=False)
            yield Static("", id="costs", markup=False)
        yield Static("", id="deciders", markup=False)

    def on_mount(self) -> None:
        """List what can decide, once the form has its size: a text that grows before that keeps its first height."""
        self.call_after_refresh(self._list_deciders)

    @work(exclusive=True, exit_on_error=False)
    async def _list_deciders(self) -> None:
        presets, strategies = await asyncio.to_thread(deciders)
        self._box("decides").suggester = SuggestFromList([*presets, *strategies])
        self.query_one("#deciders", Static).update(
            f"Presets: {', '.join(presets)}.\n\nStrategies: {', '.join(strategies)}."
        )

    def propose(self, spec: RunSpec, costs: str) -> None:
        """Fill the fields that are empty."""
        for field, text in values_of(spec).items():
            self._box(field).value = self._box(field).value or text
        self.query_one("#costs", Static).update(costs.replace(", ", "\n"))

    def read(self, proposal: RunSpec, today: date) -> RunSpec | None:
        """The run of the form; None where a field is wrong, which says why beside it and has the focus then."""
        values = {field.id: self._box(field.id).value for field in FIELDS}
        spec, complaints = filled(values, proposal, today, *deciders())
        for field in FIELDS:
            self._complain(field.id, complaints.get(field.id, ""))
        if spec is None:
            self._box(next(iter(complaints))).focus()
        return spec

    def step(self, by: int) -> bool:
        """Go to the next field, or the one before; False where the focus is in none, or there is no other."""
        boxes = list(self.query(Input))
        place = next((n for n, box in enumerate(boxes) if box is self.screen.focused), None)
        if place is None or not 0 <= place + by < len(boxes):
            return False
        self.screen.set_focus(boxes[place + by])
        return True

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        if event.input.id is not None:
            self._complain(event.input.id.removeprefix("field-"), "")

    def _box(self, field: str) -> Input:
        return self.query_one(f"#field-{field}", Input)

    def _complain(self, field: str, text: str) -> None:
        line = self.query_one(f"#wrong-{field}", Static)
        line.update(text)
        line.display = bool(text)
