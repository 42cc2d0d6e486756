"""The command line: the group of all commands, and the exit code of every one of them.

Only the chosen command's module is imported, so that `--help` and a finished `--daily` stay quick.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Sequence
from functools import partial

import click
from click.shell_completion import CompletionItem

from engine.errors import Interrupted, PaperdeskError, UsageError
from engine.program_files import broken_installation, missing_files
from tui.commands import GROUPS, registered
from tui.settings.invocation import Invocation, OptionOf, WithCommonOptions
from tui.text.console import PRINTED, as_json, show_json

_option = partial(click.option, cls=OptionOf, of=("--daily",))
SCHEMA = 1
"""Version of the document of a failure."""


class LazyCommands(WithCommonOptions, click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of `--help`."""
        return list(registered())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None where there is none of that name."""
        found = registered().get(cmd_name)
        if found is None:
            return None
        command: click.Command = getattr(importlib.import_module(found.module), f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command and what follows it. Raises UsageError with the nearest command for one that there is not."""
        name = args[0]
        if name not in registered() and (near := difflib.get_close_matches(name, registered(), 1)):
            ctx.fail(f"no command {name!r}, did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands and options that begin so, without importing a command: a shell waits for it at every tab."""
        named = [one for one in registered().values() if one.name.startswith(incomplete)]
        commands = [CompletionItem(one.name, help=one.summary) for one in named]
        return commands + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by group without importing them."""
        widest = max(map(len, registered()))
        for group, title in GROUPS.items():
            rows = [(one.name.ljust(widest), one.summary) for one in registered().values() if one.group == group]
            with formatter.section(title):
                formatter.write_dl(rows)


@click.group(cls=LazyCommands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--daily", is_flag=True, help="Run once, headless, for the last completed session.")
@click.option("--watch", is_flag=True, help="Run on a schedule, with live prices and news, until Ctrl-C.")
@click.option("--cycle", is_flag=True, help="Open the app and run a cycle at once.")
@click.option("--read-only", is_flag=True, help="Open the app read-only.")
@_option("--session", metavar="DATE", help="With --daily: session to decide (default: the last completed).")
@_option("--symbol", metavar="SYMBOL", help="With --daily: run one symbol only; the others stay due.")
@click.version_option(package_name="paperdesk", message="paperdesk %(version)s")
@click.pass_context
def cli(
    ctx: click.Context,
    *,
    invocation: Invocation,
    daily: bool,
    watch: bool,
    cycle: bool,
    read_only: bool,
    session: str | None,
    symbol: str | None,
) -> None:
    """A desk of AI analysts in your terminal, trading paper money.

    Without a command it opens the app on your desk, or on a generated demo market if nothing is configured. With
    --json, --daily prints one document and --watch one per line.

    \b
    Examples:
      paperdesk                                    open the app
      paperdesk --daily                            one headless run, for cron
      paperdesk --daily --symbol NVDA              the same for one symbol only
      paperdesk --watch                            keep running, on schedule
      paperdesk backtest --data DIR --symbols AAPL,MSFT --from 2023-06-01 --to 2023-12-29
    """
    if ctx.invoked_subcommand is not None:
        given = {"--daily": daily, "--watch": watch, "--cycle": cycle, "--read-only": read_only}
        if flag := next((name for name, there in given.items() if there), ""):
            raise click.UsageError(f"{flag} takes no command; leave out {ctx.invoked_subcommand}")
        return
    if (cycle or read_only) and (daily or watch or (cycle and read_only)):
        raise click.UsageError("--cycle and --read-only are for the app, one at a time; leave out the others")
    if watch:
        if daily:
            raise click.UsageError("--watch runs what is due by itself; leave out --daily")
        importlib.import_module("tui.commands.watch").run(invocation)
        return
    if daily:
        importlib.import_module("tui.commands.daily").run(invocation, session, symbol)
        return
    if as_json():
        raise click.UsageError("--json needs --daily, --watch or a command")
    importlib.import_module("tui.commands.app").run(invocation, cycle=cycle, read_only=read_only)


def main(argv: Sequence[str] | None = None) -> None:
    """The entry point: runs a command and exits with its code; an error is one line on stderr, and with `--json` a
    document on stdout too, where the command has not printed its own."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    printed = PRINTED.documents
    try:
        code = cli.main(args=arguments, prog_name="paperdesk", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader went away (`| head`); nothing more can be said, and Python must not try at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except click.exceptions.Exit as ended:
        sys.exit(ended.exit_code)
    except Exception as error:
        _print_traceback(error, arguments)
        message, code = _outcome(error)
    except KeyboardInterrupt as error:
        _print_traceback(error, arguments)
        message, code = "interrupted; finished work is kept", Interrupted.exit_code
    else:
        sys.exit(code if isinstance(code, int) else 0)
    from tui.text.plain_text import one_line  # what is quoted may hold control codes, as a link of somebody else's does

    click.echo(f"paperdesk: {one_line(message)}", err=True)
    if "--json" in arguments and PRINTED.documents == printed:
        document = {"schema": SCHEMA, "error": one_line(message), "exit_code": code}
        show_json(document, indent=None if "--watch" in arguments else 2)  # a watch prints a document a line
    sys.exit(code)


def _print_traceback(error: BaseException, arguments: Sequence[str]) -> None:
    if "--debug" in arguments and not isinstance(error, click.Abort):
        import traceback

        traceback.print_exception(error)


def _outcome(error: Exception) -> tuple[str, int]:
    """The error in one line, and the code that it ends with."""
    if isinstance(error, click.Abort):
        return "interrupted", Interrupted.exit_code
    if missing := missing_files():
        error = broken_installation(missing)
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx else "paperdesk"
        return f"{error.format_message().rstrip('.')}; see `{command} --help`", UsageError.exit_code
    if isinstance(error, click.ClickException):
        return error.format_message(), UsageError.exit_code
    if isinstance(error, PaperdeskError):
        return str(error), error.exit_code
    return f"a bug: {type(error).__name__}: {error}; run again with --debug and report the output", 70
