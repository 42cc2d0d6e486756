"""Bars and actions that contradict each other, as every command meets them: refused with 65, named by day, mendable.

A share walks from 100 by a little each session. Where it splits, its bars are as traded; the folders that are wrong
have bars that were adjusted before, a split that is missing, or a spike.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from connectors.files.market import FilesMarket
from connectors.files.prices import read_actions, read_prices
from connectors.llm import gate
from connectors.wiring.services import services
from engine.app.desk.run import run_intraday
from engine.app.desk.watch import DeskWatch
from engine.errors import TryAgainLater
from engine.market.price_faults import price_faults
from engine.market.trading_hours import calendar_for, decision_time, exchange_calendar
from engine.messages.events import Event, Noticed
from engine.session.context import DeskRunResult
from engine.settings import places
from engine.settings.config import load_config
from tests.long_cases import first_of
from tests.servers.fake_llm_server import Fail, FakeLLMServer, fake_llm_server
from tests.servers.fake_web import Page, fake_web
from tests.tui.commands.conftest import OpenBroker, Run, Said, after_close

DAYS = calendar_for("AAA").sessions(date(2024, 1, 2), date(2024, 6, 28))
EX_DATE = DAYS[60]
WINDOW = ("--from", str(DAYS[40]), "--to", str(DAYS[80]))
HEADER = "date,open,high,low,close,adj_close,volume"
CODE = 65


def prices(factor: Callable[[int], float] = lambda row: 1.0, days: Sequence[date] = DAYS) -> str:
    """A price file of a walk whose prices are multiplied by `factor` of their row."""
    rows = [HEADER]
    for row, day in enumerate(days):
        scale = factor(row)
        opened, closed = (100 + row % 7) * scale, (100 + (row + 1) % 7) * scale
        high, low = max(opened, closed) * 1.01, min(opened, closed) * 0.99
        rows.append(f"{day},{opened:.6f},{high:.6f},{low:.6f},{closed:.6f},,1000")
    return "\n".join(rows) + "\n"


def from_ex_date(factor: float) -> Callable[[int], float]:
    return lambda row: factor if row >= 60 else 1.0


def at_ex_date(factor: float) -> Callable[[int], float]:
    return lambda row: factor if row == 60 else 1.0


def write(folder: Path, text: str, *actions: str, symbol: str = "AAA") -> Path:
    """A data folder with one more symbol."""
    for kind, content in (("prices", text), ("actions", "\n".join(("ex_date,kind,value", *actions)) + "\n")):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        (folder / kind / f"{symbol}.csv").write_text(content)
    return folder


def configure(folder: Path) -> None:
    """A desk on two symbols of a data folder."""
    text = f'[desk]\nsymbols = ["AAA", "BBB"]\npreset = "finvision"\n[data]\nfolder = "{folder.as_posix()}"\n'
    places.config_file().write_text(text, encoding="utf-8")


ADJUSTED = (prices(), f"{EX_DATE},split,20")
MISSING = (prices(from_ex_date(0.25)),)
SPIKE = (prices(at_ex_date(100.0)),)
WRONG = {"adjusted already": ADJUSTED, "as at a split of 4:1 that is missing": MISSING, "a spike": SPIKE}


@pytest.mark.parametrize("problem", WRONG)
def test_a_backtest_and_an_audit_refuse_it_but_not_what_lies_after_the_window(
    run: Run, fresh: Path, tmp_path: Path, problem: str
) -> None:
    folder = write(tmp_path / "data", *WRONG[problem])
    of_rule = ("--symbols", "AAA", "--strategy", "buy-and-hold", "--data", str(folder))
    for command in ("backtest", "audit"):
        said = run(command, *of_rule, *WINDOW)
        assert (said.code, said.result) == (CODE, ""), said
        assert said.err.count("\n") == 1
        for word in ("AAA", str(EX_DATE), problem, "import other bars", f"{EX_DATE},confirmed,"):
            assert word in said.err, said.err
    assert run("backtest", *of_rule, "--from", str(DAYS[30]), "--to", str(DAYS[59])).code == 0


def changed_rows(text: str, change: Callable[[int, list[str]], list[str]]) -> str:
    """A price file with the cells of its rows, counted from 1, changed; a row without cells goes."""
    rows = [line.split(",") for line in text.splitlines()]
    kept = [rows[0], *(change(row, cells) for row, cells in enumerate(rows[1:], 1))]
    return "\n".join(",".join(cells) for cells in kept if cells) + "\n"


def without(*rows: int) -> str:
    return changed_rows(prices(), lambda row, cells: [] if row in rows else cells)


def with_close(close: str, row: int = 61) -> str:
    return changed_rows(prices(), lambda n, cells: [*cells[:4], close, *cells[5:]] if n == row else cells)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        (without(61), [EX_DATE]),
        (without(41, 81), [DAYS[40], DAYS[80]]),
        (with_close("0"), [EX_DATE]),
        (with_close("150"), [EX_DATE]),
        (
            changed_rows(with_close("150"), lambda row, cells: [*cells[:2], "x", *cells[3:]] if row == 63 else cells),
            [EX_DATE, DAYS[62]],
        ),
    ],
    ids=["hole", "hole at both ends", "zero", "above the high", "two rows"],
)
def test_missing_and_impossible_rows_are_named(
    run: Run, fresh: Path, tmp_path: Path, text: str, days: Sequence[date]
) -> None:
    folder = write(tmp_path / "data", text)
    for command in ("backtest", "audit"):
        said = run(command, "--symbols", "AAA", *WINDOW, "--strategy", "buy-and-hold", "--data", str(folder))
        assert (said.code, said.result, said.err.count("\n")) == (CODE, "", 1), said
        assert all(str(day) in said.err for day in days) and "AAA" in said.err, said.err


@pytest.mark.parametrize("every", [5, 21])
def test_weekly_and_monthly_bars_are_no_daily_ones(run: Run, fresh: Path, tmp_path: Path, every: int) -> None:
    days = calendar_for("AAA").sessions(date(2023, 1, 3), date(2024, 6, 28))[::every]
    folder = write(tmp_path / "data", prices(days=days))
    at = ("--symbols", "AAA", "--from", str(days[3]), "--to", str(days[-3]), "--strategy", "buy-and-hold")
    for command in ("backtest", "audit"):
        said = run(command, *at, "--data", str(folder))
        assert (said.code, "weekly or monthly" in said.err) == (CODE, True), said
    said = run("import", "prices", str(folder / "prices" / "AAA.csv"), "--symbol", "BBB", "--data", str(folder))
    assert (said.code, "weekly or monthly" in said.err) == (CODE, True), said
    assert not (folder / "prices" / "BBB.csv").exists()
    few = write(tmp_path / "few", prices(days=days[:7]), symbol="CCC")
    assert run("import", "prices", str(few / "prices" / "CCC.csv"), "--symbol", "CCC", "--data", str(folder)).code == 0


def test_rounding_is_no_fault_and_is_said(run: Run, fresh: Path, tmp_path: Path) -> None:
    def above(row: int, cells: list[str]) -> list[str]:
        return [*cells[:4], f"{float(cells[2]) * (1 + 0.9e-5):.6f}", *cells[5:]] if row == 61 else cells

    folder = write(tmp_path / "data", changed_rows(prices(), above))
    at = ("--symbols", "AAA", *WINDOW, "--strategy", "buy-and-hold", "--data", str(folder), "--json")
    said = run("backtest", *at)
    assert said.code == 0, said.err
    assert [note for note in said.json["notes"] if "rounding" in note and str(EX_DATE) in note], said.json["notes"]
    high = changed_rows(prices(), lambda row, cells: cells).splitlines()[61].split(",")[2]
    assert read_prices(folder / "prices" / "AAA.csv", "AAA").bar(60).close == Decimal(high)


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        (prices(), ()),
        (prices(from_ex_date(0.05)), (f"{EX_DATE},split,20",)),
        (prices(from_ex_date(0.25)), (f"{EX_DATE},split,4",)),
        (prices(from_ex_date(2 / 3)), (f"{EX_DATE},split,1.5",)),
        (prices(from_ex_date(10.0)), (f"{EX_DATE},split,0.1",)),
        (prices(from_ex_date(0.25)), (f"{EX_DATE},confirmed,0.25",)),
        (prices(at_ex_date(100.0)), (f"{EX_DATE},confirmed,100",)),
        (prices(), (f"{EX_DATE},split,20", f"{EX_DATE},confirmed,1")),
    ],
    ids=["other-bars", "20:1", "4:1", "3:2", "1:10", "confirmed-fall", "confirmed-spike", "confirmed-stay"],
)
def test_each_way_to_mend_it_lets_it_run(
    run: Run, fresh: Path, tmp_path: Path, text: str, actions: Sequence[str]
) -> None:
    folder = write(tmp_path / "data", text, *actions)
    said = run("backtest", "--symbols", "AAA", *WINDOW, "--strategy", "buy-and-hold", "--data", str(folder), "--json")
    assert said.code == 0, said.err
    assert all(flow["kind"] == "cash in lieu" for flow in said.json["cash_flows"]), "a confirmed move pays nothing"


def test_a_confirmation_of_another_move_confirms_nothing(run: Run, fresh: Path, tmp_path: Path) -> None:
    folder = write(tmp_path / "data", MISSING[0], f"{EX_DATE},confirmed,0.5")
    said = run("backtest", "--symbols", "AAA", *WINDOW, "--strategy", "buy-and-hold", "--data", str(folder))
    assert said.code == CODE


def test_an_import_refuses_it_whichever_file_comes_second_and_writes_nothing(
    run: Run, fresh: Path, tmp_path: Path
) -> None:
    folder, bars, split = tmp_path / "data", tmp_path / "bars.csv", tmp_path / "split.csv"
    bars.write_text(prices())
    split.write_text(f"ex_date,kind,value\n{EX_DATE},split,20\n")
    at = ("--symbol", "AAA", "--data", str(folder))
    assert run("import", "prices", str(bars), *at).code == 0
    said = run("import", "actions", str(split), *at)
    assert (said.code, "adjusted already" in said.err) == (CODE, True), said.err
    assert not (folder / "actions").exists()
    split.write_text(f"ex_date,kind,value\n{EX_DATE},split,4\n")
    assert run("import", "actions", str(split), "--symbol", "BBB", "--data", str(folder)).code == 0
    said = run("import", "prices", str(bars), "--symbol", "BBB", "--data", str(folder))
    assert said.code == CODE and not (folder / "prices" / "BBB.csv").exists()
    bars.write_text(prices(from_ex_date(0.25)))
    assert run("import", "prices", str(bars), "--symbol", "BBB", "--data", str(folder)).code == 0
    assert run("import", "prices", str(bars), "--symbol", "CCC", "--data", str(folder)).code == CODE


@pytest.mark.parametrize(
    ("column", "on", "off"),
    first_of(
        2,
        [("tradestatus", "1", "0"), ("交易状态", "交易", "停牌"), ("paused", "0.0", "1.0"), ("suspended", "", "TRUE")],
    ),
)
def test_an_import_leaves_out_a_row_that_its_file_marks_as_suspended(
    run: Run, fresh: Path, tmp_path: Path, column: str, on: str, off: str
) -> None:
    bars = tmp_path / "bars.csv"
    marked = [f"{row},{off if n in (61, 62) else on}" for n, row in enumerate(prices().splitlines()[1:], 1)]
    bars.write_text("\n".join((f"{HEADER},{column}", *marked)) + "\n")
    said = run("import", "prices", str(bars), "--symbol", "AAA", "--data", str(tmp_path / "data"), "--json")
    assert (said.code, said.json["added"]) == (0, len(DAYS) - 2), said.err
    assert [note for note in said.json["notes"] if "suspended" in note and str(EX_DATE) in note], said.json["notes"]
    assert [note for note in said.json["notes"] if "no bar" in note and str(EX_DATE) in note], said.json["notes"]


def test_the_doctor_names_it(run: Run, fresh: Path, tmp_path: Path) -> None:
    folder = write(tmp_path / "data", *ADJUSTED)
    write(folder, prices(), symbol="BBB")
    configure(folder)
    said = run("doctor", "--json")
    found = {one["name"]: one for one in said.json["checks"] if one["area"] == "Data"}
    assert said.code == 1
    assert found["AAA"]["state"] == "fail" and "adjusted already" in found["AAA"]["detail"]
    assert found["BBB"]["state"] != "fail"


def test_crypto_has_no_splits(run: Run, fresh: Path, tmp_path: Path) -> None:
    days = [date.fromordinal(DAYS[0].toordinal() + n) for n in range(120)]
    folder = write(tmp_path / "data", prices(from_ex_date(0.25), days), symbol="BTC-USD")
    at = ("--from", str(days[40]), "--to", str(days[80]), "--strategy", "buy-and-hold", "--data", str(folder))
    assert run("backtest", "--symbols", "BTC-USD", *at).code == 0
    write(folder, prices(from_ex_date(0.25), days), f"{days[60]},split,4", symbol="BTC-USD")
    said = run("backtest", "--symbols", "BTC-USD", *at)
    assert (said.code, "crypto has no splits" in said.err) == (CODE, True)


# The figures, by the files that they are read from


def opened_at(folder: Path, move: float, *actions: str) -> bool:
    """True where a share that opens at so much of the close before is refused."""
    text = prices(lambda row: move if row >= 60 else 1.0)
    lines = text.splitlines()
    before = float(lines[60].split(",")[4])
    cells = lines[61].split(",")
    opened = before * move
    cells[1:5] = f"{opened:.6f}", f"{opened * 1.01:.6f}", f"{opened * 0.99:.6f}", f"{opened:.6f}"
    write(folder, "\n".join((*lines[:61], ",".join(cells), *lines[62:])) + "\n", *actions)
    history = read_prices(folder / "prices" / "AAA.csv", "AAA")
    return bool(price_faults(history, read_actions(folder / "actions" / "AAA.csv", "AAA")))


@pytest.mark.parametrize(
    ("move", "refused"),
    [
        *((move, False) for move in (0.703, 0.649, 1.537, 0.755, 1.335, 0.75, 0.8, 0.56, 1.75)),
        *((move, True) for move in (0.667, 0.5, 0.54, 0.25, 0.1, 0.05, 1.5, 2.0, 10.0, 11.0, 17.5)),
    ],
)
def test_a_jump_near_a_usual_ratio_needs_an_action(tmp_path: Path, move: float, refused: bool) -> None:
    assert opened_at(tmp_path, move) is refused


@pytest.mark.parametrize(
    ("split", "moves", "wrong"),
    [
        ("4", (0.25, 0.21, 0.31), (1.0, 0.5, 0.32, 0.19)),
        ("2", (0.5, 0.41, 0.62), (1.0, 0.7, 0.25)),
        ("1.5", (0.667, 0.6, 0.75), (1.0, 0.9, 0.5)),
        ("1.25", (0.8, 0.75, 0.87), (1.0, 0.92)),
        ("0.05", (20.0, 17.0, 24.0), (1.0, 10.0)),
        ("1.1", (0.909, 1.0), ()),
    ],
)
def test_a_split_has_to_show_at_the_open_of_its_ex_date(
    tmp_path: Path, split: str, moves: Sequence[float], wrong: Sequence[float]
) -> None:
    row = f"{EX_DATE},split,{split}"
    assert [opened_at(tmp_path, move, row) for move in moves] == [False] * len(moves)
    assert [opened_at(tmp_path, move, row) for move in wrong] == [True] * len(wrong)


async def test_the_real_moves_of_real_files_pass(real_data: Path) -> None:
    market = FilesMarket(real_data, calendar_for)
    symbols = await market.symbols()
    assert {"NFLX", "NIO"} <= set(symbols)
    found = [price_faults(await market.history(symbol), await market.actions(symbol)) for symbol in symbols]
    assert found == [()] * len(symbols)


# A daily run: the symbol is frozen, the others go on. The offline analysts buy both shares of the demo market here.

BOUGHT = [date(2025, 3, day) for day in (7, 10, 11)]
WEDNESDAY, THURSDAY, FRIDAY = (date(2025, 3, day) for day in (12, 13, 14))


@pytest.fixture
def run(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `paperdesk`; a daily run for a session by the clock of the hour after its close, so that its orders fill at
    the next open."""

    def at_close(*arguments: str) -> Said:
        if "--session" in arguments:
            session = date.fromisoformat(arguments[arguments.index("--session") + 1])
            now = decision_time(exchange_calendar("XNYS"), session) + timedelta(hours=1)
            monkeypatch.setattr("engine.clock.LiveClock.now", lambda clock: now)
        return run(*arguments)

    return at_close


