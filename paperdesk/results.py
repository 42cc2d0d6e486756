"""Results of calls: a backtest and the trail of a decision, with their tables as DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from engine.errors import UsageError
from engine.reports.documents.backtest import as_text, growth_of
from engine.reports.documents.study import flat_pairs, flat_rows
from engine.reports.html_charts import exposures
from engine.reports.summary import drawdowns, metric_rows, name_of
from engine.settings import places
from paperdesk.arguments import Day, checked, day_of
from paperdesk.threads import blocking

if TYPE_CHECKING:
    from paperdesk.plot import GrowthFigure

AMOUNTS = {
    *("quantity", "price", "fee", "amount", "value", "cash", "initial_value", "final_value", "notional", "cost"),
    *("average_cost", "gain", "brought_in"),
}
"""Columns that are decimal strings in a document."""
SESSIONS = {"session", "first", "last", "from", "to"}
TRADES = ("session", "symbol", "side", "quantity", "price", "fee", "reason", "owner")
DECISIONS = ("session", "symbol", "owner", "action", "size", "abstained", "reason", "cut", "opinions")
WIDTH = 110


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> pd.DataFrame:
    """Rows of a document under its keys: amounts as float64, sessions as datetime64[ns] without zone. `columns` are
    those of a table without rows."""
    frame = pd.DataFrame([*rows], columns=None if rows else [*columns])
    for name in frame.columns:
        if name in AMOUNTS:
            frame[name] = [float("nan") if cell is None else float(cell) for cell in frame[name]]
        elif name in SESSIONS:
            frame[name] = pd.to_datetime(frame[name]).astype("datetime64[ns]")
    return frame


class Run:
    """A backtest that has been played and kept: its figures as Python's values, its tables as DataFrames in which money
    is float64.

    document: all of it, exactly as `paperdesk report --json` prints it, amounts as decimal strings.
    run: the id, as `load` and the commands take it.
    metrics: the figures of the run's convention; None where one is undefined.
    luck: what chance alone may have done, as `--json` has it; empty of a run of before it was known.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.run: str = document["run"]
        self.metrics: Mapping[str, float | None] = document["metrics"]
        self.luck: Mapping[str, Any] = document.get("luck") or {}

    @cached_property
    def equity(self) -> pd.DataFrame:
        """The books by session: value, cash, exposure (the share that is not cash), and drawdown (0 or negative)."""
        frame = table(self.document["equity"], ("session", "value", "cash")).set_index("session")[["value", "cash"]]
        frame["exposure"] = [float("nan") if share is None else share for share in exposures(self.document)]
        frame["drawdown"] = drawdowns(growth_of(self.document))[1:]
        return frame

    @cached_property
    def trades(self) -> pd.DataFrame:
        """A row for each trade."""
        return table(self.document["trades"], TRADES)

    @cached_property
    def decisions(self) -> pd.DataFrame:
        """A row for each decision of agents; `session` is the last whose data it read. None of a strategy."""
        return table(self.document["decisions"], DECISIONS)

    @cached_property
    def baselines(self) -> pd.DataFrame:
        """A row for each rule that the run is compared with: values, trades, and the run's metrics."""
        rows = {
            name: {**{key: value for key, value in one.items() if key not in ("equity", "metrics")}, **one["metrics"]}
            for name, one in self.document["baselines"].items()
        }
        return table([*rows.values()]).set_index(pd.Index(rows, name="baseline"))

    @checked
    def why(self, symbol: str, session: Day) -> Trail:
        """The trail of one decision, by the session whose data it read. Raises MissingData, naming those that there
        are."""
        return blocking(_trail)(self.run, symbol, session)

    def plot(self) -> GrowthFigure:
        """A matplotlib figure: growth beside the baselines, and below it the drawdown."""
        from paperdesk.plot import growth_figure

        return growth_figure(self.document, self.equity)

    @checked
    def report(self, path: str | Path) -> Path:
        """Write the run as a page (.html), its document (.json) or its equity (.csv), and return the path. Raises
        UsageError for another ending, DataError or ConfigError where it cannot be written."""
        from engine.reports.csv_tables import csv_table
        from engine.reports.html import html

        made: dict[str, Callable[[dict[str, Any]], str]] = {
            ".html": html,
            ".json": lambda document: as_text(document) + "\n",
            ".csv": lambda document: csv_table(document, "equity"),
        }
        target = Path(path).expanduser()
        if target.suffix not in made:
            raise UsageError(f"{path}: a report ends in {', '.join(made)}")
        places.write_whole(target, made[target.suffix](self.document))
        return target

    def __repr__(self) -> str:
        document = self.document
        symbols, window = ", ".join(document["symbols"]), f"{document['first_session']} to {document['last_session']}"
        return f"<paperdesk.Run {self.run}: {name_of(document)} on {symbols}, {window}>"

    def _repr_html_(self) -> str:
        """The metrics beside those of the baselines, for a notebook."""
        document = self.document
        heads = ["", name_of(document), "95 % interval", *document["baselines"]]
        rows = ((row.title, row.own, row.interval, *row.beside) for row in metric_rows(document, spread=True))
        cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
        titles = "".join(f"<th>{escape(head)}</th>" for head in heads)
        lines = "".join(f"<tr>{row}</tr>" for row in cells)
        return f"<p>{escape(repr(self))}</p><table><tr>{titles}</tr>{lines}</table>"


class Study:
    """A study that has been played: its runs, and the differences between what decided them.

    document: all of it, exactly as `paperdesk study --json` prints it.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    @cached_property
    def rows(self) -> pd.DataFrame:
        """A row for each run, with the columns of `paperdesk study --format csv`."""
        return table(flat_rows(self.document))

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """A row for every two that were decided otherwise on the same symbols and window: `other` less `against`."""
        return table(flat_pairs(self.document))

    def __repr__(self) -> str:
        return f"<paperdesk.Study {self.document['study']}: {len(self.document['rows'])} runs>"


class Trail(dict[str, Any]):
    """The trail of a decision with the keys of `why --json`; printed, it is what `why` prints."""

    def __str__(self) -> str:
        from tui.text.trail_text import why_lines

        return "\n".join(text for text, _ in why_lines(self, WIDTH))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _trail(run: str, symbol: str, session: Day) -> Trail:
    from engine.app.research.market_data import known_closes
    from engine.reports.documents.trail import decided, why_document
    from tui.settings.invocation import Invocation

    of_run = Invocation(run=run)
    with of_run.records() as records:
        made = decided(records, symbol, day_of(session))
        market = known_closes(of_run.services(), records, (made[0].key.symbol,))
        return Trail(why_document(records, made, [], market))
