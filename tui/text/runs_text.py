"""Runs as plain text: the list, a comparison, and a pruning before and after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine.domain.text import counted
from engine.reports.amounts import cost, gain, number, percent, portion, ratio, stored
from engine.reports.performance import BENCHMARK
from engine.reports.settings_text import change_words, key_title
from engine.reports.table import Column, sign_ink
from tui.text.attribution_text import sensitivity_lines
from tui.text.console import Console, listing
from tui.text.equity_curves import curve_lines
from tui.text.plain_text import GAP, cut, one_line, table

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
    Column("KIND", "kind", drop_order=2),
    Column("NAME", "name"),
    Column("SYMBOLS", lambda run: cut(",".join(run["symbols"]), 24), drop_order=1),
    Column("WINDOW", _window),
    Column("RETURN", lambda run: run["metrics"].get("total_return", ""), percent, sign_ink),
    Column("SHARPE", lambda run: run["metrics"].get("sharpe", ""), ratio),
    Column("COST", lambda run: cost(number(run["cost"])), str, drop_order=3),
    Column("SIZE", lambda run: run["bytes"] or "", stored, drop_order=4),
    Column("STATE", lambda run: "cannot be read" if run["problem"] else run["outcome"] or "not finished"),
)


def list_lines(document: Document) -> Iterator[str]:
    """The list, a line a run."""
    none = "no matching run; `paperdesk backtest` creates one"
    yield from listing(RUNS, document["runs"], document["count"], none)
    own = f", {stored(document['bytes'])} in files of their own" if document["bytes"] else ""
    yield f"{counted(document['count'], 'run')}{own}"


def run_curves(document: Document, console: Console) -> Iterator[str]:
    """The values of all runs over each other from 100 on, with buy and hold."""
    curves = document["curves"]
    title = f"Values from 100 on {next(iter(curves['sessions']), '')}"
    series = {run["run"]: values for run, values in zip(document["runs"], curves["runs"], strict=True)}
    if curves["buy_and_hold"] is not None:
        series[BENCHMARK] = curves["buy_and_hold"]
    yield from curve_lines(series, curves["sessions"], console, title)


def comparison_lines(document: Document, width: int, names: Mapping[str, str] = NO_NAMES) -> Iterator[str]:
    """Runs, models or owners' books side by side on `width` columns, then the pairs, by their names or others."""
    from engine.reports.comparison_page import agreement_words, difference_words, figure_rows, floor_words

    heads = [names.get(one["name"], one["name"]) for one in document["models"]]
    yield from _beside(("", *heads), list(figure_rows(document)), width)
    luck = zip(heads, (one["luck"] or {} for one in document["models"]), strict=True)
    lines = [f"{name}: {found['sentence']}" for name, found in luck if found.get("sentence")]
    yield from ("", *lines) if lines else ()
    yield from filter(None, [floor_words(document)])
    for pair in document["pairs"]:
        yield ""
        first, other = (names.get(pair[side], pair[side]) for side in ("first", "other"))
        yield f"{other} beside {first}" + (": the same result" if pair.get("same") else "")
        if "settings" in pair:
            yield from _changed_settings(pair["settings"], "every setting is the same")
        yield f"  mean daily difference: {difference_words(pair)}"
        if "equity" in pair:
            yield from _differences(pair, names)
        elif words := agreement_words(pair):
            yield f"  decisions: {words}"
    if document.get("family"):
        yield ""
        yield from _family(document["family"], names)
    yield from ("", *document["notes"]) if document.get("notes") else ()
    yield from sensitivity_lines(document, width)


def rerun_lines(document: Document) -> Iterator[str]:
    """A repetition: what changed of its settings, and where its results part."""
    yield f"{document['of']} again as {document['run']}"
    yield from _changed_settings(
        document["settings"], "every setting, the data, the prompts and the program are the same"
    )
    for one in document["first_differences"]:
        where = f"{one['session']} {one['symbol'] or ''}".rstrip()
        yield f"  {one['part']}: the first of its {one['kind']} that differs is of {where}"
    yield f"Result: {'the same' if document['same'] else 'it differs'}"


def _changed_settings(changed: Sequence[Document], none: str) -> Iterator[str]:
    for row in changed:
        yield f"  {key_title(row['setting'])}: {change_words(row, 60)}"
    if not changed:
        yield f"  {none}"


def _beside(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """A table with a column per run; the runs that do not fit go on in tables below, none is left out."""
    sizes = [max(len(row[n]) for row in (head, *rows)) for n in range(len(head))]
    at_once = max(1, (width - sizes[0]) // (max(sizes[1:]) + len(GAP)))
    for first in range(1, len(head), at_once):
        yield from ("",) if first > 1 else ()
        part = (0, *range(first, min(first + at_once, len(head))))
        shown = [head[n] for n in part]
        yield from table(shown, [[row[n] for n in part] for row in rows], right=shown[1:], width=max(width, sum(sizes)))


def repeats_lines(document: Document) -> Iterator[str]:
    """Repeats of a backtest in plain text: how far they are apart, and what of a lead they leave."""
    from engine.reports.comparison_page import difference_words, floor_words

    own, (pair,) = document["repeats"], document["pairs"]
    alike = "" if own["agreement"] is None else f", the same action in {portion(own['agreement'])} of decisions"
    yield f"{counted(len(own['runs']), 'run')}: total return {percent(own['total_return'])} on average{alike}"
    yield floor_words(document)
    yield f"Mean daily difference to {pair['first']}: {difference_words(pair)}"


def _family(family: Document, names: Mapping[str, str]) -> Iterator[str]:
    """The tests of all runs against the first, taken together."""
    best = f"p {family['superior']:.3f} that the best is no better (superior predictive ability)"
    yield f"All runs against the first on {counted(family['sessions'], 'session')}: {best}"
    for row in family["rows"]:
        alone = f"p {row['p']:.3f} alone, {row['adjusted']:.3f} among all (Romano and Wolf)"
        yield f"  {names.get(row['run'], row['run'])}: {alone}"


def _differences(pair: Document, names: Mapping[str, str]) -> Iterator[str]:
    equity = pair["equity"]
    if equity["last"] is None:
        return
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


def _said(decision: Document | None) -> str:
    if decision is None:
        return "nothing"
    return f"{decision['action']} {decision['size']:g} %" if decision["size"] else str(decision["action"])


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