@pytest.fixture
def desk_folder(run: Run, fresh: Path, demo_folder: Callable[[date], Path], tmp_path: Path) -> Path:
    """The data folder of a desk that holds AAA and BBB, which are two shares of the demo market, from its runs of three
    sessions."""
    folder = tmp_path / "data"
    for kind, suffix in (("prices", "csv"), ("actions", "csv"), ("news", "jsonl"), ("filings", "jsonl")):
        (folder / kind).mkdir(parents=True)
        for symbol, demo in (("AAA", "ORVL"), ("BBB", "PLWY")):
            shutil.copy(
                demo_folder(date(2025, 7, 11)) / kind / f"{demo}.{suffix}", folder / kind / f"{symbol}.{suffix}"
            )
    configure(folder)
    for session in BOUGHT:
        assert run("--daily", "--session", str(session)).code == 0
    return folder


def changed(folder: Path, factor: float, first: date, last: date | None = None) -> None:
    """Multiply the prices of AAA from a session on, or to another."""
    path = folder / "prices" / "AAA.csv"
    lines = path.read_text().splitlines()
    for n, line in enumerate(lines[1:], 1):
        day, *cells = line.split(",")
        if str(first) <= day <= str(last or day):
            cells[:4] = (f"{float(cell) * factor:.6f}" for cell in cells[:4])
            lines[n] = ",".join((day, *cells[:4], "", cells[5]))
    path.write_text("\n".join(lines) + "\n")


