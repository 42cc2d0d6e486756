"""Every command is there, says what it does with an example, and stands in docs/commands.md as it is."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tests.tui import commands_page
from tui import commands
from tui.cli import cli
from tui.commands import GROUPS, registered

NAMES = [*registered()]
FOLDER = Path(commands.__file__).parent


def loaded(name: str) -> click.Command:
    command = getattr(importlib.import_module(registered()[name].module), f"{name}_command")
    assert isinstance(command, click.Command)
    return command


def options_of(name: str) -> set[str]:
    command = loaded(name)
    return {option for parameter in command.get_params(click.Context(command)) for option in parameter.opts}


def test_every_command_is_registered_in_a_group() -> None:
    texts = (file.read_text("utf-8") for file in FOLDER.glob("*.py"))
    defined = [name for text in texts for name in re.findall(r"^def ([a-z_]+)_command\(", text, re.MULTILINE)]

    assert sorted(defined) == sorted(registered())
    assert {one.group for one in registered().values()} == set(GROUPS)


def test_help_imports_no_command() -> None:
    code = (
        "import sys; from tui.cli import main\n"
        "try: main(['--help'])\n"
        "finally: print([m for m in sys.modules if m.startswith(('tui.commands.', 'pydantic', 'numpy', 'asyncio'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "Operator controls:" in done.stdout and done.stdout.endswith("\n[]\n")


@pytest.mark.parametrize("name", NAMES)
def test_a_command_says_what_it_does_and_shows_an_example(name: str) -> None:
    command = loaded(name)
    assert command.name == name
    text = commands_page.help_of(name)
    assert re.search(r"Examples?:\n\s+paperdesk", text), f"--help of {name} shows no example"
    assert re.search(rf"^\s+paperdesk.* {name}\b|^\s+paperdesk {name}\b", text, re.MULTILINE)
    undescribed = [p.name for p in command.params if isinstance(p, click.Option) and not p.help]
    assert not undescribed


@pytest.mark.parametrize("name", NAMES)
def test_a_command_takes_the_global_options_after_its_name_too(name: str) -> None:
    assert {"--config", "--desk", "--run", "--debug"} <= options_of(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_command_that_prints_a_result_prints_json(name: str) -> None:
    # Writing a first configuration and opening the app have no result.
    assert "--json" in options_of(name) or name in {"init", "open"}


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_the_command_as_its_help_says_it(name: str) -> None:
    assert commands_page.section(name) in commands_page.PAGE.read_text(encoding="utf-8"), (
        "write the page anew: python -m tests.tui.commands_page"
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_program_lists_the_command(name: str) -> None:
    assert re.search(rf"^  {name} +{re.escape(registered()[name].summary)}$", commands_page.help_of(None), re.MULTILINE)


def test_the_page_is_the_help_texts_and_nothing_else() -> None:
    assert commands_page.PAGE.read_text(encoding="utf-8") == commands_page.page()


def test_an_unknown_command_is_a_usage_error() -> None:
    with pytest.raises(click.UsageError):
        cli.main(["nothing-of-the-kind"], prog_name="paperdesk", standalone_mode=False)
