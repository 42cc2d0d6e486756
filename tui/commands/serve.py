"""`paperdesk serve` (desk): serve the app to a browser on this machine."""

from __future__ import annotations

import asyncio
import sys

import click

from engine.program_files import need_extra, own_command
from tui.commands.options import PORT
from tui.settings.invocation import Invocation, command
from tui.text.console import show_document


@command("serve", "--run")
@click.option("--port", type=PORT, default=8321, metavar="N", help="Port on 127.0.0.1 (default: 8321; 0: any).")
def serve_command(*, invocation: Invocation, port: int) -> None:
    """Serves the app to a browser on this machine, until Ctrl-C.

    It prints an address with a token that is valid while it runs; requests without the token are refused. Each browser
    tab is a separate app on the same desk. It listens on 127.0.0.1 only and loads nothing from other hosts. From
    another machine: ssh -L 8321:127.0.0.1:8321 HOST.

    \b
    Examples:
      paperdesk serve
      paperdesk serve --port 9000 --desk demo
    """
    need_extra("serve", "textual_serve", used_by="paperdesk serve")
    from tui.settings.app_settings import checked_settings
    from tui.shell.web_server import serve

    checked_settings(invocation)

    def ready(url: str) -> None:
        document = {"schema": 1, "url": url}
        show_document(document, lambda: [url, "Open this address in a browser; Ctrl-C stops."])
        sys.stdout.flush()

    app = [*own_command(), *invocation.options]
    asyncio.run(serve(app, port, ready))
