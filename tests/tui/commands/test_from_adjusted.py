"""Dividends and splits that adj_close implies: named where the actions lack them, and derived; and what tells a split
from a crash.

A share walks by a seed; its adj_close is made from its dividends and splits as vendors do, and rounded as in files.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pytest

from connectors.files.fetch.market import merge_bars
from connectors.files.prices import bar_row, read_actions, read_bars, read_prices
from engine.domain.market import UNKNOWN, ActionKind
from engine.market.implied_actions import implied_actions
from engine.market.trading_hours import calendar_for
from tests.tui.commands.conftest import Run

DAYS = calendar_for("AAA").sessions(date(2016, 1, 4), date(2019, 12, 31))
QUARTER = 63
WINDOW = ("--from", str(DAYS[40]), "--to", str(DAYS[290]), "--strategy", "buy-and-hold", "--slippage", "0")
AROUND = ("--from", str(DAYS[590]), "--to", str(DAYS[610]), "--strategy", "buy-and-hold")


@dataclass(frozen=True)
class Share:
    """A share's price at the first close, its dividend a quarter, splits and crashes by row, decimals of the file."""

    price: float = 100.0
    dividend: float = 0.25
    splits: Mapping[int, float] = field(default_factory=dict)
    crashes: Mapping[int, float] = field(default_factory=dict)
    decimals: int = 6
    seed: int = 1

    @property
    def paid(self) -> dict[date, float]:
        """The dividends by ex-date."""
        return {DAYS[row]: self.dividend for row in range(31, len(DAYS), QUARTER)} if self.dividend else {}

    def text(self, *, adjusted: str = "made") -> str:
        """A file of bars; adj_close is made of the actions, `close`, or `blank`."""
        rng, closes, price = random.Random(self.seed), [], self.price
        for row in range(len(DAYS)):
            price *= (1 + rng.gauss(0, 0.01)) * self.crashes.get(row, 1) / self.splits.get(row, 1)
            closes.append(round(price, 2))
        factor, made = 1.0, [0.0] * len(DAYS)
        for row in range(len(DAYS) - 1, -1, -1):
            made[row] = closes[row] * factor
            factor *= (1 - self.paid.get(DAYS[row], 0) / closes[row - 1]) / self.splits.get(row, 1)
        shown = {"made": [f"{one:.{self.decimals}f}" for one in made], "close": closes, "blank": [""] * len(DAYS)}
        bars = zip(DAYS, closes, shown[adjusted], strict=True)
        rows = (f"{day},{close},{close},{close},{close},{adjusted},1000" for day, close, adjusted in bars)
        return "\n".join(("date,open,high,low,close,adj_close,volume", *rows)) + "\n"


def put(folder: Path, text: str, actions: Sequence[str] | None = None, symbol: str = "AAA") -> Path:
    """A data folder with one more symbol."""
    contents = {"prices": text} | ({} if actions is None else {"actions": "\n".join(("ex_date,kind,value", *actions))})
    for kind, content in contents.items():
        (folder / kind).mkdir(parents=True, exist_ok=True)
        (folder / kind / f"{symbol}.csv").write_text(content)
    return folder


def derived(folder: Path, kind: ActionKind = ActionKind.DIVIDEND) -> dict[date, float]:
    found = read_actions(folder / "actions" / "AAA.csv", "AAA")
    return {one.ex_date: float(one.value) for one in found if one.kind is kind}


def test_dividends_that_are_not_there_are_named_and_derived(run: Run, fresh: Path, tmp_path: Path) -> None:
    share = Share(dividend=1.0, splits={200: 4})
    file, folder = tmp_path / "bars.csv", tmp_path / "data"
    file.write_text(share.text())
    split = f"{DAYS[200]},split,4"
    put(folder, share.text(), [split])
    at, count = ("--symbols", "AAA", "--data", str(folder)), len(share.paid)
    poor = run("backtest", *at, *WINDOW, "--json").json
    told = [note for note in poor["notes"] if "adj_close implies" in note]
    inside = [day for day in share.paid if DAYS[40] <= day <= DAYS[290]]
    assert len(told) == 1 and f"{len(inside)} dividends" in told[0] and f"{inside[0]} 1" in told[0]
    short = ("--from", str(DAYS[90]), "--to", str(DAYS[96]), "--strategy", "buy-and-hold")
    assert "adj_close implies" in " ".join(run("audit", *at, *short, "--cuts", "2", "--json").json["notes"])
    imported = run("import", "prices", str(file), "--symbol", "AAA", "--data", str(folder), "--json").json
    assert f"{count} dividends" in " ".join(imported["notes"])
    trial = run("import", "actions", "--from-adjusted", "--data", str(folder), "--dry-run")
    assert trial.code == 0 and all(f"{day},dividend,1" in trial.out for day in share.paid)
    assert derived(folder) == {}, "a trial writes nothing"
    said = run("import", "actions", "--from-adjusted", "--data", str(folder), "--json").json
    assert (said["added"], len(said["derived"])) == (count, count)
    assert derived(folder) == share.paid and derived(folder, ActionKind.SPLIT) == {DAYS[200]: 4}
    rich = run("backtest", *at, *WINDOW, "--json").json
    assert not [note for note in rich["notes"] if "adj_close" in note]
    history = read_prices(folder / "prices" / "AAA.csv", "AAA")
    first, last = history.index(DAYS[40]), history.index(DAYS[290])
    assert first is not None and last is not None
    own = history.adj_close[last] / history.adj_close[first] - 1
    assert rich["metrics"]["total_return"] == pytest.approx(own, abs=0.04)  # which reinvests
    assert poor["metrics"]["total_return"] < own - 0.02
    again = run("import", "actions", "--from-adjusted", "--symbol", "AAA", "--data", str(folder), "--json")
    assert (again.code, again.json["added"]) == (0, 0)


