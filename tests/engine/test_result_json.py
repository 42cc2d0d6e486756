"""The JSON document of a backtest: exact on a run reckoned by hand, and sound for any run at all."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.clock import LiveClock
from engine.domain.decision import Action, Cut, Decision, DecisionKey, Proposal, SizingRule
from engine.domain.market import Dropped
from engine.domain.model_call import AnswerOptions, Usage
from engine.domain.order import CENT, Fill, Portfolio, Position, Side
from engine.domain.run import (
    CashFlow,
    DataSpec,
    EquityPoint,
    ExecutionRules,
    ModelUse,
    Result,
    RunKind,
    RunPart,
    RunSpec,
)
from engine.journal.entries import RunEntry
from engine.journal.reader import JournalReader
from engine.journal.writer import JournalWriter
from engine.reports.documents.backtest import as_text, document
from engine.reports.performance import Report
from engine.reports.stored import document_of, store_document

D = Decimal
RULES = ExecutionRules()
BEFORE, FIRST, SECOND, THIRD = (date(2024, 1, day) for day in (2, 3, 4, 5))

SPEC_KEYS = [
    "schema",
    "run",
    "symbols",
    "sessions",
    "first_session",
    "last_session",
    "convention",
    "initial_value",
    "final_value",
    "metrics",
    "per_symbol",
    "baselines",
    "trades",
    "cash_flows",
    "equity",
    "decisions",
    "warm_up",
    "model",
    "dropped",
    "fingerprint",
]
DESK_METRICS = [
    "total_return",
    "cagr",
    "volatility",
    "sharpe",
    "sharpe_low",
    "sharpe_high",
    "sortino",
    "calmar",
    "max_drawdown",
    "win_rate",
    "turnover",
    "exposure",
    "excess_return",
    "excess_low",
    "excess_high",
    "net_of_model_cost",
]


def decided(
    session: date, symbol: str, action: Action, size: str, asked: int, *cuts: Cut, run: str = "hand"
) -> Decision:
    proposal = Proposal(action, asked, SizingRule.STRONG_UPTREND, "it rises", "no answer came")
    return Decision(
        key=DecisionKey(run, session, 1, symbol, "desk"), action=action, size=D(size), proposal=proposal, cuts=cuts
    )


def books(session: date, cash: str, value: str, held: dict[str, str], prices: dict[str, str]) -> EquityPoint:
    positions = {symbol: Position(D(quantity), D(1)) for symbol, quantity in held.items()}
    return EquityPoint(session, D(value), Portfolio(D(cash), positions), {s: D(p) for s, p in prices.items()})


def by_hand(run: str = "hand") -> Result:
    """1000 in cash. AAA: 10 bought at 20.5 (fee 1), a dividend of 5, sold at 22 (fee 1): 219 + 5 - 206 = 18 earned.
    BBB: 2.5 bought at 100 and worth 96 each: 10 lost."""
    test = RunPart(
        initial_value=D(1000),
        equity=(
            books(FIRST, "794", "1004.00", {"AAA": "10.000000000"}, {"AAA": "21.00", "BBB": "99"}),
            books(SECOND, "549", "1009", {"BBB": "2.5", "AAA": "1E+1"}, {"AAA": "2E+1", "BBB": "104"}),
            books(THIRD, "768", "1008", {"BBB": "2.5"}, {"AAA": "22.125", "BBB": "96"}),
        ),
        fills=(
            Fill(
                order_id="1",
                symbol="AAA",
                side=Side.BUY,
                session=FIRST,
                quantity=D("1E+1"),
                price=D("20.50"),
                fee=D(1),
                reason="strong uptrend",
            ),
            Fill(
                order_id="2", symbol="BBB", side=Side.BUY, session=SECOND, quantity=D("2.500"), price=D("100.000000000")
            ),
            Fill(order_id="3", symbol="AAA", side=Side.SELL, session=THIRD, quantity=D(10), price=D(22), fee=D("1.00")),
        ),
        cash_flows=(CashFlow(session=SECOND, symbol="AAA", kind="dividend", amount=D(5)),),
        decisions=(
            decided(BEFORE, "AAA", Action.BUY, "20.6", 25, Cut("band", D(25), D("20.60"), "over the band"), run=run),
            decided(BEFORE, "BBB", Action.HOLD, "0", 0, run=run),
            decided(FIRST, "BBB", Action.ABSTAIN, "0", 0, run=run),
        ),
    )
    return Result(
        spec=RunSpec(
            symbols=("AAA", "BBB"),
            first=FIRST,
            last=THIRD,
            preset="finvision",
            data=DataSpec("folder"),
            run=run,
            rules=RULES,
            cash=D(1000),
        ),
        test=test,
        model=ModelUse(
            spec="offline", calls=12, cached_calls=3, abstentions=1, usage=Usage(100, 0, 20), cost=D("0.50")
        ),
        dropped=(Dropped("news", "no date", 2), Dropped("news", "no date", 1), Dropped("filings", "no text", 4)),
        notes=("no file of corporate actions for BBB",),
    )


def held_by_hand() -> Result:
    """Buy and hold of the same money: 1000, then 990, 1000, 1020."""
    values = ((FIRST, "990"), (SECOND, "1000"), (THIRD, "1020"))
    points = tuple(books(day, "0", value, {"AAA": "10"}, {"AAA": str(D(value) / 10)}) for day, value in values)
    spec = RunSpec(symbols=("AAA", "BBB"), first=FIRST, last=THIRD, strategy="buy-and-hold", rules=RULES, cash=D(1000))
    return Result(
        spec=spec,
        test=RunPart(
            initial_value=D(1000),
            equity=points,
            fills=(Fill(order_id="1", symbol="AAA", side=Side.BUY, session=FIRST, quantity=D(10), price=D(100)),),
        ),
    )


def test_the_books_of_a_run_reckoned_by_hand() -> None:
    made = document(Report(by_hand(), {"buy-and-hold": held_by_hand()}, "rules"))
    assert made["trades"] == [
        {"session": "2024-01-03", "symbol": "AAA", "side": "BUY", "quantity": "10", "price": "20.50", "fee": "1.00"}
        | {"reason": "strong uptrend", "owner": "desk"},
        {"session": "2024-01-04", "symbol": "BBB", "side": "BUY", "quantity": "2.5", "price": "100.00", "fee": "0.00"}
        | {"reason": "", "owner": "desk"},
        {"session": "2024-01-05", "symbol": "AAA", "side": "SELL", "quantity": "10", "price": "22.00", "fee": "1.00"}
        | {"reason": "", "owner": "desk"},
    ]
    assert made["cash_flows"] == [{"session": "2024-01-04", "symbol": "AAA", "kind": "dividend", "amount": "5.00"}]
    assert made["equity"][1] == {
        "session": "2024-01-04",
        "value": "1009.00",
        "cash": "549.00",
        "positions": {"AAA": {"quantity": "10", "price": "20.00"}, "BBB": {"quantity": "2.5", "price": "104.00"}},
    }
    assert made["equity"][2]["positions"] == {"BBB": {"quantity": "2.5", "price": "96.00"}}
    assert made["decisions"][0] == {
        "session": "2024-01-02",
        "symbol": "AAA",
        "owner": "desk",
        "action": "BUY",
        "size": 20.6,
        "abstained": False,
        "reason": "it rises",
        "cut": "25 to 20.6 %: over the band",
        "opinions": [],
    }
    abstained = made["decisions"][2]
    assert (abstained["action"], abstained["abstained"], abstained["reason"]) == ("ABSTAIN", True, "no answer came")
    assert made["decisions"][1]["cut"] is None


def test_the_frame_of_a_run_reckoned_by_hand() -> None:
    made = document(Report(by_hand(), {"buy-and-hold": held_by_hand()}, "rules"))
    assert set(SPEC_KEYS) < set(made)
    assert made["preset"] == "finvision"
    assert "strategy" not in made
    assert (made["schema"], made["run"], made["sessions"]) == (1, "hand", 3)
    assert (made["first_session"], made["last_session"]) == ("2024-01-03", "2024-01-05")
    assert (made["initial_value"], made["final_value"]) == ("1000.00", "1008.00")
    assert made["dropped"] == {"news": {"no date": 3}, "filings": {"no text": 4}}
    assert made["model"] == {
        "spec": "offline",
        "calls": 12,
        "cached_calls": 3,
        "abstentions": 1,
        "refusals": 0,
        "repairs": 0,
        "input_tokens": 100,
        "output_tokens": 20,
        "cost": "0.50",
        "cached_input_tokens": 0,
        "cached_share": 0.0,
        "reasoning_tokens": 0,
        "uncounted_calls": 0,
        "preflight_calls": 0,
        "failed_calls": 0,
        "estimated_calls": 0,
        "tier": "",
        "training_cutoff": None,
        "prices_as_of": None,
        "agents": {},
        "models": {},
        "months": {},
    }
    assert made["warm_up"] is None
    assert made["notes"] == ["no file of corporate actions for BBB"]


def test_the_metrics_of_a_run_reckoned_by_hand() -> None:
    made = document(Report(by_hand(), {"buy-and-hold": held_by_hand()}))
    metrics = made["metrics"]
    assert list(metrics) == DESK_METRICS
    assert metrics["total_return"] == pytest.approx(0.008)
    assert metrics["max_drawdown"] == pytest.approx(1 / 1009)
    assert metrics["win_rate"] == pytest.approx(2 / 3)
    assert metrics["exposure"] == pytest.approx((210 / 1004 + 460 / 1009 + 240 / 1008) / 3)
    assert metrics["excess_return"] == pytest.approx(0.008 - 0.02)
    assert metrics["net_of_model_cost"] == pytest.approx(0.0075)
    assert metrics["sharpe_low"] is None  # three days say nothing about chance
    returns = [4 / 1000, 5 / 1004, -1 / 1009]
    average = sum(returns) / 3
    spread = math.sqrt(sum((r - average) ** 2 for r in returns) / 2)
    assert metrics["sharpe"] == pytest.approx(average / spread * math.sqrt(252))
    beside = made["baselines"]["buy-and-hold"]
    assert beside["equity"] == ["990.00", "1000.00", "1020.00"]
    assert (beside["initial_value"], beside["final_value"], beside["trades"]) == ("1000.00", "1020.00", 1)
    assert beside["metrics"]["max_drawdown"] == pytest.approx(0.01)
    assert beside["metrics"]["excess_return"] == 0


def test_each_symbol_stands_alone() -> None:
    made = document(Report(by_hand(), {"buy-and-hold": held_by_hand()}))["per_symbol"]
    assert list(made) == ["AAA", "BBB"]
    assert (made["AAA"]["profit"], made["AAA"]["final_quantity"]) == ("18.00", "0")
    assert (made["BBB"]["profit"], made["BBB"]["final_quantity"]) == ("-10.00", "2.5")
    assert list(made["AAA"]["metrics"]) == DESK_METRICS
    assert made["AAA"]["metrics"]["total_return"] == pytest.approx(0.018)
    # 1000, 1004, 999 (the price fell by one, the dividend of 5 came), 1018
    assert made["AAA"]["metrics"]["max_drawdown"] == pytest.approx(5 / 1004)
    assert made["BBB"]["metrics"]["total_return"] == pytest.approx(-0.01)
    assert made["BBB"]["metrics"]["max_drawdown"] == pytest.approx(20 / 1010)


@pytest.mark.parametrize(
    ("named", "names"),
    [
        ("finvision", ["ARR", "SR", "MDD"]),
        ("finagent", ["ARR", "SR", "MDD", "SOR", "CR", "VOL"]),
        ("investorbench", ["CR", "SR", "AV", "MDD"]),
        ("arena", ["TR", "Mean", "Std", "WR", "SR"]),
    ],
)
def test_a_papers_convention_brings_its_names_and_percent(named: str, names: list[str]) -> None:
    result = by_hand()
    made = document(Report(replace(result, spec=replace(result.spec, convention=named))))
    assert made["convention"] == named
    assert list(made["metrics"]) == names
    assert list(made["per_symbol"]["BBB"]["metrics"]) == names
    if named == "finvision":
        assert made["metrics"]["ARR"] == pytest.approx(100 * (1008 / 1004 - 1) * 252 / 2)
        assert made["metrics"]["MDD"] == pytest.approx(100 / 1009)


@pytest.mark.parametrize(("symbols", "periods"), [(("A-USD", "B-USD"), 365), (("AAA", "B-USD"), 252), (("AAA",), 252)])
def test_coins_alone_have_a_year_of_365_days(symbols: tuple[str, ...], periods: int) -> None:
    result = by_hand()
    made = document(Report(replace(result, spec=replace(result.spec, symbols=symbols))))
    returns = [4 / 1000, 5 / 1004, -1 / 1009]
    average = sum(returns) / 3
    spread = math.sqrt(sum((r - average) ** 2 for r in returns) / 2)
    assert made["metrics"]["volatility"] == pytest.approx(spread * math.sqrt(periods))


def test_the_fingerprint_is_of_decisions_trades_and_equity_alone() -> None:
    made = document(Report(by_hand()))
    hashed = {part: made[part] for part in ("decisions", "trades", "equity")}
    hashed["decisions"] = [{k: v for k, v in row.items() if k != "opinions"} for row in hashed["decisions"]]
    hashed["trades"] = [{k: v for k, v in row.items() if k != "owner"} for row in hashed["trades"]]
    canonical = json.dumps(hashed, sort_keys=True, separators=(",", ":"))
    assert made["fingerprint"] == hashlib.sha256(canonical.encode()).hexdigest()
    other = by_hand("another")
    assert document(Report(replace(other, notes=(), model=None), label="x"))["fingerprint"] == made["fingerprint"]
    fills = by_hand().test.fills
    changed = replace(by_hand().test, fills=(replace(fills[0], price=D("20.500000001")), *fills[1:]))
    assert document(Report(replace(other, test=changed)))["fingerprint"] != made["fingerprint"]


def test_a_strategy_has_no_model_and_a_warm_up_stands_apart() -> None:
    result = by_hand()
    spec = replace(result.spec, preset=None, strategy="macd", params=(("fast", "6"),), warm_up_from=BEFORE)
    spec = replace(spec, options=AnswerOptions(effort="high", mask=2))
    made = document(Report(replace(result, spec=spec, model=None, warm_up=held_by_hand().test)))
    assert made["strategy"] == "macd"
    assert "preset" not in made
    assert made["model"] is None
    assert made["settings"]["params"] == {"fast": "6"}
    options = {name: made["settings"][name] for name in ("effort", "verbosity", "tier", "mask")}
    assert options == {"effort": "high", "verbosity": None, "tier": None, "mask": 2}
    assert made["warm_up"]["final_value"] == "1020.00"
    assert [point["value"] for point in made["warm_up"]["equity"]] == ["990.00", "1000.00", "1020.00"]
    assert made["final_value"] == "1008.00"


def test_an_interrupted_run_is_compared_over_its_own_sessions() -> None:
    whole = by_hand()
    part = replace(whole.test, equity=whole.test.equity[:2], fills=whole.test.fills[:2])
    made = document(Report(replace(whole, test=part, interrupted=True), {"buy-and-hold": held_by_hand()}))
    assert made["interrupted"] is True
    assert made["baselines"]["buy-and-hold"]["equity"] == ["990.00", "1000.00"]
    assert made["metrics"]["excess_return"] == pytest.approx(0.009 - 0.0)


def test_a_run_that_was_stopped_before_its_first_session() -> None:
    whole = by_hand()
    made = document(
        Report(replace(whole, test=RunPart(initial_value=D(1000)), interrupted=True), {"buy-and-hold": held_by_hand()})
    )
    assert (made["sessions"], made["first_session"], made["final_value"]) == (0, None, "1000.00")
    assert set(made["metrics"].values()) == {None}
    assert made["per_symbol"]["AAA"]["profit"] == "0.00"
    assert made["baselines"]["buy-and-hold"]["equity"] == []


@pytest.mark.parametrize("documented", [True, False])
def test_a_run_comes_back_from_its_journal(tmp_path: Path, documented: bool) -> None:
    """As it was kept; or, of a run that was killed before that, from its rows, without baselines."""
    path = tmp_path / "hand.db"
    now = LiveClock().now()
    report = Report(by_hand(), {"buy-and-hold": held_by_hand()}, "rules")
    with JournalWriter(path, batched=True) as journal:
        journal.run_started(
            RunEntry(
                id="hand",
                kind=RunKind.BACKTEST,
                name="finvision",
                started=now,
                label="rules",
                spec=report.result.spec,
                symbols=("AAA", "BBB"),
            )
        )
        made = document(report)
        if documented:
            store_document(journal, report)
        journal.backtest_result("hand", report.result, now)
    with JournalReader(path) as reader:
        found = document_of(reader, "hand")
    if documented:
        # The looks at its window are counted when it is read.
        assert {**found, "luck": None} == {**made, "luck": None}
        return
    assert found["fingerprint"] == made["fingerprint"]
    assert found["label"] == "rules"
    assert found["baselines"] == {}
    assert {key: found[key] for key in ("trades", "equity", "decisions", "cash_flows", "dropped", "model")} == {
        key: made[key] for key in ("trades", "equity", "decisions", "cash_flows", "dropped", "model")
    }
    assert "without baselines" in found["notes"][-1]


# Any run at all

prices = st.decimals(D("0.000001"), D(90_000), places=9)
quantities = st.decimals(D("0.000000001"), D(5_000), places=9)
texts = st.text(max_size=20) | st.just("\ud83d NaN Infinity")


@st.composite
def results(draw: st.DrawFn) -> Result:
    """Sessions of random trades, prices and answers, booked by the portfolio itself."""
    symbols = tuple(draw(st.lists(st.sampled_from(["AAA", "BBB", "C-USD"]), min_size=1, unique=True)))
    portfolio = Portfolio(D(draw(st.integers(1, 10**7))), money_step=draw(st.sampled_from([CENT, D("1e-12")])))
    initial, day = portfolio.cash, FIRST
    points, fills, decisions, flows = [], [], [], []
    for _ in range(draw(st.integers(0, 5))):
        for symbol in draw(st.lists(st.sampled_from(symbols), max_size=3)):
            side, fee = draw(st.sampled_from(Side)), draw(st.decimals(0, 10, places=4))
            fill = Fill(
                order_id="id",
                symbol=symbol,
                side=side,
                session=day,
                quantity=draw(quantities),
                price=draw(prices),
                fee=portfolio.money(fee),
                reason=draw(texts),
            )
            portfolio = portfolio.filled(fill)
            fills.append(fill)
        if draw(st.booleans()):
            portfolio, paid = portfolio.dividend(symbols[0], draw(st.decimals(0, 5, places=4)))
            flows.append(CashFlow(session=day, symbol=symbols[0], kind="dividend", amount=paid))
        closes = {symbol: draw(prices) for symbol in symbols}
        points.append(EquityPoint(day, portfolio.value(closes), portfolio, closes))
        proposal = Proposal(Action.HOLD, 0, None, draw(texts))
        decisions.append(
            Decision(key=DecisionKey("r", day, 1, symbols[0], "desk"), action=Action.HOLD, size=D(0), proposal=proposal)
        )
        day += timedelta(days=1)
    spec = RunSpec(
        symbols=symbols,
        first=FIRST,
        last=day,
        preset="finvision",
        convention=draw(st.sampled_from(["desk", "finvision", "finagent", "investorbench", "arena"])),
        rules=RULES,
    )
    return Result(
        spec=spec,
        test=RunPart(
            initial_value=initial,
            equity=tuple(points),
            fills=tuple(fills),
            cash_flows=tuple(flows),
            decisions=tuple(decisions),
        ),
    )


def _refuse(constant: str) -> Any:
    raise AssertionError(f"{constant} is not JSON")


@given(results())
def test_any_run_is_valid_json_whose_books_add_up(result: Result) -> None:
    made = document(Report(result, {"buy-and-hold": replace(result)}))
    text = as_text(made)
    assert json.loads(text, parse_constant=_refuse) == made
    assert text.isascii()
    for point in made["equity"]:
        held = sum(Fraction(one["quantity"]) * Fraction(one["price"]) for one in point["positions"].values())
        assert abs(Fraction(point["cash"]) + held - Fraction(point["value"])) <= Fraction(1, 100)
    assert not [text for text in _decimals(made) if "E" in text.upper() or "NAN" in text.upper()]
    profits = sum(Fraction(part["profit"]) for part in made["per_symbol"].values())
    earned = Fraction(made["final_value"]) - Fraction(made["initial_value"])
    # Every position's worth is rounded for itself here, and all together in the books.
    assert abs(profits - earned) <= len(made["symbols"]) * Fraction(1, 100)


def _decimals(made: dict[str, Any]) -> list[str]:
    found = [made["initial_value"], made["final_value"]]
    found += [trade[name] for trade in made["trades"] for name in ("quantity", "price", "fee")]
    found += [flow["amount"] for flow in made["cash_flows"]]
    for point in made["equity"]:
        found += [point["value"], point["cash"]]
        found += [number for one in point["positions"].values() for number in one.values()]
    return found
