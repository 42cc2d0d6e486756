"""Reports of a desk in an account: money that came is no profit, and days replay to the same."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from tests.tui.commands.conftest import OpenBroker, Run, after_close

START = datetime(2024, 3, 1, 21, 5, tzinfo=UTC)


@pytest.mark.slow
def test_money_that_comes_and_goes_is_told_and_is_no_profit(run: Run, open_broker: OpenBroker) -> None:
    sandbox = open_broker(START, through=date(2024, 3, 20), symbols=("ORVL", "TMBK"))
    assert run("equity", "--json").json["equity"] == []
    moved = {1: "25000.00", 3: "-60000.00", 6: "1234.56"}
    for day in range(8):
        if day:
            if day in moved:
                sandbox.control_request("POST", "/sandbox/transfers", {"amount": moved[day]})
            after_close(sandbox)
        assert run("--daily").code == 0
    rows = run("equity", "--json").json["equity"]
    values = [Decimal(row["value"]) for row in rows]
    assert [row["brought_in"] for row in rows] == [moved.get(day, "0.00") for day in range(8)]
    assert len(set(values)) > 3 and any(row["positions"] for row in rows)
    grown, highest = 1.0, 1.0
    for day, row in enumerate(rows):
        if day:
            earned = values[day] - values[day - 1] - Decimal(moved.get(day, 0))
            assert row["change"] == pytest.approx(float(earned / values[day - 1]), abs=1e-12)
            grown *= 1 + row["change"]
        highest = max(highest, grown)
        assert row["drawdown"] == pytest.approx(grown / highest - 1, abs=1e-12)
        assert abs(row["change"] or 0) < 0.05
    text = run("equity").out
    assert "DEPOSITS" in text and "-60,000.00" in text

    status = run("status", "--json").json
    assert (status["brought_in"], status["initial_value"]) == ("-33765.44", "100000.00")
    assert status["total_return"] == pytest.approx(grown - 1, abs=1e-12)
    said = " ".join(run("status").out.split())
    assert f"{100 * (grown - 1):+.2f}% since the start" in said
    assert "without deposits and withdrawals of -33,765.44" in said

    report = " ".join(run("report", "--session", str(rows[6]["session"])).out.split())
    earned = values[6] - values[5] - Decimal("1234.56")
    assert f"{earned:+,.2f} ({100 * rows[6]['change']:+.2f}%) since {rows[5]['session']}" in report
    assert "without deposits and withdrawals of +1,234.56" in report

    for row in rows:
        again = run("parity", row["session"])
        assert (again.code, again.err) == (0, "")
        assert again.out.startswith(f"Parity of {row['session']}: every decision and order is the same\n")
    why = run("why", "ORVL", rows[4]["session"], "--redecide", "--json")
    assert (why.code, why.json["same_throughout"]) == (0, True)
