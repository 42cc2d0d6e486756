"""`paperdesk sandbox` (data): run a local Alpaca-compatible paper broker on loopback."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tui.commands.options import AMOUNT, DAY
from tui.console import show
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from connectors.sandbox import SandboxServer


@click.command("sandbox")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port on 127.0.0.1 (0: any).")
@click.option(
    "--data", "folder", metavar="DIR", help="Data folder (default: the configured one, else the demo market)."
)
@click.option("--start", type=DAY, metavar="DATE", help="Session after whose close the clock begins.")
@click.option("--cash", type=AMOUNT, default="100000", metavar="USD", help="What the account begins with.")
@click.option("--state", type=click.Path(path_type=Path), metavar="FILE", help="File that keeps the books.")
@click.option("--speed", type=float, metavar="N", help="Seconds that pass there in one here (0: only on request).")
@click.option("--slippage-bp", type=AMOUNT, metavar="N", help="Half the spread in basis points (default: 5).")
@click.option("--json", "as_json", is_flag=True, help="Print where it is as one JSON document.")
@click.option(
    "--sessions",
    type=click.IntRange(1, 250),
    metavar="N",
    help="Play N sessions with the configured desk, a `paperdesk --daily` each, and end.",
)
@click.option("--pay-dividends", is_flag=True, help="Pay dividends, which a paper account does not.")
@desk_options
def sandbox_command(
    invocation: Invocation,
    port: int,
    folder: str | None,
    start: date | None,
    cash: Decimal,
    state: Path | None,
    speed: float | None,
    slippage_bp: Decimal | None,
    as_json: bool,
    sessions: int | None,
    pay_dividends: bool,
) -> int | None:
    """Runs a paper broker on this machine that speaks Alpaca's protocol: paper trading without an account.

    It prints the environment variables that point a client at it, and serves until Ctrl-C. Orders fill against the
    data folder or the demo market, on a clock of its own: on the demo market it begins now and runs as fast as ours;
    on a data folder it stands 20 sessions before the end. POST /sandbox/clock moves it, POST /sandbox/faults has
    something go wrong, GET /sandbox/state shows everything. With --state the books outlive the process, and --start
    and --cash count for new books only.

    With --sessions it does not wait: it moves its clock from session to session, has the configured desk run for each
    as cron would, and compares both books to the cent; on the demo market up to the last completed session. Its books
    are kept (--state names another file), and the next call goes on.

    \b
    Examples:
      paperdesk sandbox
      paperdesk sandbox --sessions 10
      paperdesk sandbox --data DIR --start 2024-01-31 --state sandbox.db
      curl -X POST http://127.0.0.1:PORT/sandbox/clock -d '{"advance": "open"}'
    """
    import asyncio

    from connectors.demo.market import DEFAULT_WATCHLIST
    from connectors.sandbox import SandboxSettings
    from connectors.wiring.sandbox import build_sandbox, desk_environment, sessions_before, start_of
    from engine import places
    from engine.domain.execution import ExecutionRules
    from engine.domain.run import DataSpec

    if cash <= 0:
        raise click.UsageError(f"--cash {cash}: an account begins with more than nothing")
    if speed is not None and not 0 <= speed <= 100_000:
        raise click.UsageError(f"--speed {speed}: it goes from 0 to 100000")
    config = invocation.load().config
    spec = DataSpec(folder or config.data.folder, config.data.demo_seed)
    live = spec.folder is None and start is None

    def built(begin: datetime, speed: float, state: Path | None) -> SandboxServer:
        settings = SandboxSettings(
            start=begin,
            cash=cash,
            port=port,
            state=state,
            speed=speed,
            rules=ExecutionRules() if slippage_bp is None else ExecutionRules(slippage_bp=slippage_bp),
            pay_dividends=pay_dividends,
        )
        return build_sandbox(spec, settings)

    if sessions is not None:
        if speed:
            raise click.UsageError("--speed lets the clock run by itself, and --sessions moves it: give one of them")
        from engine.clock import LiveClock
        from tui.commands.sandbox_sessions import how_to_go_on, play, refuse_simulated

        refuse_simulated(config.desk.name)
        kept = state or places.sandbox_books()
        symbols = config.desk.symbols or DEFAULT_WATCHLIST
        begin = sessions_before(symbols, sessions, LiveClock().now()) if live else asyncio.run(start_of(spec, start))
        kept.parent.mkdir(parents=True, exist_ok=True)
        with built(begin, 0.0, kept) as server:
            environment = desk_environment(server, config, spec)
            code = play(invocation, server, environment, sessions, as_json)
        if not code and not as_json:
            show(f"\n{how_to_go_on(environment, state, folder)}")
        return code

    async def serve() -> None:
        server = built(await start_of(spec, start), speed if speed is not None else 1.0 if live else 0.0, state)
        await server.start()
        try:
            _introduce(server, desk_environment(server, config, spec), as_json)
            await asyncio.Event().wait()
        finally:
            await server.stop()

    try:
        asyncio.run(serve())
    except KeyboardInterrupt:
        click.echo("stopped" if state is None else f"stopped; the books are in {state}", err=True)
    return None


def _introduce(server: SandboxServer, environment: Mapping[str, str], as_json: bool) -> None:
    """Says where it is, what it has and what time it is there."""
    import sys

    exchange, speed = server.exchange, server.control.speed
    symbols = [exchange.market.listing(symbol).wire for symbol in exchange.market.symbols]
    if as_json:
        document = {
            "schema": 1,
            "environment": dict(environment),
            "streams": server.stream_url,
            "assets": symbols,
            "now": exchange.now.isoformat(),
            "speed": speed,
        }
        show(json.dumps(document, indent=2))
    else:
        clock = f"runs at speed {speed:g}" if speed else "stands until it is moved"
        show("\n".join(f"export {name}={value}" for name, value in environment.items()))
        show(f"# Streams: {server.stream_url}/stream, /v2/iex, /v1beta3/crypto/us, /v1beta1/news")
        show(f"# {len(symbols)} assets: {', '.join(symbols[:12])}{' ...' if len(symbols) > 12 else ''}")
        show(f"# It is {exchange.now:%Y-%m-%d %H:%M:%S} UTC there; the clock {clock}. Ctrl-C stops.")
    sys.stdout.flush()
