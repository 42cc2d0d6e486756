"""The first run in the app: questions, a checked account, fetched prices, files for their owner alone, and the desk."""

from __future__ import annotations

import asyncio
import gc
import os
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from connectors.sandbox.server import SandboxServer
from engine.domain.market import is_crypto
from engine.errors import ConfigError
from engine.messages.commands import RunCycle
from engine.settings.config import load_config
from engine.settings.keys import keep_keys, load_keys, stored_keys
from tests.connectors.alpaca.sandbox_markets import sandbox
from tests.long_cases import first_of
from tests.tui.commands.conftest import SESSIONS
from tests.tui.conftest import Running, opened, until
from tui.app.app import PaperdeskApp
from tui.commands.app import open_desk, run
from tui.screens.set_up import SetUpScreen
from tui.set_up.first_configuration import CRYPTO_AMONG_SHARES, new_account
from tui.set_up.set_up_offer import offered
from tui.settings.app_settings import AppSettings
from tui.settings.invocation import Invocation
from tui.shell.subcommand import CommandFailed, run_command
from tui.widgets.screen_bars import ErrorBar

KEYS = ("APCA_API_KEY_ID", "APCA_API_SECRET_KEY")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key is in the environment, and one that a test loads from a file does not stay there."""
    for name in KEYS:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def keys_of(server: SandboxServer, monkeypatch: pytest.MonkeyPatch) -> Sequence[str]:
    """The keys of a sandbox whose addresses are in the environment, without them."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    for name in KEYS:
        monkeypatch.delenv(name)
    return [server.environment[name] for name in KEYS]


async def answer(pilot: Pilot[Any], text: str) -> None:
    """Types an answer in place of the one that is there."""
    pilot.app.screen.query_one(Input).value = text
    await pilot.press("enter")


def choose(pilot: Pilot[Any], entry: str) -> None:
    """Choose an entry of the palette."""
    {one.title: one.callback for one in pilot.app.get_system_commands(pilot.app.screen)}[entry]()


async def begin(pilot: Pilot[Any], entry: str) -> None:
    """Choose a set-up, and wait for its first question."""
    choose(pilot, entry)
    await until(pilot, lambda: isinstance(pilot.app.screen, SetUpScreen) and bool(pilot.app.screen.query(Input)))


def text_of(pilot: Pilot[Any], name: str) -> str:
    return str(pilot.app.screen.query_one(f"#{name}", Static).render())


@pytest.mark.slow
async def test_a_paper_account_is_set_up_in_the_app(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file, offer = fresh / "config.toml", offered(Invocation())
    with sandbox(start=datetime(2024, 3, 6, 21, 5, tzinfo=UTC)) as server:
        key, secret = keys_of(server, monkeypatch)
        monkeypatch.setenv("PAPERDESK_DESK__SEED", "0")  # a desk that is configured makes no history
        app = PaperdeskApp(partial(open_desk, Invocation()), lambda *_: None, images=tmp_path, set_up=offer)
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: app.bridge.snapshot().opened is not None)
            await begin(pilot, "Set up a paper account")
            await answer(pilot, "no/name")
            assert "name" in text_of(pilot, "complaint")
            for text in ("first", key, "wrong", "AAA, <X>"):
                await answer(pilot, text)
            assert "'<X>' is not a symbol" in text_of(pilot, "complaint")
            assert CRYPTO_AMONG_SHARES in text_of(pilot, "text")
            for text in ("AAA, btc-usd, aaa", "openai:m", "sk-abandoned", "7"):
                await answer(pilot, text)
            await pilot.press("escape", "escape", "escape")  # another model, which needs neither key nor budget
            for text in ("offline", ""):
                await answer(pilot, text)
            assert "wrong" not in text_of(pilot, "answers") and key not in text_of(pilot, "answers")
            await pilot.press("enter")
            await until(pilot, lambda: "Nothing was written" in text_of(pilot, "done"))
            refused, nothing, *_ = text_of(pilot, "done").splitlines()
            assert ": " in refused and "reaching" not in refused and nothing.startswith("Nothing was written")
            assert not file.exists() and not (fresh / "keys.env").exists()
            await pilot.press("escape", "escape", "escape", "escape")
            await answer(pilot, secret)
            await pilot.press("enter", "enter", "enter", "enter")
            await until(pilot, lambda: "set up" in text_of(pilot, "text"))
            assert "AAA" in text_of(pilot, "done") and "BTC-USD" in text_of(pilot, "done")
            await pilot.press("enter")
            await until(pilot, lambda: app.reopening is not None)
        assert app.reopening == ("--cycle",)
        assert [stat.S_IMODE((fresh / name).stat().st_mode) for name in ("config.toml", "keys.env")] == [0o600] * 2
        config = load_config(file, environ={}).config
        assert (config.desk.name, config.broker.kind, config.broker.mode) == ("first", "alpaca", "ask")
        assert config.broker.clock == "broker", "that of the sandbox was moved"
        assert list(config.desk.symbols) == ["AAA", "BTC-USD"] and secret not in file.read_text()
        assert config.budget.usd_per_day != 7
        environ: dict[str, str] = {}
        assert set(load_keys(environ)) == set(KEYS) and environ[KEYS[1]] == secret