def acted(folder: Path, row: str) -> None:
    """Add an action of AAA."""
    with (folder / "actions" / "AAA.csv").open("a") as file:
        file.write(f"{row}\n")


def adjusted_already(folder: Path) -> None:
    acted(folder, f"{WEDNESDAY},split,20")


def missing(folder: Path) -> None:
    changed(folder, 0.25, WEDNESDAY)


def spike(folder: Path) -> None:
    changed(folder, 100, WEDNESDAY, WEDNESDAY)


def row_of(folder: Path, day: date, change: Callable[[list[str]], list[str]]) -> None:
    """Change the cells of AAA's row of a day; without cells the row goes."""
    path = folder / "prices" / "AAA.csv"
    rows = [line.split(",") for line in path.read_text().splitlines()]
    rows = [change(cells) if cells[0] == str(day) else cells for cells in rows]
    path.write_text("\n".join(",".join(cells) for cells in rows if cells) + "\n")


def a_cent_above_its_high(folder: Path) -> None:
    row_of(folder, WEDNESDAY, lambda cells: [*cells[:4], str(Decimal(cells[2]) + Decimal("0.01")), "", cells[6]])


def zeros(folder: Path) -> None:
    row_of(folder, WEDNESDAY, lambda cells: [cells[0], "0", "0", "0", "0", "", "0"])


