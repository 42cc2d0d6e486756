"""The settings and the choice of a model, over another screen: a change is checked as `paperdesk config set` checks it,
and written into the configuration at once."""

from __future__ import annotations

import shlex
from asyncio import to_thread
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from engine.errors import PaperdeskError
from tui.desk.desk_app import ShowsFailures, report_action
from tui.screens.dialog import Dialog
from tui.screens.pick import PickScreen
from tui.screens.screen_keys import TableKeys
from tui.settings.app_settings import DEFAULT_THEME, checked_settings, theme_named
from tui.text.plain_text import cut, one_line
from tui.widgets.border_text import set_subtitle
from tui.widgets.clickable import clickable_keys
from tui.widgets.table import Column, Row, Table, rows_of

if TYPE_CHECKING:
    from tui.desk.desk_app import DeskApp
    from tui.set_up.settings_in_force import ConfigValue
    from tui.settings.invocation import Invocation

THEME = "app.theme"
AT_ONCE = (THEME, "bindings.")
"""Settings that count while the app is open; for any other the desk has to be opened again."""
HIDDEN = "..."
"""The end of an address that may carry a secret: only its beginning is shown."""
SETTINGS = (
    Column("SETTING", "name", ink="strong", max_width=34),
    Column("VALUE", "shown", stretch=True, min_width=34),
    Column("FROM", "origin", ink="muted", max_width=26, drop_order=1),
)
SETTINGS_KEYS = (
    ("enter change", "change"),
    ("x unset", "unset"),
    ("u undo", "undo"),
    ("y copy", "copy"),
    ("/ filter", "filter"),
    ("^t reopen", "reopen"),
    ("esc back", "leave"),
)
VALUES = (Column("VALUE", 0, stretch=True),)
MODELS = (
    Column("MODEL", 0, ink="strong", stretch=True, min_width=16),
    Column("$ PER M IN/OUT", 1, max_width=16),
    Column("CHARTS", 2, max_width=12, drop_order=1),
    Column("RUNS", 3, max_width=15),
)


async def change(desk: DeskApp, key: str, text: str | None) -> str:
    """Set a value, or (None) take it out: a line that says so, and from when it counts; in a read-only app the colours,
    which are not kept. Raises PaperdeskError where nothing is written."""
    if desk.settings.read_only:
        desk.take_settings(replace(desk.settings, theme=theme_named(text or DEFAULT_THEME, "here")))
        return f"{key} = {text} until you quit: a read-only app keeps nothing"
    written = await to_thread(desk.configuration.change, key, text)
    desk.take_settings(await to_thread(checked_settings, desk.invocation))
    lines = [f"{key} {'is the default' if text is None else f'= {text}'} in {written['file']}", *written["notes"]]
    if written["overridden_by"]:
        lines.append(f"{written['overridden_by']} in the environment goes first")
    elif not key.startswith(AT_ONCE):
        lines.append("counts once the desk is opened again: ctrl+t")
    return one_line("; ".join(lines))


async def undo(desk: DeskApp) -> str:
    """Take the last change back: a line that says so. Raises PaperdeskError where the file stays as it is."""
    key = await to_thread(desk.configuration.undo)
    desk.take_settings(await to_thread(checked_settings, desk.invocation))
    return f"{key} is as it was before" if key else "nothing to take back"


def choose(app: App[str], key: str = "") -> None:
    """Choose the value of a setting; without one it is the model of the desk, or of an agent."""

    def chosen(written: tuple[str, Sequence[str]] | None) -> None:
        if written:
            report_action(app, written[0], *written[1])

    app.push_screen(ChoiceScreen(key), chosen)


