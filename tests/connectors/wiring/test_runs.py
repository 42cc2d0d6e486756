"""From a run's description to its report: what is refused, what is kept, and runs over the demo market."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.wiring.services import services
from engine.app.research.backtest import run_backtest
from engine.app.research.run_spec import check_spec, default_spec, with_costs
from engine.clock import BacktestClock
from engine.domain.run import DataSpec, FillAt, RunSpec
from engine.errors import ConfigError, MissingData, PaperdeskError, StaleData, UsageError
from engine.journal.reader import JournalReader
from engine.messages.events import DecisionMade, Event, RunFinished, RunStarted, SessionSettled
from engine.reports.documents.backtest import fingerprint
from engine.settings import places
from engine.settings.config import Config
from tests.connectors.wiring.clocks import NOON
from tests.engine.desks import weekdays

NOW = datetime(2025, 7, 1, 12, tzinfo=UTC)
DEMO = DataSpec(demo_seed=7)
SPEC = RunSpec(
    symbols=("ORVL", "TMBK"),
    first=date(2024, 3, 4),
    last=date(2024, 3, 15),
    warm_up_from=date(2024, 2, 28),
    preset="finvision",
    data=DEMO,
)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"strategy": "macd"}, "either a preset"),
        ({"preset": None}, "either a preset"),
        ({"preset": None, "strategy": "macd", "model": "offline"}, "--batch and --mask belong to a preset"),
        (
            {"preset": None, "strategy": "macd", "without": ("news",)},
            "--batch and --mask belong to a preset",
        ),
        ({"params": (("fast", "5"),)}, "--param belongs to a --strategy"),
        ({"symbols": ()}, "no symbols"),
        ({"symbols": ("ORVL", "TMBK", "ORVL")}, "names ORVL twice"),
        ({"first": date(2024, 3, 18)}, "--from 2024-03-18 is after --to 2024-03-15"),
        ({"warm_up_from": date(2024, 3, 4)}, "--warm-up-from 2024-03-04 is not before --from"),
        ({"first": date(1999, 3, 4), "warm_up_from": None}, "calendars begin"),
        ({"warm_up_from": date(2000, 1, 1)}, "calendars begin"),
        ({"last": date(2025, 7, 2)}, "is in the future; today is 2025-07-01"),
        ({"cash": Decimal(0)}, "--cash 0: it must be above zero"),
        ({"cash": Decimal(-1)}, "--cash -1"),
        ({"commission": Decimal("-0.1")}, "--commission -0.1: a cost is not below zero"),
        ({"slippage_bp": Decimal(-1)}, "--slippage -1: a cost is not below zero"),
        ({"preset": None, "strategy": "mcad"}, "macd"),
        ({"preset": None, "strategy": "macd", "params": (("speed", "5"),)}, "speed"),
        ({"convention": "finvison"}, "did you mean finvision"),
    ],
)
def test_a_description_that_means_no_run_is_refused(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        check_spec(replace(SPEC, **change), NOW)


def test_a_good_description_passes() -> None:
    check_spec(SPEC, NOW)
    check_spec(replace(SPEC, last=NOW.date()), NOW)
    check_spec(replace(SPEC, preset=None, strategy="sma-cross"), NOW)


@pytest.mark.parametrize(
    ("change", "error", "complaint"),
    [
        ({"preset": "finvsion"}, UsageError, "did you mean finvision"),
        ({"without": ("nwes",)}, UsageError, "did you mean news"),
        ({"model": "gpt"}, PaperdeskError, "gpt"),
        ({"model": "openai:some-model"}, PaperdeskError, "OPENAI_API_KEY"),
        ({"symbols": ("ORVL", "ZZZZ")}, MissingData, "ZZZZ"),
        ({"first": date(2024, 3, 9), "last": date(2024, 3, 10), "warm_up_from": None}, UsageError, "no session"),
        ({"warm_up_from": date(2024, 3, 2)}, UsageError, "no session"),
        ({"data": DataSpec("/no/such/folder")}, MissingData, "/no/such/folder"),
    ],
)
def test_what_cannot_run_leaves_no_journal(change: dict[str, Any], error: type[Exception], complaint: str) -> None:
    with pytest.raises(error, match=complaint):
        run_backtest(services(Config(), NOON), replace(SPEC, run="never", **change))

    assert not places.run_journal("never").exists()


@pytest.mark.parametrize(
    ("symbol", "first", "last", "ends"),
    [
        ("SPY", date(2026, 3, 2), date(2026, 3, 20), "2026-03-03"),
        # The folder has later bars of SPY and QQQ; but eighteen shares do not stop trading on one day.
        ("AAPL", date(2024, 3, 4), date(2024, 3, 20), "2024-03-08"),
        ("BTC-USD", date(2024, 12, 2), date(2024, 12, 20), "2024-12-07"),
    ],
)
def test_data_that_ends_before_the_window_is_stale(
    symbol: str, first: date, last: date, ends: str, real_data: Path
) -> None:
    spec = replace(
        SPEC, symbols=(symbol,), first=first, last=last, warm_up_from=None, data=DataSpec(str(real_data)), run="never"
    )

    with pytest.raises(StaleData, match=f"{symbol}: its bars end on {ends}, before {last}"):
        run_backtest(services(Config(), BacktestClock(datetime(2026, 4, 1, tzinfo=UTC))), spec)
    assert not places.run_journal("never").exists()


def test_a_symbol_that_alone_ends_has_stopped_trading(tmp_path: Path) -> None:
    rows = [f"{day},10,11,9,10,10,1000" for day in weekdays().sessions(date(2024, 2, 26), date(2024, 3, 15))]
    (tmp_path / "prices").mkdir()
    for symbol, count in {"AAA": len(rows), "BBB": len(rows), "CCC": len(rows) - 4}.items():
        text = "\n".join(["date,open,high,low,close,adj_close,volume", *rows[:count]])
        (tmp_path / "prices" / f"{symbol}.csv").write_text(text + "\n")
    spec = replace(SPEC, symbols=("AAA", "CCC"), warm_up_from=None, data=DataSpec(str(tmp_path)), run="stopped")

    result = run_backtest(services(Config(), NOON), spec).result

    assert [note for note in result.notes if "CCC stops trading on 2024-03-11" in note]
    assert "CCC" not in result.test.equity[-1].portfolio.positions
    abstained = [d.key.session for d in result.test.decisions if d.abstained]
    assert abstained == [date(2024, 3, 12), date(2024, 3, 13), date(2024, 3, 14)]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Two runs of the same description, with their events and journals."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAPERDESK_HOME", str(tmp_path_factory.mktemp("home")))
        events: dict[str, list[Event]] = {"one": [], "two": []}
        told: list[str] = []
        runs = {
            name: run_backtest(
                services(Config(), NOON),
                replace(SPEC, run=name, model="offline"),
                events[name].append,
                on_baseline=lambda baseline, result: told.append(baseline),
            )
            for name in events
        }
        return runs, events, told, {name: places.run_journal(name) for name in events}


def test_two_runs_of_one_description_are_the_same_run(demo: Any) -> None:
    runs, events, _, _ = demo
    one, two = runs["one"].result, runs["two"].result

    assert fingerprint(one.test) == fingerprint(two.test)
    assert one.test.equity == two.test.equity
    assert one.warm_up is not None
    assert two.warm_up is not None
    assert fingerprint(one.warm_up) == fingerprint(two.warm_up)
    assert [type(e) for e in events["one"]] == [type(e) for e in events["two"]]
    assert one.test.fills, "a run without trades proves little"


def test_the_journal_has_what_the_result_has(demo: Any) -> None:
    runs, _, _, journals = demo
    result = runs["one"].result

    with JournalReader(journals["one"]) as reader:
        assert reader.run("one").outcome == "done"
        for part, run_part in (("warm-up", result.warm_up), ("test", result.test)):
            assert reader.decisions(run="one", part=part) == run_part.decisions
            assert reader.equity(run="one", part=part) == run_part.equity
            assert reader.fills(run="one", part=part) == run_part.fills
            assert reader.cash_flows(run="one", part=part) == run_part.cash_flows
        assert len(reader.calls(run="one")) == result.model.calls
        assert len(reader.outcomes(run="one")) == len(result.warm_up.decisions) + len(result.test.decisions)
        # Who looks up a decision finds every agent that was asked for it.
        agents = {entry.agent for entry in reader.answers(result.test.decisions[-1].key)}
        assert {"chart", "performance-reflection", "signal-reflection", "decision"} <= agents


def test_what_is_published_tells_the_run_from_beginning_to_end(demo: Any) -> None:
    runs, events, told, _ = demo
    heard, result = events["one"], runs["one"].result

    assert isinstance(heard[0], RunStarted)
    assert heard[0].sessions == len(result.warm_up.equity) + len(result.test.equity)
    (finished,) = [e for e in heard if isinstance(e, RunFinished)]
    assert (finished.outcome, finished.value) == ("done", result.test.equity[-1].value)
    assert [e.books.value for e in heard if isinstance(e, SessionSettled)] == [
        p.value for p in (*result.warm_up.equity, *result.test.equity)
    ]
    assert len([e for e in heard if isinstance(e, DecisionMade)]) == 2 * heard[0].sessions
    assert told[: len(told) // 2] == list(runs["one"].baselines)


def test_a_stop_keeps_what_was_done(demo: Any) -> None:
    asked = iter(range(100))

    part = run_backtest(
        services(Config(), NOON),
        replace(SPEC, run="stopped", model="offline", warm_up_from=None),
        stop=lambda: next(asked) >= 4,
    )

    assert part.result.interrupted
    assert len(part.result.test.equity) == 4
    with JournalReader(places.run_journal("stopped")) as reader:
        assert reader.run("stopped").outcome == "interrupted"
        assert reader.equity(run="stopped") == part.result.test.equity


def test_a_stop_in_the_warm_up_leaves_an_empty_test() -> None:
    asked = iter(range(100))

    part = run_backtest(
        services(Config(), NOON), replace(SPEC, run="early", model="offline"), stop=lambda: next(asked) >= 2
    )

    assert part.result.interrupted
    assert part.result.test.equity == ()
    assert part.result.warm_up is not None
    assert len(part.result.warm_up.equity) == 2
    with JournalReader(places.run_journal("early")) as reader:
        assert (reader.run("early").outcome, reader.run("early").value) == ("interrupted", 100_000)


def test_a_key_press_in_the_middle_is_written_down() -> None:
    def publish(event: Event) -> None:
        if isinstance(event, SessionSettled) and event.books.session == date(2024, 3, 7):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_backtest(services(Config(), NOON), replace(SPEC, run="cut", model="offline", warm_up_from=None), publish)

    with JournalReader(places.run_journal("cut")) as reader:
        assert reader.run("cut").outcome == "interrupted"
        assert [p.session for p in reader.equity(run="cut")][:3] == [
            date(2024, 3, 4),
            date(2024, 3, 5),
            date(2024, 3, 6),
        ]


def test_costs_come_from_the_configuration_under_the_desks_own_convention_alone() -> None:
    config = Config.model_validate(
        {"desk": {"cash": "5000"}, "execution": {"slippage_bp": "9", "commission": "0.002", "fractional": False}}
    )

    rules, cash = with_costs(SPEC, config)
    assert (rules.fill_at, rules.slippage_bp, rules.commission_rate, rules.fractional, cash) == (
        FillAt.NEXT_OPEN,
        9,
        Decimal("0.002"),
        False,
        5000,
    )
    rules, cash = with_costs(replace(SPEC, slippage_bp=Decimal(1), cash=Decimal(77)), config)
    assert (rules.slippage_bp, rules.commission_rate, cash) == (1, Decimal("0.002"), 77)
    rules, cash = with_costs(replace(SPEC, convention="finagent"), config)
    assert (rules.fill_at, rules.slippage_bp, rules.commission_rate, cash) == (
        FillAt.SAME_CLOSE,
        0,
        Decimal("0.001"),
        10_000,
    )
    rules, cash = with_costs(replace(SPEC, convention="finagent", commission=Decimal(0)), config)
    assert rules.commission_rate == 0


def test_a_desk_that_was_told_nothing_runs_over_the_demo_market() -> None:
    spec = default_spec(services(Config()))

    assert len(spec.symbols) >= 3
    assert spec.data.folder is None
    assert spec.warm_up_from is not None
    assert spec.warm_up_from < spec.first < spec.last
    with pytest.raises(UsageError, match="no symbols"):
        default_spec(services(Config.model_validate({"data": {"folder": "/tmp"}})))


def test_an_agent_that_does_not_exist_is_no_setting() -> None:
    config = Config.model_validate({"models": {"agents": {"decison": {"temperature": 0.5}}}})

    with pytest.raises(ConfigError, match="decison"):
        run_backtest(services(config, NOON), replace(SPEC, run="never"))