def no_number(folder: Path) -> None:
    row_of(folder, WEDNESDAY, lambda cells: [*cells[:4], "n/a", *cells[5:]])


def hole(folder: Path) -> None:
    row_of(folder, WEDNESDAY, lambda cells: [])


def late(folder: Path) -> None:
    path = folder / "prices" / "AAA.csv"
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join((header, *(row for row in rows if row < str(WEDNESDAY)))) + "\n")


@pytest.mark.parametrize(
    "fault",
    first_of(4, [missing, a_cent_above_its_high, no_number, late, adjusted_already, spike, zeros, hole]),
)
def test_a_daily_run_freezes_the_symbol_and_goes_on_with_the_others(
    run: Run, desk_folder: Path, fault: Callable[[Path], None]
) -> None:
    held = run("positions", "--json").json["positions"]
    assert set(held) == {"AAA", "BBB"}
    fault(desk_folder)
    said = run("--daily", "--session", str(WEDNESDAY), "--json")
    assert said.code == CODE
    assert "AAA is frozen" in said.err and str(WEDNESDAY) in said.err.splitlines()[-1], said.err
    assert (said.json["outcome"], list(said.json["frozen"])) == ("done", ["AAA"])
    assert [made["symbol"] for made in said.json["decisions"]] == ["BBB"]
    assert {order["symbol"] for order in said.json["orders"]} <= {"BBB"}
    kept = said.json["positions"]["AAA"]
    assert (kept["quantity"], kept["price"]) == (held["AAA"]["quantity"], held["AAA"]["price"])
    assert said.json["positions"]["BBB"]["price"] != held["BBB"]["price"]
    assert "AAA" in run("status", "--json").json["frozen"] and "Frozen" in run("status").out
    shown = run("positions", "--json").json
    assert "AAA" in shown["positions"] and list(shown["frozen"]) == ["AAA"] and "frozen" in run("positions").out
    again = run("--daily", "--session", str(WEDNESDAY), "--json")
    assert (again.code, again.json["outcome"], again.json["orders"]) == (CODE, "nothing to do", said.json["orders"])
    assert "AAA is frozen" in again.err


