"""A set-up: a paper account, or the keys of a configured desk, by answering a few questions.

Nothing is written before the account was reached; then what belongs to the set-up is, for its owner alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, cast

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from engine.domain.market import CORRECT_SYMBOLS
from engine.domain.text import counted
from engine.errors import PaperdeskError
from tui.desk.desk_app import DeskApp, ShowsFailures
from tui.screens.dialog import Dialog
from tui.set_up.set_up import Question, SetUp, keys_of
from tui.shell.subcommand import CommandFailed, run_command

NARROW = 90
"""Columns from which the answers stand beside the question."""
TRIED = ("Configuration", "Keys", "Broker", "Models", "Services")
"""Areas of the doctor's findings in which a failed check refuses the answers."""


class SetUpScreen(ShowsFailures, Dialog[None]):
    """The answers so far on the left, one question on the right; then what is being done, line by line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", show=False),
        Binding("enter", "go_on", "Go on", show=False),
        Binding("o", "open", "Open", show=False),
    ]

    def __init__(self, set_up: SetUp) -> None:
        """`set_up` has the questions, and writes the answers."""
        super().__init__()
        self._set_up = set_up
        self._answers = dict(set_up.stored)
        self._at = 0
        self._lines: list[tuple[str, str]] = []
        self._working = self._ready = False

    @property
    def _questions(self) -> list[Question]:
        return list(self._set_up.questions(self._answers))

    @property
    def _question(self) -> Question | None:
        """The question that is shown; None once all are answered."""
        asked = self._questions
        return asked[self._at] if self._at < len(asked) else None

    @property
    def _kept(self) -> dict[str, str]:
        """The answers to what is asked; an earlier model's key is none of them."""
        return {one.key: self._answers[one.key] for one in self._questions}

    def compose(self) -> ComposeResult:
        """Mount the answers and the place of a question."""
        with Vertical() as box:
            box.border_title = Content(f"PAPER  {self._set_up.title}")
            with Horizontal():
                yield Static("", id="answers", markup=False)
                with VerticalScroll(id="question", can_focus=False):
                    yield Static("", id="text", markup=False)
                    yield Input(compact=True, id="answer")
                    yield Static("", id="complaint", markup=False)
                    yield Static("", id="done", markup=False)
            yield Static("", id="choices", markup=False)

    def on_mount(self) -> None:
        """Ask the first question."""
        self._show()

    def on_resize(self, event: events.Resize) -> None:
        """Leave the answers out where there is no room for them."""
        self.set_class(event.size.width < NARROW, "-small")

    # Questions

    @on(Input.Submitted)
    def _answered(self, event: Input.Submitted) -> None:
        question = self._question
        if question is None:
            return
        try:
            self._answers[question.key] = question.checked(event.value.strip() or self._proposed(question))
        except PaperdeskError as error:
            self.query_one("#complaint", Static).update(str(error))
            self.add_class("-told")
            return
        self._at += 1
        self._show()

    def _proposed(self, question: Question) -> str:
        """The answer that enter alone gives: to a key, which is not shown, the one that was entered before."""
        return self._answers.get(question.key, "") if question.secret else question.proposed

    def action_back(self) -> None:
        """Go back to the question before; from the first one, leave."""
        if self._working:
            return
        if self._at == 0 or self._ready:
            self.dismiss(None)
            return
        self._at, self._lines = min(self._at, len(self._questions)) - 1, []
        self._show()

    def action_go_on(self) -> None:
        """Check the answers and write them; once that is done, open the desk, and run its first cycle where it may."""
        if self._ready:
            cast("DeskApp", self.app).reopen(cycle=self._set_up.cycle)
        elif self._question is None and not self._working:
            self._working, self._lines = True, []
            self._carry_out()

    def action_open(self) -> None:
        """Open the desk without a cycle."""
        if self._ready:
            cast("DeskApp", self.app).reopen(cycle=False)

    def _show(self) -> None:
        question, box = self._question, self.query_one("#answer", Input)
        self.query_one("#complaint", Static).update("")
        box.display = question is not None
        if question is not None:
            kept = question.secret and self._proposed(question)
            box.password, box.placeholder = question.secret, "enter keeps it" if kept else question.proposed
            box.value = "" if question.secret else self._answers.get(question.key, "")
            box.select_all()
            box.focus()
        else:
            self.set_focus(None)
        text = question.text if question is not None else self._set_up.done if self._ready else self._set_up.end
        number = f"{self._at + 1} of {len(self._questions)}   " if question is not None else ""
        self.query_one("#text", Static).update(Content.assemble((number, "$primary"), text))
        self.query_one("#answers", Static).update(self._rail(question))
        self.query_one("#done", Static).update(Content("\n").join(Content.styled(*line) for line in self._lines))
        self.query_one("#choices", Static).update(self._choices(question))
        self.set_class(bool(self._lines), "-told")

    def _rail(self, asked: Question | None) -> Content:
        def line(one: Question) -> Content:
            answer = self._answers.get(one.key, "")
            shown = "*" * min(8, len(answer)) if one.secret else answer
            return Content.assemble((f"{'>' if one == asked else ' '} {one.name:<14}", "bold"), shown)

        return Content("\n").join(map(line, self._questions))

    def _choices(self, question: Question | None) -> str:
        if self._working:
            return "one moment"
        if not self._ready:
            return f"enter {'start' if question is None else 'next'}   esc back"
        if self.app.is_web:
            return "enter ends the app: open the page again   esc stay here"
        cycle = " and run the first cycle   o open it" if self._set_up.cycle else ""
        return f"enter open it{cycle}   esc stay here"

    # What is done

    @work(exclusive=True, exit_on_error=False)
    async def _carry_out(self) -> None:
        written: list[Path] = []
        try:
            with TemporaryDirectory(prefix="paperdesk-") as folder:
                if self._set_up.options is not None:
                    options = self._set_up.options(self._kept, Path(folder))
                    await self._check(options)
                    await self._fetch(options)
            for file in self._set_up.keep(self._kept):
                written.append(file)
                self._say(f"wrote {file}", "$success")
            self._ready = True
        except (PaperdeskError, OSError) as error:  # an OSError is that of the draft
            self._say(f"{error}", "$warning")
            done = f"{written[0]} was written, nothing else" if written else "Nothing was written"
            self._say(f"{done}: esc goes back to the answers, enter tries again.", "")
        finally:
            self._working = False
            self._show()

    async def _check(self, options: tuple[str, ...]) -> None:
        """Reach the account and the models. Raises SetUpRefused."""
        self._say("reaching the account", "")
        found = await self._command(options, "doctor", "--connect", answers=(0, 1))
        wrong = [one for one in found["checks"] if one["state"] == "fail" and one["area"] in TRIED]
        self._lines.pop()
        if wrong:
            first, *others = wrong
            more = f" (and {counted(len(others), 'other check')})" if others else ""
            raise SetUpRefused(f"{first['name']}: {first['detail']}{more}")
        self._say("the account answers", "$success")

    async def _fetch(self, options: tuple[str, ...]) -> None:
        """Fetch the prices of every symbol, one after another."""
        symbols = self._set_up.symbols(self._answers)
        for number, symbol in enumerate(symbols, 1):
            self._say(f"fetching {symbol}, {number} of {len(symbols)}", "")
            try:
                found = await self._command(options, "fetch", "--symbols", symbol)
            except CommandFailed as error:
                raise SetUpRefused(str(error).replace(CORRECT_SYMBOLS, "")) from None
            added = sum(one["added"] for one in found["files"])
            self._lines.pop()
            self._say(f"{symbol}: {added:,} rows", "$success")

    async def _command(
        self, options: tuple[str, ...], *arguments: str, answers: tuple[int, ...] = (0,)
    ) -> Mapping[str, Any]:
        return await run_command(options, *arguments, keys=keys_of(self._kept), answers=answers)

    def _say(self, text: str, ink: str) -> None:
        self._lines.append((text, ink))
        self._show()


class SetUpRefused(PaperdeskError):
    """The account or a model cannot be had; its message says why."""
