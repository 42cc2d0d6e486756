"""`bench arena`: the tables of Agent Trading Arena with our arms beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean
from typing import Any

from engine.app.arena.arena import arena_forecast, repeat_documents, run_repeats
from engine.app.arena.record import ArenaSpec
from engine.app.bench.forecast import Estimate, Forecast
from engine.app.research.run_spec import new_run_id
from engine.lab.published_tables import paper_file
from engine.reports.documents.row_json import Row
from engine.services import Services

SCHEMA = 1
INPUTS = ("text", "charts", "both")
WINDOWS = (5, 10, 15, 20)
"""Windows of Table 6, in days; those of Table 5 are of the usual one."""
USUAL_WINDOW = 10
PERCENT = {"TR": "total_return", "Mean": "mean_return", "Std": "standard_deviation", "WR": "win_rate"}
UNEVEN = 0.02
"""Greatest relative distance of a printed Sharpe ratio from Mean / Std; beyond it the row is marked."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Repeats of an arena for one row of ours: in `table`, asked of `model`."""

    table: int
    row: str
    model: str
    spec: ArenaSpec


def arms_of(services: Services, models: Sequence[str], repeats: int, *, windows: bool) -> Sequence[Arm]:
    """An arm for each input with and without reflection, and a duel; of each model. With `windows` also an arm for each
    input and each other window, in the order of Table 6."""
    name, days = new_run_id("bench-arena", services.clock.now()), int(paper_file("arena")["days"])
    arms = []
    for number, model in enumerate(models, 1):
        base = ArenaSpec(run=f"{name}-{number}", agents="trader", days=days, model=model, repeats=repeats)
        for shown in INPUTS:
            changed = replace(base, run=f"{base.run}-{shown}", changes={"input": shown, "reflects": False})
            arms.append(Arm(5, f"{model}, {shown}, no reflection", model, changed))
        for shown, window in product(INPUTS, WINDOWS if windows else (USUAL_WINDOW,)):
            changes = {"input": shown, "reflects": True}
            if window == USUAL_WINDOW:
                changed = replace(base, run=f"{base.run}-{shown}-reflection", changes=changes)
                arms.append(Arm(5, f"{model}, {shown}, reflection", model, changed))
            else:
                changed = replace(base, run=f"{base.run}-{shown}-{window}", changes={**changes, "window": window})
                arms.append(Arm(6, f"{model}, {input_arm(shown, window)}", model, changed))
        duel = replace(base, run=f"{base.run}-duel", agents="duel", changes={"reflects": False})
        arms.append(Arm(9, model, model, duel))
    return arms


def input_arm(shown: str, window: int) -> str:
    """An arm of Table 6 in words."""
    return f"{shown}, {window} days"


def arms_forecast(services: Services, arms: Sequence[Arm]) -> Forecast | None:
    """The forecast of all arms; None where nobody is asked who might charge for it."""
    sums: dict[str, Estimate] = {}
    for arm in arms:
        found = arena_forecast(services, arm.spec)
        for text, one in ({} if found is None else found.models).items():
            sums.setdefault(text, Estimate()).add(one)
    return Forecast(sums, sum(arm.spec.repeats for arm in arms)) if sums else None


def run_arena_bench(
    services: Services,
    arms: Sequence[Arm],
    *,
    jobs: int,
    report: Callable[[str], None] = lambda text: None,
    stop: Callable[[], bool] = lambda: False,
) -> Row:
    """Play all arms and return the document: printed tables, our rows, what cannot be had. Raises as `run_repeats`."""
    ours: list[Row] = []
    done = 0
    for arm in arms:
        if stop():
            break
        report(f"arena {arm.row}")
        whole = run_repeats(services, arm.spec, jobs=jobs, stop=stop)
        if whole is None or whole["interrupted"]:
            break
        done += 1
        ours += _duel_rows(arm, whole) if arm.table == 9 else _trader_rows(arm, repeat_documents(arm.spec))
    paper = paper_file("arena")
    return {
        "schema": SCHEMA,
        "bench": "arena",
        "days": int(paper["days"]),
        "tables": [printed_table(table) for table in paper["table"]],
        "ours": ours,
        "absent": list(paper["absent"]),
        "repeats": arms[0].spec.repeats,
        "runs": [arm.spec.run for arm in arms[:done]],
        "interrupted": done < len(arms),
    }


def printed_table(table: Mapping[str, Any]) -> Row:
    """A printed table; `uneven` names its rows whose Sharpe ratio is not Mean / Std, each with that quotient."""
    rows = [
        {"row": name, "figures": dict(zip(table["columns"], map(str, rest), strict=True))}
        for name, *rest in table["rows"]
    ]
    return {
        "table": table["number"],
        "title": table["title"],
        "columns": table["columns"],
        "rows": [one | {"uneven": _uneven(one["figures"])} for one in rows],
    }


def _uneven(figures: Mapping[str, str]) -> float | None:
    if not {"Mean", "Std", "SR"} <= figures.keys():
        return None
    quotient, printed = float(figures["Mean"]) / float(figures["Std"]), float(figures["SR"])
    # Half a digit of a printed figure is no fault.
    near = abs(quotient - printed) <= max(UNEVEN * abs(printed), 0.002)
    return None if near else quotient


def _trader_rows(arm: Arm, documents: Sequence[Mapping[str, Any]]) -> Sequence[Row]:
    """Means over the repeats of the trader's figures; with reflection also a row of table 6, and with text and charts
    one of table 3."""
    traders = [next(one for one in document["agents"] if one["name"] == "ArenaTrader") for document in documents]
    figures = {name: _mean([one["metrics"][key] for one in traders], 100) for name, key in PERCENT.items()}
    figures["SR"] = _mean([one["metrics"]["sharpe"] for one in traders])
    rows: list[Row] = [{"table": arm.table, "row": arm.row, "figures": figures}]
    if arm.table == 5 and arm.spec.changes["reflects"]:
        row = f"{arm.model}, {input_arm(arm.spec.changes['input'], USUAL_WINDOW)}"
        rows.append({"table": 6, "row": row, "figures": figures})
    if arm.spec.changes == {"input": "both", "reflects": True}:
        trend = _mean([one["market"]["average_trend"] for one in documents], 100)
        difference = _mean([one["metrics"]["difference"] for one in traders], 100)
        rows.append({"table": 3, "row": arm.model, "figures": {"Trend": trend, **figures, "Difference": difference}})
    return rows


def _duel_rows(arm: Arm, whole: Row) -> Sequence[Row]:
    agents = {one["name"]: one for one in whole["agents"]}
    return [
        {
            "table": 9,
            "row": f"{arm.model}, {name.lower()}",
            "figures": {"TR": agents[name]["relative"]["return"], "SR": agents[name]["relative"]["sharpe"]},
        }
        for name in ("Text", "Charts")
    ]


def _mean(values: Sequence[float | None], times: float = 1.0) -> float | None:
    known = [one for one in values if one is not None]
    return times * fmean(known) if known else None
