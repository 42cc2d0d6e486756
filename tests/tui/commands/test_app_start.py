"""How `paperdesk` ends where its configuration is wrong: as every command does, before anything is painted."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.errors import ConfigError, PaperdeskError
from tui.settings.app_settings import checked_settings
from tui.settings.invocation import Invocation

REPO = Path(__file__).parents[3]
APP_SCREEN = b"\x1b[?1049h"
"""What a terminal is sent when an app takes its screen over."""


def in_a_terminal(home: Path, arguments: Sequence[str] = (), **variables: str) -> tuple[int | None, bytes]:
    """Runs `paperdesk` on a terminal of its own until it ends, or (None) takes the screen over; and what it wrote."""
    master, slave = pty.openpty()
    environ = {**os.environ, "PAPERDESK_HOME": str(home), "TERM": "xterm-256color", **variables}
    command = [sys.executable, "-c", "from tui.cli import main; main()", *arguments]
    app = subprocess.Popen(command, cwd=REPO, env=environ, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    wrote, deadline = b"", time.monotonic() + 600
    try:
        while APP_SCREEN not in wrote:
            assert time.monotonic() < deadline, wrote
            if select.select([master], [], [], 0.2)[0]:
                try:
                    wrote += os.read(master, 65536)
                except OSError:  # Linux says so when the other side is closed
                    return app.wait(600), wrote
            elif app.poll() is not None:
                return app.returncode, wrote
        return None, wrote
    finally:
        app.kill()
        app.wait()
        os.close(master)


@pytest.mark.parametrize(
    ("text", "arguments", "variables", "code", "said"),
    [
        ("[desk]\nsymbol = []\n", (), {}, 78, "config.toml: unknown key desk.symbol; did you mean symbols?"),
        ("[filings]\nciks = {}\n", (), {}, 78, "config.toml: filings.ciks is gone"),
        pytest.param("[desk\n", (), {}, 78, "not TOML", marks=pytest.mark.slow),
        pytest.param(
            "",
            (),
            {"PAPERDESK_DESK__CASH": "-1"},
            78,
            "environment PAPERDESK_DESK__CASH: desk.cash",
            marks=pytest.mark.slow,
        ),
        pytest.param(None, (), {"PAPERDESK_CASH": "1"}, 78, "write PAPERDESK_SECTION__KEY", marks=pytest.mark.slow),
        pytest.param(
            None, ("--config", "nowhere.toml"), {}, 78, "nowhere.toml: file not found", marks=pytest.mark.slow
        ),
        pytest.param(None, ("--desk", "A B"), {}, 2, "--desk A B: use up to 16 characters of", marks=pytest.mark.slow),
        ('[desk]\npreset = "finvison"\n', (), {}, 78, "finvision"),
    ],
)
def test_a_wrong_configuration_is_one_line_and_no_app(
    paperdesk_home: Path,
    text: str | None,
    arguments: tuple[str, ...],
    variables: dict[str, str],
    code: int,
    said: str,
) -> None:
    if text is not None:
        (paperdesk_home / "config.toml").write_text(text)
    ended, wrote = in_a_terminal(paperdesk_home, arguments, **variables)
    assert ended == code, wrote
    lines = wrote.decode().splitlines()
    assert len(lines) == 1 and lines[0].startswith("paperdesk: ") and said in lines[0]


@pytest.mark.slow
def test_it_ends_with_a_terminal_that_is_not_its_controlling_one(paperdesk_home: Path) -> None:
    """No signal says that such a terminal is gone."""
    (paperdesk_home / "config.toml").write_text("")
    master, slave = pty.openpty()
    environ = {**os.environ, "PAPERDESK_HOME": str(paperdesk_home), "TERM": "xterm-256color"}
    command = [sys.executable, "-c", "from tui.cli import main; main()"]
    app = subprocess.Popen(command, cwd=REPO, env=environ, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    wrote = b""
    try:
        while b"CLOSED" not in wrote and b"OPEN" not in wrote:  # the desk is open
            wrote += os.read(master, 65536)
        os.close(master)
        assert app.wait(600) == 0
    finally:
        app.kill()
        app.wait()


@pytest.mark.parametrize("text", ['[desk]\nname = "mine"\n', pytest.param(None, marks=pytest.mark.slow)])
def test_a_right_one_or_none_opens_the_app(paperdesk_home: Path, text: str | None) -> None:
    if text is not None:
        (paperdesk_home / "config.toml").write_text(text)
    ended, wrote = in_a_terminal(paperdesk_home)
    assert ended is None and b"paperdesk: " not in wrote


@pytest.mark.parametrize("preset", ["finvision", "../config", "nosuch"])
def test_a_shipped_preset_is_right_and_no_other_is_without_being_read(paperdesk_home: Path, preset: str) -> None:
    (paperdesk_home / "config.toml").write_text(f'[desk]\npreset = "{preset}"\n')
    if preset == "finvision":
        checked_settings(Invocation())
    else:
        with pytest.raises(PaperdeskError, match=f"preset.* {preset}"):
            checked_settings(Invocation())


def test_a_variable_that_sets_nothing_configures_nothing(paperdesk_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPERDESK_TEST_DATA", str(paperdesk_home))
    assert not Invocation().configured
    monkeypatch.setenv("PAPERDESK_CONFIG", str(paperdesk_home))
    assert Invocation().configured
    with pytest.raises(ConfigError, match="environment PAPERDESK_CONFIG: write PAPERDESK_SECTION__KEY"):
        checked_settings(Invocation())


def test_what_is_named_on_the_command_line_is_read(tmp_path: Path) -> None:
    good = tmp_path / "other.toml"
    good.write_text('[desk]\nname = "other"\n')
    checked_settings(Invocation(config_file=str(good), desk="mine"))