def untraded(folder: Path, day: date) -> None:
    """A day of AAA on which nothing was traded: the close before, and no volume."""
    path = folder / "prices" / "AAA.csv"
    before = [row for row in path.read_text().splitlines()[1:] if row < str(day)][-1].split(",")[4]
    row_of(folder, day, lambda cells: [cells[0], *[before] * 4, "", "0"])


def test_an_order_waits_over_sessions_without_a_trade_and_nothing_is_decided_on_them(
    run: Run, desk_folder: Path
) -> None:
    """What AAA's run of Tuesday ordered fills on the first day that has a trade."""
    bought = [order for order in run("orders", "--json").json["orders"] if order["state"] == "acknowledged"]
    assert "AAA" in {order["symbol"] for order in bought}
    for day in (WEDNESDAY, THURSDAY):
        untraded(desk_folder, day)
    for session, state in ((WEDNESDAY, "acknowledged"), (THURSDAY, "acknowledged"), (FRIDAY, "filled")):
        said = run("--daily", "--session", str(session), "--json")
        assert (said.code, said.json["outcome"]) == (0, "done"), said.err
        decided = {made["symbol"] for made in said.json["decisions"]}
        assert decided == ({"AAA", "BBB"} if session == FRIDAY else {"BBB"})
        assert ("volume is 0" in said.err) is (session != FRIDAY)
        after = {order["id"]: order for order in run("orders", "--json").json["orders"]}
        waited = [after[order["id"]] for order in bought if order["symbol"] == "AAA"]
        assert [order["state"] for order in waited] == [state], said.err
    assert {fill["session"] for order in waited for fill in order["fills"]} == {str(FRIDAY)}
    assert run("journal", "check").code == 0


