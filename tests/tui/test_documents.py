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


def complaints(text: str) -> Iterator[str]:
    """What is wrong with the commands of a text."""
    for line in shown(text):
        try:
            check(line)
        except click.UsageError as error:
            yield error.format_message()


def test_documents_show_commands_that_there_are() -> None:
    found = {document: list(complaints(document.read_text(encoding="utf-8"))) for document in DOCUMENTS}
    assert {document: wrong for document, wrong in found.items() if wrong} == {}


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
    wrong = [re.findall(r"'?(--?\w+|tex|conquer)\b", complaint)[0] for complaint in complaints(text)]
    assert len(list(shown(text))) == 6
    assert sorted(wrong) == ["--form", "--format", "--jsn", "conquer"]


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


@pytest.mark.parametrize("name", registered())
def test_a_command_says_what_it_does_and_shows_an_example(name: str) -> None:
    command = loaded(name)
    assert command.name == name
    text = commands_page.help_of(name)
    assert re.search(r"Examples?:\n\s+paperdesk", text), f"--help of {name} shows no example"
    assert re.search(rf"^\s+paperdesk.* {name}\b|^\s+paperdesk {name}\b", text, re.MULTILINE)
    undescribed = [p.name for p in command.params if isinstance(p, click.Option) and not p.help]
    assert not undescribed
    # The global options stand after its name too.
    assert {"--config", "--desk", "--debug"} <= options_of(name)
    # Writing a first configuration and opening the app have no result.
    assert "--json" in options_of(name) or name in {"init", "open"}


def test_the_program_lists_every_command() -> None:
    listed = re.findall(r"^  ([a-z]+) +(\S.*)$", commands_page.help_of(None), re.MULTILINE)
    assert {*listed} >= {(name, one.summary) for name, one in registered().items()}


def test_the_page_is_the_help_texts_and_nothing_else() -> None:
    said = "write the page anew: python -m tests.tui.commands_page"
    assert commands_page.PAGE.read_text(encoding="utf-8") == commands_page.page(), said


def test_an_unknown_command_is_a_usage_error() -> None:
    with pytest.raises(click.UsageError):
        cli.main(["nothing-of-the-kind"], prog_name="paperdesk", standalone_mode=False)
