"""Runs as plain text: the list, a comparison, and a pruning before and after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine.domain.text import counted
from engine.reports.amounts import UNKNOWN, cost, gain, money, number, percent, ratio, stored
from engine.reports.table import Column
from tui.text.console import standard_output
from tui.text.plain_text import beginning, cut, of_all, one_line, table, table_of

if TYPE_CHECKING:
    from engine.reports.documents.runs import StoredRun

Document = Mapping[str, Any]
NO_NAMES: Mapping[str, str] = {}


def _window(run: Document) -> str:
    if run["first"] is None:
        return ""
    return str(run["first"]) if run["first"] == run["last"] else f"{run['first']} to {run['last']}"


RUNS = (
    Column("RUN", "id"),
    Column("KIND", "kind"),
    Column("NAME", "name"),
    Column("SYMBOLS", lambda run: beginning(",".join(run["symbols"]), 24)),
    Column("WINDOW", _window),
    Column("RETURN", lambda run: run["metrics"].get("total_return", ""), percent),
    Column("SHARPE", lambda run: run["metrics"].get("sharpe", ""), ratio),
    Column("COST", lambda run: cost(number(run["cost"])), str),
    Column("SIZE", lambda run: run["bytes"] or "", stored),
    Column("STATE", lambda run: "cannot be read" if run["problem"] else run["outcome"] or "not finished"),
)


LUCK: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    (
        "Growth over the market",
        "excess_per_year",
        lambda excess: UNKNOWN if excess is None else percent(excess["value"]),
    ),
    ("Better than random", "random", lambda random: UNKNOWN if random is None else f"{random['percentile']:.0f} %"),
    ("Looks at the window", "trials", str),
    ("Probabilistic Sharpe", "psr", ratio),
    ("Deflated Sharpe", "deflated_sharpe", ratio),
)
"""The part of chance in each run of a comparison."""


def list_lines(document: Document) -> Iterator[str]:
    """The list, a line a run."""
    if not document["count"]:
        yield "no matching run; `paperdesk backtest` creates one"
        return
    yield from table_of(RUNS, document["runs"], max(standard_output().room, 160))
    yield from of_all(len(document["runs"]), document["count"])
    own = f", {stored(document['bytes'])} in files of their own" if document["bytes"] else ""
    yield f"{counted(document['count'], 'run')}{own}"


def comparison_lines(document: Document, width: int, names: Mapping[str, str] = NO_NAMES) -> Iterator[str]:
    """Runs side by side, then each with the first, in columns of `width` and more, by their ids or other `names`."""
    runs = [names.get(run["run"], run["run"]) for run in document["runs"]]
    yield from table(("", *runs), [*_heads(document), *_metrics(document)], right=runs, width=max(width, 120))
    for pair in document["pairs"]:
        yield ""
        first, other = (names.get(pair[side], pair[side]) for side in ("first", "other"))
        yield f"{other} beside {first}" + (": the same result" if pair["same"] else "")
        for row in pair["settings"]:
            yield f"  {row['setting']}: {_short(row['before'])}, then {_short(row['now'])}"
        if not pair["settings"]:
            yield "  every setting is the same"
        yield from _differences(pair, names)
    if document["family"]:
        yield ""
        yield from _family(document["family"], names)


def _family(family: Document, names: Mapping[str, str]) -> Iterator[str]:
    """The tests of all runs against the first, taken together."""
    best = f"p {family['superior']:.3f} that the best is no better (superior predictive ability)"
    yield f"All runs against the first on {counted(family['sessions'], 'session')}: {best}"
    for row in family["rows"]:
        alone = f"p {row['p']:.3f} alone, {row['adjusted']:.3f} among all (Romano and Wolf)"
        yield f"  {names.get(row['run'], row['run'])}: {alone}"


def _heads(document: Document) -> Iterator[tuple[str, ...]]:
    runs = document["runs"]
    yield ("Decided by", *(one_line(run["name"]) for run in runs))
    yield ("First session", *(run["first_session"] or UNKNOWN for run in runs))
    yield ("Last session", *(run["last_session"] or UNKNOWN for run in runs))
    yield ("Final value", *(money(number(run["final_value"])) for run in runs))


def _metrics(document: Document) -> Iterator[tuple[str, ...]]:
    from engine.reports.summary import figure, title_of

    conventions = [run["convention"] for run in document["runs"]]
    for row in document["metrics"]:
        if row["metric"] in ("excess_return", "excess_low", "excess_high"):
            continue  # its interval says little; below is what does
        name, beside = row["metric"], zip(conventions, row["values"], strict=True)
        cells = (UNKNOWN if value is None else figure(named, name, value) for named, value in beside)
        yield (title_of(name), *cells)
    for title, name, form in LUCK:
        yield (title, *(UNKNOWN if run["luck"] is None else form(run["luck"][name]) for run in document["runs"]))


def _differences(pair: Document, names: Mapping[str, str]) -> Iterator[str]:
    equity = pair["equity"]
    if equity["last"] is None:
        yield "  no session in common: neither values, decisions nor trades can be compared"
        return
    yield f"  daily difference: {_daily(pair['daily'])}"
    widest = f"; furthest apart on {equity['widest_session']}: {gain(number(equity['widest']))}"
    yield f"  value on {equity['last_session']}: {gain(number(equity['last']))}{widest}"
    decisions, trades = pair["decisions"], pair["trades"]
    if decisions is None:
        yield "  decisions: a rule strategy has none to compare"
    else:
        yield f"  decisions: {decisions['differing']:,} of {decisions['compared']:,} differ"
    for row in decisions["rows"] if decisions else ():
        where = f"{row['session']} {row['symbol']} {one_line(row['owner'])}"
        yield f"    {where}: {_said(row['first'])}, then {_said(row['other'])}"
    yield f"  trades: {trades['differing']:,} of {trades['compared']:,} are in one run only"
    for row in trades["rows"]:
        # Exact, for two trades may differ in the last digit alone.
        run = names.get(row["run"], row["run"])
        yield f"    {row['session']} {row['side']} {row['quantity']} {row['symbol']} at {row['price']}: {run}"


def _daily(daily: Document) -> str:
    if daily["mean"] is None:
        return "no session in common"
    found = f"{percent(daily['mean'], 4)} on {counted(daily['sessions'], 'session')}"
    if daily["low"] is None:
        return f"{found}, too few for an interval"
    told = "distinguishable" if daily["distinguishable"] else "not distinguishable"
    needed = f"; about {counted(daily['sessions_needed'], 'session')} needed" if daily["sessions_needed"] else ""
    interval = f"95 %: {percent(daily['low'], 4)} to {percent(daily['high'], 4)}"
    return f"{found}, {interval}: {told}{'' if daily['distinguishable'] else needed}"


def _said(decision: Document | None) -> str:
    if decision is None:
        return "nothing"
    return f"{decision['action']} {decision['size']:g} %" if decision["size"] else str(decision["action"])


def _short(value: object) -> str:
    if value is None:
        return "not recorded"
    if isinstance(value, list) and not any(isinstance(one, list | dict) for one in value):
        value = ", ".join(map(str, value))
    return cut(one_line(str(value)), 60) or "nothing"


def candidate_lines(runs: Sequence[StoredRun]) -> Iterator[str]:
    """Runs that a pruning would remove, and their bytes."""
    for run in runs:
        yield f"  {run.id}  {one_line(run.name)}  {run.time:%Y-%m-%d}  {stored(run.size)}"
    yield f"{counted(len(runs), 'run')}, {stored(sum(run.size for run in runs))}"


def pruned_lines(document: Document) -> Iterator[str]:
    """Runs that were removed, and those that were left."""
    count = len(document["removed"])
    yield f"{counted(count, 'run')} removed, {stored(document['bytes'])}; {document['retained']:,} stay"
    for run in document["at_work"]:
        yield f"  {run} stays: it is running"
