"""Settings that set: each kind is changed in the app, checked, written with the file's comments kept, and undone."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from engine.settings import places
from tests.servers.fake_llm_server import fake_llm_server
from tests.tui.commands.conftest import Run
from tests.tui.conftest import Running, until
from tui.screens.settings import ChoiceScreen, SettingsScreen
from tui.set_up.first_configuration import example
from tui.settings.app_settings import AppSettings
from tui.widgets.navigation_bars import Hints
from tui.widgets.table import Table

CHANGES = {
    "models.default": ("openai:gpt-5.4-mini", "openai:gpt-5.4-mini"),
    "models.agents.chart.model": ("anthropic:mine", "anthropic:mine"),
    "budget.usd_per_day": ("7.50", 7.5),
    "desk.symbols": ("aapl, msft", ["AAPL", "MSFT"]),
    "broker.mode": ("ask", "ask"),
    "watch.every": ("30", 30),
    "watch.in_app": ("true", True),
    "app.theme": ("light", "light"),
    "bindings.desk.run": ("f5", "f5"),
}
"""What is typed for each kind of setting, and what the file has then."""
WRONG = {
    "models.default": "opnai:gpt-5.4-mini",
    "budget.usd_per_day": "much",
    "desk.symbols": "<X>",
    "broker.mode": "perhaps",
    "watch.every": "2",
    "app.theme": "pink",
    "bindings.desk.run": "d",
}


def written() -> Mapping[str, Any]:
    return tomllib.loads(places.config_file().read_text())


def value_of(key: str) -> object:
    found: Any = written()
    section, *rest = key.split(".")
    for part in (section, ".".join(rest)) if section == "bindings" else key.split("."):
        found = found[part]
    return found


async def settings(pilot: Pilot[Any]) -> SettingsScreen:
    """The page of settings, once they were read."""
    await pilot.press("comma")
    await until(pilot, lambda: isinstance(pilot.app.screen, SettingsScreen) and bool(table(pilot).rows))
    screen = pilot.app.screen
    assert isinstance(screen, SettingsScreen)
    return screen


def table(pilot: Pilot[Any]) -> Table:
    return pilot.app.screen.query_one(Table)


def said(pilot: Pilot[Any], name: str = "said") -> str:
    return "".join(str(one.render()) for one in pilot.app.screen.query(f"#{name}").results(Static))


async def type_value(pilot: Pilot[Any], text: str) -> None:
    """Type a value once it is asked for, and have it set."""
    await until(pilot, lambda: isinstance(pilot.app.screen, ChoiceScreen) and not pilot.app.screen._writing)
    pilot.app.screen.query_one(Input).value = text
    await pilot.pause(0)
    await pilot.press("enter")


async def test_each_kind_of_setting_is_written_with_comments_kept_and_undone(running: Running, fresh: Path) -> None:
    file = places.config_file()
    file.write_text(example())
    comments = [line for line in example().splitlines() if line.startswith("# ") and " = " not in line]
    async with running() as pilot:
        screen = await settings(pilot)
        shown = {row.key: row.cells[1].text for row in table(pilot).rows}
        assert (shown["watch.after_close"], shown["budget.usd_per_day"]) == ("20 min", "5 USD")
        for key, (text, value) in CHANGES.items():
            before = file.read_bytes()
            table(pilot).point_at(key)
            await pilot.press("enter")
            await type_value(pilot, text)
            await until(pilot, lambda key=key: pilot.app.screen is screen and f"{key} = " in said(pilot))  # type: ignore[misc]
            assert value_of(key) == value
            assert set(comments) <= set(file.read_text().splitlines())
            assert ("opened again" in said(pilot)) == (key not in ("app.theme", "bindings.desk.run"))
            if key == "app.theme":
                assert pilot.app.theme == "paperdesk-light"
            await pilot.press("u")
            await until(pilot, lambda key=key: f"{key} is as it was" in said(pilot))  # type: ignore[misc]
            assert file.read_bytes() == before
        assert pilot.app.theme == "paperdesk"
        await pilot.press("u")
        await until(pilot, lambda: "nothing" in said(pilot))


async def test_a_wrong_value_is_one_line_and_leaves_the_file(running: Running, fresh: Path) -> None:
    places.config_file().write_text(example())
    async with running((80, 24)) as pilot:
        screen = await settings(pilot)
        for key, text in WRONG.items():
            table(pilot).point_at(key)
            await pilot.press("enter")
            await type_value(pilot, text)
            await until(pilot, lambda: not pilot.app.screen._writing)  # type: ignore[attr-defined]
            complaint, *_ = said(pilot, "complaint").split("\n")
            assert isinstance(pilot.app.screen, ChoiceScreen) and key.rsplit(".", 1)[-1] in complaint, complaint
            assert ("did you mean" in complaint) == (key == "models.default")
            await pilot.press("escape")
            await until(pilot, lambda: pilot.app.screen is screen)
    assert places.config_file().read_text() == example()


async def test_a_key_that_is_set_acts_at_once_and_stands_in_the_hints(running: Running, fresh: Path) -> None:
    async with running() as pilot:
        await settings(pilot)
        table(pilot).point_at("bindings.pane.zoom")
        await pilot.press("enter")
        await type_value(pilot, "Z")
        await until(pilot, lambda: "bindings.pane.zoom = Z" in said(pilot))
        assert written() == {"bindings": {"pane.zoom": "Z"}}, "the file is made by the first change"
        await pilot.press("escape")
        frame: Any = pilot.app.screen
        await until(pilot, lambda: "Z zoom" in str(frame.query_one(Hints).render()))
        await pilot.press("Z")
        assert frame._zoomed
        await pilot.press("comma")
        await until(pilot, lambda: bool(pilot.app.screen.query(Table)) and bool(table(pilot).rows))
        await pilot.press("u")
        await until(pilot, lambda: "as it was" in said(pilot))
        assert not places.config_file().exists(), "it was not there before"


async def test_a_change_from_elsewhere_is_not_undone(running: Running, fresh: Path, run: Run) -> None:
    async with running() as pilot:
        await settings(pilot)
        table(pilot).point_at("budget.ask_above")
        await pilot.press("enter")
        await type_value(pilot, "2")
        await until(pilot, lambda: "= 2" in said(pilot))
        await pilot.press("y")
        assert pilot.app.clipboard == "paperdesk config set budget.ask_above 2"
        places.config_file().write_text("[desk]\nseed = 3\n[budget]\nask_above = 2\n")
        await pilot.press("u")
        await until(pilot, lambda: "from elsewhere" in said(pilot))
        assert written()["desk"] == {"seed": 3}
        table(pilot).point_at("budget.ask_above")
        await pilot.press("x")
        await until(pilot, lambda: "is the default" in said(pilot))
        assert "ask_above" not in written()["budget"]


async def test_nothing_is_changed_in_an_app_that_is_read_only(running: Running, fresh: Path) -> None:
    async with running(settings=AppSettings(read_only=True)) as pilot:
        screen = await settings(pilot)
        for key in ("enter", "x", "u"):
            await pilot.press(key)
            assert "read-only" in said(pilot) and pilot.app.screen is screen
        table(pilot).point_at("app.theme")  # the colours for this sitting
        await pilot.press("enter")
        await type_value(pilot, "light")
        await until(pilot, lambda: pilot.app.screen is screen and "keeps nothing" in said(pilot))
        assert pilot.app.theme == "paperdesk-light"
    assert not places.config_file().exists()


async def test_three_keys_choose_a_model_that_answers_on_this_machine(
    running: Running, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OLLAMA", "VLLM"):
        monkeypatch.setenv(f"PAPERDESK_ENDPOINTS__{name}__BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "there")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with fake_llm_server() as server:
        server.models = ["qwen3:8b"]
        monkeypatch.setenv("PAPERDESK_ENDPOINTS__LMSTUDIO__BASE_URL", server.openai_url)
        async with running() as pilot:
            await pilot.press("m")
            await until(pilot, lambda: isinstance(pilot.app.screen, ChoiceScreen) and not pilot.app.screen._writing)
            rows = {row.key: [cell.text for cell in row.cells[1:]] for row in table(pilot).rows}
            assert list(rows)[:2] == ["offline", "lmstudio:qwen3:8b"]
            assert rows["lmstudio:qwen3:8b"] == ["unknown", "as figures", "on this machine"]
            assert rows["openai:gpt-5.4-mini"] == ["0.75 / 4.50", "as pictures", "hosted"]
            keys = [row[-1] for row in rows.values()]
            assert keys.index("hosted, no key") > keys.index("hosted") and keys[-1] == "hosted, no key"
            await pilot.press("down", "enter")
            await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
            assert written()["models"] == {"default": "lmstudio:qwen3:8b"}
            twin = "paperdesk config set models.default lmstudio:qwen3:8b"
            assert pilot.app.last_command == twin  # type: ignore[attr-defined]
            await pilot.press("4", "m")  # from any screen, and after tab for one agent
            await until(pilot, lambda: isinstance(pilot.app.screen, ChoiceScreen) and not pilot.app.screen._writing)
            await pilot.press("tab", *"nano", "enter")
            await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
            (agent,) = written()["models"]["agents"]
            assert written()["models"]["agents"][agent]["model"].endswith("-nano")