class ChoiceScreen(PickScreen[tuple[str, Sequence[str]]]):
    """A line to type, and the values that fit it. Ends with a line on what was written and the arguments of the command
    that writes the same, with None on escape."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "next", "Next", show=False, priority=True)]
    COLUMNS = VALUES
    EMPTY = "reading the configuration"

    def __init__(self, key: str = "") -> None:
        """`key` is the setting that is changed; without one it is a model, the desk's or after tab an agent's."""
        super().__init__()
        self._key = key
        self._settings: Sequence[ConfigValue] = []
        self._columns: Sequence[Column] = VALUES
        self._rows: Sequence[Row] = ()
        self._writing = True
        """True while the line is not answered: before its values are there, and while one is written."""

    def on_mount(self) -> None:
        """Read the values beside the screen."""
        self._load()

    @work(exit_on_error=False)
    async def _load(self) -> None:
        invocation = cast("DeskApp", self.app).invocation
        try:
            found = await to_thread(_in_force, invocation)
            self._settings = [one for one in found if (one.key == self._key if self._key else one.is_model)]
            self._columns, self._rows = await to_thread(_values, invocation, self._settings[0])
        except PaperdeskError as error:
            self._say(str(error))
            return
        self._writing = False
        self.query_one(Table).set_columns(self._columns)
        self._ask()

    def _ask(self) -> None:
        """Show the values of the first setting, the cursor on the one in force."""
        setting, line, table = self._settings[0], self.query_one(Input), self.query_one(Table)
        self.query_one(Vertical).border_title = Content(setting.name)
        self._rows = sorted(self._rows, key=lambda row: row.key != setting.text)
        self.set_class(not self._rows, "-line")
        table.display = bool(self._rows)
        line.placeholder = setting.text
        line.value = "" if self._rows or setting.text.endswith(HIDDEN) else setting.text
        self._show()
        table.point_at(setting.text)
        self._say(setting.meaning)

    @on(Input.Changed)
    def _show(self) -> None:
        """List the values that fit what is typed, and that itself, the cursor on the first."""
        typed, table = self.query_one(Input).value.strip(), self.query_one(Table)
        rows = [row for row in self._rows if typed.lower() in row.key.lower()]
        if self._rows and typed and typed not in {row.key for row in rows}:
            rows += rows_of(self._columns, [(typed, "", "", "as typed")], lambda one: one[0])
        table.show(rows)
        if rows:
            table.point_at(rows[0].key)

    @on(Table.Opened)
    @on(Input.Submitted)
    def action_enter(self) -> None:
        """Set the value under the cursor, or the one that is typed."""
        if not self._writing:
            self._writing = True
            self._write(self.query_one(Table).cursor_key if self._rows else self.query_one(Input).value.strip())

    @work(exit_on_error=False)
    async def _write(self, text: str) -> None:
        key = self._settings[0].key
        try:
            said = await change(cast("DeskApp", self.app), key, text)
        except PaperdeskError as error:
            self._say(str(error))
        else:
            self.dismiss((said, ("config", "set", key, text)))
        finally:
            self._writing = False

    def action_next(self) -> None:
        """Go to the model of the next agent."""
        if not self._writing and len(self._settings) > 1:
            self._settings = [*self._settings[1:], self._settings[0]]
            self._ask()

    def _say(self, text: str) -> None:
        following = [(f"tab {self._settings[1].name}", "next")] if len(self._settings) > 1 else []
        keys = clickable_keys([("enter sets it", "enter"), *following, ("esc leaves", "leave")])
        self.query_one("#complaint", Static).update(Content.assemble(one_line(text), "\n\n", keys))


class SettingsScreen(ShowsFailures, TableKeys, Dialog[None]):
    """Every setting that is in force, to change it, take the change back, or copy the command that does the same."""

    TABLES = ("settings",)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Leave", show=False),
        Binding("x", "unset", "Default", show=False),
        Binding("u", "undo", "Undo", show=False),
        Binding("y", "copy", "Copy", show=False),
        Binding("slash", "filter", "Filter", show=False),
        Binding("ctrl+t", "reopen", "Open the desk again", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._settings: dict[str, ConfigValue] = {}
        self._said = ""

    @property
    def _desk(self) -> DeskApp:
        return cast("DeskApp", self.app)

    @property
    def _setting(self) -> ConfigValue | None:
        """The setting under the cursor; None where there is none."""
        return self._settings.get(self.query_one(Table).cursor_key)

    def compose(self) -> ComposeResult:
        """Mount the settings, a place for what is known of one, and the keys."""
        file = self._desk.configuration.path
        with Vertical() as box:
            box.border_title = Content("Settings")
            set_subtitle(box, f"{file}{'' if file.exists() else ', made by the first change'}")
            yield Table(SETTINGS, empty="reading the configuration", id="settings", classes="")
            yield Static("", id="said", markup=False)
            yield Static(clickable_keys(SETTINGS_KEYS, 2), id="keys", markup=False)

    def on_mount(self) -> None:
        """Read the settings beside the screen."""
        self._read()

    @work(exclusive=True, exit_on_error=False)
    async def _read(self) -> None:
        try:
            found = await to_thread(_in_force, self._desk.invocation)
        except PaperdeskError as error:
            self._say(str(error))
            return
        self._settings = {one.key: one for one in found}
        self.query_one(Table).show(rows_of(SETTINGS, found, lambda one: one.key))
        self._say(self._said)

    def _say(self, text: str = "") -> None:
        """Show what the setting under the cursor is for, the command that sets it, and what was done last."""
        self._said, setting, width = text, self._setting, self.query_one("#said").size.width
        known = (setting.traits or setting.meaning, self._twin(setting)) if setting is not None else ()
        self.query_one("#said", Static).update("\n".join((*(cut(line, width) for line in known), text)))

    def _twin(self, setting: ConfigValue) -> str:
        settable = setting.text and not setting.text.endswith(HIDDEN)
        what = ("set", setting.key, setting.text) if settable else ("get", setting.key)
        return shlex.join(("paperdesk", *self._desk.options, "config", *what))

    @on(Table.Moved)
    def _moved(self) -> None:
        self._say()

    @on(Table.Opened)
    def action_change(self) -> None:
        """Ask for another value of the setting under the cursor."""

        def changed(written: tuple[str, Sequence[str]] | None) -> None:
            if written:
                self._said = written[0]
                self._read()

        if self._setting is not None and (self._setting.key == THEME or self._may_change()):
            self.app.push_screen(ChoiceScreen(self._setting.key), changed)

    def action_unset(self) -> None:
        """Take the setting under the cursor out of the file."""
        if self._setting is not None and self._may_change():
            self._do(change(self._desk, self._setting.key, None))

    def action_undo(self) -> None:
        """Take the last change back."""
        if self._may_change():
            self._do(undo(self._desk))

    @work(exit_on_error=False)
    async def _do(self, what: Awaitable[str]) -> None:
        try:
            self._said = await what
        except PaperdeskError as error:
            self._said = str(error)
        self._read()

    def _may_change(self) -> bool:
        if self._desk.settings.read_only:
            self._say("read-only")
        return not self._desk.settings.read_only

    def action_copy(self) -> None:
        """Copy the command that sets the setting under the cursor as it is."""
        if self._setting is not None:
            self.app.copy_to_clipboard(self._twin(self._setting))
            self.notify("copied", timeout=2)

    def action_reopen(self) -> None:
        """Open the desk again, with the configuration as it is now."""
        self.dismiss(None)
        self._desk.reopen(cycle=False)

    def action_leave(self) -> None:
        """Show all rows again where a filter is set; else go back to the screen below."""
        if not self.unfilter():
            self.dismiss(None)


def _in_force(invocation: Invocation) -> list[ConfigValue]:
    from tui.set_up.settings_in_force import settings_in_force  # for a thread: with it comes much of the engine

    return settings_in_force(invocation)


def _values(invocation: Invocation, setting: ConfigValue) -> tuple[tuple[Column, ...], list[Row]]:
    from tui.set_up.settings_in_force import choices, offered_models

    columns = MODELS if setting.is_model else VALUES
    found = offered_models(invocation) if setting.is_model else [(text,) for text in choices(setting.key)]
    return columns, rows_of(columns, found, lambda one: one[0])