def test_a_file_says_it_as_well_as_the_folder(run: Run, fresh: Path, tmp_path: Path) -> None:
    share = Share(splits={600: 4})
    file, folder = tmp_path / "bars.csv", tmp_path / "data"
    file.write_text(share.text())
    at = ("import", "actions", "--from-adjusted", str(file), "--symbol", "AAA", "--data", str(folder))
    assert run(*at).code == 0
    assert derived(folder) == share.paid and derived(folder, ActionKind.SPLIT) == {DAYS[600]: 4}
    assert not (folder / "prices").exists()
    assert run("import", "prices", "--from-adjusted", str(file)).code == 2
    assert run("import", "actions", "--data", str(folder)).code == 2
    put(folder, Share().text(adjusted="blank"), symbol="BBB")
    said = run("import", "actions", "--from-adjusted", "--symbol", "BBB", "--data", str(folder))
    assert (said.code, "no adj_close of BBB" in said.err) == (65, True)


def test_what_stands_in_the_actions_stays(run: Run, fresh: Path, tmp_path: Path) -> None:
    share = Share()
    days = list(share.paid)
    # One is rounded otherwise, one is another amount altogether.
    folder = put(tmp_path / "data", share.text(), [f"{days[3]},dividend,0.2475", f"{days[5]},dividend,1.75"])
    said = run("import", "actions", "--from-adjusted", "--data", str(folder), "--json").json
    assert derived(folder) == {**share.paid, days[3]: 0.2475, days[5]: 1.75}
    assert len(said["notes"]) == 1 and str(days[5]) in said["notes"][0]


@pytest.mark.parametrize("decimals", [2, 3, 4, 6])
@pytest.mark.parametrize(("price", "dividend"), [(20.0, 0.11), (100.0, 0.25), (100.0, 1.376), (500.0, 1.13)])
def test_rounding_makes_no_dividend_and_hides_none(
    tmp_path: Path, decimals: int, price: float, dividend: float
) -> None:
    share = Share(price=price, dividend=dividend, decimals=decimals, seed=decimals)
    put(tmp_path, share.text())
    found = implied_actions(read_prices(tmp_path / "prices" / "AAA.csv", "AAA"), None)
    assert [one.ex_date for one in found.missing] == list(share.paid) and not found.unclear
    assert [float(one.value) for one in found.missing] == pytest.approx(list(share.paid.values()), abs=0.006)
    put(tmp_path, Share(price=price, dividend=0, splits={300: 2}, decimals=decimals, seed=decimals).text())
    found = implied_actions(read_prices(tmp_path / "prices" / "AAA.csv", "AAA"), None)
    assert [(one.ex_date, one.value) for one in found.missing] == [(DAYS[300], 2)] and not found.unclear


def test_an_adj_close_of_another_method_is_not_compared(run: Run, fresh: Path, tmp_path: Path) -> None:
    """Dividends that are subtracted from all closes before, as in China: adj_close over close moves with the price."""
    lines = Share(dividend=0).text(adjusted="blank").splitlines()
    shifted = [",".join((*(cells := line.split(","))[:5], f"{float(cells[4]) - 7:.2f}", "1")) for line in lines[1:]]
    folder = put(tmp_path / "data", "\n".join((lines[0], *shifted)) + "\n")
    said = run("import", "actions", "--from-adjusted", "--symbol", "AAA", "--data", str(folder), "--json")
    assert (said.code, said.json["derived"]) == (0, []) and "not compared" in said.json["notes"][0]
    assert not (folder / "actions").exists(), "a file of actions would say that there were none"


def test_the_dividends_of_real_files_are_right_to_the_cent(real_data: Path) -> None:
    known = {"MSFT": ["0.46", "0.46", "0.46", "0.51"], "JNJ": ["0.90", "0.95", "0.95", "0.95"], "TSLA": []}
    known["SPY"] = ["1.376", "1.428", "1.633", "1.366"]
    for symbol, values in known.items():
        found = implied_actions(read_prices(real_data / "prices" / f"{symbol}.csv", symbol), None)
        assert [float(one.value) for one in found.missing[: len(values) or None]] == list(map(float, values))
        assert all(one.kind is ActionKind.DIVIDEND for one in found.missing)


# A split, or a crash


