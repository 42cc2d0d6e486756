"""README.md and docs/ speak of commands that there are, with options that they take."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.tui import commands_page
from tui import commands
from tui.cli import cli
from tui.commands import GROUPS, registered

REPO = Path(__file__).parents[2]
DOCUMENTS = [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^    .*\n?)+", re.MULTILINE)
A_COMMAND = re.compile(r"^\s*(?:\$ |[\d*/, -]+\s)?(?:\S*/)?(paperdesk(?:\s.*)?)$")
"""A line that runs the program, perhaps after a prompt, the fields of a crontab, or by its path."""
WHAT_FOLLOWS = re.compile(r"\s+[#|>].*|\s{3,}(?![-\s]).*")
"""A comment, a pipe, a file that it goes to, or words in the next column."""


def shown(text: str) -> Iterator[str]:
    """Every command of a document: lines of its blocks, and code within sentences."""
    sentences = FENCED.sub("", text)
    blocks = "\n".join([*FENCED.findall(text), *INDENTED.findall(sentences)])
    lines = blocks.replace("\\\n", " ").splitlines() + re.findall(r"`([^`\n]+)`", sentences)
    for line in lines:
        found = A_COMMAND.match(line)
        if found and "[OPTIONS]" not in line:
            yield WHAT_FOLLOWS.sub("", found[1])


def check(line: str) -> None:
    """Parses a command without running it; a sentence may leave arguments out. Raises click.UsageError for a command
    or an option that there is not."""
    context = click.Context(cli, info_name="paperdesk", **cli.context_settings)
    _, rest, _ = cli.make_parser(context).parse_args(shlex.split(line)[1:])
    if not rest:
        return
    command = cli.get_command(context, rest[0])
    if command is None:
        raise click.UsageError(f"there is no paperdesk {rest[0]}")
    try:
        command.make_context(rest[0], rest[1:], parent=context)
    except click.MissingParameter:
        return


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPO)))
def test_a_document_shows_commands_that_there_are(document: Path) -> None:
    for line in shown(document.read_text(encoding="utf-8")):
        check(line)


def test_what_is_wrong_in_a_document_is_found() -> None:
    text = """Run `paperdesk conquer` every day.

    30 22 * * 1-5  /path/to/.venv/bin/paperdesk --daily --jsn >> ~/paperdesk.log
    paperdesk report   --format tex    # a comment --daily

```console
$ paperdesk backtest --data DIR --symbols A \\
                     --form 2023-06-01
$ paperdesk --daily   decides
paperdesk status  --json | less
```
"""
    complaints = []
    for line in (found := list(shown(text))):
        try:
            check(line)
        except click.UsageError as error:
            complaints.append(re.findall(r"'?(--?\w+|tex|conquer)\b", error.format_message())[0])
    assert len(found) == 6
    assert sorted(complaints) == ["--form", "--format", "--jsn", "conquer"]


NAMES = [*registered()]
FOLDER = Path(commands.__file__).parent


def loaded(name: str) -> click.Command:
    command = getattr(importlib.import_module(registered()[name].module), f"{name}_command")
    assert isinstance(command, click.Command)
    return command


def options_of(name: str) -> set[str]:
    command = loaded(name)
    context = click.Context(command, **cli.context_settings)  # click keeps the help option that it makes first
    return {option for parameter in command.get_params(context) for option in parameter.opts}


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
def test_a_command_takes_the_global_options_after_its_name_too_and_one_that_prints_a_result_prints_json(
    name: str,
) -> None:
    assert {"--config", "--desk", "--debug"} <= options_of(name)
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
