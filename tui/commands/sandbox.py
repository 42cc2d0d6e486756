"""`paperdesk sandbox` (data): run a local Alpaca-compatible paper broker on loopback."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.settings import places
from tui.commands.options import AMOUNT, DAY, PORT, folder_option
from tui.settings.invocation import Invocation, command
from tui.text.console import as_json, show, show_document

if TYPE_CHECKING:
    from connectors.sandbox import SandboxServer
    from engine.settings.config import Config


SESSIONS = click.IntRange(1, 250)


@command("sandbox")
@click.option("--port", type=PORT, default=0, metavar="N", help="Port on 127.0.0.1 (0: any free port).")
@folder_option
@click.option("--start", type=DAY, metavar="DATE", help="Session after whose close the clock starts.")
@click.option("--state", type=click.Path(path_type=Path), metavar="FILE", help="File that stores the books.")
@click.option("--slippage-bp", type=AMOUNT, metavar="N", help="Half-spread in basis points (default: 5).")
@click.option("--sessions", type=SESSIONS, metavar="N", help="Play N sessions with the configured desk, then exit.")
@click.option("--pay-dividends", is_flag=True, help="Pay dividends (a paper account at Alpaca pays none).")
def sandbox_command(
    *,
    invocation: Invocation,
    port: int,
    folder: str | None,
    start: date | None,
    state: Path | None,
    slippage_bp: Decimal | None,
    sessions: int | None,
    pay_dividends: bool,
) -> int | None:
    """Runs a local paper broker that speaks Alpaca's protocol: paper trading without an account.

    It prints the environment variables that point a client at it, and runs until Ctrl-C. Orders fill against the data
    folder or the demo market, on its own clock: on the demo market it starts now and runs in real time; on a data
    folder it starts 20 sessions before the end and stands still. POST /sandbox/clock moves it, POST /sandbox/faults
    injects a fault, GET /sandbox/state shows everything. The account starts with desk.cash. --state saves the books to
    a file; --start applies to new books only.

    With --sessions it advances its clock session by session, runs the configured desk for each as `paperdesk next`
    does, and compares both books to the cent; on the demo market up to the last completed session. Its books are saved
    (--state names another file), and the next call continues.

    \b
    Examples:
      paperdesk sandbox
      paperdesk sandbox --sessions 10
      paperdesk sandbox --data DIR --start 2024-01-31 --state sandbox.db
      curl -X POST http://127.0.0.1:PORT/sandbox/clock -d '{"advance": "open"}'
    """
    from connectors.sandbox import SandboxSettings
    from connectors.wiring.sandbox import build_sandbox, desk_environment, start_of
    from engine.domain.run import DataSpec, ExecutionRules

    config = invocation.load().config
    spec = DataSpec(folder or config.data.folder, config.data.demo_seed)
    live = spec.folder is None and start is None
    rules = ExecutionRules() if slippage_bp is None else ExecutionRules(slippage_bp=slippage_bp)
    settings = partial(SandboxSettings, cash=config.desk.cash, port=port, rules=rules, pay_dividends=pay_dividends)
    if sessions is not None:
        from tui.commands.sandbox_sessions import play, refuse_simulated

        refuse_simulated(config.desk.name)
        books = state or places.sandbox_books()
        begin = _first_session(config, sessions, None if live else asyncio.run(start_of(spec, start)))
        places.make_folder(books.parent)
        with build_sandbox(spec, settings(start=begin, state=books)) as server:
            environment = desk_environment(server, config, spec)
            code = play(invocation, environment, sessions)
        if not code and not as_json():
            show(f"\n{_next_steps(environment, state, folder)}")
        return code
    begin = asyncio.run(start_of(spec, start))
    server = build_sandbox(spec, settings(start=begin, state=state, speed=1.0 if live else 0.0))
    try:
        asyncio.run(_serve(server, partial(desk_environment, server, config, spec)))
    except KeyboardInterrupt:
        click.echo("stopped" if state is None else f"stopped; the books are in {state}", err=True)
    return None


def _first_session(config: Config, sessions: int, start: datetime | None) -> datetime:
    """The time at which the session of a start is ready; without one the first of so many of the demo market."""
    from connectors.demo.market import DEFAULT_WATCHLIST
    from connectors.wiring.sandbox import ready_by, sessions_before
    from engine.clock import LiveClock

    symbols = config.desk.symbols or DEFAULT_WATCHLIST
    return sessions_before(symbols, sessions, LiveClock().now()) if start is None else ready_by(symbols, start)


async def _serve(server: SandboxServer, environment: Callable[[], Mapping[str, str]]) -> None:
    await server.start()
    try:
        _introduce(server, environment())  # its port is known by now
        await asyncio.Event().wait()
    finally:
        await server.stop()


def _introduce(server: SandboxServer, environment: Mapping[str, str]) -> None:
    """Print address, assets and time of a sandbox."""
    exchange, speed = server.exchange, server.control.speed
    assets = [exchange.market.listing(symbol).wire for symbol in exchange.market.symbols]
    document = {
        "schema": 1,
        "environment": dict(environment),
        "streams": server.stream_url,
        "assets": assets,
        "now": exchange.now.isoformat(),
        "speed": speed,
    }

    def lines() -> Iterator[str]:
        clock = f"runs at speed {speed:g}" if speed else "stands until it is moved"
        yield from (f"export {name}={value}" for name, value in environment.items())
        yield f"# Streams: {server.stream_url}/stream, /v2/iex, /v1beta3/crypto/us, /v1beta1/news"
        yield f"# {len(assets)} assets: {', '.join(assets[:12])}{' ...' if len(assets) > 12 else ''}"
        yield f"# It is {exchange.now:%Y-%m-%d %H:%M:%S} UTC there; the clock {clock}. Ctrl-C stops."

    show_document(document, lines)
    sys.stdout.flush()


def _next_steps(environment: Mapping[str, str], state: Path | None, folder: str | None) -> str:
    """The commands to go on with where the sessions ended; `state` and `folder` are the flags that were given."""
    import shlex

    home = os.environ.get(places.HOME)
    exported = {places.HOME: home} if home else {}
    exported |= {name: value for name, value in environment.items() if name.startswith("PAPERDESK_")}
    books = shlex.quote(str(state or places.sandbox_books()))
    data = f" --data {shlex.quote(folder)}" if folder else ""
    return "\n".join(
        [
            "To go on by hand (docs/sandbox.md):",
            *(f"  export {name}={shlex.quote(value)}" for name, value in exported.items()),
            f"  paperdesk sandbox{data} --state {books}     # serves the account; --sessions 5 plays the next five",
        ]
    )