ACCOUNT = """
[desk]
name = "paper"
symbols = ["AAA"]
[broker]
kind = "alpaca"
mode = "ask"
clock = "broker"
"""


@pytest.mark.slow
async def test_the_keys_of_a_configured_desk_are_entered_in_the_app(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (fresh / "config.toml").write_text(ACCOUNT)
    with sandbox(start=datetime(2024, 3, 6, 21, 5, tzinfo=UTC)) as server:
        key, secret = keys_of(server, monkeypatch)
        invocation = Invocation()
        app = PaperdeskApp(partial(open_desk, invocation), lambda *_: None, images=tmp_path, set_up=offered(invocation))
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: isinstance(app.screen, SetUpScreen) and bool(app.screen.query(Input)))
            assert "APCA_API_KEY_ID is not set" in app.bridge.snapshot().trouble
            for text in (key, "wrong"):
                await answer(pilot, text)
            await pilot.press("enter")
            await until(pilot, lambda: "Nothing was written" in text_of(pilot, "done"))
            assert not (fresh / "keys.env").exists()
            await pilot.press("escape")
            await answer(pilot, secret)
            await pilot.press("enter")
            await until(pilot, lambda: "The keys are saved" in text_of(pilot, "text"))
            await pilot.press("enter")
            await until(pilot, lambda: app.reopening is not None)
        assert app.reopening == ()
        environ: dict[str, str] = {}
        assert set(load_keys(environ)) == set(KEYS) and environ[KEYS[1]] == secret
        assert stat.S_IMODE((fresh / "keys.env").stat().st_mode) == 0o600
        assert (fresh / "config.toml").read_text() == ACCOUNT


async def test_a_key_of_the_file_is_replaced_or_kept_and_one_of_the_environment_is_left_alone(
    running: Running, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def passes(*_: object) -> None:
        pass

    monkeypatch.setattr(SetUpScreen, "_check", passes)
    (fresh / "config.toml").write_text(ACCOUNT + '[models]\ndefault = "openai:m"\n')
    monkeypatch.setenv("OPENAI_API_KEY", "of the environment")
    keep_keys({KEYS[0]: "old", KEYS[1]: "kept-one"})
    async with running(set_up=offered(Invocation())) as pilot:
        await begin(pilot, "Enter the API keys of this desk")
        for text in ("new", ""):
            assert pilot.app.screen.query_one(Input).placeholder == "enter keeps it"
            await answer(pilot, text)
        await pilot.press("enter")
        await until(pilot, lambda: "The keys are saved" in text_of(pilot, "text"))
        assert stored_keys() == {KEYS[0]: "new", KEYS[1]: "kept-one"}
        assert [os.environ[name] for name in KEYS] == ["new", "kept-one"]  # the app that is begun anew inherits them


async def test_a_desk_without_the_key_of_its_model_names_the_way_to_enter_it(
    fresh: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (fresh / "config.toml").write_text('[models]\ndefault = "anthropic:m"\n')
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    invocation = Invocation()
    app = PaperdeskApp(partial(open_desk, invocation), lambda *_: None, images=tmp_path, set_up=offered(invocation))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "ctrl+p enter API keys" in str(app.screen.query_one(ErrorBar).render()))
        said = app.bridge.snapshot().trouble
        assert "needs a key: set ANTHROPIC_API_KEY" in said and str(fresh / "keys.env") in said
        await until(pilot, lambda: app.bridge.snapshot().opened is not None)
        app.bridge.stop()
        assert app.bridge.wait(600)


NO_SYMBOLS = """# My desk.
[desk]
name = "mine"
{symbols}
[data]  # bars
folder = "{folder}"
"""


@pytest.fixture
def prices(demo_folder: Callable[[date], Path]) -> Path:
    """A data folder."""
    return demo_folder(date(2024, 3, 20))


@pytest.mark.parametrize(
    "symbols", first_of(2, ["", "symbols = [  # none yet\n]\n", "symbols = []\n", "# symbols = []\n"])
)
async def test_a_desk_without_symbols_leads_into_the_set_up(
    fresh: Path, prices: Path, tmp_path: Path, symbols: str
) -> None:
    file, before = fresh / "config.toml", NO_SYMBOLS.format(symbols=symbols, folder=prices.as_posix())
    file.write_text(before)
    invocation = Invocation()
    app = PaperdeskApp(partial(open_desk, invocation), lambda *_: None, images=tmp_path, set_up=offered(invocation))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, SetUpScreen) and bool(app.screen.query(Input)))
        assert "--symbols" not in app.bridge.snapshot().trouble
        proposed = app.screen.query_one(Input).placeholder.split(",")
        assert proposed and not any(map(is_crypto, proposed)), "crypto would move the close"
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, SetUpScreen))
        assert "ctrl+p choose symbols" in str(app.screen.query_one(ErrorBar).render()), "it begins by itself once"
        await begin(pilot, "Choose the symbols of this desk")
        await answer(pilot, "NADA")
        assert "no prices there" in text_of(pilot, "complaint")
        await answer(pilot, "orvl, hlxm")
        await pilot.press("enter")
        await until(pilot, lambda: "symbols are saved" in text_of(pilot, "text"))
        await pilot.press("o")
        await until(pilot, lambda: app.reopening is not None)
    assert list(load_config(file, environ={}).config.desk.symbols) == ["ORVL", "HLXM"]
    assert {"# My desk.", "[data]  # bars", 'name = "mine"'} <= set(file.read_text().splitlines())


