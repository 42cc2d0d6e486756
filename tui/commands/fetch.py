"""`paperdesk fetch` (data): download bars, actions, news, filings and macro series."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tui.console import show
from tui.invocation import Invocation, desk_options

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

    from engine.domain.fetched import Fetched


KINDS = ("all", "bars", "actions", "news", "filings", "macro")


@click.command("fetch")
@click.argument("kind", type=click.Choice(KINDS), default="all")
@click.option("--symbols", metavar="A,B", help="Whose (default: the desk's symbols).")
@click.option(
    "--from",
    "since",
    metavar="DATE",
    help="Since a date (default: where the folder ends; at first 3 years of bars, 60 days of news, all filings).",
)
@click.option("--again", is_flag=True, help="Ask for what is there too, and replace bars and actions that differ.")
@click.option("--data", "folder", metavar="DIR", help="Data folder (default: the configured one).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@desk_options
def command(
    invocation: Invocation,
    kind: str,
    symbols: str | None,
    since: str | None,
    again: bool,
    folder: str | None,
    as_json: bool,
) -> None:
    """Downloads market data into the data folder: bars, corporate actions and news from Alpaca, filings from SEC EDGAR,
    macro series from FRED with every vintage. Without a kind it fetches what the desk needs: bars, actions and news,
    and filings and macro series where those are configured.

    Alpaca needs the paper account's keys in APCA_API_KEY_ID and APCA_API_SECRET_KEY. The SEC wants to know who asks:
    set filings.user_agent to your name and e-mail address. FRED needs a free key in FRED_API_KEY.

    Bars are daily and as traded: a split changes nothing of what is kept. adj_close is computed from the actions. A bar
    is written once its session is over. What is in the folder stays; fetching again adds only what is new, says how
    many of the last bars have been corrected since, and goes on after Ctrl-C.

    \b
    Examples:
      paperdesk fetch
      paperdesk fetch bars --symbols AAPL,BTC-USD --from 2020-01-01 --data DIR
      paperdesk fetch filings --symbols AAPL,MSFT --from 2020-01-01 --data DIR
      paperdesk fetch macro --data DIR
    """
    import asyncio

    from engine.app.fetch import fetch
    from engine.errors import Interrupted
    from engine.services import FetchOptions
    from tui.interruption import Interruption

    services = invocation.services()
    to = Path(folder).expanduser() if folder else services.data_folder
    if to is None:
        raise click.UsageError("no data folder to fetch into: give --data DIR or set data.folder")
    if kind == "macro" and (symbols is not None or since is not None):
        raise click.UsageError("--symbols and --from belong to the others; macro.series says which series are fetched")
    if again and kind in ("filings", "macro"):
        raise click.UsageError(f"--again belongs to bars, actions and news; {kind} are never replaced")
    wanted = [part.strip() for part in (symbols or "").split(",") if part.strip()] or list(services.config.desk.symbols)
    if kind != "macro" and not wanted:
        raise click.UsageError(f"whose {'data' if kind == 'all' else kind}? give --symbols A,B or set desk.symbols")
    first = _day(since)
    with Interruption() as interruption, _Progress() as progress:
        options = FetchOptions(folder=to, progress=progress.hear, stop=interruption.asked, again=again)
        done = asyncio.run(fetch(services, kind, options, wanted, first))
    whole = all(one.complete for one in done) and not options.stop()
    if as_json:
        document = {"schema": 1, "kind": kind, "complete": whole, "files": [_row(one) for one in done]}
        show(json.dumps(document, indent=2, allow_nan=False))
    elif done:
        show("\n".join(map(_said, done)))
    if not whole:
        raise Interrupted("interrupted; what was fetched is kept, and the same command goes on")


class _Progress:
    """A bar on standard error where that is a terminal: which file, how much of it."""

    def __init__(self) -> None:
        self._bar: ProgressBar[Any] | None = None
        self._watched = sys.stderr.isatty()

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *ended: object) -> None:
        self._finish()

    def hear(self, what: str, done: int, total: int) -> None:
        """Draws how far a file is; a full bar ends its line."""
        if not self._watched or not total:
            return
        if self._bar is None:
            self._bar = click.progressbar(
                length=total, file=sys.stderr, show_pos=True, item_show_func=lambda said: said
            )
            self._bar.render_progress()
        self._bar.update(done - self._bar.pos, what)
        if done >= total:
            self._finish()

    def _finish(self) -> None:
        if self._bar is not None:
            self._bar.render_finish()
            self._bar = None


def _day(text: str | None) -> Any:
    from datetime import date

    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"--from {text}: no date; write it as YYYY-MM-DD") from None


def _row(one: Fetched) -> dict[str, Any]:
    dropped = [{"source": drop.source, "reason": drop.reason, "count": drop.count} for drop in one.dropped]
    return {
        "name": one.name,
        "path": str(one.path),
        "added": one.added,
        "unchanged": one.unchanged,
        "dropped": dropped,
        "complete": one.complete,
        "differing": one.differing,
        "replaced": one.replaced,
    }


def _said(one: Fetched) -> str:
    counts = [(one.added, "added"), (one.replaced, "replaced"), (one.unchanged, "there before")]
    said = ", ".join(f"{count:,} {what}" for count, what in counts if count) or "nothing"
    lines = [f"{one.path}: {said}"]
    if one.differing:
        lines.append(f"  kept, but different now: {one.differing:,} (--again replaces them)")
    lines += [f"  left out: {drop.count:,} ({drop.reason})" for drop in one.dropped]
    return "\n".join(lines)
