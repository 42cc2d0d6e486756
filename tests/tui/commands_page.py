"""The page docs/commands.md, made of what `--help` says. `python -m tests.tui.commands_page` writes it anew."""

from __future__ import annotations

from pathlib import Path

import click

from tui.cli import cli
from tui.commands import registered

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
WIDTH = 100

HEAD = """# Commands

Every screen's content is also a command's output; with `--json` it is one JSON document. This page is made of the help
texts: `python -m tests.tui.commands_page` writes it anew, and a test keeps it equal.

Exit codes: 0 done or nothing to do; 1 the answer is no; 2 usage; 65 data missing, stale or malformed; 70 a bug;
74 network; 75 try again later; 77 credentials refused; 78 configuration; 79 halted; 130 interrupted. With `--json` a
command that fails prints `schema`, `error` and `exit_code` where it has no document of its own.

A drawdown is negative wherever a person reads it: on screens, in text and in HTML. In JSON `max_drawdown` is the size
of the fall (0.021 where text says -2.10%), and the `drawdown` of a close is negative. A metric under a paper's
convention (MDD) is as the paper prints it, in text too.
"""


def help_of(name: str | None) -> str:
    """What `paperdesk NAME --help` prints at WIDTH columns."""
    context = click.Context(cli, info_name="paperdesk", terminal_width=WIDTH, **cli.context_settings)
    if name is None:
        return cli.get_help(context)
    command = cli.get_command(context, name)
    assert command is not None
    return command.get_help(click.Context(command, info_name=name, parent=context, terminal_width=WIDTH))


def section(name: str) -> str:
    """A command's part of the page."""
    return f"## paperdesk {name}\n\n```text\n{help_of(name)}\n```\n"


def page() -> str:
    """The whole page: the table, the program itself, then every command."""
    rows = [f"| [`paperdesk {name}`](#paperdesk-{name}) | {one.summary} |" for name, one in registered().items()]
    table = "\n".join(["| command | does |", "|---|---|", *rows]) + "\n"
    own = f"## paperdesk\n\n```text\n{help_of(None)}\n```\n"
    return "\n".join([HEAD, table, own, *map(section, registered())])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