def test_adj_close_tells_a_split_from_a_crash(run: Run, fresh: Path, tmp_path: Path) -> None:
    file, day = tmp_path / "bars.csv", DAYS[600]

    def bring(share: Share, symbol: str, adjusted: str = "made") -> tuple[int, str, str]:
        file.write_text(share.text(adjusted=adjusted))
        said = run("import", "prices", str(file), "--symbol", symbol, "--data", str(tmp_path / "data"))
        return said.code, said.out, said.err

    code, _, err = bring(Share(splits={600: 2}), "AAA")
    assert code == 65 and f"{day},split,2" in err and "adj_close steps" in err
    code, out, err = bring(Share(crashes={600: 0.5}), "BBB")
    assert code == 0 and str(day) in out and "real move" in out, err
    played = run("backtest", "--symbols", "BBB", "--data", str(tmp_path / "data"), *AROUND, "--json")
    assert played.code == 0 and any("real move" in note for note in played.json["notes"])
    # Where adj_close is the close, or unknown, it says nothing of actions: a person has to.
    for adjusted in ("close", "blank"):
        code, _, err = bring(Share(crashes={600: 0.5}), "CCC", adjusted)
        assert code == 65 and f"{day},confirmed,0.4974" in err
    # A split of a ratio that may be a move of a day too is told by adj_close alone.
    code, _, err = bring(Share(splits={600: 1.25}), "DDD")
    assert code == 65 and f"{day},split,1.25" in err
    at = ("--symbol", "DDD", "--data", str(tmp_path / "data"))
    assert run("import", "actions", "--from-adjusted", str(file), *at).code == 0
    assert bring(Share(splits={600: 1.25}), "DDD")[0] == 0


def test_a_large_dividend_is_a_jump_that_adj_close_explains(run: Run, fresh: Path, tmp_path: Path) -> None:
    lines = Share(dividend=0, crashes={600: 0.52}).text().splitlines()
    closes = [float(line.split(",")[4]) for line in lines[1:]]
    paid = round(closes[599] * 0.48, 2)
    factor = 1 - paid / closes[599]
    made = [f"{close * (factor if row < 600 else 1):.6f}" for row, close in enumerate(closes)]
    rows = [",".join((*line.split(",")[:5], one, "1")) for line, one in zip(lines[1:], made, strict=True)]
    file = tmp_path / "bars.csv"
    file.write_text("\n".join((lines[0], *rows)) + "\n")
    said = run("import", "prices", str(file), "--symbol", "AAA", "--data", str(tmp_path / "data"))
    assert said.code == 0 and f"{DAYS[600]} {paid}" in said.out, said.err


def test_all_contradictions_of_a_file_are_in_one_message(run: Run, fresh: Path, tmp_path: Path) -> None:
    share = Share(splits={300: 4, 600: 0.1}, crashes={800: 0.25})
    file = tmp_path / "bars.csv"
    file.write_text(share.text(adjusted="blank"))
    said = run("import", "prices", str(file), "--symbol", "AAA", "--data", str(tmp_path / "data"))
    assert (said.code, said.err.count("\n")) == (65, 1)
    for row in (f"{DAYS[300]},split,4", f"{DAYS[600]},split,0.1", f"{DAYS[800]},confirmed,0.2"):
        assert row in said.err, said.err
    folder = put(tmp_path / "folder", share.text(adjusted="blank"), [f"{DAYS[450]},split,3"])
    for command in ("backtest", "audit"):
        said = run(command, "--symbols", "AAA", "--data", str(folder), *WINDOW[:2], "--to", str(DAYS[900]), *WINDOW[4:])
        assert said.code == 65 and all(str(DAYS[row]) in said.err for row in (300, 450, 600, 800)), said.err


def test_a_fetch_bears_no_witness_to_a_split_that_is_missing(tmp_path: Path) -> None:
    """adj_close that is made without a split is level there, as at a crash: it stays unknown before such a jump."""
    share, path = Share(splits={600: 4}), tmp_path / "prices" / "AAA.csv"
    put(tmp_path, share.text(adjusted="blank"), [f"{day},dividend,0.25" for day in share.paid])
    rows, actions = read_bars(path), list(read_actions(tmp_path / "actions" / "AAA.csv", "AAA"))
    assert rows[0] == bar_row(share.text(adjusted="blank").splitlines()[1].split(","))
    path.unlink()
    merge_bars(path, rows, actions, (), replace=True, keep_adjusted=False)
    adjusted = [bar[5] for bar in read_bars(path)]
    assert set(adjusted[:600]) == {UNKNOWN} and UNKNOWN not in adjusted[600:]


def test_the_doctor_names_what_is_missing(run: Run, fresh: Path, tmp_path: Path) -> None:
    from engine.settings import places

    folder = put(tmp_path / "data", Share().text(), [])
    text = f'[desk]\nsymbols = ["AAA"]\npreset = "finvision"\n[data]\nfolder = "{folder.as_posix()}"\n'
    places.config_file().write_text(text, encoding="utf-8")
    found = {one["name"]: one for one in run("doctor", "--json").json["checks"] if one["area"] == "Data"}
    assert found["AAA"]["state"] == "note" and "adj_close implies" in found["AAA"]["detail"]