async def test_a_desk_without_the_key_of_its_model_shows_its_books_and_runs_no_cycle(
    desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAPERDESK_MODELS__DEFAULT", "anthropic:m")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    async with opened() as pilot:
        bridge = pilot.app.bridge  # type: ignore[attr-defined]
        await until(pilot, lambda: "ANTHROPIC_API_KEY" in str(pilot.app.screen.query_one(ErrorBar).render()))
        books = bridge.snapshot().desk.books
        assert books is not None and books.session == SESSIONS[-1]
        await pilot.press("escape")
        await until(pilot, lambda: not bridge.snapshot().trouble)
        assert bridge.send(RunCycle()) == ""
        await until(pilot, lambda: any("m needs a key" in line.text for line in bridge.snapshot().desk.lines))
    async with opened() as pilot:
        await until(pilot, lambda: "ANTHROPIC_API_KEY" in pilot.app.screen.query_one(ErrorBar).text)
        await pilot.press("ctrl+t")  # keys are read as the app begins: no cycle is begun by this
        await until(pilot, lambda: pilot.app.reopening is not None)  # type: ignore[attr-defined]
    async with opened(settings=AppSettings(read_only=True)) as pilot:
        shown = pilot.app.bridge.snapshot()  # type: ignore[attr-defined]
        assert shown.desk.books == books and not shown.trouble  # no cycle runs in it anyway


async def test_where_the_environment_gives_every_key_that_is_said(
    running: Running, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (fresh / "config.toml").write_text(ACCOUNT)
    for name in KEYS:
        monkeypatch.setenv(name, "of the environment")
    async with running(set_up=offered(Invocation())) as pilot:
        choose(pilot, "Enter the API keys of this desk")
        await until(pilot, lambda: any(KEYS[0] in one.message for one in pilot.app._notifications))
        assert not isinstance(pilot.app.screen, SetUpScreen)


async def test_what_was_written_is_said_where_the_configuration_cannot_be(
    running: Running, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def passes(*_: object) -> None:
        pass

    for step in ("_check", "_fetch"):
        monkeypatch.setattr(SetUpScreen, step, passes)
    (fresh / "taken").write_text("a file, where a folder is wanted")
    async with running() as pilot:
        pilot.app.push_screen(SetUpScreen(new_account(Invocation(config_file=str(fresh / "taken" / "config.toml")))))
        await until(pilot, lambda: bool(pilot.app.screen.query("#answer")))
        for text in ("first", "key", "secret", "AAA", "offline", ""):
            await answer(pilot, text)
        await pilot.press("enter")
        await until(pilot, lambda: "enter tries again" in text_of(pilot, "done"))
        said = " ".join(text_of(pilot, "done").split())
        assert "config.toml cannot be written" in said and f"{fresh / 'keys.env'} was written, nothing else" in said
        assert "Nothing was written" not in said and "secret" in (fresh / "keys.env").read_text()


async def test_an_account_is_set_up_in_a_configuration_that_is_there_already(
    running: Running, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def passes(*_: object) -> None:
        pass

    for step in ("_check", "_fetch"):
        monkeypatch.setattr(SetUpScreen, step, passes)
    monkeypatch.setenv("APCA_API_BASE_URL", "http://127.0.0.1:1")
    file = fresh / "config.toml"
    file.write_text('# Mine.\n[app]\ntheme = "light"  # by day\n')
    async with running(set_up=offered(Invocation())) as pilot:
        await begin(pilot, "Set up a paper account")
        for text in ("first", "key", "secret", "aaa, bbb", "offline", "observe"):
            await answer(pilot, text)
        await pilot.press("enter")
        await until(pilot, lambda: "set up" in text_of(pilot, "text"))
    assert file.read_text().startswith('# Mine.\n[app]\ntheme = "light"  # by day\n')
    config = load_config(file, environ={}).config
    assert (config.desk.name, config.desk.symbols) == ("first", ("AAA", "BBB"))
    assert (config.broker.kind, config.broker.mode, config.broker.clock) == ("alpaca", "observe", "broker")
    assert offered(Invocation()).name == "Enter the API keys of this desk"


async def test_answers_are_kept_on_the_way_back_and_refused_with_what_is_wrong_with_them(
    running: Running, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []

    async def command(*arguments: Any, **_: Any) -> Mapping[str, Any]:
        if "doctor" in arguments:
            return {"checks": []}
        fetched.append(arguments[-1])
        raise CommandFailed("Alpaca has no bars of ZZZZZ; correct desk.symbols or --symbols")

    monkeypatch.setattr("tui.screens.set_up.run_command", command)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with running() as pilot:
        pilot.app.push_screen(SetUpScreen(new_account(Invocation())))
        await until(pilot, lambda: bool(pilot.app.screen.query("#answer")))
        for text, complaint in (
            ("first", ""),
            ("", "a key is needed: paste it here"),
            ("a key", "a key has no spaces"),
        ):
            await answer(pilot, text)
            assert text_of(pilot, "complaint").startswith(complaint) and "account" not in text_of(pilot, "complaint")
        for text in ("key", "secret"):
            await answer(pilot, text)
        await pilot.press("escape")
        assert pilot.app.screen.query_one(Input).placeholder == "enter keeps it"
        await pilot.press("enter")
        for text in ("ZZZZZ, zzzzz", "openai:gpt-4o", "sk-of-openai", "1e400"):
            await answer(pilot, text)
        assert "less than or equal to 1000000000000" in text_of(pilot, "complaint")
        await pilot.press("escape", "escape", *"offline", "enter")  # what is typed takes the place of the old answer
        assert "openai" not in text_of(pilot, "answers") and " offline\n" in text_of(pilot, "answers")
        await pilot.press("enter", "enter")
        await until(pilot, lambda: "Nothing was written" in text_of(pilot, "done"))
        assert text_of(pilot, "done").splitlines()[-2] == "Alpaca has no bars of ZZZZZ" and fetched == ["ZZZZZ"]


async def test_a_check_that_breaks_down_is_no_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text("#!/bin/sh\necho 'ModuleNotFoundError: no module' >&2\nexit 1\n")
    interpreter.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    with pytest.raises(CommandFailed, match="ModuleNotFoundError"):
        await run_command((), "doctor", "--connect", answers=(0, 1))


async def test_a_command_that_is_left_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text("#!/bin/sh\necho begun > begun\nexec sleep 600\n")
    interpreter.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    monkeypatch.chdir(tmp_path)
    task = asyncio.create_task(run_command((), "arena"))
    while not (tmp_path / "begun").exists():
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    del task
    gc.collect()  # pytest fails the test for a process or a pipe that is still open


def test_only_a_terminal_goes_on_with_the_desk_that_was_set_up(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda path, arguments: started.append(arguments))

    def set_up(app: PaperdeskApp) -> None:
        app.reopening = ("--cycle",)

    monkeypatch.setattr(PaperdeskApp, "run", set_up)
    for size in ("COLUMNS", "LINES"):
        monkeypatch.delenv(size, raising=False)
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    run(Invocation())
    assert [arguments[-1] for arguments in started] == ["--cycle"]
    # Nobody would see it in a browser, whose page has ended with the app.
    monkeypatch.setenv("TEXTUAL_DRIVER", "textual.drivers.web_driver:WebDriver")
    run(Invocation())
    assert len(started) == 1


async def test_an_app_that_is_opened_for_a_cycle_runs_it(tmp_path: Path) -> None:
    from fake_desk import FakeDesk, opens

    app = PaperdeskApp(opens(FakeDesk(tmp_path)), lambda *_: None, images=tmp_path, cycle=True)
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.bridge.present().desk.session is not None and not app.bridge.present().busy)
        app.bridge.stop()
        assert app.bridge.wait(60)


def test_keys_are_kept_beside_others_and_replaced(tmp_path: Path) -> None:
    file = tmp_path / "keys.env"
    file.write_text("# mine\nFRED_API_KEY=abc\nexport OPENAI_API_KEY='old'\n")
    file.chmod(0o600)
    keep_keys({"OPENAI_API_KEY": "new"}, file)
    assert file.read_text() == "# mine\nFRED_API_KEY=abc\nOPENAI_API_KEY=new\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        keep_keys({"OPENAI_API_KEY": "two\nlines"}, file)
    assert "new" in file.read_text()
