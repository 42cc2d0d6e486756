"""Colours, keys and read-only mode of the app come from the configuration."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import Running, until
from fake_desk import FakeDesk, opens
from rich.color import Color, ColorSystem
from textual.pilot import Pilot

from engine.app.desk import watch as desk_watch
from engine.errors import ConfigError
from engine.settings import places
from tests.tui.commands.conftest import Run, contents
from tests.tui.conftest import cells, opened, shown
from tui.app.app import READ_ONLY, PaperdeskApp
from tui.commands.app import open_desk
from tui.screens.settings import ChoiceScreen, SettingsScreen
from tui.settings.app_settings import THEMES_OF_256, AppSettings, checked_settings
from tui.settings.configuration_changes import ConfigurationChanges
from tui.settings.invocation import Invocation
from tui.settings.keys import KEYS, SCREENS
from tui.widgets.navigation_bars import Hints, Tabs
from tui.widgets.screen_bars import ErrorBar, EventLog, StatusBar
from tui.widgets.table import Table


def settings_of(home: Path, text: str, *, read_only: bool = False) -> AppSettings:
    file = home / "own.toml"
    file.write_text(text)
    return checked_settings(Invocation(config_file=str(file)), read_only=read_only)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[app]\ntheme = "pink"',
            "app.theme: unknown theme pink; available: colour-blind, high-contrast, light, ansi, dark",
        ),
        ('[bindings]\ndesk.rum = "R"', "bindings.desk.rum: unknown id; did you mean desk.run?"),
        ('[bindings]\n"desk.run" = "ctrl+nix"', "bindings.desk.run: unknown key ctrl+nix"),
        ('[bindings]\ndesk.run = ""', "bindings.desk.run: unknown key (empty)"),
        ('[bindings]\ndesk.run = "ctrl+m"', "bindings.desk.run: ctrl+m is the same as enter"),
        ('[bindings]\ndesk.run = "d"', "bindings.desk.run: d is already bound to desk.why on desk; rebind that one"),
        ('[bindings]\ndesk.run = "?"', "bindings.desk.run: question_mark is already bound to go.help on desk"),
        ('[bindings]\ndesk.run = "f5"\ndesk.pause = "f5"', "f5 is already bound to desk.pause on desk"),
    ],
)
def test_what_cannot_be_set_is_said_in_one_line(paperdesk_home: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings_of(paperdesk_home, text)
    assert str(refused.value).startswith(f"{paperdesk_home / 'own.toml'}: ") and said in str(refused.value)
    assert (refused.value.exit_code, str(refused.value).count("\n")) == (78, 0)


def test_the_doctor_says_where_colours_and_keys_are_set(run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> dict[str, str]:
        found = run("doctor", "--json").json["checks"]
        return {one["name"]: one["detail"] for one in found if one["area"] == "App"}

    assert told() == {"theme": "paperdesk (default)", "keys": "those of the help"}
    monkeypatch.setenv("PAPERDESK_APP__THEME", "pink")
    assert "unknown theme pink" in told()["settings"]
    monkeypatch.setenv("PAPERDESK_APP__THEME", "light")
    monkeypatch.setenv("PAPERDESK_APP__READ_ONLY", "true")
    monkeypatch.setenv("PAPERDESK_BINDINGS__PANE__ZOOM", "Z,f5")
    assert told() == {
        "theme": "paperdesk-light (environment PAPERDESK_APP__THEME)",
        "keys": "pane.zoom Z f5",
        "read-only": "nothing is changed from the app",
    }


async def test_own_keys_act_and_stand_in_hints_help_and_palette(running: Running, paperdesk_home: Path) -> None:
    settings = settings_of(
        paperdesk_home, '[bindings]\ndesk.run = "B,f5"\ndesk.next = "b"\ngo.help = "H"\nscreen.desk = "f2"'
    )
    async with running(settings=settings) as pilot:
        hints = str(pilot.app.screen.query_one(Hints).render())
        assert "B run cycle" in hints and "b symbol" in hints and "H help" in hints
        shown = {command.title: command.help for command in pilot.app.get_system_commands(pilot.app.screen)}
        assert shown["Next symbol"] == "key b"
        tabs = str(pilot.app.screen.query_one(Tabs).render())
        assert "f2 Desk" in tabs and "1 Desk" not in tabs and "2 Why" in tabs
        symbol = pilot.app.screen.symbol  # type: ignore[attr-defined]
        await pilot.press("right_square_bracket")
        assert pilot.app.screen.symbol == symbol  # type: ignore[attr-defined]
        await pilot.press("b")
        assert pilot.app.screen.symbol != symbol  # type: ignore[attr-defined]
        await pilot.press("r")
        assert not pilot.app.bridge.snapshot().busy  # type: ignore[attr-defined]
        await pilot.press("B")
        await until(pilot, lambda: bool(pilot.app.bridge.snapshot().desk.run))  # type: ignore[attr-defined]
        await pilot.press("H")
        await until(pilot, lambda: bool(pilot.app.screen.query("#menu")))
        entries = {row.key: row.cells[0].text for row in pilot.app.screen.query_one("#menu", Table).rows}
        assert (entries["desk.run"], entries["desk.next"], entries["screen.desk"]) == ("B f5", "b", "f2")


async def test_a_theme_that_is_chosen_is_written_into_the_configuration(running: Running, fresh: Path) -> None:
    async with running(settings=checked_settings(Invocation())) as pilot:
        assert pilot.app.theme == "paperdesk"
        {one.title: one.callback for one in pilot.app.get_system_commands(pilot.app.screen)}["Theme"]()
        await until(pilot, lambda: isinstance(pilot.app.screen, ChoiceScreen))
        await until(pilot, lambda: any(table.rows for table in pilot.app.screen.query(Table)))
        await pilot.press(*"light", "enter")
        await until(pilot, lambda: pilot.app.theme == "paperdesk-light")
    assert checked_settings(Invocation()).theme == "paperdesk-light"
    assert 'theme = "light"' in (fresh / "config.toml").read_text()


async def test_a_terminal_of_256_colours_gets_colours_that_it_has(running: Running) -> None:
    for theme in THEMES_OF_256.values():
        colours = [*vars(theme).values(), *theme.variables.values()]
        for colour in (Color.parse(one) for one in colours if isinstance(one, str) and one.startswith("#")):
            had, meant = colour.downgrade(ColorSystem.EIGHT_BIT).get_truecolor(), colour.get_truecolor()
            assert max(abs(a - b) for a, b in zip(had, meant, strict=True)) <= 10, (theme.name, colour.name)
    async with running(settings=AppSettings(eight_bit=True)) as pilot:
        assert pilot.app.theme_variables["background"] == THEMES_OF_256["paperdesk"].background
        table = pilot.app.screen.query_one("#watchlist")
        table.focus()
        await pilot.pause()
        assert table.get_component_styles("table--cursor").background.hex == "#005F87"


async def test_an_app_that_is_read_only_changes_nothing(running: Running, asking: FakeDesk) -> None:
    before = asking.journal.read_bytes()
    async with running(desk=asking, settings=checked_settings(Invocation(), read_only=True)) as pilot:
        app = pilot.app
        hints = str(app.screen.query_one(Hints).render())
        assert "PAPER  READ-ONLY " in app.screen.query_one(StatusBar).render_line(0).text
        assert "run cycle" not in hints and "veto" not in hints and "zoom" in hints
        titles = {command.title for command in app.get_system_commands(app.screen)}
        writing = [(key, mode) for mode in SCREENS for key in KEYS if key.writes and mode in key.screens]
        assert {"desk.pause", "desk.kill-switch", "memory.forget", "backtest.start", "backtest.form"} <= {
            key.id for key, _ in writing
        }
        for key, mode in writing:
            assert key.meaning not in titles
            if app.current_mode != mode:
                await pilot.press(_digit(mode))
                await until(pilot, lambda wanted=mode: app.current_mode == wanted)  # type: ignore[misc]
            app.clear_notifications()
            app._notified.clear()  # type: ignore[attr-defined]  # the same is not told a third time
            await pilot.press(key.keys.split(",")[0])
            said = [note.message for note in app._notifications]
            assert READ_ONLY in said and len(app.screen_stack) == 1, f"{key.id} on {mode}: {said}"
            assert not app.bridge.snapshot().busy, key.id  # type: ignore[attr-defined]
    assert (asking.journal.read_bytes(), asking.cycles, asking.submissions) == (before, 0, 0)


@pytest.mark.parametrize(
    "address", ["https://me:hush@hooks.example/T0/hush?key=hush", "hooks.example/hush", "http://["]
)
async def test_the_secret_in_an_address_is_shown_nowhere(
    run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("PAPERDESK_NOTIFY__WEBHOOK", address)
    monkeypatch.setenv("PAPERDESK_NOTIFY__PING", "https://ping.example/hush")
    checks = run("doctor", "--json").out
    assert "notify.webhook" in checks and "hush" not in checks
    if address.startswith("https"):
        async with opened() as pilot:
            await shown(pilot)
            await pilot.press("comma")
            await until(pilot, lambda: isinstance(pilot.app.screen, SettingsScreen) and bool(cells(pilot, "settings")))
            page = str(cells(pilot, "settings"))
            assert "https://hooks.example/..." in page and "https://ping.example/..." in page and "hush" not in page


def test_a_demo_desk_that_is_only_read_has_its_history_too(fresh: Path, recorded_history: None) -> None:
    desk = open_desk(Invocation(), read_only=True)
    assert desk.journal.exists() and desk.is_demo
    before = contents(fresh)
    open_desk(Invocation(), read_only=True)
    assert contents(fresh) == before


async def test_a_cycle_that_is_asked_for_on_opening_is_refused_aloud(tmp_path: Path) -> None:
    settings = checked_settings(Invocation(), read_only=True)
    app = PaperdeskApp(opens(FakeDesk(tmp_path)), lambda *_: None, images=tmp_path, cycle=True, settings=settings)
    async with app.run_test() as pilot:
        await until(pilot, lambda: any("read-only" in note.message for note in app._notifications))
        app.bridge.stop()
        assert app.bridge.wait(60)


def _digit(mode: str) -> str:
    return next(key.keys for key in KEYS if key.id == f"screen.{mode}")


BEGUN = '[desk]\nsymbols = ["ORVL"]\npreset = "finvision"\n[broker]\nmode = "auto"\n'


def write(text: str) -> None:
    places.config_file().write_text(text, encoding="utf-8")


def strip(pilot: Pilot[Any]) -> str:
    bar = pilot.app.screen_stack[0].query_one(ErrorBar)
    return str(bar.render()) if bar.text else ""


def log(pilot: Pilot[Any]) -> str:
    return pilot.app.screen_stack[0].query_one(EventLog).as_text()


async def test_no_cycle_runs_by_a_configuration_that_has_changed_until_the_desk_is_opened_again(fresh: Path) -> None:
    write(BEGUN)
    async with opened((160, 30)) as pilot:
        write(BEGUN + '[app]\ntheme = "light"\n')
        write(BEGUN.replace("auto", "ask"))
        await until(pilot, lambda: "has changed since the desk was opened (broker.mode)" in strip(pilot))
        assert "ctrl+t open again" in strip(pilot) and "API keys" not in strip(pilot)
        await pilot.press("escape")
        await until(pilot, lambda: not strip(pilot))
        await pilot.press("r")
        await until(pilot, lambda: "no cycle runs until the desk is reopened" in strip(pilot))
        assert not places.desk_journal("demo").exists()
        write("[broker]\nmode = 5\n")
        await until(pilot, lambda: "no cycle runs until it is valid" in strip(pilot) and "broker.mode" in strip(pilot))
        write(BEGUN + '[app]\ntheme = "light"\n')  # what concerns the app alone is read when it opens
        await until(pilot, lambda: not pilot.app.bridge._follower.changed)  # type: ignore[attr-defined]
        await pilot.press("r")
        await until(pilot, places.desk_journal("demo").exists)
        write(BEGUN.replace('"ORVL"', '"ORVL", "TMBK"'))
        await until(pilot, lambda: "(desk.symbols)" in strip(pilot))
        await until(pilot, lambda: not pilot.app.bridge.snapshot().busy)  # type: ignore[attr-defined]
        await pilot.press("ctrl+t")
        await until(pilot, lambda: pilot.app._exit)
        assert pilot.app.reopening == ()  # type: ignore[attr-defined]


async def test_a_scheduled_cycle_of_the_app_comes_again_once_the_configuration_is_what_it_was(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(BEGUN + "[watch]\nin_app = true\n")
    there, text = threading.Event(), "the configuration has changed"
    monkeypatch.setattr(desk_watch, "RETRY", timedelta())
    monkeypatch.setattr(ConfigurationChanges, "__call__", lambda changes: "" if there.is_set() else text)
    async with opened((160, 30)) as pilot:
        await until(pilot, lambda: "the configuration has changed (code 75)" in log(pilot))
        assert not places.desk_journal("demo").exists()
        there.set()
        await until(pilot, lambda: "run done" in log(pilot))