def test_no_symbol_up_to_date_is_told_as_before(run: Run, desk_folder: Path) -> None:
    for symbol in ("AAA", "BBB"):
        path = desk_folder / "prices" / f"{symbol}.csv"
        header, *rows = path.read_text().splitlines()
        path.write_text("\n".join((header, *(row for row in rows if row < str(WEDNESDAY)))) + "\n")
    said = run("--daily", "--session", str(WEDNESDAY))
    assert (said.code, said.result) == (CODE, "") and "fetch newer ones" in said.err


def mended_by_the_split(folder: Path) -> None:
    acted(folder, f"{WEDNESDAY},split,4")


def mended_bars(folder: Path) -> None:
    changed(folder, 0.01, WEDNESDAY, WEDNESDAY)


def without_the_split(folder: Path) -> None:
    path = folder / "actions" / "AAA.csv"
    path.write_text(path.read_text().replace(f"{WEDNESDAY},split,20\n", ""))


@pytest.mark.parametrize(
    ("fault", "mend", "times"),
    [
        (missing, mended_by_the_split, 4),
        pytest.param(spike, mended_bars, 1, marks=pytest.mark.slow),
        pytest.param(adjusted_already, without_the_split, 1, marks=pytest.mark.slow),
    ],
)
def test_once_the_data_is_mended_the_position_has_what_came_due_meanwhile(
    run: Run, desk_folder: Path, fault: Callable[[Path], None], mend: Callable[[Path], None], times: int
) -> None:
    held = run("positions", "--json").json["positions"]["AAA"]
    fault(desk_folder)
    for session in (WEDNESDAY, THURSDAY):
        assert run("--daily", "--session", str(session)).code == CODE
    mend(desk_folder)
    said = run("--daily", "--session", str(FRIDAY), "--json")
    assert (said.code, said.json["frozen"]) == (0, {}), said.err
    kept = said.json["positions"]["AAA"]
    assert Decimal(kept["quantity"]) == times * Decimal(held["quantity"])
    worth, before = (Decimal(one["quantity"]) * Decimal(one["price"]) for one in (kept, held))
    assert 0.8 < worth / before < 1.25
    assert "AAA" in [made["symbol"] for made in said.json["decisions"]]
    assert run("journal", "check").code == 0


def test_a_desk_whose_every_symbol_is_frozen_decides_nothing(run: Run, desk_folder: Path) -> None:
    missing(desk_folder)
    text = places.config_file().read_text().replace('"AAA", "BBB"', '"AAA"')
    places.config_file().write_text(text)
    for outcome in ("done", "nothing to do"):
        said = run("--daily", "--session", str(WEDNESDAY), "--json")
        assert (said.code, said.json["outcome"], said.json["decisions"]) == (CODE, outcome, []), said.err
        assert set(said.json["positions"]) == {"AAA", "BBB"}


@pytest.mark.parametrize(
    ("reply", "code"), [pytest.param(Fail(529, "overloaded"), 65, marks=pytest.mark.slow), (Fail(401, "bad key"), 77)]
)
def test_of_several_hindrances_the_greater_one_counts(
    run: Run, desk_folder: Path, monkeypatch: pytest.MonkeyPatch, reply: Fail, code: int
) -> None:
    monkeypatch.setattr(gate, "PACE", 0.001)
    missing(desk_folder)
    with fake_llm_server(FakeLLMServer(script=[reply] * 100)) as service:
        monkeypatch.setenv("OPENAI_BASE_URL", service.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1")
        monkeypatch.setenv("PAPERDESK_MODELS__DEFAULT", "openai:m1")
        said = run("--daily", "--session", str(WEDNESDAY))
    assert (said.code, said.result) == (code, ""), said.err
    last = said.err.splitlines()[-1]
    assert ("AAA is frozen" in last) is (code == CODE)
    assert reply.message in last or code == 77, last
    monkeypatch.delenv("PAPERDESK_MODELS__DEFAULT")
    again = run("--daily", "--session", str(WEDNESDAY), "--json")
    assert (again.code, again.json["outcome"], list(again.json["frozen"])) == (CODE, "done", ["AAA"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", [missing, *(pytest.param(one, marks=pytest.mark.slow) for one in (adjusted_already, spike))]
)
def test_at_a_broker_too(
    run: Run,
    open_broker: OpenBroker,
    demo_folder: Callable[[date], Path],
    tmp_path: Path,
    fault: Callable[[Path], None],
) -> None:
    through = date(2025, 7, 11)
    server = open_broker(datetime(2025, 3, 7, 21, 5, tzinfo=UTC), through=through, symbols=("ORVL", "HLXM"))
    for _ in BOUGHT:
        assert run("--daily").code == 0
        after_close(server)
    held = run("positions", "--json").json["positions"]
    assert "ORVL" in held
    folder = tmp_path / "copied"
    shutil.copytree(demo_folder(through), folder)
    for kind in ("prices", "actions"):
        (folder / kind / "AAA.csv").unlink(missing_ok=True)
        shutil.move(folder / kind / "ORVL.csv", folder / kind / "AAA.csv")
    fault(folder)
    for kind in ("prices", "actions"):
        shutil.move(folder / kind / "AAA.csv", folder / kind / "ORVL.csv")
    sound = places.config_file().read_text()
    places.config_file().write_text(sound.replace(demo_folder(through).as_posix(), folder.as_posix()))
    said = run("--daily", "--json")
    assert (said.code, said.json["session"], list(said.json["frozen"])) == (CODE, str(WEDNESDAY), ["ORVL"]), said.err
    assert {order["symbol"] for order in said.json["orders"]} <= {"HLXM"}
    assert run("reconcile", "--json").json["agree"] is True
    assert Decimal(said.json["positions"]["ORVL"]["price"]) <= Decimal(held["ORVL"]["price"]) * Decimal("1.1")
    again = run("--daily", "--json")
    assert (again.code, again.json["outcome"]) == (CODE, "nothing to do")
    server.advance(datetime(2025, 3, 13, 15, tzinfo=UTC))
    within = asyncio.run(run_intraday(services(load_config(places.config_file()).config), WEDNESDAY, 2))
    assert isinstance(within, DeskRunResult)
    assert [one.symbol for one in within.frozen] == ["ORVL"]
    assert [made.key.symbol for made in within.decisions] == ["HLXM"]
    places.config_file().write_text(sound)
    after_close(server)
    assert run("--daily").code == 0


@pytest.mark.parametrize("change", first_of(1, [{"h": 1}, {"o": 0, "h": 0, "l": 0, "c": 0}, {"c": None}]))
def test_an_impossible_bar_of_the_broker_freezes_its_share_alone(
    run: Run, open_broker: OpenBroker, monkeypatch: pytest.MonkeyPatch, change: dict[str, object]
) -> None:
    monkeypatch.setenv("PAPERDESK_DATA__REFRESH", "true")
    server = open_broker(datetime(2025, 3, 11, 20, 5, tzinfo=UTC), through=None, symbols=("ORVL", "HLXM"))
    server.fault("bar", symbol="ORVL", change=change)
    said = run("--daily", "--json")
    assert (said.code, list(said.json["frozen"]), said.json["outcome"]) == (CODE, ["ORVL"], "done"), said.err
    assert "cannot be" in said.json["frozen"]["ORVL"] and "2025-03-11" in said.json["frozen"]["ORVL"]
    assert [made["symbol"] for made in said.json["decisions"]] == ["HLXM"]
    assert {order["symbol"] for order in server.state()["orders"]} <= {"HLXM"}
    server.clear_faults()
    after_close(server)
    mended = run("--daily", "--json")
    assert (mended.code, mended.json["frozen"]) == (0, {}), mended.err
    assert [made["symbol"] for made in mended.json["decisions"]] == ["ORVL", "HLXM"]


class StoppedClock:
    """A clock that stands."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now


async def test_a_watch_and_whoever_is_notified_hear_of_it_with_the_code(desk_folder: Path) -> None:
    missing(desk_folder)
    heard: list[Event] = []

    def hear(event: Event) -> None:
        heard.append(event)
        if isinstance(event, Noticed) and event.level == "error":
            watching.cancel()

    with fake_web(lambda asked: Page(body=b"ok")) as web:
        with places.config_file().open("a") as file:
            file.write(f'[notify]\nwebhook = "{web.url}/hook"\n')
        clock = StoppedClock(datetime(2025, 3, 12, 20, 30, tzinfo=UTC))
        configured = services(load_config(places.config_file()).config, clock)
        watching = asyncio.create_task(DeskWatch(configured, hear).run())
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(watching, 600)
        (told,) = [json.loads(one.body) for one in web.asked]
    (error,) = [one.text for one in heard if isinstance(one, Noticed) and one.level == "error"]
    assert "AAA is frozen" in error and error.endswith("(code 65)")
    assert (told["outcome"], told["exit_code"], list(told["frozen"])) == ("done", CODE, ["AAA"])
    assert "AAA is frozen" in told["error"]
    assert any(isinstance(one, Noticed) and one.text.startswith("frozen: AAA") for one in heard)


def test_a_run_that_ends_before_it_settles_loses_nothing_that_came_due(
    run: Run, desk_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = run("positions", "--json").json["positions"]["AAA"]
    missing(desk_folder)
    assert run("--daily", "--session", str(WEDNESDAY)).code == CODE
    mended_by_the_split(desk_folder)

    async def ends(*_: object) -> None:
        raise TryAgainLater("the model is out")

    with monkeypatch.context() as patch:
        patch.setattr("engine.session.run.run_session", ends)
        assert run("--daily", "--session", str(THURSDAY)).code == 75
    said = run("--daily", "--session", str(FRIDAY), "--json")
    assert said.code == 0, said.err
    assert Decimal(said.json["positions"]["AAA"]["quantity"]) == 4 * Decimal(held["quantity"])


def test_a_dividend_and_a_split_of_the_frozen_days_are_paid_in_their_order(run: Run, desk_folder: Path) -> None:
    held = Decimal(run("positions", "--json").json["positions"]["AAA"]["quantity"])
    spike(desk_folder)
    changed(desk_folder, 0.25, FRIDAY)
    acted(desk_folder, f"{THURSDAY},dividend,2")
    acted(desk_folder, f"{FRIDAY},split,4")
    for session in (WEDNESDAY, THURSDAY, FRIDAY):
        assert run("--daily", "--session", str(session)).code == CODE
    mended_bars(desk_folder)
    said = run("--daily", "--session", "2025-03-17", "--json")
    assert said.code == 0, said.err
    assert Decimal(said.json["positions"]["AAA"]["quantity"]) == 4 * held
    (paid,) = [Decimal(flow["amount"]) for flow in said.json["cash_flows"] if flow["kind"] == "dividend"]
    assert abs(paid - 2 * held) < Decimal("0.01")


def test_a_frozen_session_that_was_settled_and_ended_by_an_outage_loses_nothing_either(
    run: Run, desk_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Decimal(run("positions", "--json").json["positions"]["AAA"]["quantity"])
    missing(desk_folder)

    async def ends(*_: object) -> None:
        raise TryAgainLater("the model is out")

    with monkeypatch.context() as patch:
        patch.setattr("engine.session.loop._decide", ends)
        said = run("--daily", "--session", str(WEDNESDAY))
    assert (said.code, said.err.endswith("; and the model is out\n")) == (CODE, True), said.err
    said = run("--daily", "--session", str(THURSDAY), "--json")
    assert (said.code, Decimal(said.json["positions"]["AAA"]["quantity"])) == (CODE, held)
    mended_by_the_split(desk_folder)
    said = run("--daily", "--session", str(FRIDAY), "--json")
    assert (said.code, Decimal(said.json["positions"]["AAA"]["quantity"])) == (0, 4 * held), said.err
